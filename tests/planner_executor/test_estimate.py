from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import ModelUsage, Price, ToolSpec
from switchyard_planner_executor.estimate import Basis, cost_usd, estimate
from switchyard_planner_executor.plan import Plan, PlanStep

PRICE = Price(
    as_of=dt.date(2026, 1, 31), input=2.0, output=10.0, cached_input=None, cache_write=None
)
SEARCH = ToolSpec(name="search", description="finds products", parameters={"type": "object"})


def plan_of(*queries: str | None) -> Plan:
    steps = [PlanStep(step=n, action="act", query=q) for n, q in enumerate(queries, 1)]
    return Plan(goal="a gift", steps=steps)


def basis_of(plan: Plan, **changes: object) -> Basis:
    texts = ["x" * 40 for _ in plan.steps]
    return replace(Basis(instructions="y" * 400, step_texts=texts, tools=[SEARCH]), **changes)


# --- the recorded run -----------------------------------------------------------------------------

#: Input and output tokens of each call of a run of four steps, the first of which searched.
RECORDED = [(196, 17), (311, 63), (400, 61), (489, 143), (659, 64)]
SENT = sum(sent for sent, _ in RECORDED)
ANSWERED = sum(answered for _, answered in RECORDED)


def recorded(output_tokens: int) -> tuple[Plan, Basis]:
    """Return the plan of that run, with prompts as long as its calls show them to be."""
    plan = plan_of("photography", None, None, None)
    # What call 3 sends beyond call 2 is that answer and the message of step 2, and so on.
    messages = [400 - 311 - 63, 489 - 400 - 61, 659 - 489 - 143]
    first = 44  # the message of step 1, which also names tool and query
    tool = len(json.dumps([SEARCH.name, SEARCH.description, SEARCH.parameters])) // 4
    return plan, Basis(
        instructions="i" * 4 * (196 - first - tool),
        step_texts=["m" * 4 * tokens for tokens in (first, *messages)],
        tools=[SEARCH],
        output_tokens=output_tokens,
    )


def test_calls_of_the_recorded_run_are_exact() -> None:
    calls = estimate(*recorded(70)).calls

    assert calls.expected == len(RECORDED) == 5
    assert (calls.low, calls.high) == (4, 36)


def test_tokens_of_the_recorded_run_are_within_a_factor_of_one_and_a_half() -> None:
    found = estimate(*recorded(round(ANSWERED / len(RECORDED))))

    assert SENT / 1.5 < found.input_tokens.expected < SENT * 1.5
    assert ANSWERED / 1.5 < found.output_tokens.expected < ANSWERED * 1.5


@pytest.mark.parametrize("output_tokens", [70, 300])
def test_tokens_of_the_recorded_run_lie_between_lowest_and_highest(output_tokens: int) -> None:
    found = estimate(*recorded(output_tokens))

    assert found.input_tokens.low < SENT < found.input_tokens.high
    assert found.output_tokens.low < ANSWERED < found.output_tokens.high


# --- arithmetic -----------------------------------------------------------------------------------


def test_each_call_sends_everything_that_was_said_before() -> None:
    plan = plan_of(None, None)
    found = estimate(plan, basis_of(plan, tools=[], output_tokens=50))

    # 100 tokens of instructions; messages of 10 tokens; the first answer goes along.
    assert found.input_tokens.expected == (100 + 10) + (100 + 10 + 50 + 10)
    assert found.output_tokens.expected == 100
    assert found.calls.as_json() == {"low": 2, "expected": 2, "high": 2}


