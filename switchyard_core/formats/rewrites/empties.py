"""Messages with nothing left in them, and results with nothing to say."""

from __future__ import annotations

from collections.abc import Sequence

from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.rewrites.companions import needed
from switchyard_core.formats.rewrites.pairs import RepairParameters
from switchyard_core.formats.rewrites.texts import text
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = ["drop_from_chat", "drop_from_messages", "drop_from_responses"]

_NOTHING = (b"null", b'""', b"[]")


def _blank(raw: bytes | None) -> bool:
    return raw is None or bytes(raw) in _NOTHING


def drop_from_messages(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove blank text blocks and empty messages, then merge neighbours of one role."""
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
        # A blank last message may be meant: the provider decides about it.
        if _blank(message.raw("content")) and index < len(messages) - 1:
            messages.delete(index)
            changes.append(f"removed the empty messages[{index}]")
    return changes + _merge(messages)


def _clean_blocks(blocks: ArrayText, index: int) -> list[str]:
    changes = []
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks.object(place)
        if block is None:
            continue
        if block.text("type") == "text" and not (block.text("text") or "").strip():
            blocks.delete(place)
            changes.append(f"removed the empty messages[{index}].content[{place}]")
        elif block.text("type") == "tool_result" and _blank(block.raw("content")):
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
        if message is None or not _blank(message.raw("content")):
            continue
        role = message.text("role")
        calls = not _blank(message.raw("tool_calls")) or not _blank(message.raw("function_call"))
        if role == "tool":
            message.set("content", encode(text("empty_result")))
            changes.append(f"gave the empty result messages[{index}] a text")
        elif role == "assistant" and not calls and index < len(messages) - 1:
            messages.delete(index)
            changes.append(f"removed the empty messages[{index}]")
    return changes


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
        if kind.endswith("_call_output") and _blank(item.raw("output")):
            item.set("output", encode(text("empty_result")))
            changes.append(f"gave the empty output input[{index}] a text")
        elif _empty_answer(item, kind) and index < len(items) - 1:
            items.delete(index)
            changes.append(f"removed the empty input[{index}]")
    return changes


def _empty_answer(item: ObjectText, kind: str) -> bool:
    said = item.text("role") == "assistant" and kind in ("", "message")
    return said and _blank(item.raw("content"))
