"""Fixtures of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the loop that switchyard uses."""
    return "asyncio"


@pytest.fixture(scope="session")
def policy() -> Path:
    """Return the example policy of the plugin."""
    return Path(__file__).parents[1] / "policy.toml"
