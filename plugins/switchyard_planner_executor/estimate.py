"""What carrying out a plan may take: arithmetic over the plan, never a call to a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from switchyard_core import Price, TargetView
from switchyard_core.answering import ToolSpec
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import PlanStep

__all__ = ["Estimate", "Range", "estimate"]

#: Characters that are counted as one token.
CHARS_PER_TOKEN = 4
#: Assumed tokens of an answer that only calls a tool: a name and a few words of arguments.
TOOL_CALL_TOKENS = 20
#: A tool is expected to return one part in so many of the limit on its output.
EXPECTED_SHARE = 40
#: The lowest case divides the expected length of answers by this; the highest multiplies the
#: lengths of answers and results, up to their limits.
SPREAD = 4


@dataclass(frozen=True, slots=True)
class Range:
    """One figure in the three cases."""

    low: float
    expected: float
    high: float

    def as_text(self, shown: Callable[[float], str] = "{:,.0f}".format) -> str:
        """Return the expected figure, with the other two in brackets."""
        return f"{shown(self.expected)} ({shown(self.low)} to {shown(self.high)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the executor's calls may take; ``cost_usd`` is ``None`` without a ``price``."""

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
        price = None
        if self.price is not None:
            keys = ("input", "cached_input", "output")
            figures = {key: getattr(self.price, key) for key in keys}
            price = {"model": self.model, "as_of": self.price.as_of.isoformat(), **figures}
        return {
            "calls": asdict(self.calls),
            "input_tokens": asdict(self.input_tokens),
            "output_tokens": asdict(self.output_tokens),
            "cost_usd": asdict(self.cost_usd) if self.cost_usd else None,
            "price": price,
            "assumptions": list(self.assumptions),
        }

    def as_line(self) -> str:
        """Return the estimate as one sentence for people, without the assumptions."""
        cost = "no price" if self.cost_usd is None else self.cost_usd.as_text(_dollars)
        return (
            f"Expected (lowest to highest): {self.calls.as_text()} model calls; "
            f"{self.input_tokens.as_text()} input tokens; "
            f"{self.output_tokens.as_text()} output tokens; {cost}."
        )

    def as_summary(self) -> str:
        """Return the estimate as one short sentence."""
        expected, high = self.calls.expected, self.calls.high
        usual, most = f"{expected:,.0f} model call{'s' * (expected != 1)}", f"{high:,.0f} calls"
        if self.cost_usd is not None:
            usual += f" and {_dollars(self.cost_usd.expected)}"
            most += f" and {_dollars(self.cost_usd.high)}"
        return f"Running it takes about {usual}; if every step needs long, about {most}."

    def as_text(self) -> str:
        """Return the estimate as a few lines for people, without a line break at the end."""
        price, costs = self.price, [f"cost: no price for the target `{self.target}`"]
        if self.cost_usd is not None and price is not None:
            dated = (
                f"price of {self.model}: {price.input:g} USD per million tokens of input and "
                f"{price.output:g} of output, as of {price.as_of.isoformat()}"
            )
            costs = [f"cost: {self.cost_usd.as_text(_dollars)}", dated]
        lines = [
            "What the steps may take (in brackets the least and the most):",
            f"- calls to the model: {self.calls.as_text()}",
            f"- tokens sent: {self.input_tokens.as_text()}",
            f"- tokens received: {self.output_tokens.as_text()}",
            *(f"- {cost}" for cost in costs),
            "How this is counted:",
            *(f"- {assumption}" for assumption in self.assumptions),
        ]
        return "\n".join(lines)


def estimate(
    steps: Sequence[PlanStep],
    step_texts: Sequence[str],
    *,
    instructions: str,
    tools: Sequence[ToolSpec],
    options: PlannerExecutorOptions,
    target: TargetView,
) -> Estimate:
    """Return what carrying out some steps may take.

    Three cases: no step calls a tool, and answers are short; each step with a query calls one
    once; every step uses all its rounds, and answers and results are long. The highest case is
    not a bound: models may answer at greater length.
    """
    offered = (json.dumps([t.name, t.description, t.parameters], default=dict) for t in tools)
    always = _tokens([instructions, *offered])
    cases = _cases(options, offers_tools=bool(tools))
    taken = [_taken(steps, step_texts, always, case) for case in cases]
    price, cost = target.price, None
    if price is not None:
        cost = Range(*((sent * price.input + out * price.output) / 1e6 for _, sent, out in taken))
    calls, sent_tokens, output_tokens = (Range(*figures) for figures in zip(*taken, strict=True))
    return Estimate(
        calls=calls,
        input_tokens=sent_tokens,
        output_tokens=output_tokens,
        cost_usd=cost,
        price=price,
        model=target.id,
        target=target.name,
        assumptions=tuple(_assumptions(cases, options, offers_tools=bool(tools))),
    )


class _Case(NamedTuple):
    """What is assumed: rounds of tools of a step without and with a query, lengths in tokens."""

    rounds: tuple[int, int]
    call: int
    result: int
    answer: int


def _cases(options: PlannerExecutorOptions, *, offers_tools: bool) -> tuple[_Case, _Case, _Case]:
    most = options.max_tool_rounds * offers_tools
    longest = _ceiling(options.max_tool_output_chars, CHARS_PER_TOKEN)
    result = _ceiling(longest, EXPECTED_SHARE)
    answer = options.estimate_output_tokens
    return (
        _Case((0, 0), TOOL_CALL_TOKENS, result, _ceiling(answer, SPREAD)),
        _Case((0, int(offers_tools)), TOOL_CALL_TOKENS, result, answer),
        _Case(
            (most, most),
            TOOL_CALL_TOKENS * SPREAD,
            min(result * SPREAD, longest),
            min(answer * SPREAD, max(answer, options.executor_max_tokens)),
        ),
    )


def _taken(
    steps: Sequence[PlanStep], texts: Sequence[str], always: int, case: _Case
) -> tuple[int, int, int]:
    """Return calls, tokens sent and tokens answered; each call sends all that was said before."""
    said = calls = sent = answered = 0
    for step, text in zip(steps, texts, strict=True):
        said += _tokens([text])
        rounds = case.rounds[step.query is not None]
        for number in range(rounds + 1):
            sent += always + said
            output = case.call if number < rounds else case.answer
            answered += output
            said += output + case.result * (number < rounds)
        calls += rounds + 1
    return calls, sent, answered


def _tokens(texts: Iterable[str]) -> int:
    return sum(_ceiling(len(text), CHARS_PER_TOKEN) for text in texts)


def _ceiling(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _assumptions(
    cases: tuple[_Case, _Case, _Case], options: PlannerExecutorOptions, *, offers_tools: bool
) -> Iterator[str]:
    low, expected, high = cases
    yield f"{CHARS_PER_TOKEN} characters count as one token"
    yield (f"an answer has {expected.answer} tokens; at least {low.answer}, at most {high.answer}")
    yield "each call sends the whole conversation so far again"
    if not offers_tools:
        yield "there are no tools to call"
        return
    yield "at least: no step calls a tool"
    yield (
        f"expected: a step with a search calls a tool once; the call has {expected.call} tokens "
        f"and the result {expected.result}"
    )
    yield (
        f"at most: every step calls tools {options.max_tool_rounds} times; each call has "
        f"{high.call} tokens and each result {high.result}"
    )


def _dollars(number: float) -> str:
    """Return dollars with four places, more where the first digit comes later."""
    return f"${number:.4f}" if number >= 0.001 or not number else f"${number:.2g}"
