"""How far one small request walks through the house."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_house.py"


async def test_small_request_passes_few_modules_and_calls() -> None:
    for what, passed, (modules, calls) in await runpy.run_path(str(SCRIPT))["walks"]():
        assert len(passed) <= modules, what
        assert passed.total() <= calls, what
