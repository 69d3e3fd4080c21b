"""What carrying out a plan may take: arithmetic over the plan, never a call to a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from switchyard_core import ModelUsage, Price, ToolSpec
from switchyard_planner_executor.plan import Plan

__all__ = ["Basis", "Estimate", "Range", "cost_usd", "estimate"]

#: Characters that are counted as one token.
CHARS_PER_TOKEN = 4
#: Assumed tokens of an answer that only calls a tool: a name and a few words of arguments.
TOOL_CALL_TOKENS = 20
#: One part in so many of the cap on tool output is what a tool is expected to return.
EXPECTED_SHARE = 40
#: The lowest case divides what answers and tools are expected to say by this, the highest
#: multiplies it, up to their limits.
SPREAD = 4

Case = Literal["low", "expected", "high"]
_CASES: tuple[Case, ...] = ("low", "expected", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What an estimate is made from, besides the plan.

    Args:
        instructions: Instruction of the executor.
        step_texts: Message of each step, in order of the steps.
        tools: Tools that every call offers.
        output_tokens: Assumed length of an answer in tokens.
        max_output_tokens: Limit of an answer in tokens.
        max_tool_rounds: Most answers of one step that call tools.
        max_tool_output_chars: Cap on the output of a tool.
        target: Name of the target that is asked.
        model: Its model id.
        price: What it costs, ``None`` when the policy does not say.
    """

    instructions: str
    step_texts: Sequence[str]
    tools: Sequence[ToolSpec] = ()
    output_tokens: int = 300
    max_output_tokens: int = 4096
    max_tool_rounds: int = 8
    max_tool_output_chars: int = 20_000
    target: str = "executor"
    model: str = ""
    price: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """One figure in the three cases."""

    low: float
    expected: float
    high: float

    def as_json(self) -> dict[str, float]:
        """Return the three figures by name."""
        return {"low": self.low, "expected": self.expected, "high": self.high}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the calls to the executor may take; the plan itself is made already.

    Args:
        calls: Model calls.
        input_tokens: Tokens sent, over all calls.
        output_tokens: Tokens answered, over all calls.
        cost_usd: US dollars, ``None`` without a price.
        price: The price that was used.
        model: The model that it is the price of.
        target: Name of the target.
        assumptions: What was assumed, one sentence each.
    """

    calls: Range
    input_tokens: Range
    output_tokens: Range
    cost_usd: Range | None
    price: Price | None
    model: str
    target: str
    assumptions: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as plain data; ``cost_usd`` and ``price`` may be ``None``."""
        return {
            "calls": self.calls.as_json(),
            "input_tokens": self.input_tokens.as_json(),
            "output_tokens": self.output_tokens.as_json(),
            "cost_usd": self.cost_usd.as_json() if self.cost_usd else None,
            "price": _price_json(self.model, self.price) if self.price else None,
            "assumptions": list(self.assumptions),
        }

    def as_line(self) -> str:
        """Return the estimate as one sentence for people; the assumptions are elsewhere."""
        parts = [
            f"{_said(self.calls, _count)} model calls",
            f"{_said(self.input_tokens, _count)} input tokens",
            f"{_said(self.output_tokens, _count)} output tokens",
            "no price" if self.cost_usd is None else _said(self.cost_usd, _dollars),
        ]
        return f"Expected (lowest to highest): {'; '.join(parts)}."

    def as_text(self) -> str:
        """Return the estimate as a few lines for people, without a line break at the end."""
        rows = [
            f"calls: {_said(self.calls, _count)}",
            f"input tokens: {_said(self.input_tokens, _count)}",
            f"output tokens: {_said(self.output_tokens, _count)}",
        ]
        if self.cost_usd is None or self.price is None:
            rows.append(f"cost: no price for the target `{self.target}`")
        else:
            rows.append(f"cost: {_said(self.cost_usd, _dollars)}")
            rows.append(f"price of {self.model}: {_price_text(self.price)}")
        lines = ["Estimate (expected, in brackets the lowest and the highest):"]
        lines += [f"- {row}" for row in rows]
        lines += ["Assumed:", *(f"- {assumption}" for assumption in self.assumptions)]
        return "\n".join(lines)


def estimate(plan: Plan, basis: Basis) -> Estimate:
    """Return what carrying out a plan may take.

    Three cases: no step calls a tool, and answers are short; each step with a query calls one
    once; every step uses all its rounds, and answers and results are long. The highest case is
    no bound: models may be longer-winded. A route without tools has no rounds. An empty plan
    takes nothing.

    Args:
        plan: The plan.
        basis: Prompts, tools, assumptions and price.

    Raises:
        ValueError: ``step_texts`` has not one text per step.
    """
    taken = [_taken(plan, basis, case) for case in _CASES]
    price = basis.price
    return Estimate(
        calls=_range(calls for calls, _ in taken),
        input_tokens=_range(usage.input_tokens for _, usage in taken),
        output_tokens=_range(usage.output_tokens for _, usage in taken),
        cost_usd=_range(cost_usd(usage, price) for _, usage in taken) if price else None,
        price=basis.price,
        model=basis.model,
        target=basis.target,
        assumptions=tuple(_assumptions(basis)),
    )