def test_step_with_a_query_takes_a_short_call_and_a_result_more() -> None:
    plan = plan_of("camera")
    basis = basis_of(plan, max_tool_output_chars=16_000, output_tokens=50)
    tool = -(-len(json.dumps(["search", "finds products", {"type": "object"}])) // 4)
    found = estimate(plan, basis)

    sent = 100 + tool + 10
    assert found.calls.expected == 2
    assert found.output_tokens.expected == 20 + 50
    assert found.input_tokens.expected == sent + (sent + 20 + 100)
    assert found.input_tokens.low == sent


def test_highest_case_uses_every_round_of_every_step() -> None:
    plan = plan_of(None)
    found = estimate(
        plan, basis_of(plan, max_tool_rounds=2, max_tool_output_chars=400, output_tokens=50)
    )

    # A call that asks for a tool takes 80 tokens; a result 12, four times one part in 40 of 100.
    assert found.calls.high == 3
    assert found.output_tokens.high == 80 + 80 + 4 * 50
    assert found.input_tokens.high == 3 * found.input_tokens.low + (1 + 2) * (80 + 12)


def test_answers_are_never_thought_longer_than_their_limit() -> None:
    plan = plan_of(None)
    found = estimate(plan, basis_of(plan, output_tokens=90, max_output_tokens=100))

    assert (found.output_tokens.low, found.output_tokens.expected) == (23, 90)
    assert found.output_tokens.high == 8 * 80 + 100


def test_empty_plan_takes_nothing() -> None:
    plan = plan_of()
    found = estimate(plan, basis_of(plan, price=PRICE))

    zero = {"low": 0, "expected": 0, "high": 0}
    data = found.as_json()
    assert [data[key] for key in ("calls", "input_tokens", "output_tokens")] == [zero] * 3
    assert data["cost_usd"] == zero


def test_texts_that_do_not_fit_the_steps_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        estimate(plan_of(None, None), basis_of(plan_of(None)))


@given(
    st.lists(st.none() | st.just("camera"), max_size=6),
    st.integers(1, 2000),
    st.integers(1, 9),
    st.integers(100, 50_000),
    st.booleans(),
)
def test_expected_lies_between_low_and_high(
    queries: list[str | None], output: int, rounds: int, cap: int, tools: bool
) -> None:
    plan = plan_of(*queries)
    basis = basis_of(
        plan,
        output_tokens=output,
        max_tool_rounds=rounds,
        max_tool_output_chars=cap,
        tools=[SEARCH] if tools else [],
        price=PRICE,
    )
    found = estimate(plan, basis)

    assert found.cost_usd is not None
    for figure in (found.calls, found.input_tokens, found.output_tokens, found.cost_usd):
        assert 0 <= figure.low <= figure.expected
    assert found.calls.expected <= found.calls.high
    assert found.calls.low == len(queries)
    if tools:
        assert found.calls.high == len(queries) * (1 + rounds)
        assert found.calls.expected == len(queries) + plan.searches


# --- cost -----------------------------------------------------------------------------------------


def test_cost_is_tokens_times_the_dated_price() -> None:
    plan = plan_of(None)
    found = estimate(plan, basis_of(plan, tools=[], output_tokens=100, price=PRICE, model="p/x"))

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


def test_target_without_a_price_shows_tokens_and_no_figure() -> None:
    plan = plan_of(None)
    found = estimate(plan, basis_of(plan, target="runner"))

    assert found.cost_usd is None
    assert found.as_json()["cost_usd"] is None
    assert found.as_json()["price"] is None
    assert "no price for the target `runner`" in found.as_text()
    assert "$" not in found.as_text()
    assert "input tokens: " in found.as_text()


def test_text_and_data_name_the_counter_and_every_assumption() -> None:
    plan = plan_of("camera")
    found = estimate(plan, basis_of(plan, output_tokens=123))

    assert any("4 characters" in assumption for assumption in found.assumptions)
    assert any("123 tokens" in assumption for assumption in found.assumptions)
    assert found.as_json()["assumptions"] == list(found.assumptions)
    for assumption in found.assumptions:
        assert assumption in found.as_text()
    assert json.loads(json.dumps(found.as_json())) == found.as_json()


@pytest.mark.parametrize(
    ("usage", "cached_price", "dollars"),
    [
        pytest.param(ModelUsage(), None, 0.0, id="nothing"),
        pytest.param(ModelUsage(input_tokens=1_000_000), None, 2.0, id="input"),
        pytest.param(ModelUsage(output_tokens=1_000_000), None, 10.0, id="output"),
        pytest.param(
            ModelUsage(input_tokens=1_000_000, cached_tokens=400_000), 0.5, 1.4, id="cached"
        ),
        pytest.param(
            ModelUsage(input_tokens=1_000_000, cached_tokens=400_000),
            None,
            2.0,
            id="no cache price",
        ),
        pytest.param(
            ModelUsage(input_tokens=1_000_000, cached_tokens=400_000), 0.0, 1.2, id="free cache"
        ),
        pytest.param(
            ModelUsage(input_tokens=100_000, cached_tokens=400_000), 0.5, 0.05, id="more cached"
        ),
    ],
)
def test_actual_cost(usage: ModelUsage, cached_price: float | None, dollars: float) -> None:
    assert cost_usd(usage, replace(PRICE, cached_input=cached_price)) == pytest.approx(dollars)
