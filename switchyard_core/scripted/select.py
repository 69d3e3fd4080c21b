"""Which script and which of its turns answers a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from switchyard_core.conversation import Conversation
from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import JsonTextError, ObjectText
from switchyard_core.patterns import compile_pattern
from switchyard_core.scripted.script import Fault, Script, Turn, When
from switchyard_core.wire import Format

__all__ = ["Asked", "Choice", "Selector"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The parts of a request that a script can look at."""

    format: Format
    body: Mapping[str, Any]
    raw: bytes
    headers: Mapping[str, str]  # values by name in lower case

    @cached_property
    def fields(self) -> ObjectText:
        """The body's top level, empty for a body that is not quite JSON."""
        try:
            return ObjectText(self.raw)
        except JsonTextError:
            return ObjectText(b"{}")

    @cached_property
    def conversation(self) -> Conversation:
        """The history, empty when it cannot be read."""
        try:
            return self.format.read(self.fields)
        except BodyError:
            return Conversation(messages=())

    @property
    def has_tools(self) -> bool:
        """Whether the request offers tools."""
        return self.format.offers_tools(self.fields, self.conversation)

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the tools that the request offers, ``namespace.name`` in one."""
        return self.format.offered_tools(self.fields)

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
    """What plays for a request."""

    script: int
    number: int  # number of the turn that the request asks for, from 0; it may be past the end
    turn: Turn
    fault: Fault | None  # played instead


class Selector:
    """Chooses by script, and counts the faults that it played."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._tests = [_test(scripted.when) for scripted in script.scripts]
        self._spent: dict[tuple[int, int], int] = {}

    def choose(self, asked: Asked) -> Choice | None:
        """Return what plays for a request, ``None`` when no script answers it.

        A chosen fault counts as played.
        """
        for index, scripted in enumerate(self._script.scripts):
            if not self._tests[index](asked):
                continue
            answers = sum(m.role == "assistant" for m in asked.conversation.messages)
            number = max(0, answers + scripted.offset)
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


def _test(when: When) -> Callable[[Asked], bool]:
    """Return the test whether a script answers a request, its expressions compiled once."""
    model = compile_pattern(when.model) if when.model is not None else None
    body = compile_pattern(when.body) if when.body is not None else None
    headers = [(name.lower(), compile_pattern(pattern)) for name, pattern in when.header.items()]

    def holds(asked: Asked) -> bool:
        if when.format is not None and when.format != asked.format.name:
            return False
        if model is not None and not model(asked.model):
            return False
        if when.has_tools is not None and when.has_tools != asked.has_tools:
            return False
        for name, found in headers:
            if name not in asked.headers or not found(asked.headers[name]):
                return False
        return body is None or body(_text(asked))

    return holds


def _text(asked: Asked) -> str:
    # Bodies escape what they like; patterns are written against plain text.
    return json.dumps(asked.body, ensure_ascii=False)
