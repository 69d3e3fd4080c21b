"""A plan as data: its schema and its digest, and how a plan is read or refused."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isinf
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
)

from switchyard_core import DecisionWarning, RequestError, SwitchyardError
from switchyard_core.answering import ModelReply

__all__ = [
    "RAW_TEXT_CHARS",
    "NotJsonError",
    "Plan",
    "PlanError",
    "PlanFault",
    "PlanStep",
    "ReadPlan",
    "RepeatedKeyError",
    "UnusablePlanError",
    "is_blank",
    "is_hidden",
    "plan_schema",
    "read_plan",
    "read_plan_value",
    "strict_json",
]

#: Why a plan cannot be used.
PlanFault = Literal[
    "empty", "not_json", "schema", "numbering", "too_many_steps", "truncated", "refused"
]

#: Unicode categories of characters that show nothing, or change how others are shown.
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
#: Words by which a provider says that its filter held the answer back.
_FILTERED = frozenset({"content_filter", "safety"})
#: What pydantic's error types mean, in words of the plan.
_EXPECTED = {
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "tuple_type": "must be an array",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "missing": "is missing",
    "extra_forbidden": "is not a key of a plan",
}
#: The line that opens a code fence, whatever its depth; it may say the language.
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})[^\S\n]*[\w+.-]*\s*")
_SHOWN_CHARS = 200
#: How much of an unusable plan a caller is shown, in characters.
RAW_TEXT_CHARS = 4000


# --- the model -----------------------------------------------------------------------------------


def is_hidden(char: str) -> bool:
    """Return whether a character shows nothing, or changes how others are shown."""
    return unicodedata.category(char) in _HIDDEN


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen."""
    return all(char.isspace() or is_hidden(char) for char in text)


def _is_unicode(text: str) -> str:
    """Refuse halves of surrogate pairs, which JSON can spell and UTF-8 cannot."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("must be text in Unicode") from None
    return text


def _is_visible(text: str) -> str:
    if is_blank(text):
        raise ValueError("must not be blank")
    return text


def _blank_is_none(text: str | None) -> str | None:
    return None if text is None or is_blank(text) else text


_Text = Annotated[StrictStr, AfterValidator(_is_unicode)]


class PlanStep(BaseModel):
    """One step of a plan; a blank ``query`` becomes ``None``, a blank ``action`` is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The descriptions go to the planner as a part of the schema.
    step: StrictInt = Field(
        description="Place of this step in the order of work; the first is 1, the next 2."
    )
    action: Annotated[_Text, AfterValidator(_is_visible)] = Field(
        description="What this step does: one short imperative sentence that a person reads."
    )
    query: Annotated[_Text | None, AfterValidator(_blank_is_none)] = Field(
        default=None,
        description="The words to search with, when the step has to look something up; null when "
        "it only works with what earlier steps found.",
    )


