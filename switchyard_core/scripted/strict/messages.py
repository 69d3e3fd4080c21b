"""Structure of a Messages request: calls and their results, texts, cache marks, thinking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from switchyard_core.scripted.strict.places import Sent, found
from switchyard_core.scripted.strict.thinking import (
    Reading,
    blocks,
    bound_elsewhere,
    modified,
)

__all__ = ["CHECKS"]

Facts = Iterator[dict[str, Any]]

#: Where the blocks of a request are that can hold a text.
_CONTENTS = ("system[]", "messages[].content[]", "messages[].content[].content[]")


def _empty_texts(sent: Sent, _reading: Reading) -> Facts:
    for place in _CONTENTS:
        for at, block in found(sent, place):
            if isinstance(block, dict) and block.get("type") == "text" and block.get("text") == "":
                yield {"place": at, "part": str(at[0])}


def _blank_texts(sent: Sent, _reading: Reading) -> Facts:
    for at, block in found(sent, "messages[].content[type=text].text"):
        if isinstance(block, str) and block and not block.strip():
            yield {"place": at, "part": str(at[0])}


def _empty_messages(sent: Sent, _reading: Reading) -> Facts:
    messages = sent.listed("messages")
    for index, message in enumerate(messages):
        last = index == len(messages) - 1 and message.get("role") == "assistant"
        directs = message.get("role") == "system" and message.get("output_config")
        if message.get("content") in ("", []) and not last and not directs:
            yield {"place": ("messages", index)}


def _misplaced_system(sent: Sent, _reading: Reading) -> Facts:
    messages = sent.listed("messages")
    roles = [message.get("role") for message in messages]
    for index, message in enumerate(messages):
        if roles[index] != "system" or (not message.get("content") and "output_config" in message):
            continue
        behind, before = roles[index - 1], [*roles[index + 1 :], "assistant"][0]
        if not index:
            problem = "use the top-level 'system' parameter for the initial system prompt"
        elif behind != "user" and not _runs_there(messages[index - 1]):
            problem = "role 'system' must follow a 'user' message"
        elif before != "assistant":
            problem = "role 'system' must precede an 'assistant' message or end the array"
        else:
            continue
        yield {"place": ("messages", index), "problem": problem}


def _runs_there(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    last = content[-1] if isinstance(content, list) and content else {}
    kind = str(last.get("type")) if isinstance(last, dict) else ""
    return kind == "server_tool_use" or kind.endswith("_tool_result")


def _unanswered_calls(sent: Sent, _reading: Reading) -> Facts:
    for index, message in _turns(sent):
        called = _ids(message, "tool_use", "id")
        answered = _ids(_next(sent, index), "tool_result", "tool_use_id")
        if missing := [each for each in called if each not in answered]:
            yield {"place": ("messages", index), "ids": ", ".join(missing)}


def _unexpected_results(sent: Sent, _reading: Reading) -> Facts:
    for index, message in enumerate(sent.listed("messages")):
        if message.get("role") != "user":
            continue
        called = _ids(_before(sent, index), "tool_use", "id")
        for each in _ids(message, "tool_result", "tool_use_id"):
            if each not in called:
                yield {"place": ("messages", index, "content", 0), "id": each}


def _repeated_results(sent: Sent, _reading: Reading) -> Facts:
    for index, message in enumerate(sent.listed("messages")):
        for each, count in Counter(_ids(message, "tool_result", "tool_use_id")).items():
            if count > 1:
                yield {"place": ("messages", index, "content", 0), "id": each}


def _repeated_calls(sent: Sent, _reading: Reading) -> Facts:
    every = Counter(each for _, m in _turns(sent) for each in _ids(m, "tool_use", "id"))
    for each, count in every.items():
        if count > 1:
            yield {"id": each}


def _cache_marks(sent: Sent, _reading: Reading) -> Facts:
    places = ("tools[].cache_control", *(f"{place}.cache_control" for place in _CONTENTS))
    count = sum(1 for place in places for _ in found(sent, place))
    if count > 4:  # blocks, says the API
        yield {"count": count}


def _budget_over_limit(sent: Sent, _reading: Reading) -> Facts:
    limit = sent.asked.body.get("max_tokens")
    for at, budget in found(sent, "thinking.budget_tokens"):
        if isinstance(limit, int) and isinstance(budget, int) and budget >= limit:
            yield {"place": at, "value": budget}


def _mixed_efforts(sent: Sent, _reading: Reading) -> Facts:
    every = found(sent, "output_config.effort | messages[].output_config.effort")
    if len({str(effort) for _, effort in every}) > 1:
        yield {"place": ("thinking", "type")}


def _loose_schemas(sent: Sent, _reading: Reading) -> Facts:
    for at, schema in found(sent, "tools[strict=true].input_schema"):
        if any(_is_open(each) for each in _schemas(schema)):
            yield {"place": at[:2]}


def _foreign_thinking(sent: Sent, _reading: Reading) -> Facts:
    for block in blocks(sent):
        if block.facts is None:
            key = "data" if block.kind == "redacted_thinking" else "signature"
            yield {"place": block.place, "key": key, "kind": block.kind}


def _modified_thinking(sent: Sent, reading: Reading) -> Facts:
    for block in modified(sent, reading):
        yield {"place": block.place}


def _moved_thinking(sent: Sent, reading: Reading) -> Facts:
    for block in bound_elsewhere(sent, reading):
        yield {"place": block.place}


#: Each check by the name that a rule gives.
CHECKS = {
    "messages.blank_texts": _blank_texts,
    "messages.budget_over_limit": _budget_over_limit,
    "messages.cache_marks": _cache_marks,
    "messages.empty_messages": _empty_messages,
    "messages.empty_texts": _empty_texts,
    "messages.foreign_thinking": _foreign_thinking,
    "messages.loose_schemas": _loose_schemas,
    "messages.misplaced_system": _misplaced_system,
    "messages.mixed_efforts": _mixed_efforts,
    "messages.modified_thinking": _modified_thinking,
    "messages.moved_thinking": _moved_thinking,
    "messages.repeated_calls": _repeated_calls,
    "messages.repeated_results": _repeated_results,
    "messages.unanswered_calls": _unanswered_calls,
    "messages.unexpected_results": _unexpected_results,
}


def _turns(sent: Sent) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, message in enumerate(sent.listed("messages")):
        if message.get("role") == "assistant":
            yield index, message


def _next(sent: Sent, index: int) -> Mapping[str, Any]:
    """Return the message behind another one; instructions in between do not separate them."""
    later = (m for m in sent.listed("messages")[index + 1 :] if m.get("role") != "system")
    return next(later, {})


def _before(sent: Sent, index: int) -> Mapping[str, Any]:
    earlier = (m for m in reversed(sent.listed("messages")[:index]) if m.get("role") != "system")
    nearest: Mapping[str, Any] = next(earlier, {})
    return nearest if nearest.get("role") == "assistant" else {}


def _ids(message: Mapping[str, Any], kind: str, key: str) -> list[str]:
    content = message.get("content")
    listed = content if isinstance(content, list) else []
    chosen = [item for item in listed if isinstance(item, dict) and item.get("type") == kind]
    return [str(item.get(key)) for item in chosen]


def _schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _schemas(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _schemas(item)


def _is_open(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and schema.get("additionalProperties") is not False
