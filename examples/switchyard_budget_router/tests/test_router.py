"""What sessions spend, and where that sends them."""

from __future__ import annotations

from pathlib import Path

import pytest
from switchyard_core.testing import FakeReply, Harness, conversation

from switchyard_budget import BudgetPlugin

MODEL = "switchyard/budget"
STORY = conversation("openai_chat").user("fix the bug")
SUB_AGENT = {"x-switchyard-is-subagent": "true", "x-switchyard-agent-id": "worker"}


def answer(**usage: object) -> FakeReply:
    said = {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}
    return FakeReply(body={**said, "usage": usage} if usage else said)


#: Costs $1 at the prices of `large`, $0.1 at those of `small`.
DOLLAR = answer(prompt_tokens=100_000, completion_tokens=20_000)


def harness(policy: Path | str, *replies: FakeReply, capacity: int = 10) -> Harness:
    return Harness(policy, plugins=[BudgetPlugin(capacity)], replies=replies)


async def route(harness: Harness, session: str = "s", **headers: str) -> tuple[str, str]:
    decision = (await harness.run(STORY.request(MODEL, session=session, headers=headers))).decision
    return decision.target, decision.reason.code


async def test_session_that_has_spent_its_budget_goes_to_the_cheap_target(policy: Path) -> None:
    made = harness(policy, *[DOLLAR] * 4)

    found = [await route(made) for _ in range(4)]

    assert found == [("large", "within_budget")] * 2 + [("small", "over_budget")] * 2
    assert await route(made, "another") == ("large", "within_budget")


async def test_decision_says_what_was_spent(policy: Path) -> None:
    made = harness(policy, DOLLAR)
    await route(made)

    decision = await made.decide(STORY.request(MODEL, session="s"))

    assert decision.reason.detail == "this session spent $1.0000 of $2"


async def test_sub_agents_spend_the_budget_of_their_session(policy: Path) -> None:
    made = harness(policy, DOLLAR, DOLLAR)
    await route(made, **SUB_AGENT)
    await route(made, **SUB_AGENT)

    assert await route(made) == ("small", "over_budget")


@pytest.mark.parametrize(
    ("details", "dollars"),
    [
        ({}, 0.505),
        ({"cached_tokens": 100_000}, 0.055),
        ({"cache_write_tokens": 100_000}, 0.63),
        ({"cached_tokens": 50_000, "cache_write_tokens": 50_000}, 0.3425),
    ],
    ids=["fresh", "cached", "written", "both"],
)
async def test_tokens_of_a_cache_have_their_own_price(
    policy: Path, details: dict[str, int], dollars: float
) -> None:
    taken = {"prompt_tokens": 100_000, "completion_tokens": 200, "prompt_tokens_details": details}
    made = harness(policy, answer(**taken))
    await route(made)

    decision = await made.decide(STORY.request(MODEL, session="s"))

    assert decision.reason.detail == f"this session spent ${dollars:.4f} of $2"


async def test_answers_without_usage_and_requests_without_a_session_spend_nothing(
    policy: Path,
) -> None:
    made = harness(policy, answer(), *[DOLLAR] * 3)

    assert await route(made) == ("large", "within_budget")
    for _ in range(3):
        assert await route(made, "") == ("large", "no_session")
    assert "spent $0.0000" in (await made.decide(STORY.request(MODEL, session="s"))).reason.detail


async def test_session_that_was_quiet_for_longest_is_forgotten(policy: Path) -> None:
    made = harness(policy, *[DOLLAR] * 5, capacity=2)
    for session in ("a", "a", "b", "c"):
        await route(made, session)

    assert await route(made, "a") == ("large", "within_budget")


OTHER_PROVIDER = """
[llm_clients.other]
format = "openai_chat"
base_url = "https://other.example.com/v1"

[targets.small]
id = "provider/small"
llm_client = "other"
"""


async def test_history_goes_to_another_provider_without_what_only_the_first_can_read(
    policy: Path,
) -> None:
    before, _, after = policy.read_text(encoding="utf-8").partition("[targets.small]")
    text = before + OTHER_PROVIDER + after.partition('"provider"\n')[2]
    made = harness(text, DOLLAR, DOLLAR)
    await route(made)
    await route(made)
    story = STORY.reasoning("secret", encrypted="sealed").says("Done.").user("go on")

    routed = await made.run(story.request(MODEL, session="s"))

    assert routed.decision.target == "small"
    assert b"sealed" not in routed.outgoing.body
    assert b"Done." in routed.outgoing.body
