"""Reading a plan: either it is a plan, or it is an error that says why and carries the text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from switchyard_core import DecisionWarning, ModelReply, SwitchyardError
from switchyard_planner_executor.plan import Plan
from switchyard_planner_executor.strict_json import NotJsonError, RepeatedKeyError, loads

__all__ = ["PlanError", "PlanFault", "ReadPlan", "read_plan", "read_plan_value"]

#: Why something is no plan.
PlanFault = Literal[
    "empty", "not_json", "schema", "numbering", "too_many_steps", "truncated", "refused"
]

#: Words by which a provider says that its filter held the answer back.
_FILTERED = frozenset({"content_filter", "safety"})
#: pydantic's error types, and what should have stood there.
_WANTED = {
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "tuple_type": "must be an array",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "missing": "is missing",
    "extra_forbidden": "is not a key that a plan has",
}
_FENCE = "```"
_SHOWN_CHARS = 200


class PlanError(SwitchyardError):
    """What should be a plan is none.

    Args:
        reason: ``refused``, ``truncated``, ``empty``, ``not_json``, ``schema``, ``numbering`` or
            ``too_many_steps``: the first of these checks that failed.
        raw_text: The whole text that was read; for a refusal what was said instead.
        detail: What is wrong and where, one sentence; can be told to the planner.
    """

    def __init__(self, reason: PlanFault, raw_text: str, detail: str) -> None:
        self.reason = reason
        self.raw_text = raw_text
        self.detail = detail
        text = raw_text if len(raw_text) <= _SHOWN_CHARS else f"{raw_text[:_SHOWN_CHARS]}…"
        said = f"; it is {text!r}" if text else ""
        super().__init__(f"the plan cannot be used ({reason}): {detail}{said}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A plan that was read, and what the reader put right.

    Args:
        plan: Its steps are numbered without gaps, in order.
        warnings: ``plan_reordered`` when the steps came in another order.
    """

    plan: Plan
    warnings: tuple[DecisionWarning, ...] = ()


def read_plan(
    reply: ModelReply, *, max_steps: int, lenient: bool = False, first: int = 1
) -> ReadPlan:
    """Read the plan that a model answered with.

    Args:
        reply: Its answer.
        max_steps: Most steps that a plan may have.
        lenient: Take exactly one code fence off that encloses the whole answer.
        first: Number of the first step; a plan for the rest goes on where the work stands.

    Raises:
        PlanError: It is no plan. Nothing is guessed, cut or repaired, but the order of steps
            whose numbers are complete.
    """
    text = reply.text
    if reply.refusal or reply.stop in _FILTERED:
        raise PlanError("refused", reply.refusal or text, "the planner refused to answer")
    if reply.truncated:
        raise PlanError(
            "truncated", text, f"the answer was cut at the limit of its tokens ({reply.stop})"
        )
    if not text.strip():
        raise PlanError("empty", text, "the answer has no text")
    fenced = text.strip().startswith(_FENCE)
    try:
        value = loads(_unfenced(text) if lenient else text)
    except NotJsonError as error:
        detail = f"not JSON: {error}"
        if fenced and not lenient:
            detail = 'the answer is in a code fence; `planner_output = "lenient"` takes one off'
        raise PlanError("not_json", text, detail) from None
    except RepeatedKeyError as error:
        raise PlanError("schema", text, str(error)) from None
    return _checked(value, text, max_steps=max_steps, first=first)


def read_plan_value(value: Any, *, max_steps: int, first: int = 1) -> ReadPlan:
    """Read a plan that somebody gives: an edited one, a saved one, one written by hand.

    Args:
        value: Parsed JSON, or a :class:`Plan`.
        max_steps: Most steps that a plan may have.
        first: Number of the first step.

    Raises:
        PlanError: It is no plan; the same checks as for a model's, from ``schema`` on.
    """
    if isinstance(value, Plan):
        value = value.model_dump(mode="json")
    return _checked(value, _text_of(value), max_steps=max_steps, first=first)


def _text_of(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _unfenced(text: str) -> str:
    """Return the text without a fence that encloses all of it."""
    lines = text.strip().splitlines()
    word = lines[0].removeprefix(_FENCE)
    opened = lines[0].startswith(_FENCE) and (not word or word.isalnum())
    if opened and len(lines) > 1 and lines[-1] == _FENCE:
        return "\n".join(lines[1:-1])
    return text


def _checked(value: Any, text: str, *, max_steps: int, first: int) -> ReadPlan:
    if not isinstance(value, Mapping):
        raise PlanError("schema", text, "the plan must be an object")
    try:
        plan = Plan.model_validate(dict(value))
    except ValidationError as error:
        raise PlanError("schema", text, _first_fault(error)) from None
    plan, warnings = _in_order(plan, text, first)
    if len(plan.steps) > max_steps:
        detail = f"the plan has {len(plan.steps)} steps; at most {max_steps} are allowed"
        raise PlanError("too_many_steps", text, detail)
    return ReadPlan(plan=plan, warnings=warnings)


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    path = ""
    for part in fault["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" * bool(path) or str(part)
    what = _WANTED.get(fault["type"], fault["msg"].removeprefix("Value error, "))
    return f"`{path[:_SHOWN_CHARS]}` {what}"


def _in_order(plan: Plan, text: str, first: int) -> tuple[Plan, tuple[DecisionWarning, ...]]:
    """Return the plan in the order of its numbers, which must be complete."""
    numbers = [step.step for step in plan.steps]
    wanted = list(range(first, first + len(numbers)))
    if numbers == wanted:
        return plan, ()
    given = ", ".join(_short(number) for number in numbers[:20]) + ", …" * (len(numbers) > 20)
    if sorted(numbers) != wanted:
        must = f"{wanted[0]} to {wanted[-1]}, each once" if len(wanted) > 1 else str(wanted[0])
        detail = f"the steps are numbered {given}; they must be {must}"
        raise PlanError("numbering", text, detail)
    ordered = tuple(sorted(plan.steps, key=lambda step: step.step))
    warning = DecisionWarning(
        code="plan_reordered", detail=f"the steps came in the order {given} and were sorted"
    )
    return plan.model_copy(update={"steps": ordered}), (warning,)


def _short(number: int) -> str:
    """Return a number as text; one of thousands of digits cannot be written out."""
    return str(number) if number.bit_length() <= 64 else "a huge number"
