"""What the caller asks for beside the task: what is refused, and what reaches the executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import isfinite
from types import MappingProxyType
from typing import Any

import tomli

from switchyard_core import DecisionWarning, Request, RequestError, WireFormat
from switchyard_core.wire import left_out_sampling
from switchyard_planner_executor.options import PlannerExecutorOptions

__all__ = ["Caller", "member", "read_caller", "refusal", "refuse_unserved", "require_user_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What the caller says beside the task; it goes to the executor and never to the planner."""

    #: By the neutral names of `ModelCall.sampling`; `stop` is a tuple of texts
    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int | None = None  # The caller's limit of an answer, `None` without one
    instructions: str = ""  # The caller's instructions, `""` for none or if the policy drops them
    warnings: tuple[DecisionWarning, ...] = ()  # What of the request reaches no model


def read_caller(
    request: Request, options: PlannerExecutorOptions, executor_format: WireFormat
) -> Caller:
    """Return what the caller says beside the task."""
    keeps = options.caller_instructions == "executor"
    sampling: dict[str, Any] = {}
    for name, key in _tables()["settings"][request.wire_format].items():
        value = member(request, key)
        if value is not None:
            sampling[name] = _READ.get(name, _number)(value, key)
    limits = _tables()["limits"][request.wire_format]
    given = ((key, member(request, key)) for key in limits)
    return Caller(
        sampling=sampling,
        max_output_tokens=next((_limit(v, key) for key, v in given if v is not None), None),
        instructions=request.instructions if keeps else "",
        warnings=(
            *_unused(request, keeps_instructions=keeps),
            *_unplaced(executor_format, sampling),
        ),
    )


def _unused(request: Request, *, keeps_instructions: bool) -> Iterator[DecisionWarning]:
    """Yield what of an accepted request does not reach any model."""
    if not keeps_instructions and request.instructions.strip():
        detail = "the caller's instructions went to no model of this route"
        yield DecisionWarning(code="caller_instructions_dropped", detail=detail)
    if request.offers_tools:
        detail = "the caller's tools were offered to no model of this route"
        yield DecisionWarning(code="caller_tools_ignored", detail=detail)
    if request.user_message.left_out:
        kinds = ", ".join(dict.fromkeys(request.user_message.left_out))
        detail = f"parts of the request that are neither text nor image were left out: {kinds}"
        yield DecisionWarning(code="request_parts_left_out", detail=detail)


def _unplaced(wire_format: WireFormat, sampling: Mapping[str, Any]) -> Iterator[DecisionWarning]:
    names = left_out_sampling(wire_format, sampling)
    if names:
        detail = f"the executor's wire format has no place for: {', '.join(names)}"
        yield DecisionWarning(code="sampling_left_out", detail=detail)


# --- what is refused -----------------------------------------------------------------------------


def refusal(
    message: str,
    code: str,
    *,
    status: int = 400,
    param: str | None = None,
    details: Mapping[str, Any] = MappingProxyType({}),
) -> RequestError:
    """Return an error of the request that no client sends again: it would change nothing."""
    headers = {"x-should-retry": "false"}
    return RequestError(message, code, status, param=param, headers=headers, details=details)


def refuse_unserved(request: Request, options: PlannerExecutorOptions) -> None:
    """Refuse (400) what such a route cannot give; ``param`` says what to leave out."""
    for row in _tables()[request.wire_format]:
        if _APPLIES[row["when"]](_at(request, row["path"])):
            advice = "leave it out" if row["when"] != "several" else "leave it out or set it to 1"
            message = f"{row['what']}; `{row['path']}`: {advice}"
            raise refusal(message, row["code"], param=row["path"])
    if options.caller_tools == "reject" and request.offers_tools:
        raise refusal(
            "this route uses its own tools and cannot call the caller's, which a coding agent "
            "needs; use another route for agents, or leave `tools` out",
            "caller_tools_unsupported",
            param="tools",
        )


def require_user_text(request: Request) -> None:
    """Refuse a request that has nothing to plan; one about a waiting plan may have no text."""
    if not request.user_message.text.strip():
        key = request.history_key
        raise refusal(
            f"`{key}` ends without a text of the user, so there is nothing to plan",
            "no_user_text",
            param=key,
        )


@cache
def _tables() -> Mapping[str, Any]:
    text = (files("switchyard_planner_executor") / "caller.toml").read_text("utf-8")
    tables: dict[str, Any] = tomli.loads(text)
    return tables


def _is_several(value: Any) -> bool:
    return value is not None and (isinstance(value, bool) or value != 1)


def _is_structured(value: Any) -> bool:
    return value is not None and not (isinstance(value, dict) and value.get("type") == "text")


#: By the word `when` of caller.toml.
_APPLIES: Mapping[str, Callable[[Any], bool]] = {
    "set": lambda value: value is not None,
    "filled": lambda value: value not in (None, [], {}, ""),
    "true": lambda value: value is True,
    "several": _is_several,
    "structured": _is_structured,
}


# --- members of the body -------------------------------------------------------------------------


def member(request: Request, key: str) -> Any:
    """Return the value of a top-level member, ``None`` when it is absent or null."""
    try:
        return request.fields.value(key)
    except ValueError as error:  # a number of thousands of digits is JSON, and Python refuses it
        raise refusal(f"`{key}` cannot be read: {error}", "invalid_json", param=key) from None


def _at(request: Request, path: str) -> Any:
    """Return the value at a dotted path of the body, ``None`` when there is none."""
    key, *rest = path.split(".")
    value = member(request, key)
    for part in rest:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _number(value: Any, key: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise refusal(f"`{key}` must be a number", "invalid_type", param=key)
    return value


def _whole(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise refusal(f"`{key}` must be an integer", "invalid_type", param=key)
    return value


def _limit(value: Any, key: str) -> int:
    if _whole(value, key) < 1:
        raise refusal(f"`{key}` must be 1 or more", "invalid_type", param=key)
    return int(value)


def _texts(value: Any, key: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise refusal(f"`{key}` must be a string or an array of strings", "invalid_type", param=key)
    return tuple(texts)


#: How a setting is read, by its neutral name; any other is a number.
_READ: Mapping[str, Callable[[Any, str], Any]] = {"stop": _texts, "seed": _whole, "top_k": _whole}
