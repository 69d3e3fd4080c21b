"""Tool ids and pairs of calls and results that the next provider accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope, WireFormat
from switchyard_core.formats.openai_responses import CALL_TYPES, OUTPUT_TYPES
from switchyard_core.formats.rewrites.companions import When, needed
from switchyard_core.formats.rewrites.texts import text
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = [
    "RemapParameters",
    "RepairParameters",
    "remap_ids",
    "repair_chat",
    "repair_messages",
    "repair_responses",
]

_LEGAL: dict[str, re.Pattern[str]] = {
    "openai_chat": re.compile(r".{1,40}", re.DOTALL),
    "openai_responses": re.compile(r".{1,64}", re.DOTALL),
    "anthropic_messages": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "alphanumeric_9": re.compile(r"[a-zA-Z0-9]{9}"),
}
_ANSWERABLE = ("function_call", "custom_tool_call")
_ANSWERS = ("function_call_output", "custom_tool_call_output")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RemapParameters(BaseModel):
    """Which ids are legal.

    Args:
        when: ``always`` at another origin, ``dropped`` at the same one.
        style: ``alphanumeric_9`` for targets that want exactly nine letters or digits.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: When = "always"
    style: Literal["format", "alphanumeric_9"] = "format"


class RepairParameters(BaseModel):
    """When to run: ``always`` at another origin, ``dropped`` at the same one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: When = "always"


# --- ids ---------------------------------------------------------------------------------


def remap_ids(body: ObjectText, parameters: RemapParameters, scope: RewriteScope) -> Sequence[str]:
    """Replace every id that the target refuses by a hash of it, in calls and in results."""
    if not needed(parameters.when, scope):
        return ()
    style = scope.wire_format if parameters.style == "format" else parameters.style
    legal = _LEGAL[style]
    seen: dict[str, str] = {}
    for holder, key in _id_places(body, scope.wire_format):
        old = holder.text(key)
        if old is None or legal.fullmatch(old):
            continue
        seen[old] = _hashed(old, style)
        holder.set(key, encode(seen[old]))
    return [f"renamed {len(seen)} tool ids"] if seen else []


def _hashed(old: str, style: str) -> str:
    digest = blake2b(old.encode("utf-8", "surrogatepass"), digest_size=16)
    if style != "alphanumeric_9":
        return "call_" + digest.hexdigest()[:24]
    number, letters = int.from_bytes(digest.digest()), ""
    for _ in range(9):
        number, rest = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[rest]
    return letters


def _id_places(body: ObjectText, wire_format: WireFormat) -> Iterator[tuple[ObjectText, str]]:
    if wire_format == "openai_responses":
        items = body.array("input")
        for _, item in items.objects() if items is not None else ():
            if "call_id" in item:
                yield item, "call_id"
        return
    messages = body.array("messages")
    for _, message in messages.objects() if messages is not None else ():
        if wire_format == "openai_chat":
            if "tool_call_id" in message:
                yield message, "tool_call_id"
            calls = message.array("tool_calls")
            yield from ((call, "id") for _, call in calls.objects()) if calls is not None else ()
            continue
        content = message.array("content")
        for _, block in content.objects() if content is not None else ():
            if block.text("type") == "tool_use":
                yield block, "id"
            elif block.text("type") == "tool_result":
                yield block, "tool_use_id"


# --- pairs -------------------------------------------------------------------------------


def repair_responses(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove outputs without a call and give calls without an output a fixed one."""
    items = body.array("input")
    if items is None or not needed(parameters.when, scope):
        return ()
    # With a continuation the calls may be at the provider.
    stored = any(
        body.raw(key) not in (None, b"null") for key in ("previous_response_id", "conversation")
    )
    kinds = [item.text("type") or "" for _, item in items.objects()]
    if len(kinds) != len(items):
        return ()
    ids = [_call_id(items, index) for index in range(len(items))]
    calls = {ids[i] for i, kind in enumerate(kinds) if kind in CALL_TYPES}
    outputs = {ids[i] for i, kind in enumerate(kinds) if kind in OUTPUT_TYPES}
    last_turn = _last_turn(kinds, items)
    changes = []
    for index in range(len(items) - 1, -1, -1):
        kind = kinds[index]
        if kind in _ANSWERS and ids[index] not in calls and not stored:
            items.delete(index)
            changes.append(f"removed input[{index}], its call is missing")
        elif kind in _ANSWERABLE and index < last_turn and ids[index] not in outputs:
            output = {
                "type": f"{kind}_output",
                "call_id": ids[index],
                "output": text("lost_result"),
            }
            items.insert(index + 1, encode(output))
            changes.append(f"added an output for input[{index}]")
    return changes[::-1]


