"""Settings for all tests; fixtures live beside the tests that use them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

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


@cache
def _scanned(group: str, *folders: tuple[str, int]) -> EntryPoints:
    return entry_points(group=group)


def _scanned_once(*, group: str) -> EntryPoints:
    """Return the installed plugins, looked for again only when a folder of the path changed."""
    folders = [(path, Path(path).stat().st_mtime_ns) for path in sys.path if Path(path).is_dir()]
    return _scanned(group, *folders)


@pytest.fixture(scope="session", autouse=True)
def installed_plugins_are_scanned_once() -> Iterator[None]:
    """Spare thousands of registries the look at every distribution that is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("switchyard_core.plugins.registry.installed_entry_points", _scanned_once)
        patch.setattr("switchyard_core.testing.harness.entry_points", _scanned_once)
        yield


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