class Plan(BaseModel):
    """A whole plan, made before any step of it runs; ``steps`` may be empty, ``goal`` not blank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: Annotated[_Text, AfterValidator(_is_visible)] = Field(
        description="What the request is meant to achieve, restated in one sentence."
    )
    steps: tuple[PlanStep, ...] = Field(
        description="The steps in the order in which they are carried out, numbered without gaps."
    )

    @property
    def searches(self) -> int:
        """How many steps have a query."""
        return sum(step.query is not None for step in self.steps)

    def digest(self, **bound: object) -> str:
        """Return the digest of the plan and what would run it, ``bound``: 64 hexadecimal digits."""
        values = {**bound, "plan": self.model_dump(mode="json")}
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return sha256(text.encode("ascii")).hexdigest()


def plan_schema() -> dict[str, Any]:
    """Return the JSON schema of a plan in the form that all three wire formats accept."""
    step = _object(
        PlanStep,
        step={"type": "integer"},
        action={"type": "string"},
        query={"anyOf": [{"type": "string"}, {"type": "null"}]},
    )
    return _object(Plan, goal={"type": "string"}, steps={"type": "array", "items": step})


def _object(model: type[BaseModel], **types: dict[str, Any]) -> dict[str, Any]:
    fields = model.model_fields
    return {
        "type": "object",
        "properties": {
            name: {"description": fields[name].description, **types[name]} for name in fields
        },
        "required": list(fields),
        "additionalProperties": False,
    }


# --- reading -------------------------------------------------------------------------------------


class PlanError(SwitchyardError):
    """The text or value is not a usable plan.

    Args:
        reason: The first check that failed, of ``refused``, ``truncated``, ``empty``,
            ``not_json``, ``schema``, ``numbering`` and ``too_many_steps``, in this order.
        raw_text: The whole text that was read; of a refusal, what was said instead.
        detail: What is wrong and where, one sentence; can be sent to the planner.
    """

    def __init__(self, reason: PlanFault, raw_text: str, detail: str) -> None:
        self.reason = reason
        self.raw_text = raw_text
        self.detail = detail
        text = raw_text if len(raw_text) <= _SHOWN_CHARS else f"{raw_text[:_SHOWN_CHARS]}…"
        shown = f"; it is {text!r}" if text else ""
        super().__init__(f"the plan cannot be used ({reason}): {detail}{shown}")


class UnusablePlanError(RequestError):
    """What should be a plan is none; ``raw_text`` is all of it, ``details`` has its beginning."""

    raw_text: str = ""

    @classmethod
    def of(cls, fault: PlanError, code: str, status: int) -> Self:
        """Return the error of a request whose plan has a fault."""
        made = cls(
            f"{fault}; no step ran",
            code,
            status,
            headers={"x-should-retry": "false"},
            details={"reason": fault.reason, "raw_text": fault.raw_text[:RAW_TEXT_CHARS]},
        )
        made.raw_text = fault.raw_text
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A plan with its steps in order, and ``plan_reordered`` in ``warnings`` if they were not."""

    plan: Plan
    warnings: tuple[DecisionWarning, ...] = ()


def read_plan(
    reply: ModelReply,
    *,
    max_steps: int,
    lenient: bool = False,
    first: int = 1,
    searchable: bool = True,
) -> ReadPlan:
    """Read the plan that a model answered with; ``first`` is the number of its first step.

    Nothing is guessed, cut or repaired, except the order of steps whose numbers are complete. With
    ``lenient`` the plan may be in a code fence, the only one of the answer, with words around it.
    """
    text = reply.text
    if reply.refusal or reply.stop in _FILTERED:
        raise PlanError("refused", reply.refusal or text, "the planner refused to answer")
    if reply.truncated:
        raise PlanError("truncated", text, f"the answer was cut at its token limit ({reply.stop})")
    if not text.strip():
        raise PlanError("empty", text, "the answer has no text")
    try:
        value = strict_json(_unfenced(text) if lenient else text)
    except RepeatedKeyError as error:
        raise PlanError("schema", text, str(error)) from None
    except NotJsonError as error:
        detail = f"not JSON: {error}"
        if not lenient and _unfenced(text) != text:
            detail = 'the answer is in a code fence; `planner_output = "lenient"` removes one'
        raise PlanError("not_json", text, detail) from None
    return _checked(value, text, max_steps, first, searchable=searchable)


def read_plan_value(
    value: Any, *, max_steps: int, first: int = 1, searchable: bool = True
) -> ReadPlan:
    """Read a plan given as parsed JSON or a :class:`Plan`, with the checks from ``schema`` on."""
    if isinstance(value, Plan):
        value = value.model_dump(mode="json")
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return _checked(value, text, max_steps, first, searchable=searchable)


