"""A run that waits goes on with the very model that it was shown with."""

from __future__ import annotations

import pytest

from switchyard_core import TargetView
from switchyard_core.policy import Client, Target
from switchyard_planner_executor.saved import executor_of, is_for


def target(
    *, name="executor", model="model", wire="openai_chat", url="https://a.test", key="KEY"
) -> Target:
    client = Client(format=wire, base_url=url, api_key_env=key)
    return Target(name=name, id=model, llm_client=client)


SHOWN = target()


def test_run_is_for_the_target_that_it_was_shown_with() -> None:
    state = {"executor_model": executor_of(SHOWN)}

    assert is_for(state, target(name="renamed"))
    assert "a.test" not in str(state)


@pytest.mark.parametrize(
    "other",
    [
        target(model="other"),
        target(wire="anthropic_messages"),
        target(url="https://b.test"),
        target(key="OTHER"),
    ],
    ids=["model", "wire_format", "address", "key"],
)
def test_another_model_or_provider_behind_the_name_is_noticed(other: TargetView) -> None:
    assert not is_for({"executor_model": executor_of(SHOWN)}, other)
