"""Settings for all tests; fixtures live beside the tests that use them."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import HealthCheck, settings

# One slow machine must not make a property flaky: pytest-timeout watches the time instead.
settings.register_profile("local", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the loop that the server uses."""
    return "asyncio"


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name a case for what it is: pytest's own names for values like these are numbers."""
    if isinstance(val, bool | str | bytes) or val is None or hasattr(val, "__name__"):
        return None
    if isinstance(val, int | float):
        return f"{argname}={val}"
    text = str(sorted(val, key=str) if isinstance(val, set | frozenset) else val)
    if " at 0x" in text:  # an address differs in each process, and xdist needs the same names
        return None
    return re.sub(r"[^\w.=]+", "_", text).strip("_")[:60] or f"{argname}=empty"