def cost_usd(usage: ModelUsage, price: Price) -> float:
    """Return what some tokens cost, in US dollars.

    Input that was read from a cache counts at its own price if there is one, else as fresh.

    Args:
        usage: Tokens; the cached ones are part of the input.
        price: Prices per million tokens.
    """
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh = usage.input_tokens - cached
    total = fresh * price.input + cached * cached_price + usage.output_tokens * price.output
    return total / 1_000_000


def _range(figures: Iterable[float]) -> Range:
    low, expected, high = figures
    return Range(low=low, expected=expected, high=high)


def _taken(plan: Plan, basis: Basis, case: Case) -> tuple[int, ModelUsage]:
    """Walk through the calls of one case; each sends everything that was said before it."""
    always = _tokens([basis.instructions, *map(_tool_text, basis.tools)])
    asking, result = _call_tokens(case), _result_tokens(basis, case)
    answer = _answer_tokens(basis, case)
    said = calls = sent = answered = 0
    for step, text in zip(plan.steps, basis.step_texts, strict=True):
        said += _tokens([text])
        rounds = _rounds(basis, case, searches=step.query is not None)
        for number in range(rounds + 1):
            sent += always + said
            output = asking if number < rounds else answer
            answered += output
            said += output + result * (number < rounds)
        calls += rounds + 1
    return calls, ModelUsage(input_tokens=sent, output_tokens=answered)


def _rounds(basis: Basis, case: Case, *, searches: bool) -> int:
    if not basis.tools or case == "low":
        return 0
    return basis.max_tool_rounds if case == "high" else int(searches)


def _answer_tokens(basis: Basis, case: Case) -> int:
    assumed = basis.output_tokens
    if case == "low":
        return _ceiling(assumed, SPREAD)
    limit = max(assumed, basis.max_output_tokens)
    return min(assumed * SPREAD, limit) if case == "high" else assumed


def _call_tokens(case: Case) -> int:
    return TOOL_CALL_TOKENS * SPREAD if case == "high" else TOOL_CALL_TOKENS


def _result_tokens(basis: Basis, case: Case) -> int:
    cap = _ceiling(basis.max_tool_output_chars, CHARS_PER_TOKEN)
    expected = _ceiling(cap, EXPECTED_SHARE)
    return min(expected * SPREAD, cap) if case == "high" else expected


def _tool_text(tool: ToolSpec) -> str:
    return json.dumps([tool.name, tool.description, tool.parameters], default=dict)


def _tokens(texts: Iterable[str]) -> int:
    return sum(_ceiling(len(text), CHARS_PER_TOKEN) for text in texts)


def _ceiling(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _assumptions(basis: Basis) -> Iterator[str]:
    yield f"a token is {CHARS_PER_TOKEN} characters; no tokenizer was asked"
    short, assumed, long = (_answer_tokens(basis, case) for case in _CASES)
    yield f"an answer has {assumed} tokens, {short} in the lowest case and {long} in the highest"
    yield "each call sends again all that was said before it"
    if not basis.tools:
        yield "no tools are offered"
        return
    yield "lowest: no tool is called"
    yield (
        f"expected: a step with a query calls one tool once, in {_call_tokens('expected')} tokens, "
        f"and is told {_result_tokens(basis, 'expected')}, one part in {EXPECTED_SHARE} of what a "
        "tool may return"
    )
    yield (
        f"highest: every step calls tools {basis.max_tool_rounds} times, one at a time, in "
        f"{_call_tokens('high')} tokens, and is told {_result_tokens(basis, 'high')} each time"
    )


def _price_json(model: str, price: Price) -> dict[str, Any]:
    return {
        "model": model,
        "as_of": price.as_of.isoformat(),
        "input": price.input,
        "cached_input": price.cached_input,
        "output": price.output,
    }


def _price_text(price: Price) -> str:
    return (
        f"{price.input:g} USD per million tokens of input and {price.output:g} of output, "
        f"as of {price.as_of.isoformat()}"
    )


def _said(figure: Range, shown: Callable[[float], str]) -> str:
    return f"{shown(figure.expected)} ({shown(figure.low)} to {shown(figure.high)})"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _dollars(number: float) -> str:
    """Return dollars with four places, more where the first digit comes later."""
    return f"${number:.4f}" if number >= 0.001 or not number else f"${number:.2g}"
