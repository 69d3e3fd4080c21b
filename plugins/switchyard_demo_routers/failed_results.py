"""Which tool results say that their call failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import tomli

from switchyard_core import ObjectText, Request, ToolResult, compile_pattern

__all__ = ["failed_results"]


def failed_results(request: Request) -> Iterator[bool]:
    """Yield, per tool result since the assistant's last turn, whether its call failed."""
    conversation = request.conversation
    last, items = conversation.last_assistant, request.fields.array(request.history_key)
    for message in conversation.messages[(-1 if last is None else last) + 1 :]:
        if message.role != "tool" or items is None:
            continue
        if request.wire_format == "anthropic_messages":
            results = (part for part in message.content if isinstance(part, ToolResult))
            yield from (result.is_error for result in results)
            continue
        for index in range(message.first, message.last + 1):
            item = items.object(index)
            if item is not None:
                yield _failed(item)


def _failed(item: ObjectText) -> bool:
    statuses, patterns = _signs()
    if item.text("status") in statuses:
        return True
    texts = [text for key in ("content", "output") for text in _texts(item.value(key))]
    return any(found(text) for found in patterns for text in texts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            text = part.get("text") if isinstance(part, dict) else None
            yield from _texts(text if isinstance(text, str) else json.dumps(part))


@cache
def _signs() -> tuple[frozenset[str], tuple[Callable[[str], bool], ...]]:
    """Return the statuses of failed calls, and tests of the texts of their results."""
    text = (files("switchyard_demo_routers") / "failed_results.toml").read_text("utf-8")
    signs = tomli.loads(text)
    return frozenset(signs["statuses"]), tuple(map(compile_pattern, signs["patterns"]))
