"""Where requests go, and what is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from switchyard_core import Decision
from switchyard_core.testing import Harness, conversation
from syrupy.assertion import SnapshotAssertion

import switchyard_sticky

MODEL = "switchyard/sticky"
STORY = conversation("openai_chat").system("house rules").user("fix the bug")


@pytest.fixture
def harness(policy: Path) -> Harness:
    return Harness(policy, plugins=[switchyard_sticky])


async def decide(harness: Harness, number: int, **headers: str) -> Decision:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await harness.decide(STORY.request(MODEL, session=f"session-{number}", headers=named))


async def test_session_keeps_its_target(harness: Harness) -> None:
    first = [await decide(harness, number) for number in range(20)]
    again = [await decide(harness, number) for number in range(20)]

    assert first == again
    assert {decision.target for decision in first} == {"large", "small"}
    assert {decision.reason.code for decision in first} == {"session"}


async def test_sub_agent_stays_with_its_session(harness: Harness) -> None:
    marks = {"x_switchyard_is_subagent": "true", "x_switchyard_agent_id": "worker"}

    for number in range(20):
        alone, helped = await decide(harness, number), await decide(harness, number, **marks)
        assert helped.target == alone.target


async def test_sub_agent_has_its_own_target_with_per_agent(policy: Path) -> None:
    text = policy.read_text(encoding="utf-8").replace("default =", 'per = "agent"\ndefault =')
    harness = Harness(text, plugins=[switchyard_sticky])
    marks = {"x_switchyard_is_subagent": "true", "x_switchyard_agent_id": "worker"}

    pairs = [(await decide(harness, n), await decide(harness, n, **marks)) for n in range(20)]

    assert {first.target == second.target for first, second in pairs} == {True, False}


async def test_request_without_a_session_goes_to_the_default(harness: Harness) -> None:
    decision = await harness.decide(STORY.request(MODEL))

    assert (decision.target, decision.reason.code) == ("small", "no_session")


async def test_outgoing_body(harness: Harness, body_snapshot: SnapshotAssertion) -> None:
    story = STORY.reads("read_file", path="src/app.py").says("I have read it.").user("go on")

    routed = await harness.run(story.request(MODEL, session="session-1", seed=7))

    assert routed.outgoing.body == body_snapshot
