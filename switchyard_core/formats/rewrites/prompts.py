"""Adding an instruction before or after the caller's own, without touching theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = ["PromptParameters", "into_chat", "into_messages", "into_responses"]

_INSTRUCTIONS = ("system", "developer")
#: What a role of an instruction looks like in JSON, unless its letters are written as escapes.
_ROLE = re.compile(rb'"(?:system|developer)"')
_ESCAPE = b"\\u00"


class PromptParameters(BaseModel):
    """An instruction and its place.

    Args:
        text: The instruction; not blank.
        position: Before or after the caller's own instructions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    position: Literal["prepend", "append"] = "prepend"


def into_chat(body: ObjectText, parameters: PromptParameters, scope: RewriteScope) -> Sequence[str]:
    """Add a message before the first or after the last leading instruction message.

    Its role is that of the caller's first instruction message, else ``system``.
    """
    messages = body.array("messages")
    if messages is None:
        return ()
    leading, role = _leading(messages, body.raw("messages") or b"")
    message = encode({"role": role, "content": parameters.text})
    if any(_same(messages, index, parameters.text) for index in range(leading)):
        return ()
    place = leading if parameters.position == "append" else 0
    messages.insert(place, message)
    return (f"added a {role} message as messages[{place}]",)


def _leading(messages: ArrayText, raw: bytes) -> tuple[int, str]:
    """Return how many instruction messages stand first, and the role of the first one at all.

    Args:
        messages: The history.
        raw: Its bytes; those of a history without any instruction are not cut into messages.
    """
    count, role = 0, ""
    for index, message in messages.objects():
        found = message.text("role") or ""
        if found in _INSTRUCTIONS:
            role = role or found
            count += index == count
        if index >= count and (role or not _may_instruct(raw)):
            break
    return count, role or "system"


def _may_instruct(raw: bytes) -> bool:
    """Return whether a history may hold an instruction; quick, and right when it says no."""
    return _ROLE.search(raw) is not None or _ESCAPE in raw


def _same(messages: ArrayText, index: int, text: str) -> bool:
    message = messages.object(index)
    if message is None:
        return False
    parts = message.array("content")
    if parts is not None:
        return len(parts) == 1 and any(part.text("text") == text for _, part in parts.objects())
    return message.text("content") == text


def into_responses(
    body: ObjectText,
    parameters: PromptParameters,
    scope: RewriteScope,
) -> Sequence[str]:
    """Add the text to ``instructions``, or without any, where the policy wants it.

    A string keeps its own bytes: the text is put before or after it with a blank line.
    A list stays a list.
    """
    text, append = parameters.text, parameters.position == "append"
    raw = body.raw("instructions")
    if raw is not None and raw[:1] == b"[":
        return _into_list(body, text, append=append)
    if raw is not None and raw[:1] == b'"' and raw != b'""':
        joined = _join(raw, text, append=append)
        if joined is None:
            return ()
        body.set("instructions", joined)
        return (f"put the text {'after' if append else 'before'} instructions",)
    if raw not in (None, b"null", b'""'):
        return ()  # no instructions that the provider would take: it says so itself
    items = body.array("input") if append else None
    if items is not None:
        return _after_developers(items, text)
    if raw is None:
        body.insert(body.index("input"), "instructions", encode(text))
    else:
        body.set("instructions", encode(text))
    return ("set instructions",)


def _join(raw: bytes, text: str, *, append: bool) -> bytes | None:
    """Return the JSON string with the text before or after it, ``None`` if it is there."""
    ours = encode(text)[1:-1]
    gap = encode("\n\n")[1:-1]
    theirs = raw[1:-1]
    # Another prompt of ours may stand outside of this one: look for it as a piece of its own.
    if gap + ours + gap in gap + theirs + gap:
        return None
    pieces = (theirs, gap, ours) if append else (ours, gap, theirs)
    return b'"' + b"".join(pieces) + b'"'


def _into_list(body: ObjectText, text: str, *, append: bool) -> Sequence[str]:
    items = body.array("instructions")
    if items is None:
        return ()
    if any(_same(items, index, text) for index in range(len(items))):
        return ()
    place = len(items) if append else 0
    items.insert(place, encode({"type": "message", "role": "developer", "content": text}))
    return (f"added instructions[{place}]",)


def _after_developers(items: ArrayText, text: str) -> Sequence[str]:
    leading, _ = _leading(items, b"")
    if any(_same(items, index, text) for index in range(leading)):
        return ()
    items.insert(leading, encode({"type": "message", "role": "developer", "content": text}))
    return (f"added a developer message as input[{leading}]",)


def into_messages(
    body: ObjectText,
    parameters: PromptParameters,
    scope: RewriteScope,
) -> Sequence[str]:
    """Add the text to a ``system`` string, or a block of its own to ``system`` blocks.

    The caller's blocks and their cache marks are not touched; ours never has one.
    """
    text, append = parameters.text, parameters.position == "append"
    raw = body.raw("system")
    if raw is not None and raw[:1] == b"[":
        blocks = body.array("system")
        if blocks is None:
            return ()
        if any(block.text("text") == text for _, block in blocks.objects()):
            return ()
        place = len(blocks) if append else 0
        blocks.insert(place, encode({"type": "text", "text": text}))
        return (f"added system[{place}]",)
    if raw is not None and raw[:1] == b'"' and raw != b'""':
        joined = _join(raw, text, append=append)
        if joined is None:
            return ()
        body.set("system", joined)
        return (f"put the text {'after' if append else 'before'} system",)
    if raw not in (None, b"null", b'""'):
        return ()
    if raw is None:
        body.insert(body.index("messages"), "system", encode(text))
    else:
        body.set("system", encode(text))
    return ("set system",)
