"""Messages with nothing left in them, and results with nothing to say."""

from __future__ import annotations

from collections.abc import Sequence

from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.rewrites.companions import needed
from switchyard_core.formats.rewrites.pairs import RepairParameters
from switchyard_core.formats.rewrites.texts import text
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = ["drop_from_chat", "drop_from_messages", "drop_from_responses"]

_TEXT_TYPES = ("text", "input_text", "output_text")


def _blank(holder: ObjectText, key: str) -> bool:
    """Whether a value has nothing to say: missing, null, blank text, or only blank texts."""
    raw = holder.raw(key)
    if raw is None or raw == b"null":
        return True
    if raw[:1] == b'"':
        return not (holder.text(key) or "").strip()
    parts = holder.array(key)
    if parts is None:
        return False
    found = [part for _, part in parts.objects()]
    return len(found) == len(parts) and all(
        part.text("type") in _TEXT_TYPES and not (part.text("text") or "").strip() for part in found
    )


def drop_from_messages(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove blank text blocks and empty messages, then merge neighbours of one role.

    A history never begins with an assistant: where its beginning is gone, a fixed user
    message says so.
    """
    messages = body.array("messages")
    if messages is None or not needed(parameters.when, scope):
        return ()
    changes: list[str] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages.object(index)
        if message is None:
            continue
        blocks = message.array("content")
        if blocks is not None:
            changes += _clean_blocks(blocks, index)
        if _blank(message, "content"):
            messages.delete(index)
            changes.append(f"removed the empty messages[{index}]")
    first = messages.object(0) if len(messages) else None
    if changes and (first is None or first.text("role") == "assistant"):
        messages.insert(0, encode({"role": "user", "content": text("lost_beginning")}))
        changes.append("added a user message as messages[0]")
    return changes + _merge(messages)


def _clean_blocks(blocks: ArrayText, index: int) -> list[str]:
    changes = []
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks.object(place)
        if block is None:
            continue
        if block.text("type") == "text" and _blank(block, "text"):
            blocks.delete(place)
            changes.append(f"removed the empty messages[{index}].content[{place}]")
        elif block.text("type") == "tool_result" and _blank(block, "content"):
            block.set("content", encode(text("empty_result")))
            changes.append(f"gave the empty result messages[{index}].content[{place}] a text")
    return changes


def _merge(messages: ArrayText) -> list[str]:
    changes = []
    for index in range(len(messages) - 1, 0, -1):
        first, second = messages.object(index - 1), messages.object(index)
        if first is None or second is None:
            continue
        if first.text("role") != second.text("role") or first.text("role") == "system":
            continue
        if first.keys() != second.keys() or set(first.keys()) != {"role", "content"}:
            continue
        first.set("content", _as_blocks(first, second))
        messages.delete(index)
        changes.append(f"merged messages[{index}] into messages[{index - 1}]")
    return changes


def _as_blocks(*messages: ObjectText) -> bytes:
    inner = []
    for message in messages:
        raw = message.raw("content") or b""
        if raw[:1] == b'"':
            inner.append(b'{"type":"text","text":' + raw + b"}")
        elif raw.strip(b" \t\r\n[]"):
            inner.append(raw.strip()[1:-1].strip())
    return b"[" + b",".join(inner) + b"]"


def drop_from_chat(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove assistant messages with neither text nor calls; give empty results a text."""
    messages = body.array("messages")
    if messages is None or not needed(parameters.when, scope):
        return ()
    changes = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages.object(index)
        if message is None or not _blank(message, "content"):
            continue
        role = message.text("role")
        if role in ("tool", "function"):
            message.set("content", encode(text("empty_result")))
            changes.append(f"gave the empty result messages[{index}] a text")
        elif role == "assistant" and not _calls(message):
            messages.delete(index)
            changes.append(f"removed the empty messages[{index}]")
    return changes


def _calls(message: ObjectText) -> bool:
    return bool(message.array("tool_calls")) or message.object("function_call") is not None


def drop_from_responses(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove empty assistant messages; give empty outputs a text."""
    items = body.array("input")
    if items is None or not needed(parameters.when, scope):
        return ()
    changes = []
    for index in range(len(items) - 1, -1, -1):
        item = items.object(index)
        if item is None:
            continue
        kind = item.text("type") or ""
        if kind in _TEXT_OUTPUTS and _blank(item, "output"):
            item.set("output", encode(text("empty_result")))
            changes.append(f"gave the empty output input[{index}] a text")
        elif _empty_answer(item, kind):
            items.delete(index)
            changes.append(f"removed the empty input[{index}]")
    return changes


def _empty_answer(item: ObjectText, kind: str) -> bool:
    said = item.text("role") == "assistant" and kind in ("", "message")
    return said and _blank(item, "content")


_TEXT_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
