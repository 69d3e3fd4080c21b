"""The callers of the stress tests notice what they are there to notice."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from tests.stress.callers import Plan, plans, swarm
from tests.stress.marks import REPEATS, Mark
from tests.upstream.loopback import answers, framed, http, raw_provider

MINE = Mark(0xA11CE, "none")
OTHERS = Mark(0xB0B, "none")
WHOLE = MINE.answer.encode()


def plan(mark=MINE, **changes):
    values = {"wire_format": "openai_chat", "stream": False, "edited": False}
    return Plan(mark=mark, **{**values, **changes})


async def asked(answer, *todo):
    """Return what callers say about a server that answers everything so."""
    async with raw_provider(answers(answer)) as server:
        return await swarm(server.url, todo or [plan()], callers=1)


async def test_a_good_answer_is_no_problem():
    tally = await asked(http(200, WHOLE))

    assert (tally.problems, tally.statuses) == ([], {200: 1})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(http(200, WHOLE + OTHERS.text.encode()), "answer of b0b", id="anothers_body"),
        pytest.param(
            http(200, WHOLE, f"x-request-id: {OTHERS.text}"), "answer of b0b", id="anothers_head"
        ),
        pytest.param(http(502, b"{}"), "status 502, expected 200", id="unexpected_status"),
        pytest.param(http(200, WHOLE[:-24]), "not whole", id="text_is_missing"),
        pytest.param(http(200, WHOLE)[:-24], "broke the connection off", id="bytes_are_missing"),
        pytest.param(b"", "broke the connection off", id="no_answer"),
    ],
)
async def test_a_broken_promise_is_reported(answer, problem):
    tally = await asked(answer)

    assert any(problem in text for text in tally.problems), tally.problems


async def test_a_cut_answer_that_looks_complete_is_reported():
    cut = plan(Mark(MINE.number, "cut"))

    assert "looks complete" in (await asked(http(200, WHOLE), cut)).problems[0]
    assert (await asked(http(200, WHOLE + b"upstream_cut"), cut)).problems == []
    assert (await asked(http(200, WHOLE)[:-24], cut)).problems == []


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "close"])
@pytest.mark.parametrize("leave", ["sending", "time", "answer"])
async def test_a_caller_that_leaves_is_counted_and_no_problem(leave, reset):
    async def half(reader, writer, body):
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + framed(MINE.text.encode() * (REPEATS // 2)))
        with contextlib.suppress(ConnectionError):
            await reader.read()

    async with raw_provider(half) as server:
        todo = plan(leave=leave, moment=0.3 if leave == "answer" else 0.05, reset=reset)
        tally = await swarm(server.url, [todo], callers=1)

    assert (tally.problems, tally.aborts) == ([], {leave: 1})


async def test_a_swarm_stops_when_nothing_works():
    tally = await asked(http(502, b"{}"), *itertools.repeat(plan(), 1_000))

    assert tally.requests < 100


def test_plans_are_the_same_for_the_same_seed():
    first, again, other = (
        list(itertools.islice(plans(seed, faults=0.5, aborts=0.5), 50)) for seed in (1, 1, 2)
    )

    assert first == again
    assert {p.mark.number for p in first}.isdisjoint(p.mark.number for p in other)
