"""Settings for all tests; fixtures live beside the tests that use them."""

from __future__ import annotations

import os

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
