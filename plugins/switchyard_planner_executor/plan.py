"""A plan as data: what the planner returns and the executor works through."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from switchyard_planner_executor.visible import is_blank

__all__ = ["Plan", "PlanStep", "plan_digest", "plan_schema"]


def _is_unicode(text: str) -> str:
    """Refuse halves of characters, which JSON can spell and nobody can write down."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            msg = "must be text in Unicode"
            raise ValueError(msg) from None
    return text


def _says_something(text: str) -> str:
    if is_blank(text):
        msg = "must not be blank"
        raise ValueError(msg)
    return text


def _blank_is_none(text: str | None) -> str | None:
    return None if text is None or is_blank(text) else text


_Text = Annotated[StrictStr, AfterValidator(_is_unicode)]


class PlanStep(BaseModel):
    """One step of a plan.

    Args:
        step: Place in the order, from 1.
        action: What is done, for people; not blank.
        query: What is looked up, ``None`` when the step only reasons; a blank one is ``None``.

    Raises:
        pydantic.ValidationError: A field is missing, unknown, of another type or blank.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: StrictInt = Field(
        description="Place of this step in the order of work; the first is 1, the next 2."
    )
    action: Annotated[_Text, AfterValidator(_says_something)] = Field(
        description="What this step does: one short imperative sentence that a person reads."
    )
    query: Annotated[_Text | None, AfterValidator(_blank_is_none)] = Field(
        default=None,
        description="The words to search with, when the step has to look something up; null when "
        "it only works with what earlier steps found.",
    )


class Plan(BaseModel):
    """A whole plan, made before anything of it runs.

    Args:
        goal: What the request wants, in one sentence.
        steps: In order of their numbers; may be empty.

    Raises:
        pydantic.ValidationError: A field is missing, unknown or of another type.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: _Text = Field(
        description="What the request is meant to achieve, restated in one sentence."
    )
    steps: tuple[PlanStep, ...] = Field(
        description="The steps in the order in which they are carried out, numbered without gaps."
    )

    @property
    def searches(self) -> int:
        """How many steps have a query."""
        return sum(step.query is not None for step in self.steps)


def plan_schema() -> dict[str, Any]:
    """Return the JSON schema of a plan as all three wire formats take it.

    Structured output wants every property required and nothing else allowed; defaults, limits
    and references are refused by one provider or another, so there are none.
    """
    step, plan = PlanStep.model_fields, Plan.model_fields
    types: dict[str, dict[str, Any]] = {
        "step": {"type": "integer"},
        "action": {"type": "string"},
        "query": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    steps = {name: {"description": step[name].description, **types[name]} for name in step}
    return _object(
        {
            "goal": {"description": plan["goal"].description, "type": "string"},
            "steps": {
                "description": plan["steps"].description,
                "type": "array",
                "items": _object(steps),
            },
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def plan_digest(
    plan: Plan, *, route_id: str, mode: str, tools: Iterable[str], executor_target: str
) -> str:
    """Return the digest that an approval names: it binds the plan and what would run it.

    Args:
        plan: The plan.
        route_id: Public id of the route.
        mode: Mode of the route.
        tools: Names of the tools that the executor is offered; their order does not matter.
        executor_target: Name of the target that carries the steps out.

    Returns:
        64 hexadecimal digits, SHA-256 of canonical JSON.
    """
    bound = {
        "route": route_id,
        "mode": mode,
        "tools": sorted(tools),
        "executor_target": executor_target,
        "plan": plan.model_dump(mode="json"),
    }
    text = json.dumps(bound, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()
