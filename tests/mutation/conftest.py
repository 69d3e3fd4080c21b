from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def load_benchmark() -> Callable[[str], ModuleType]:
    """Return what imports a benchmark, a script that is in no package."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(
            f"switchyard_{name}", BENCHMARKS / f"{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look their module up by name.
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
        return module

    return load
