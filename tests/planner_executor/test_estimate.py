"""What carrying out a plan may take, by arithmetic alone."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import Price, Replay, Request, Switchyard
from switchyard_core.answering import Extension, ToolSpec
from switchyard_core.testing import registry_of
from switchyard_core.world import World
from switchyard_planner_executor import PlannerExecutorOptions, PlanStep
from switchyard_planner_executor.estimate import Estimate, estimate
from tests.planner_executor.shop import PLUGINS, RECORDED_TASK, ROOT, View

PRICE = Price(
    as_of=dt.date(2026, 1, 31), input=2.0, output=10.0, cached_input=None, cache_write=None
)
SEARCH = ToolSpec(name="search", description="finds products", parameters={"type": "object"})
TOOL_TOKENS = -(-len(json.dumps(["search", "finds products", {"type": "object"}])) // 4)


def estimated(
    *queries: str | None,
    texts: list[str] | None = None,
    instructions: str = "y" * 400,
    tools: tuple[ToolSpec, ...] = (SEARCH,),
    price: Price | None = None,
    **options: Any,
) -> Estimate:
    """Return the estimate of steps with these queries; each message has 10 tokens."""
    steps = [PlanStep(step=n, action="act", query=q) for n, q in enumerate(queries, 1)]
    return estimate(
        steps,
        ["x" * 40 for _ in steps] if texts is None else texts,
        instructions=instructions,
        tools=tools,
        options=PlannerExecutorOptions(planner_target="p", executor_target="e", **options),
        target=View(name="runner", id="p/x", price=price),
    )


# --- recorded runs ---------------------------------------------------------------------------

#: Input and output tokens of each call of a run of four steps, the first of which searched.
RECORDED = [(196, 17), (311, 63), (400, 61), (489, 143), (659, 64)]
SENT = sum(sent for sent, _ in RECORDED)
ANSWERED = sum(answered for _, answered in RECORDED)


def recorded(output_tokens: int) -> Estimate:
    """Return the estimate of that run, with prompts as long as its calls show them to be."""
    # What call 3 sends beyond call 2 is that answer and the message of step 2, and so on.
    messages = [400 - 311 - 63, 489 - 400 - 61, 659 - 489 - 143]
    first = 44  # the message of step 1, which also names tool and query
    return estimated(
        "photography",
        None,
        None,
        None,
        instructions="i" * 4 * (196 - first - TOOL_TOKENS + 1),
        texts=["m" * 4 * tokens for tokens in (first, *messages)],
        estimate_output_tokens=output_tokens,
    )


def test_recorded_run_is_met_within_a_factor_of_one_and_a_half() -> None:
    calls = recorded(70).calls
    assert (calls.low, calls.expected, calls.high) == (4, len(RECORDED), 36)

    found = recorded(round(ANSWERED / len(RECORDED)))
    assert SENT / 1.5 < found.input_tokens.expected < SENT * 1.5
    assert ANSWERED / 1.5 < found.output_tokens.expected < ANSWERED * 1.5
    for output_tokens in (70, 300):
        found = recorded(output_tokens)
        assert found.input_tokens.low < SENT < found.input_tokens.high
        assert found.output_tokens.low < ANSWERED < found.output_tokens.high


async def test_shipped_recording_is_met_within_a_factor_of_one_and_a_half() -> None:
    yard = Switchyard.from_policy(
        ROOT / "policies/planner_executor.toml",
        registry=registry_of(PLUGINS),
        world=World(environ={}),
        replay=Replay(ROOT / "policies/recordings/planner_executor", "replay"),
    )
    body = {"model": "switchyard/shop", "messages": [{"role": "user", "content": RECORDED_TASK}]}

    events = [e async for e in yard.answer(Request(wire_format="openai_chat", body=body))]

    (answer,) = [event.data for event in events if isinstance(event, Extension)]
    found, actual = answer["estimate"], answer["estimate"]["actual"]
    assert found["calls"]["expected"] == actual["calls"] == 5
    for kind in ("input_tokens", "output_tokens"):
        assert actual[kind] / 1.5 <= found[kind]["expected"] <= actual[kind] * 1.5
        assert answer["usage"]["executor"][kind] == actual[kind]
    assert found["price"]["as_of"] == "2026-11-01"
    cost = found["cost_usd"]
    assert 0 < cost["low"] <= cost["expected"] <= cost["high"]


# --- arithmetic ------------------------------------------------------------------------------


def test_each_call_sends_everything_that_was_said_before() -> None:
    found = estimated(None, None, tools=(), estimate_output_tokens=50)

    # 100 tokens of instructions; messages of 10 tokens; the first answer goes along.
    assert found.input_tokens.expected == (100 + 10) + (100 + 10 + 50 + 10)
    assert found.output_tokens.expected == 100
    assert asdict(found.calls) == {"low": 2, "expected": 2, "high": 2}


def test_step_with_a_query_takes_a_short_call_and_a_result_more() -> None:
    found = estimated("camera", max_tool_output_chars=16_000, estimate_output_tokens=50)

    sent = 100 + TOOL_TOKENS + 10
    assert found.calls.expected == 2
    assert found.output_tokens.expected == 20 + 50
    assert found.input_tokens.expected == sent + (sent + 20 + 100)
    assert found.input_tokens.low == sent


def test_highest_case_uses_every_round_of_every_step() -> None:
    found = estimated(None, max_tool_rounds=2, max_tool_output_chars=400, estimate_output_tokens=50)

    # A call that asks for a tool takes 80 tokens; a result 12, four times one part in 40 of 100.
    assert found.calls.high == 3
    assert found.output_tokens.high == 80 + 80 + 4 * 50
    assert found.input_tokens.high == 3 * found.input_tokens.low + (1 + 2) * (80 + 12)


def test_answers_are_never_thought_longer_than_their_limit() -> None:
    found = estimated(None, estimate_output_tokens=90, executor_max_tokens=100)

    assert (found.output_tokens.low, found.output_tokens.expected) == (23, 90)
    assert found.output_tokens.high == 8 * 80 + 100


def test_empty_plan_takes_nothing() -> None:
    data = estimated(price=PRICE).as_json()

    zero = {"low": 0, "expected": 0, "high": 0}
    keys = ("calls", "input_tokens", "output_tokens", "cost_usd")
    assert [data[key] for key in keys] == [zero] * 4


def test_texts_that_do_not_fit_the_steps_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        estimated(None, None, texts=["x"])


@given(
    st.lists(st.none() | st.just("camera"), max_size=6),
    st.integers(1, 2000),
    st.integers(1, 9),
    st.integers(100, 50_000),
    st.booleans(),
)
def test_expected_lies_between_low_and_high(
    queries: list[str | None], output: int, rounds: int, chars: int, tools: bool
) -> None:
    found = estimated(
        *queries,
        estimate_output_tokens=output,
        max_tool_rounds=rounds,
        max_tool_output_chars=chars,
        tools=(SEARCH,) if tools else (),
        price=PRICE,
    )

    assert found.cost_usd is not None
    for figure in (found.calls, found.input_tokens, found.output_tokens, found.cost_usd):
        assert 0 <= figure.low <= figure.expected <= figure.high
    assert found.calls.low == len(queries)
    if tools:
        assert found.calls.high == len(queries) * (1 + rounds)
        assert found.calls.expected == len(queries) + queries.count("camera")


# --- what is shown ---------------------------------------------------------------------------


def test_cost_is_tokens_times_the_dated_price() -> None:
    found = estimated(None, tools=(), estimate_output_tokens=100, price=PRICE)

    assert found.cost_usd is not None
    assert found.cost_usd.expected == pytest.approx((110 * 2 + 100 * 10) / 1e6)
    assert found.as_json()["price"] == {
        "model": "p/x",
        "as_of": "2026-01-31",
        "input": 2.0,
        "cached_input": None,
        "output": 10.0,
    }
    text = found.as_text()
    assert "price of p/x: 2 USD per million tokens of input and 10 of output" in text
    assert "as of 2026-01-31" in text
    assert "- cost: $0.0012 (" in text
    assert "; $0.0012 (" in found.as_line()


def test_target_without_a_price_shows_tokens_and_no_figure() -> None:
    found = estimated(None)

    assert (found.cost_usd, found.as_json()["cost_usd"], found.as_json()["price"]) == (None,) * 3
    assert "no price for the target `runner`" in found.as_text()
    assert "$" not in found.as_text()
    assert "tokens sent: " in found.as_text()
    assert found.as_summary().endswith(" calls.")
    assert found.as_line().endswith("; no price.")


def test_text_and_data_name_the_counter_and_every_assumption() -> None:
    found = estimated("camera", estimate_output_tokens=123)

    for word in ("4 characters", "123 tokens"):
        assert any(word in assumption for assumption in found.assumptions)
    assert found.as_json()["assumptions"] == list(found.assumptions)
    for assumption in found.assumptions:
        assert assumption in found.as_text()
    assert json.loads(json.dumps(found.as_json())) == found.as_json()
