# ruff: noqa: PLW0108  # a lambda is the caller that the watch must blame
"""What a watch sees, and what it does not blame anybody for."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import logging
import os
import random
import secrets
import sys
import time
import uuid
from time import time as tell

import pytest

from switchyard_core.testing.conformance.watching import (
    Watch,
    reads_clock,
    reads_randomness,
    watched,
)


def seen(names, function):
    with Watch(names) as watch:
        function()
    return [each.partition(" at ")[0] for each in watch.seen]


@pytest.mark.parametrize(
    ("look", "name"),
    [
        (lambda: time.time(), "time.time"),
        (lambda: tell(), "time.time"),
        (lambda: time.monotonic_ns(), "time.monotonic_ns"),
        (lambda: time.perf_counter(), "time.perf_counter"),
        (lambda: dt.datetime.now(), "datetime.now"),  # noqa: DTZ005
        (lambda: dt.datetime.now(dt.UTC), "datetime.now"),
        (lambda: dt.date.today(), "date.today"),  # noqa: DTZ011
    ],
    ids=["time", "imported", "monotonic", "perf_counter", "now", "now_utc", "today"],
)
def test_look_at_the_clock_is_seen(look, name):
    assert seen(reads_clock, look) == [name]


@pytest.mark.parametrize(
    "calculate",
    [
        lambda: time.gmtime(0),
        lambda: dt.datetime.fromtimestamp(0, dt.UTC),
        lambda: dt.date(2024, 1, 1).isoformat(),
    ],
)
def test_calculation_with_given_times_is_not(calculate):
    assert seen(reads_clock, calculate) == []


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda: random.random(), "random.random"),
        (lambda: random.choice("ab"), "random.getrandbits"),
        (lambda: os.urandom(1), "os.urandom"),
        (lambda: secrets.token_hex(1), "os.urandom"),
        (lambda: uuid.uuid4(), "os.urandom"),
    ],
    ids=["random", "choice", "urandom", "secrets", "uuid4"],
)
def test_draw_of_the_process_is_seen(draw, name):
    assert name in seen(reads_randomness, draw)


def test_draw_of_an_own_seeded_generator_is_not():
    generator = random.Random(1)

    assert seen(reads_randomness, lambda: generator.choice("ab")) == []


def test_logging_and_collections_are_nobodys_look_at_the_clock():
    def told(_phase, _info):
        time.perf_counter()

    def work():
        logging.getLogger("test").error("logged with its time")
        for _ in range(20_000):
            [[]].append(None)

    gc.callbacks.append(told)
    try:
        assert seen(reads_clock, work) == []
    finally:
        gc.callbacks.remove(told)
    assert gc.isenabled()


async def test_event_loop_is_not_watched_while_a_coroutine_waits():
    async def work():
        await asyncio.sleep(0.001)
        async with asyncio.timeout(5):
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
        return "done"

    watch = Watch(reads_clock)

    assert await watched(work(), watch) == "done"
    assert watch.seen == []


async def test_coroutine_that_looks_after_waiting_is_seen():
    async def work():
        await asyncio.sleep(0)
        return time.time()

    watch = Watch(reads_clock)
    await watched(work(), watch)

    assert [each.partition(" at ")[0] for each in watch.seen] == ["time.time"]
    assert "test_watching.py:" in watch.seen[0]


async def test_error_of_a_watched_coroutine_is_its_own():
    async def work():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await watched(work(), Watch(reads_clock))


def test_profiler_of_somebody_else_is_put_back():
    def profiler(_frame, _event, _argument):
        pass

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        seen(reads_clock, list)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)


def test_names_of_what_must_not_be_called():
    """Called here too: coverage does not see what a profiler runs."""
    clocks = [time.time, time.monotonic, dt.datetime.now, dt.date.today, time.sleep, len]
    draws = [os.urandom, random.random, random.Random(1).random, uuid._generate_time_safe, len]

    assert [reads_clock(each) for each in clocks] == [
        "time.time",
        "time.monotonic",
        "datetime.now",
        "date.today",
        "",
        "",
    ]
    assert [reads_randomness(each) for each in draws] == [
        "os.urandom",
        "random.random",
        "",
        "uuid.uuid1",
        "",
    ]


def test_note_is_of_forbidden_built_ins_alone():
    watch, frame = Watch(reads_clock), sys._getframe()

    watch._note(frame, "c_call", time.time)
    watch._note(frame, "c_return", time.time)
    watch._note(frame, "c_call", len)

    assert len(watch.seen) == 1
