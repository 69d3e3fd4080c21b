"""What OpenAI Responses refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from switchyard_core.testing.validity.shapes import Problems, objects
from switchyard_core.wire.responses.view import OUTPUT_TYPES

__all__ = ["responses_problems"]

_ROLES = frozenset({"user", "assistant", "system", "developer"})
_CALL_ID = re.compile(r"[\s\S]{1,64}")
#: Ids of items begin with the kind of the item.
_PREFIXES: Mapping[str, str] = MappingProxyType(
    {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
)
#: Calls that a client answers, by the result that does it.
_ANSWERS: Mapping[str, str] = MappingProxyType(
    {
        "function_call_output": "function_call",
        "custom_tool_call_output": "custom_tool_call",
        "shell_call_output": "shell_call",
        "apply_patch_call_output": "apply_patch_call",
    }
)


def responses_problems(body: dict[str, Any]) -> list[str]:
    """Return what is wrong with a body.

    Rules: known roles; no empty content; item ids begin with the kind of their item; call ids
    of 1 to 64 characters, used once; a result follows its call and is of its kind, and every
    call has one (a history that goes on by id may have both elsewhere); a reasoning item with
    an id stands right before what the assistant made of it.
    """
    problems = Problems()
    history = body.get("input")
    if history is None or isinstance(history, str):
        by_id = "previous_response_id" in body or "conversation" in body or "prompt" in body
        if not by_id:
            problems.text(history, "input")
        return problems.found
    items = list(objects(history, "input", problems))
    _pairs(items, problems, continued="previous_response_id" in body or "conversation" in body)
    for number, (path, item) in enumerate(items):
        kind = item.get("type", "message")
        _item_id(kind, item.get("id"), path, problems)
        if kind == "message":
            _message(item, path, problems)
        elif kind == "reasoning":
            _reasoning(items, number, problems)
        elif kind in ("function_call", "custom_tool_call"):
            problems.name(item.get("name"), f"{path}.name")
            key = "arguments" if kind == "function_call" else "input"
            problems.require(isinstance(item.get(key), str), f"{path}.{key}", "must be a string")
    return problems.found


def _item_id(kind: str, value: Any, path: str, problems: Problems) -> None:
    prefix = _PREFIXES.get(kind)
    if value is not None and prefix is not None:
        fits = isinstance(value, str) and value.startswith(prefix)
        problems.require(fits, f"{path}.id", f"must begin with `{prefix}`: {value!r}")


def _message(item: dict[str, Any], path: str, problems: Problems) -> None:
    role = item.get("role")
    problems.require(role in _ROLES, f"{path}.role", f"unknown role {role!r}")
    content = item.get("content")
    if isinstance(content, str):
        problems.text(content, f"{path}.content")
        return
    kind = "output_text" if role == "assistant" else "input_text"
    for place, part in objects(content, f"{path}.content", problems):
        if part.get("type") in ("input_text", "output_text"):
            said = part["type"]
            # A message of the assistant without an id may be an example that the client made.
            fits = said == kind or (role == "assistant" and "id" not in item)
            problems.require(fits, f"{place}.type", f"a {role} says `{kind}`, not `{said}`")
            problems.text(part.get("text"), f"{place}.text")


def _reasoning(items: list[tuple[str, dict[str, Any]]], number: int, problems: Problems) -> None:
    path, item = items[number]
    problems.require(isinstance(item.get("summary"), list), f"{path}.summary", "must be an array")
    rest = (later for _, later in items[number + 1 :] if later.get("type") != "reasoning")
    following = next(rest, {})
    kind = following.get("type", "message")
    other = kind in OUTPUT_TYPES or (kind == "message" and following.get("role") != "assistant")
    problems.require(
        not other or item.get("id") is None, path, "a reasoning item needs what was made of it"
    )


def _pairs(items: list[tuple[str, dict[str, Any]]], problems: Problems, *, continued: bool) -> None:
    seen: set[str] = set()
    open_calls: dict[tuple[str, str], str] = {}
    for path, item in items:
        kind, call = item.get("type"), item.get("call_id")
        if kind in _ANSWERS.values():
            problems.id(call, f"{path}.call_id", _CALL_ID, seen)
            open_calls[str(kind), str(call)] = path
        elif isinstance(kind, str) and kind in _ANSWERS:
            known = open_calls.pop((_ANSWERS[kind], str(call)), None) is not None
            problems.require(
                known or continued, f"{path}.call_id", f"answers no earlier call: {call!r}"
            )
            if kind != "apply_patch_call_output":
                problems.require("output" in item, f"{path}.output", "is missing")
    for (_, call), path in open_calls.items():
        problems.add(path, f"the call `{call}` has no result")