def _call_id(items: ArrayText, index: int) -> str:
    item = items.object(index)
    return (item.text("call_id") or item.text("id") or "") if item is not None else ""


def _last_turn(kinds: Sequence[str], items: ArrayText) -> int:
    """Return where the assistant items at the very end begin: those may still be open."""
    place = len(kinds)
    while place:
        item = items.object(place - 1)
        made = kinds[place - 1] in CALL_TYPES or kinds[place - 1] == "reasoning"
        if not made and not (item is not None and item.text("role") == "assistant"):
            break
        place -= 1
    return place


def repair_chat(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove tool messages without a call and give calls without one a fixed one."""
    messages = body.array("messages")
    if messages is None or not needed(parameters.when, scope):
        return ()
    changes = []
    answered = {m.text("tool_call_id") for _, m in messages.objects() if m.text("role") == "tool"}
    for index in range(len(messages) - 2, -1, -1):
        message = messages.object(index)
        calls = message.array("tool_calls") if message is not None else None
        if message is None or calls is None or message.text("role") != "assistant":
            continue
        after = index + 1
        while after < len(messages) and _role(messages, after) == "tool":
            after += 1
        missing = [
            call_id
            for _, call in calls.objects()
            if (call_id := call.text("id")) and call_id not in answered
        ]
        for call_id in missing:
            result = {"role": "tool", "tool_call_id": call_id, "content": text("lost_result")}
            messages.insert(after, encode(result))
            changes.append(f"added a result for a call of messages[{index}]")
            after += 1
    known: set[str | None] = set()
    orphans = []
    for index, message in messages.objects():
        calls = message.array("tool_calls")
        if message.text("role") == "assistant" and calls is not None:
            known |= {call.text("id") for _, call in calls.objects()}
        elif message.text("role") == "tool" and message.text("tool_call_id") not in known:
            orphans.append(index)
    for index in reversed(orphans):
        messages.delete(index)
        changes.append(f"removed messages[{index}], its call is missing")
    return changes


def _role(messages: ArrayText, index: int) -> str:
    message = messages.object(index)
    return (message.text("role") or "") if message is not None else ""


def repair_messages(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove tool_result blocks without a call and give calls without one a fixed one."""
    messages = body.array("messages")
    if messages is None or not needed(parameters.when, scope):
        return ()
    changes = []
    known: set[str] = set()
    for index, message in messages.objects():
        blocks = message.array("content")
        if blocks is None:
            continue
        if message.text("role") == "assistant":
            known |= set(_ids(blocks, "tool_use", "id"))
            continue
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks.object(place)
            if block is None or block.text("type") != "tool_result":
                continue
            if block.text("tool_use_id") not in known:
                blocks.delete(place)
                changes.append(f"removed messages[{index}].content[{place}], its call is missing")
    for index in range(len(messages) - 2, -1, -1):
        changes += _answer_calls(messages, index)
    return changes


def _ids(blocks: ArrayText, kind: str, key: str) -> list[str]:
    return [block.text(key) or "" for _, block in blocks.objects() if block.text("type") == kind]


def _answer_calls(messages: ArrayText, index: int) -> list[str]:
    message = messages.object(index)
    blocks = message.array("content") if message is not None else None
    if message is None or blocks is None or message.text("role") != "assistant":
        return []
    calls = _ids(blocks, "tool_use", "id")
    place = index + 1
    while place < len(messages) and _role(messages, place) == "system":
        place += 1
    follower = messages.object(place) if place < len(messages) else None
    if not calls or follower is None:
        return []
    results: list[str] = []
    content = follower.array("content") if follower.text("role") == "user" else None
    if content is not None:
        results = _ids(content, "tool_result", "tool_use_id")
    missing = [call_id for call_id in calls if call_id not in results]
    if not missing:
        return []
    added = [
        encode({"type": "tool_result", "tool_use_id": call_id, "content": text("lost_result")})
        for call_id in missing
    ]
    _put_results(messages, index + 1, follower, content, added)
    return [f"added a result for a call of messages[{index}]" for _ in missing]


def _put_results(
    messages: ArrayText,
    index: int,
    follower: ObjectText,
    content: ArrayText | None,
    added: Sequence[bytes],
) -> None:
    if content is not None:
        for number, block in enumerate(added):
            content.insert(number, block)
        return
    raw = follower.raw("content") or b""
    joined = b",".join(added)
    if follower.text("role") == "user" and raw[:1] == b'"':
        text = b"" if raw == b'""' else b',{"type":"text","text":' + raw + b"}"
        follower.set("content", b"[" + joined + text + b"]")
    else:
        messages.insert(index, b'{"role":"user","content":[' + joined + b"]}")
