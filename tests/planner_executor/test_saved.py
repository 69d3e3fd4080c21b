"""A run that waits goes on with the very model that it was shown with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from switchyard_core import TargetView
from switchyard_planner_executor.saved import executor_of, is_for

SHOWN = TargetView(
    name="executor",
    id="model",
    wire_format="openai_chat",
    origin=("https://a.test", "KEY"),
)


def test_run_is_for_the_target_that_it_was_shown_with() -> None:
    state = {"executor_model": executor_of(SHOWN)}

    assert is_for(state, replace(SHOWN, name="renamed"))
    assert "a.test" not in str(state)


@pytest.mark.parametrize(
    "other",
    [
        replace(SHOWN, id="other"),
        replace(SHOWN, wire_format="anthropic_messages"),
        replace(SHOWN, origin=("https://b.test", "KEY")),
        replace(SHOWN, origin=("https://a.test", "OTHER")),
    ],
    ids=["model", "wire_format", "address", "key"],
)
def test_another_model_or_provider_behind_the_name_is_noticed(other: TargetView) -> None:
    assert not is_for({"executor_model": executor_of(SHOWN)}, other)
