"""What compiled rules remember."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation.labels import READ_ONLY
from switchyard_core.mutation.memory import Memo, Outcomes, brief
from switchyard_core.mutation.outcome import Outcome, outcome_of


def test_memo_keeps_the_latest_entries() -> None:
    memo: Memo[int, str] = Memo(2)
    for number in range(4):
        assert memo.keep(number, str(number)) == str(number)

    assert [memo.get(number) for number in range(4)] == [None, None, "2", "3"]
    assert len(memo) == 2


class Counting:
    """Reads calls and notes which."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.outcomes = Outcomes()

    def get(self, source: str | bytes | Mapping[str, Any], call_id: str, **options: bool) -> None:
        call = ToolCall(id=call_id, name="bash", source=source)
        options.setdefault("uses_id", False)
        assert self.outcomes.get(call, "tool", self._read, **options).label == "read_only"

    def _read(self, tool: str, call: ToolCall) -> Outcome:
        assert tool == "tool"
        self.read.append(call.id)
        return outcome_of(None, READ_ONLY)


@pytest.mark.parametrize("source", ["a", b"a", "a" * 1000, b"\xff" * 1000, "\ud800" * 300])
def test_calls_with_the_same_arguments_are_read_once(source: str | bytes) -> None:
    counting = Counting()
    counting.get(source, "1")
    counting.get(source, "2")

    assert counting.read == ["1"]


def test_calls_are_told_apart_by_their_ids_when_those_matter() -> None:
    counting = Counting()
    for call_id in ("1", "2", "1"):
        counting.get("a", call_id, uses_id=True)

    assert counting.read == ["1", "2"]


def test_arguments_that_are_no_text_are_read_every_time() -> None:
    counting = Counting()
    counting.get({"a": 1}, "1")
    counting.get({"a": 1}, "2")

    assert counting.read == ["1", "2"]


def test_long_texts_stand_in_a_key_by_their_digest() -> None:
    assert brief("a" * 256) == "a" * 256
    assert brief("a" * 257) == brief(b"a" * 257)
    assert len(brief("\ud800" * 300)) == 16
