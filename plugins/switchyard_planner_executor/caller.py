"""What the caller asks for beside the task: what is refused, and what goes on to the executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal, NoReturn

import tomli

from switchyard_core import DecisionWarning, Request, RequestError
from switchyard_planner_executor.body import member

__all__ = [
    "CallerSettings",
    "caller_settings",
    "caller_warnings",
    "refuse_unserved",
    "require_user_text",
]

_NO_RETRY = MappingProxyType({"x-should-retry": "false"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSettings:
    """Settings of the caller that apply to each call of the executor, never to the planner's.

    A word to stop at could cut the plan, and a plan is to be made alike whoever asks.

    Args:
        sampling: By the neutral names of ``ModelCall.sampling``; ``stop`` is a tuple of texts.
        max_output_tokens: The caller's limit of an answer, ``None`` without one.
    """

    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int | None = None


def refuse_unserved(request: Request, *, caller_tools: Literal["reject", "ignore"]) -> None:
    """Refuse a request that asks for what such a route cannot give.

    Args:
        request: The request.
        caller_tools: Whether tools that the caller declares are a reason.

    Raises:
        RequestError: 400, before any model was asked; ``param`` says what to leave out.
    """
    for row in _tables()[request.wire_format]:
        if _APPLIES[row["when"]](_at(request, row["path"])):
            advice = "leave it out" if row["when"] != "several" else "leave it out or set it to 1"
            _refuse(f"{row['what']}; `{row['path']}`: {advice}", row["code"], row["path"])
    if caller_tools == "reject" and request.offers_tools:
        _refuse(
            "this route uses tools of its own and cannot call the caller's, which a coding agent "
            "needs; use another route for agents, or leave `tools` out",
            "caller_tools_unsupported",
            "tools",
        )


def require_user_text(request: Request) -> None:
    """Refuse a request that holds nothing to plan; one that goes on with a plan needs no text.

    Raises:
        RequestError: 400 ``no_user_text``.
    """
    if not request.user_message.text.strip():
        key = request.history_key
        _refuse(
            f"`{key}` ends without a text of the user, so there is nothing to plan",
            "no_user_text",
            key,
        )


def caller_warnings(request: Request, *, keeps_instructions: bool) -> tuple[DecisionWarning, ...]:
    """Return what of an accepted request does not reach any model.

    Args:
        request: The request.
        keeps_instructions: Whether its instructions go to the executor.
    """
    found = []
    if not keeps_instructions and request.instructions.strip():
        detail = "the caller's instructions went to no model of this route"
        found.append(DecisionWarning(code="caller_instructions_dropped", detail=detail))
    if request.offers_tools:
        detail = "the caller's tools were offered to no model of this route"
        found.append(DecisionWarning(code="caller_tools_ignored", detail=detail))
    if request.user_message.left_out:
        kinds = ", ".join(dict.fromkeys(request.user_message.left_out))
        detail = f"parts of the request that are neither text nor image were left out: {kinds}"
        found.append(DecisionWarning(code="request_parts_left_out", detail=detail))
    return tuple(found)


def caller_settings(request: Request) -> CallerSettings:
    """Return sampling, stop words and token limit of a request.

    Raises:
        RequestError: 400 ``invalid_type``: one of them has a wrong type.
    """
    tables = _tables()
    sampling: dict[str, Any] = {}
    for name, key in tables["settings"][request.wire_format].items():
        value = member(request, key)
        if value is not None:
            sampling[name] = _READ.get(name, _number)(value, key)
    limits = tables["limits"][request.wire_format]
    given = ((key, member(request, key)) for key in limits)
    limit = next((_limit(value, key) for key, value in given if value is not None), None)
    return CallerSettings(sampling=sampling, max_output_tokens=limit)


@cache
def _tables() -> Mapping[str, Any]:
    text = (files("switchyard_planner_executor") / "caller.toml").read_text("utf-8")
    tables: dict[str, Any] = tomli.loads(text)
    return tables


def _at(request: Request, path: str) -> Any:
    """Return the value at a dotted path of the body, ``None`` when there is none."""
    key, *rest = path.split(".")
    value = member(request, key)
    for part in rest:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _is_several(value: Any) -> bool:
    return value is not None and (isinstance(value, bool) or value != 1)


def _is_structured(value: Any) -> bool:
    return value is not None and not (isinstance(value, dict) and value.get("type") == "text")


_APPLIES: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "set": lambda value: value is not None,
        "filled": lambda value: value not in (None, [], {}, ""),
        "true": lambda value: value is True,
        "several": _is_several,
        "structured": _is_structured,
    }
)


def _number(value: Any, key: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        _wrong_type(key, "a number")
    return value


def _whole(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        _wrong_type(key, "an integer")
    return value


def _limit(value: Any, key: str) -> int:
    if _whole(value, key) < 1:
        _wrong_type(key, "1 or more")
    return _whole(value, key)


def _texts(value: Any, key: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        _wrong_type(key, "a string or an array of strings")
    return tuple(texts)


_READ: Mapping[str, Callable[[Any, str], Any]] = MappingProxyType(
    {"stop": _texts, "seed": _whole, "top_k": _whole}
)


def _wrong_type(key: str, wanted: str) -> NoReturn:
    _refuse(f"`{key}` must be {wanted}", "invalid_type", key)


def _refuse(message: str, code: str, param: str) -> NoReturn:
    raise RequestError(message=message, code=code, param=param, headers=_NO_RETRY)
