"""Answers of Chat Completions, told piece by piece."""

from __future__ import annotations

import json
from typing import Any

import pytest

from switchyard_core.jsonio.tree import loads
from switchyard_core.wire.chat.told import ChatReader
from switchyard_core.wire.replies import ShapeError
from switchyard_core.wire.retelling import AnswerTeller


class Listener(AnswerTeller):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.parts: dict[Any, dict[str, Any]] = {}
        self.open_now: set[Any] = set()
        self.ended: tuple[str, Any] | None = None

    def head(self, *, answer_id, model, created_s, usage) -> None:
        self.log.append(("head", answer_id, model, created_s))

    def open(self, key, part) -> None:
        assert key not in self.parts
        assert self.ended is None
        self.open_now.add(key)
        self.parts[key] = {"kind": part.kind, "text": ""}
        if part.kind == "call":
            self.parts[key] |= {"id": part.id, "name": part.name}
        self.log.append(("open", key, part.kind))

    def more(self, key, raw) -> None:
        assert key in self.open_now
        self.parts[key]["text"] += loads(raw)
        self.log.append(("more", key, raw))

    def close(self, key) -> None:
        self.open_now.remove(key)
        self.log.append(("close", key))

    def end(self, stop, usage) -> None:
        assert not self.open_now
        assert self.ended is None
        self.ended = (stop, usage)

    def ping(self) -> None:
        self.log.append(("ping",))


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "m", "created": 7, "choices": [choice], **more})


def listened(*events: str, end: bool = True) -> Listener:
    listener = Listener()
    reader = ChatReader(listener)
    for event in events:
        reader.event("", event.encode())
    if end:
        reader.finish()
    return listener


def calls(*pieces: dict[str, Any]) -> str:
    return chunk({"tool_calls": list(pieces)})


def piece(arguments: Any = None, **more: Any) -> dict[str, Any]:
    named = {key: more.pop(key) for key in ("name",) if key in more}
    return {
        **more,
        "function": {**named, **({} if arguments is None else {"arguments": arguments})},
    }


def test_text_is_passed_on_as_it_came() -> None:
    raw = '{"id":"c1","choices":[{"index":0,"delta":{"content":"\\u00e9 \\ud83d"}}]}'
    found = listened(chunk({"role": "assistant", "content": ""}), raw, chunk(finish="stop"))

    assert [each for each in found.log if each[0] == "more"] == [
        ("more", "text 1", b'"\\u00e9 \\ud83d"')
    ]
    assert found.log[0] == ("head", "c1", "m", 7)
    assert found.ended is not None
    assert found.ended[0] == ""


def test_stream_without_an_end_is_refused() -> None:
    with pytest.raises(ShapeError, match="ends before its answer does"):
        listened(chunk({"content": "half"}))
