"""A plan as data: its schema and its digest, and how a plan is read or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

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
from switchyard_planner_executor.json_text import BOM, NotJsonError, RepeatedKeyError, strict_json
from switchyard_planner_executor.text import is_blank, one_line

__all__ = [
    "RAW_TEXT_CHARS",
    "Plan",
    "PlanError",
    "PlanFault",
    "PlanStep",
    "ReadPlan",
    "UnusablePlanError",
    "plan_schema",
    "read_plan",
    "read_plan_file",
    "read_plan_value",
]

#: Why a plan cannot be used.
PlanFault = Literal[
    "empty", "not_json", "schema", "numbering", "too_many_steps", "truncated", "refused"
]

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
#: Most faults of one plan that are told.
_TOLD_FAULTS = 20
#: How much of an unusable plan a caller is shown, in characters.
RAW_TEXT_CHARS = 4000


# --- the model -----------------------------------------------------------------------------------


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
        faults: What is wrong and where, one or more of it. ``detail`` is all of them in one line,
            which can be sent to the planner.
    """

    def __init__(self, reason: PlanFault, raw_text: str, *faults: str) -> None:
        self.reason = reason
        self.raw_text = raw_text
        self.faults = faults
        more = len(faults) - _TOLD_FAULTS
        told = [*faults[:_TOLD_FAULTS], *([f"and {more} more"] if more > 0 else [])]
        self.detail = "; ".join(told)
        #: What is wrong, without the text.
        self.summary = f"the plan cannot be used ({reason}): {self.detail}"
        text = one_line(raw_text[:_SHOWN_CHARS])
        shown = f"; it is “{text}{'…' * (len(raw_text) > _SHOWN_CHARS)}”" if text else ""
        super().__init__(self.summary + shown)


class UnusablePlanError(RequestError):
    """What should be a plan is none; ``raw_text`` is all of it, ``details`` has its beginning."""

    raw_text: str = ""
    #: The message without what the text is.
    summary: str = ""

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
        made.summary = f"{fault.summary}; no step ran"
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
    ``lenient`` the plan may be in a code fence, the only one of the answer, with words around it,
    and a byte order mark may stand before it.
    """
    text = reply.text
    if reply.refusal or reply.stop in _FILTERED:
        raise PlanError("refused", reply.refusal or text, "the planner refused to answer")
    if reply.truncated:
        raise PlanError("truncated", text, f"the answer was cut at its token limit ({reply.stop})")
    if not text.strip():
        raise PlanError("empty", text, "the answer has no text")
    value, faults = _parsed(text, lenient=lenient)
    return _checked(value, text, max_steps, first, searchable=searchable, faults=faults)


def read_plan_file(data: bytes, *, max_steps: int, searchable: bool = True) -> dict[str, Any]:
    """Return the plan of a file, checked: a saved one, what a model printed, or a run's result."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise PlanError("not_json", "", "not JSON: not UTF-8; save it as UTF-8") from None
    if is_blank(text):
        raise PlanError("empty", text, "not JSON: the file is empty")
    value, faults = _parsed(text, lenient=True)
    # The machine-readable part of an answer holds its plan, too.
    if isinstance(value, dict) and isinstance(value.get("plan"), dict):
        value = value["plan"]
    _checked(value, text, max_steps, 1, searchable=searchable, faults=faults)
    return dict(value)


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


def _parsed(text: str, *, lenient: bool) -> tuple[Any, Sequence[str]]:
    """Return what a text says, and its repeated keys as faults; a PlanError if it is not JSON."""
    bare = text.lstrip().removeprefix(BOM)
    marked = bare != text.lstrip()
    plain = _unfenced(bare)
    try:
        return strict_json(plain if lenient else text), ()
    except RepeatedKeyError as error:
        return error.value, error.faults
    except NotJsonError as error:
        detail = f"not JSON: {error}"
        if not lenient and (marked or plain != bare):
            what = "after a byte order mark" if marked else "in a code fence"
            what += " and in a code fence" * (marked and plain != bare)
            detail = f'the answer is {what}; `planner_output = "lenient"` reads it'
        raise PlanError("not_json", text, detail) from None


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


def _checked(
    value: Any,
    text: str,
    max_steps: int,
    first: int,
    *,
    searchable: bool,
    faults: Sequence[str] = (),
) -> ReadPlan:
    """Return a plan; a PlanError names all that is wrong with it, ``faults`` included."""
    if not isinstance(value, Mapping):
        raise PlanError(
            "schema", text, *faults, "the plan must be an object with `goal` and `steps`"
        )
    found: list[tuple[PlanFault, str]] = [("schema", fault) for fault in faults]
    plan = None
    try:
        plan = Plan.model_validate(dict(value))
    except ValidationError as error:
        found += [("schema", fault) for fault in _shape_faults(error)]
    # What can be told of the steps is told beside the faults of their shape.
    steps = value.get("steps")
    steps = [s for s in steps if isinstance(s, Mapping)] if isinstance(steps, list | tuple) else []
    if not searchable:
        found += [("schema", fault) for fault in _query_faults(steps)]
    numbers = [step.get("step") for step in steps]
    found += [("numbering", fault) for fault in _number_faults(numbers, first)]
    if len(steps) > max_steps:
        what = f"the plan has {len(steps)} steps; at most {max_steps} are allowed"
        found.append(("too_many_steps", what))
    if found or plan is None:
        raise PlanError(found[0][0], text, *(fault for _, fault in found))
    return _in_order(plan)


def _shape_faults(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        path = ""
        for part in fault["loc"]:
            path += f"[{part}]" if isinstance(part, int) else f".{part}" * bool(path) or str(part)
        what = _EXPECTED.get(fault["type"], fault["msg"].removeprefix("Value error, "))
        yield f"`{one_line(path[:_SHOWN_CHARS])}` {what}"


def _query_faults(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    asked = [
        _short(step.get("step"))
        for step in steps
        if isinstance(query := step.get("query"), str) and not is_blank(query)
    ]
    if asked:
        yield (
            f"step {', '.join(asked)} has a `query`, and the route names no tool for it: list one "
            "in `tools`, or say which of them in `query_tool`"
        )


def _number_faults(numbers: Sequence[Any], first: int) -> Iterator[str]:
    """Yield that the numbers of steps are not complete; not where one is no number at all."""
    whole = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool)]
    expected = list(range(first, first + len(numbers)))
    if len(whole) == len(numbers) and sorted(whole) != expected:
        must = f"{first} to {expected[-1]}, each once" if len(expected) > 1 else str(first)
        yield f"the steps are numbered {_listed(whole)}; they must be {must}"


def _in_order(plan: Plan) -> ReadPlan:
    """Return the plan in the order of its numbers."""
    ordered = tuple(sorted(plan.steps, key=lambda step: step.step))
    if ordered == plan.steps:
        return ReadPlan(plan=plan)
    given = _listed([step.step for step in plan.steps])
    warning = DecisionWarning(
        code="plan_reordered", detail=f"the steps came in the order {given} and were sorted"
    )
    return ReadPlan(plan=plan.model_copy(update={"steps": ordered}), warnings=(warning,))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(_short(number) for number in numbers[:20]) + ", …" * (len(numbers) > 20)


def _short(number: Any) -> str:
    """Return a number as text; Python refuses to write one with thousands of digits."""
    huge = isinstance(number, int) and number.bit_length() > 64
    return "a huge number" if huge else one_line(str(number)[:_SHOWN_CHARS])
