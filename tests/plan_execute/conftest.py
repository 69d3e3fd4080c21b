from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from switchyard_core.testing import Harness, conversation
from switchyard_core.wire import WIRE_FORMATS
from tests.support.policies import plan_execute_harness


@pytest.fixture(params=WIRE_FORMATS)
def wire_format(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["library", "http"])
def door(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def world(wire_format: str, door: str) -> Callable[..., Harness]:
    """Make a harness: the same test runs in three wire formats and through both doors."""
    return partial(plan_execute_harness, wire_format, door)


@pytest.fixture
def story(wire_format: str):
    """The beginning of a conversation."""
    return conversation(wire_format).system("house rules").user("fix the bug")
