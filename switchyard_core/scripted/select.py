"""Which script and which of its turns answers a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from switchyard_core.declarations import WireFormat
from switchyard_core.patterns import compile_pattern
from switchyard_core.scripted.script import Fault, Script, Turn, When

__all__ = ["Asked", "Choice", "Selector", "assistant_turns", "offered_tools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a script can look at in a request.

    Args:
        wire_format: Wire format of the body.
        body: The body as a tree.
        raw: The body's bytes.
        headers: Values by name in lower case.
    """

    wire_format: WireFormat
    body: Mapping[str, Any]
    raw: bytes
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        """The model id, empty when the body has none."""
        model = self.body.get("model")
        return model if isinstance(model, str) else ""

    @property
    def stream(self) -> bool:
        """Whether the body asks for a stream."""
        return self.body.get("stream") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What plays for a request.

    Args:
        script: Index of the script.
        number: Number of the turn that the request asks for, from 0; it may be past the end.
        turn: The turn to play.
        fault: The failure to play instead.
    """

    script: int
    number: int
    turn: Turn
    fault: Fault | None


class Selector:
    """Chooses by script, and counts how often each of its faults was played."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._tests = [_test(scripted.when) for scripted in script.scripts]
        self._spent: dict[tuple[int, int], int] = {}

    def choose(self, asked: Asked) -> Choice | None:
        """Return what plays for a request, ``None`` when no script answers it.

        A fault that is chosen counts as played.
        """
        for index, scripted in enumerate(self._script.scripts):
            if not self._tests[index](asked):
                continue
            number = max(0, assistant_turns(asked.wire_format, asked.body) + scripted.offset)
            turn = scripted.turns[min(number, len(scripted.turns) - 1)]
            fault = None
            for place, candidate in enumerate(scripted.faults):
                spent = self._spent.get((index, place), 0)
                if candidate.turn in (None, number) and spent < candidate.times:
                    self._spent[index, place] = spent + 1
                    fault = candidate
                    break
            return Choice(script=index, number=number, turn=turn, fault=fault)
        return None


def offered_tools(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the tools that a request offers, in any wire format.

    A tool in a namespace gives ``namespace.name``; a hosted tool without a name gives its type.
    """
    return tuple(name for tool in _tools(body) for name in _names(tool) if name)


def assistant_turns(wire_format: WireFormat, body: Mapping[str, Any]) -> int:
    """Return how many answers of the assistant a request holds.

    A run of items that the assistant made is one answer: reasoning, message and calls of
    Responses are several items.
    """
    items = body.get("input" if wire_format == "openai_responses" else "messages")
    count, inside = 0, False
    for item in items if isinstance(items, list) else ():
        made = isinstance(item, Mapping) and _is_assistant(item)
        count += made and not inside
        inside = made
    return count


def _is_assistant(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    if isinstance(kind, str) and (kind == "reasoning" or kind.endswith("_call")):
        return True
    return item.get("role") == "assistant"


def _test(when: When) -> Callable[[Asked], bool]:
    """Return what tells whether a script answers a request, its expressions compiled once."""
    model = compile_pattern(when.model) if when.model is not None else None
    body = compile_pattern(when.body) if when.body is not None else None
    headers = [(name.lower(), compile_pattern(pattern)) for name, pattern in when.header.items()]

    def holds(asked: Asked) -> bool:
        if when.format is not None and when.format != asked.wire_format:
            return False
        if model is not None and not model(asked.model):
            return False
        if when.has_tools is not None and when.has_tools != any(True for _ in _tools(asked.body)):
            return False
        for name, found in headers:
            if name not in asked.headers or not found(asked.headers[name]):
                return False
        return body is None or body(_text(asked))

    return holds


def _text(asked: Asked) -> str:
    # Bodies escape what they like; patterns are written against plain text.
    return json.dumps(asked.body, ensure_ascii=False)


def _tools(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    lists = [body.get("tools"), body.get("functions")]
    items = body.get("input")
    if isinstance(items, list):
        # Codex offers tools in an item of the history when its catalogue says so.
        lists += [
            item.get("tools")
            for item in items
            if isinstance(item, Mapping) and item.get("type") == "additional_tools"
        ]
    for tools in lists:
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, Mapping):
                yield tool


def _names(tool: Mapping[str, Any]) -> list[str]:
    inner = tool.get("tools")
    if tool.get("type") == "namespace" and isinstance(inner, list):
        space = tool.get("name")
        return [
            f"{space}.{name}"
            for part in inner
            if isinstance(part, Mapping)
            for name in _names(part)
        ]
    for kind in ("function", "custom"):
        nested = tool.get(kind)
        if isinstance(nested, Mapping):
            return [str(nested.get("name") or "")]
    return [str(tool.get("name") or tool.get("type") or "")]
