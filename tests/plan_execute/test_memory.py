"""What a latch record remembers, and when it forgets."""

from __future__ import annotations

import pytest

from switchyard_core import LatchRecord
from switchyard_core.testing import conversation
from switchyard_plan_execute.memory import Memory


def test_memory_survives_its_record():
    memory = Memory(call="abc", planner=((3, 5),), refused=2, overflow=7, keep=True, sealed=True)

    assert Memory.of(LatchRecord(data=memory.data())) == memory
    assert Memory().data() == b""


@pytest.mark.parametrize("data", [b"", b"no JSON", b'{"planner": "x"}'])
def test_unreadable_record_holds_nothing(data):
    assert Memory.of(LatchRecord(data=data)) == Memory()


def test_any_number_of_turns_fits_a_record():
    memory = Memory(call="0" * 16, overflow=10**9, refused=10**6)
    for number in range(200):
        request = conversation("openai_chat").user("u")
        for _ in range(number):
            request = request.says("a").user("u").says("b").user("u")
        memory = memory.with_planners_turn(request.request())

    assert LatchRecord(data=memory.data()).data
    assert memory.planner[-1][1] == 797
    assert memory.planner[0][0] == 1


def test_turns_with_nothing_but_results_in_between_are_one_span():
    first = conversation("openai_chat").user("u")
    memory = Memory().with_planners_turn(first.request())
    memory = memory.with_planners_turn(first.reads("read", path="a").request())

    assert memory.planner == ((1, 3),)


def test_shorter_history_was_compacted():
    story = conversation("openai_chat").user("u").reads("read", path="a").reads("read", path="b")
    memory = Memory(planner=((5, 5),), refused=4, call="abc")

    assert memory.fitting(story.request()) == memory
    assert memory.fitting(conversation("openai_chat").user("u").request()) == Memory(call="abc")
