"""What OpenAI Chat Completions refuses."""

from __future__ import annotations

import re
from typing import Any

from switchyard_core.testing.validity.shapes import Problems, objects

__all__ = ["chat_problems"]

_ROLES = frozenset({"developer", "system", "user", "assistant", "tool", "function"})
_ID = re.compile(r"[\s\S]{1,40}")
#: An assistant's message without content must have one of these.
_INSTEAD = ("tool_calls", "function_call", "refusal", "audio")


def chat_problems(body: dict[str, Any]) -> list[str]:
    """Return what is wrong with a body.

    Rules: known roles; no empty content (``null`` only where the assistant called a tool); call
    ids of 1 to 40 characters, used once; arguments are text; the messages right after an
    assistant's calls answer each of them, and nothing else is answered.
    """
    problems = Problems()
    open_calls: dict[str, str] = {}
    seen: set[str] = set()
    for path, message in objects(body.get("messages"), "messages", problems):
        role = message.get("role")
        if not problems.require(role in _ROLES, f"{path}.role", f"unknown role {role!r}"):
            continue
        if role == "tool":
            _answer(message, path, open_calls, problems)
            continue
        _unanswered(open_calls, problems)
        if role == "assistant" and message.get("tool_calls") is not None:
            open_calls = _calls(message, path, seen, problems)
        _content(message, path, problems)
    _unanswered(open_calls, problems)
    for path, tool in _tools(body, problems):
        inner = tool.get(tool.get("type", ""))
        if tool.get("type") in ("function", "custom") and isinstance(inner, dict):
            problems.name(inner.get("name"), f"{path}.{tool['type']}.name")
    return problems.found


def _tools(body: dict[str, Any], problems: Problems) -> list[tuple[str, dict[str, Any]]]:
    if "tools" not in body:
        problems.require("tool_choice" not in body, "tool_choice", "needs `tools`")
        return []
    return list(objects(body["tools"], "tools", problems))


def _answer(
    message: dict[str, Any], path: str, open_calls: dict[str, str], problems: Problems
) -> None:
    answered = message.get("tool_call_id")
    problems.require(
        isinstance(answered, str) and open_calls.pop(answered, None) is not None,
        f"{path}.tool_call_id",
        f"answers no call of the assistant message before it: {answered!r}",
    )
    content = message.get("content")
    problems.require(isinstance(content, str | list), f"{path}.content", "must be text or parts")


def _unanswered(open_calls: dict[str, str], problems: Problems) -> None:
    for call, path in open_calls.items():
        problems.add(path, f"the call `{call}` has no result right after its message")
    open_calls.clear()


def _calls(
    message: dict[str, Any], path: str, seen: set[str], problems: Problems
) -> dict[str, str]:
    found = {}
    for place, call in objects(message["tool_calls"], f"{path}.tool_calls", problems):
        problems.id(call.get("id"), f"{place}.id", _ID, seen)
        kind = call.get("type")
        inner = call.get(kind) if kind in ("function", "custom") else None
        if not isinstance(inner, dict):
            problems.add(place, "is neither function nor custom")
        else:
            key = "arguments" if kind == "function" else "input"
            problems.name(inner.get("name"), f"{place}.{kind}.name")
            text = isinstance(inner.get(key), str)
            problems.require(text, f"{place}.{kind}.{key}", "must be a string")
        if isinstance(call.get("id"), str):
            found[call["id"]] = place
    return found


def _content(message: dict[str, Any], path: str, problems: Problems) -> None:
    content = message.get("content")
    place = f"{path}.content"
    if isinstance(content, list):
        for where, part in objects(content, place, problems):
            if part.get("type") == "text":
                problems.text(part.get("text"), f"{where}.text")
    elif message["role"] == "assistant" and any(message.get(key) for key in _INSTEAD):
        problems.require(content is None or isinstance(content, str), place, "must be text")
    elif message["role"] != "function":
        problems.text(content, place)
