"""Second tries where an executor speaks of the history's reasoning."""

from __future__ import annotations

import pytest

from switchyard_core.testing import FakeReply

EDIT = {"path": "src/app.py"}
REFUSED = FakeReply(status=400, body={"error": {"code": "invalid_encrypted_content"}})
MISSING = FakeReply(
    status=400,
    body={"error": {"message": "reasoning_content in the thinking mode must be passed back"}},
)


@pytest.fixture
def thought(story):
    return story.reasoning("thought", encrypted="SECRET").edits("edit_file", **EDIT)


@pytest.mark.parametrize(
    "message",
    [
        "adaptive thinking is not supported on this model",
        "This model does not support the effort parameter.",
        "Unsupported value: 'reasoning.effort'",
        "Invalid thinking: budget too small",
    ],
)
async def test_refused_parameter_of_reasoning_is_no_refused_reasoning(world, thought, message):
    w = world(replies=[FakeReply(status=400, body={"error": {"message": message}})])

    served = await w.ask(thought.request(session="s"))

    assert (served.status, len(served.sent), served.warnings) == (400, 1, ())


async def test_refused_executors_own_reasoning_goes_after_the_planners(world, thought):
    w = world(other_origin=True, replies=[FakeReply(), REFUSED])
    later = thought.reasoning("mine", encrypted="OWN").reads("read_file", path="a")
    await w.ask(thought.request(session="s"))

    served = await w.ask(later.request(session="s"))
    next_turn = await w.ask(
        later.reasoning("new", encrypted="NEW").reads("read_file", path="b").request(session="s")
    )

    assert [b"OWN" in outgoing.body for outgoing in served.sent] == [True, False]
    assert served.warnings == ("reasoning_dropped",)
    assert [seal in next_turn.outgoing.body for seal in (b"SECRET", b"OWN", b"NEW")] == [
        False,
        False,
        True,
    ]


async def test_executor_that_demands_reasoning_gets_the_planners(world, thought):
    w = world(other_origin=True, replies=[MISSING])

    served = await w.ask(thought.request(session="s"))
    later = await w.ask(thought.reads("read_file", path="a").request(session="s"))

    assert [b"SECRET" in outgoing.body for outgoing in served.sent] == [False, True]
    assert served.warnings == ("reasoning_kept",)
    assert (len(later.sent), b"SECRET" in later.outgoing.body) == (1, True)


async def test_reasoning_that_is_there_is_not_sent_again(world, thought):
    served = await world(replies=[MISSING]).ask(thought.request(session="s"))

    assert (served.status, len(served.sent)) == (400, 1)


async def test_demand_that_cannot_be_met_is_the_callers(world, story):
    told = story.edits("edit_file", **EDIT)

    served = await world(other_origin=True, replies=[MISSING]).ask(told.request(session="s"))

    assert (served.status, len(served.sent)) == (400, 1)
