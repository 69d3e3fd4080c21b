"""What the tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the loop that switchyard uses."""
    return "asyncio"


@pytest.fixture(scope="session")
def policy() -> Path:
    """Return the policy that the plugin ships as its example."""
    return Path(__file__).parents[1] / "policy.toml"
