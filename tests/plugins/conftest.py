from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from switchyard_core import WIRE_FORMATS
from switchyard_core.testing import conversation
from tests.support.routes import RouteWorld


@pytest.fixture(params=WIRE_FORMATS)
def wire_format(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["library", "http"])
def door(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def world(wire_format: str, door: str) -> Callable[..., RouteWorld]:
    """Make a world: the same test runs in three wire formats and through both doors."""

    def make(**settings: Any) -> RouteWorld:
        return RouteWorld(wire_format, door, **settings)

    return make


@pytest.fixture
def story(wire_format: str):
    """The beginning of a conversation."""
    return conversation(wire_format).system("house rules").user("fix the bug")