def _unfenced(text: str) -> str:
    """Return what the only code fence of a text holds, all of the text where there is not one."""
    blocks: list[list[str]] = []
    opened = ""
    # Other line ends, such as U+2028, may stand inside of a JSON string.
    for line in text.replace("\r\n", "\n").split("\n"):
        if opened:
            mark = line.strip()
            if len(mark) >= len(opened) and not mark.strip(opened[0]):
                opened = ""
            else:
                blocks[-1].append(line)
        elif found := _FENCE.fullmatch(line):
            opened = found["mark"]
            blocks.append([])
    return "\n".join(blocks[0]) if len(blocks) == 1 and not opened else text


def _checked(value: Any, text: str, max_steps: int, first: int, *, searchable: bool) -> ReadPlan:
    if not isinstance(value, Mapping):
        raise PlanError("schema", text, "the plan must be an object")
    try:
        plan = Plan.model_validate(dict(value))
    except ValidationError as error:
        raise PlanError("schema", text, _first_fault(error)) from None
    found = _in_order(plan, text, first)
    if len(plan.steps) > max_steps:
        detail = f"the plan has {len(plan.steps)} steps; at most {max_steps} are allowed"
        raise PlanError("too_many_steps", text, detail)
    searches = [str(step.step) for step in found.plan.steps if step.query is not None]
    if searches and not searchable:
        detail = (
            f"step {', '.join(searches)} has a `query`, and the route names no tool for it: list "
            "one in `tools`, or say which of them in `query_tool`"
        )
        raise PlanError("schema", text, detail)
    return found


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    path = ""
    for part in fault["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" * bool(path) or str(part)
    what = _EXPECTED.get(fault["type"], fault["msg"].removeprefix("Value error, "))
    return f"`{path[:_SHOWN_CHARS]}` {what}"


def _in_order(plan: Plan, text: str, first: int) -> ReadPlan:
    """Return the plan in the order of its numbers, which must be complete."""
    numbers = [step.step for step in plan.steps]
    expected = list(range(first, first + len(numbers)))
    if numbers == expected:
        return ReadPlan(plan=plan)
    given = ", ".join(_short(number) for number in numbers[:20]) + ", …" * (len(numbers) > 20)
    if sorted(numbers) != expected:
        must = f"{first} to {expected[-1]}, each once" if len(expected) > 1 else str(first)
        raise PlanError("numbering", text, f"the steps are numbered {given}; they must be {must}")
    ordered = tuple(sorted(plan.steps, key=lambda step: step.step))
    warning = DecisionWarning(
        code="plan_reordered", detail=f"the steps came in the order {given} and were sorted"
    )
    return ReadPlan(plan=plan.model_copy(update={"steps": ordered}), warnings=(warning,))


def _short(number: int) -> str:
    """Return a number as text; Python refuses to write one with thousands of digits."""
    return str(number) if number.bit_length() <= 64 else "a huge number"


# --- JSON as its standard has it -----------------------------------------------------------------


class NotJsonError(ValueError):
    """A text is not JSON; the message says why and where."""


class RepeatedKeyError(NotJsonError):
    """An object has a key twice, so that readers may disagree about what it says."""


def strict_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; NotJsonError also for NaN, huge numbers and deep nesting."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(
            text,
            object_pairs_hook=_members,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except NotJsonError:
        raise
    except UnicodeDecodeError:
        msg = "not UTF-8"
    except RecursionError:
        msg = "nested too deeply"
    except json.JSONDecodeError as error:
        msg = f"{error.msg[:1].lower()}{error.msg[1:]} in line {error.lineno}, column {error.colno}"
    raise NotJsonError(msg)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise RepeatedKeyError(f"one object has the key `{key}` twice")
    return found


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        # Python's own message advises a change of its settings.
        raise NotJsonError(f"an integer of {len(digits.lstrip('-'))} digits is too long") from None


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise NotJsonError(f"{text[:20]} is out of range")
    return number


def _refuse_constant(word: str) -> NoReturn:
    raise NotJsonError(f"{word} is not a number in JSON")
