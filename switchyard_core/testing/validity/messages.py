"""What Anthropic Messages refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from switchyard_core.testing.validity.shapes import Problems, objects

__all__ = ["messages_problems"]

#: Most cache marks of one request.
MOST_MARKS = 4

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
#: Claude Code sends reminders as ``system`` messages between the others.
_ROLES = frozenset({"user", "assistant", "system"})
_THINKING = ("thinking", "redacted_thinking")
#: Blocks that a cache mark may not stand on.
_UNMARKABLE = frozenset(_THINKING)

Message = tuple[str, str, list[tuple[str, dict[str, Any]]]]


def messages_problems(body: dict[str, Any]) -> list[str]:
    """Return what is wrong with a body.

    Rules: ``max_tokens``; roles ``user``, ``assistant`` and ``system``, the user first; no
    empty content and no blank text, no space at the end of a prefill; the message after an
    assistant's calls begins with the results of exactly these calls; call ids are legal and
    used once; at most four cache marks, none on an empty or thinking block; thinking is signed,
    and with thinking switched on the message of the last tool loop begins with it.
    """
    problems = Problems()
    limit = body.get("max_tokens")
    problems.require(
        isinstance(limit, int) and limit > 0, "max_tokens", "must be a whole number above 0"
    )
    messages = (
        [_message(m, p, problems) for p, m in objects(body["messages"], "messages", problems)]
        if problems.require("messages" in body, "messages", "is missing")
        else []
    )
    if messages:
        path, role, _ = messages[0]
        problems.require(role == "user", f"{path}.role", "the first message is the user's")
        _prefill(messages[-1], problems)
    _system(body.get("system"), problems)
    _pairs(messages, problems)
    _marks(body, problems)
    if (body.get("thinking") or {}).get("type") == "enabled":
        _last_loop(messages, problems)
    for path, tool in objects(body["tools"], "tools", problems) if body.get("tools") else ():
        problems.name(tool.get("name", ""), f"{path}.name")
    return problems.found


def _message(message: dict[str, Any], path: str, problems: Problems) -> Message:
    role = message.get("role")
    problems.require(role in _ROLES, f"{path}.role", f"unknown role {role!r}")
    content = message.get("content")
    if isinstance(content, str):
        problems.text(content, f"{path}.content")
        content = [{"type": "text", "text": content}]
        return path, str(role), [(f"{path}.content", content[0])]
    blocks = list(objects(content, f"{path}.content", problems))
    for place, block in blocks:
        _block(block, place, str(role), problems)
    return path, str(role), blocks


def _block(block: dict[str, Any], path: str, role: str, problems: Problems) -> None:
    kind = block.get("type")
    if kind == "text":
        problems.text(block.get("text"), f"{path}.text")
    elif kind == "tool_use":
        problems.require(role == "assistant", path, "only the assistant calls a tool")
        problems.name(block.get("name"), f"{path}.name")
        problems.require(isinstance(block.get("input"), dict), f"{path}.input", "must be an object")
    elif kind == "tool_result":
        problems.require(role == "user", path, "only the user gives a result")
        inner = block.get("content")
        parts = objects(inner, f"{path}.content", problems) if isinstance(inner, list) else ()
        for place, part in parts:
            if part.get("type") == "text":
                problems.text(part.get("text"), f"{place}.text")
    elif kind == "thinking":
        problems.require(
            isinstance(block.get("signature"), str) and block["signature"],
            f"{path}.signature",
            "thinking must be signed",
        )


def _system(system: Any, problems: Problems) -> None:
    if isinstance(system, list) and system:
        for path, block in objects(system, "system", problems):
            problems.text(block.get("text"), f"{path}.text")
    elif system is not None:
        problems.require(isinstance(system, str | list), "system", "must be text or blocks")


def _prefill(message: Message, problems: Problems) -> None:
    _, role, blocks = message
    if role == "assistant" and blocks and blocks[-1][1].get("type") == "text":
        path, block = blocks[-1]
        text = str(block.get("text", ""))
        problems.require(text == text.rstrip(), path, "a prefill must not end with a space")


def _pairs(messages: list[Message], problems: Problems) -> None:
    seen: set[str] = set()
    merged = _merged(messages)
    for number, (_, _, blocks) in enumerate(merged):
        calls = [(p, b.get("id")) for p, b in blocks if b.get("type") == "tool_use"]
        for path, call in calls:
            problems.id(call, f"{path}.id", _ID, seen)
        following = merged[number + 1][2] if number + 1 < len(merged) else []
        answered = {b.get("tool_use_id") for _, b in following if b.get("type") == "tool_result"}
        for path, call in calls:
            problems.require(
                call in answered, path, f"the call `{call}` has no result in the next message"
            )
        before = merged[number - 1][2] if number else []
        known = {b.get("id") for _, b in before if b.get("type") == "tool_use"}
        first_other = ""
        for path, block in blocks:
            if block.get("type") != "tool_result":
                first_other = first_other or path
                continue
            asked = block.get("tool_use_id")
            problems.require(
                asked in known, path, f"answers no call of the message before it: {asked!r}"
            )
            problems.require(not (known and first_other), path, "results come before anything else")


def _merged(messages: list[Message]) -> list[Message]:
    """Join neighbours of one role, as the API does; reminders do not part them."""
    found: list[Message] = []
    for path, role, blocks in messages:
        if role == "system":
            continue
        if found and found[-1][1] == role:
            found[-1] = (found[-1][0], role, [*found[-1][2], *blocks])
        else:
            found.append((path, role, list(blocks)))
    return found


def _marks(body: dict[str, Any], problems: Problems) -> None:
    marked = list(_marked(body, ""))
    problems.require(
        len(marked) <= MOST_MARKS,
        "cache_control",
        f"{len(marked)} cache marks, of which {MOST_MARKS} are allowed",
    )
    for path, block in marked:
        kind = block.get("type")
        problems.require(kind not in _UNMARKABLE, path, "no cache mark may stand on thinking")
        empty = kind == "text" and not str(block.get("text", "")).strip()
        problems.require(not empty, path, "no cache mark may stand on an empty text")


def _marked(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield blocks with a cache mark where the API looks for one: never inside arguments."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _marked(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if value.get("cache_control") is not None:
            yield path, value
        for key in ("tools", "system", "messages", "content"):
            yield from _marked(value.get(key), f"{path}.{key}".lstrip("."))


def _last_loop(messages: list[Message], problems: Problems) -> None:
    """Require thinking at the start of the assistant's part of a tool loop that is going on."""
    merged = _merged(messages)
    if len(merged) < 2 or merged[-1][1] != "user":
        return
    path, _, blocks = merged[-2]
    results = all(block.get("type") == "tool_result" for _, block in merged[-1][2])
    calls = any(block.get("type") == "tool_use" for _, block in blocks)
    if results and calls:
        problems.require(
            blocks[0][1].get("type") in _THINKING,
            path,
            "with thinking on, the message of the last tool loop begins with thinking",
        )
