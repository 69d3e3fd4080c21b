"""Calls of tools: whatever goes wrong is a result for the model, and each call is counted."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime as dt
import functools
import json
import logging
import sys
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import field_validator

from switchyard_core import Options, Tool, Toolbox
from switchyard_core.answering import RequestedCall
from tests.support.cases import each_of

WORD = contextvars.ContextVar("WORD", default="unset")


class Text(Options):
    text: str = "x"
    number: float = 0


class Nothing(Options):
    pass


class Crashing(Options):
    text: str = ""

    @field_validator("text")
    @classmethod
    def _check(cls, text):
        if text == "exit":
            sys.exit(3)
        if text == "key":
            raise KeyError("/home/me/secret")
        msg = "must be\nshort " + "x" * 400
        raise ValueError(msg)


class Box:
    """A toolbox of one tool, or some, and what it counted."""

    def __init__(self, *functions, parameters=Text, **settings):
        self.counted = Counter()
        tools = {
            function.__name__: Tool(
                name=function.__name__,
                description="does it",
                parameters=parameters,
                function=function,
                **settings,
            )
            for function in functions
        }
        self.box = Toolbox(tools, lambda tool, word: self.counted.update([(tool, word)]))

    async def run(self, *calls, **settings):
        asked = [
            RequestedCall(id=f"c{number}", name=name, arguments=arguments)
            for number, (name, arguments) in enumerate(calls)
        ]
        return await self.box.run(asked, **settings)

    async def one(self, name, arguments="{}", **settings):
        (output,) = await self.run((name, arguments), **settings)
        return output


def named(name, function):
    @functools.wraps(function)
    def call(arguments):
        return function(arguments)

    call.__name__ = name
    del call.__wrapped__
    return call


# --- results --------------------------------------------------------------------------------------


async def test_sync_function_runs_in_a_thread_with_the_context_of_the_caller():
    seen = {}

    def tell(arguments):
        seen.update(thread=threading.current_thread(), word=WORD.get())
        return arguments.text.upper()

    WORD.set("of the caller")
    box = Box(tell)
    output = await box.one("tell", '{"text": "hello"}')

    assert (output.text, output.ok, output.error, output.call.id) == ("HELLO", True, "", "c0")
    assert output.ms >= 0
    assert seen["thread"] is not threading.current_thread()
    assert seen["word"] == "of the caller"
    assert box.counted == {("tell", "ok"): 1}


class AsyncCallable:
    __name__ = "acallable"

    async def __call__(self, arguments):
        return f"{arguments.text} {threading.current_thread() is threading.main_thread()}"


async def _shout(arguments):
    return f"{arguments.text} {threading.current_thread() is threading.main_thread()}"


async def test_async_function_is_awaited_on_the_loop():
    async def shout(arguments):
        return await _shout(arguments)

    for function in (shout, AsyncCallable(), named("later", _shout)):
        output = await Box(function).one(function.__name__)
        assert output.text == "x True"


@dataclasses.dataclass
class Point:
    x: int
    when: dt.date


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
        (Point(1, dt.date(2026, 1, 31)), '{"x":1,"when":"2026-01-31"}'),
        ([Text(text="é")], '[{"text":"é","number":0.0}]'),
        (float("nan"), "null"),
        ((1, 2), "[1,2]"),
        ("half \ud800 pair", "half ��� pair"),
    ],
)
async def test_result_that_is_no_text_becomes_json(returned, text):
    output = await Box(named("give", lambda _: returned)).one("give")

    assert output.ok
    assert output.text == text
    output.text.encode()


async def test_result_that_is_no_json_is_an_error():
    box = Box(named("give", lambda _: {"lock": threading.Lock()}))
    output = await box.one("give")

    assert (output.ok, output.error) == (False, "exception")
    assert output.text == "error: the tool `give` returned a `dict`, which is not JSON"
    assert box.counted == {("give", "exception"): 1}


@pytest.mark.parametrize(
    ("length", "most", "missing"), [(30, 10, 20), (10, 10, 0), (5, 0, 5), (0, 0, 0)]
)
async def test_huge_output_is_cut_and_says_how_much_is_missing(length, most, missing):
    output = await Box(named("give", lambda _: "ä" * length)).one("give", max_output_chars=most)

    mark = f"\n[cut: {missing} of {length} characters are missing]" if missing else ""
    assert output.ok
    assert output.text == "ä" * min(length, most) + mark


async def test_output_is_cut_at_a_default():
    output = await Box(named("give", lambda _: "a" * 30_000)).one("give")

    assert output.text == "a" * 20_000 + "\n[cut: 10000 of 30000 characters are missing]"


# --- arguments and names --------------------------------------------------------------------------


@each_of(
    ("arguments", "lines"),
    [
        ('{"text": 3}', ["text: Input should be a valid string"]),
        ('{"number": "many"}', ["number: Input should be a valid number"]),
        (
            '{"texts": "a", "text": null}',
            [
                "text: Input should be a valid string",
                "texts: there is no such argument (arguments: text, number)",
            ],
        ),
        ("[]", ["must be a JSON object"]),
        ("null", ["must be a JSON object"]),
        ('{"text": ', ["not JSON: EOF while parsing a value at line 1 column 9"]),
        (
            "\ud800",
            ["Input should be a valid string, unable to parse raw data as a unicode string"],
        ),
        (
            json.dumps(dict.fromkeys("abcdef", 1)),
            [
                *(
                    f"{letter}: there is no such argument (arguments: text, number)"
                    for letter in "abcd"
                ),
                "and 2 more",
            ],
        ),
    ],
)
async def test_invalid_arguments_name_the_field_and_what_is_wrong(arguments, lines):
    called = []
    box = Box(named("tell", called.append))

    output = await box.one("tell", arguments)

    assert (output.ok, output.error) == (False, "arguments")
    assert output.text.split("\n") == ["error: the arguments of `tell` are not valid", *lines]
    assert "pydantic" not in output.text
    assert called == []
    assert box.counted == {("tell", "arguments"): 1}


class Required(Options):
    query: str


async def test_missing_argument_is_called_required():
    output = await Box(named("find", repr), parameters=Required).one("find", "")

    assert output.text.endswith("\nquery: is required")


async def test_blank_arguments_are_no_arguments():
    output = await Box(named("give", lambda _: "given"), parameters=Nothing).one("give", " ")

    assert output.text == "given"


async def test_validator_of_a_plugin_may_raise_anything(caplog):
    box = Box(named("tell", repr), parameters=Crashing)

    refused, crashed, ended = await box.run(
        ("tell", '{"text": "a"}'), ("tell", '{"text": "key"}'), ("tell", '{"text": "exit"}')
    )

    (line,) = refused.text.split("\n")[1:]
    assert line.startswith("text: Value error, must be short xxx")
    assert len(line) <= 201
    assert (refused.error, crashed.error, ended.error) == ("arguments", "exception", "exception")
    assert crashed.text == "error: the tool `tell` failed: KeyError"
    assert ended.text == "error: the tool `tell` failed: SystemExit"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("serch", "there is no tool `serch`; did you mean `search`? (tools: search, tell)"),
        ("zz\nzz", "there is no tool `zz zz` (tools: search, tell)"),
        ("z" * 99, f"there is no tool `{'z' * 64}…` (tools: search, tell)"),
    ],
)
async def test_unknown_tool_gives_the_nearest_name_and_the_list(name, text):
    box = Box(named("search", repr), named("tell", repr))

    output = await box.one(name)

    assert (output.ok, output.error, output.text) == (False, "unknown", f"error: {text}")
    assert box.counted == {("", "unknown"): 1}


async def test_empty_toolbox_knows_no_tool_and_needs_no_counting():
    call = RequestedCall(id="c", name="search", arguments="{}")

    assert Toolbox().specs == ()
    assert await Toolbox().run([]) == ()
    (output,) = await Toolbox().run([call])
    assert output.text == "error: there is no tool `search` (tools: none)"


# --- exceptions -----------------------------------------------------------------------------------

RAISED = [
    ValueError("/home/me/key.txt: sk-secret"),
    StopIteration("x"),
    SystemExit(3),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    GeneratorExit(),
    BaseExceptionGroup("both", [ValueError("a"), SystemExit(1)]),
]


@each_of("error", RAISED)
@pytest.mark.parametrize("is_async", [False, True])
async def test_whatever_a_tool_raises_becomes_an_error_with_the_class_alone(
    error, is_async, caplog
):
    def fail(arguments):
        raise error

    async def fail_later(arguments):
        await asyncio.sleep(0)
        raise error

    caplog.clear()  # the rows of the table share it
    box = Box(fail_later if is_async else fail, named("other", lambda _: "fine"))
    name = "fail_later" if is_async else "fail"
    expected = type(error).__name__
    if is_async and isinstance(error, StopIteration):
        expected = "RuntimeError"  # what Python makes of it in a coroutine

    failed, other = await box.run((name, "{}"), ("other", "{}"))

    assert (failed.ok, failed.error) == (False, "exception")
    assert failed.text == f"error: the tool `{name}` failed: {expected}"
    assert other.text == "fine"
    assert box.counted == {(name, "exception"): 1, ("other", "ok"): 1}
    # A thread that another test left behind may have its last word here.
    (record,) = [r for r in caplog.records if f"`{name}`" in r.getMessage()]
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[0].__name__ == expected


# --- time and order -------------------------------------------------------------------------------


async def test_calls_of_one_reply_overlap_and_results_keep_their_order():
    met = threading.Barrier(3, timeout=10)
    order = []

    def meet(arguments):
        met.wait()
        return arguments.text

    async def last(arguments):
        order.append("last begun")
        return "async"

    box = Box(meet, last)
    outputs = await box.run(
        *(("meet", json.dumps({"text": text})) for text in "ab"), ("last", "{}"), ("meet", "{}")
    )

    # No call could pass the barrier alone.
    assert [output.text for output in outputs] == ["a", "b", "async", "x"]
    assert [output.call.id for output in outputs] == ["c0", "c1", "c2", "c3"]
    assert order == ["last begun"]


async def test_async_calls_overlap_too():
    waiting, go = [], asyncio.Event()

    async def meet(arguments):
        waiting.append(arguments.text)
        if len(waiting) == 2:
            go.set()
        await go.wait()
        return arguments.text

    outputs = await Box(meet).run(("meet", '{"text": "a"}'), ("meet", '{"text": "b"}'))

    assert [output.text for output in outputs] == ["a", "b"]


async def test_only_so_many_calls_run_at_the_same_time(monkeypatch):
    monkeypatch.setattr("switchyard_core.tools.box.MAX_AT_ONCE", 2)
    running, most = 0, 0

    async def work(arguments):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    outputs = await Box(work).run(*[("work", "{}")] * 7)

    assert most == 2
    assert all(output.ok for output in outputs)


async def test_async_tool_that_takes_too_long_is_cancelled(caplog):
    ended = asyncio.Event()

    async def wait(arguments):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    box = Box(wait, timeout_s=0.01)
    output = await box.one("wait")
    await ended.wait()

    assert (output.ok, output.error) == (False, "timeout")
    assert output.text == "error: the tool `wait` gave no result within 0.01 s"
    assert output.ms >= 10
    assert box.counted == {("wait", "timeout"): 1}
    assert "gave no result within 0.01 s" in caplog.text


async def test_tool_that_ignores_its_cancellation_holds_up_nobody():
    go, ended = asyncio.Event(), asyncio.Event()

    async def stubborn(arguments):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await go.wait()
        ended.set()

    box = Box(stubborn, timeout_s=0.01)

    assert (await box.one("stubborn")).error == "timeout"
    assert not ended.is_set()
    go.set()
    await ended.wait()
    assert box.counted == {("stubborn", "timeout"): 1}


@pytest.mark.parametrize("is_async", [False, True])
async def test_tool_that_may_not_be_cut_off_goes_on_after_its_time_and_says_so(is_async, caplog):
    caplog.set_level(logging.INFO, "switchyard")
    go, thread_go, ended = asyncio.Event(), threading.Event(), []

    async def write_later(arguments):
        await go.wait()
        ended.append("async")

    def write(arguments):
        thread_go.wait()
        ended.append("sync")

    function = write_later if is_async else write
    box = Box(function, timeout_s=0.01, side_effects=True)
    output = await box.one(function.__name__)

    assert output.error == "timeout"
    assert output.text.endswith("within 0.01 s; it was not stopped and may still take effect")
    assert ended == []
    go.set()
    thread_go.set()
    await box.box.settle()
    assert ended == ["async" if is_async else "sync"]
    assert f"tool `{function.__name__}` ended after its run: ok" in caplog.text
    assert box.counted == {(function.__name__, "timeout"): 1}


# --- cancelling -----------------------------------------------------------------------------------


async def cancelled_run(box, *calls, begun):
    run = asyncio.create_task(box.run(*calls))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_cancelled_run_ends_async_tools_without_side_effects():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(arguments):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    box = Box(wait)
    await cancelled_run(box, ("wait", "{}"), begun=begun)
    await ended.wait()

    assert box.counted == {}


@pytest.mark.parametrize("is_async", [False, True])
async def test_tool_with_side_effects_finishes_though_its_run_was_cancelled(is_async, caplog):
    caplog.set_level(logging.INFO, "switchyard")
    loop = asyncio.get_running_loop()
    begun, go, thread_go, written = asyncio.Event(), asyncio.Event(), threading.Event(), []

    async def write_later(arguments):
        begun.set()
        await go.wait()
        written.append(arguments.text)

    def write(arguments):
        loop.call_soon_threadsafe(begun.set)
        thread_go.wait()
        written.append(arguments.text)

    function = write_later if is_async else write
    name = function.__name__
    box = Box(function, side_effects=True)
    await cancelled_run(box, (name, '{"text": "done"}'), begun=begun)

    assert written == []
    assert f"tool `{name}` continues, although its run was cancelled" in caplog.text
    go.set()
    thread_go.set()
    await box.box.settle()
    assert written == ["done"]
    assert f"tool `{name}` ended after its run: ok" in caplog.text
    assert box.counted == {(name, "ok"): 1}


async def test_call_that_had_not_begun_does_not_begin_after_the_cancellation(monkeypatch):
    monkeypatch.setattr("switchyard_core.tools.box.MAX_AT_ONCE", 1)
    begun, go, written = asyncio.Event(), asyncio.Event(), []

    async def write(arguments):
        begun.set()
        await go.wait()
        written.append(arguments.text)

    box = Box(write, side_effects=True)
    calls = [("write", json.dumps({"text": text})) for text in "ab"]
    await cancelled_run(box, *calls, begun=begun)
    go.set()
    await box.box.settle()

    assert written == ["a"]


async def test_tool_that_exits_when_it_is_cancelled_does_not_end_the_loop():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def leave(arguments):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
            sys.exit(1)

    await cancelled_run(Box(leave), ("leave", "{}"), begun=begun)
    await ended.wait()
    await asyncio.sleep(0)


def test_thread_that_outlives_its_loop_is_only_logged(caplog):
    go, threads = threading.Event(), []

    def wait(arguments):
        threads.append(threading.current_thread())
        go.wait()

    async def run():
        return await Box(wait, timeout_s=0.01).one("wait")

    assert asyncio.run(run()).error == "timeout"
    go.set()
    threads[0].join()
    assert threads[0].daemon
    assert "tool `wait` ended after its event loop" in caplog.text


async def test_settling_waits_only_so_long_and_for_nothing_without_side_effects(monkeypatch):
    monkeypatch.setattr("switchyard_core.tools.box.GRACE_S", 0.01)
    go = asyncio.Event()

    async def wait(arguments):
        await go.wait()

    def look(arguments):
        block.wait()

    block = threading.Event()
    writes, reads = Box(wait, timeout_s=0.01, side_effects=True), Box(look, timeout_s=0.01)
    assert (await writes.one("wait")).error == (await reads.one("look")).error == "timeout"
    (left,) = writes.box._left

    await writes.box.settle()
    await reads.box.settle()

    assert not left.done()
    block.set()
    go.set()
    await left


# --- always ---------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["tell", "fail", "none", "serch"]), st.text())))
def test_any_calls_give_one_result_each_in_order_and_all_are_counted(calls):
    async def tell(arguments):
        return arguments.text

    async def fail(arguments):
        raise RuntimeError

    box = Box(tell, fail)
    outputs = asyncio.run(box.run(*calls))

    assert [(o.call.name, o.call.arguments) for o in outputs] == calls
    assert sum(box.counted.values()) == len(calls)
    for output in outputs:
        assert output.ok is (output.error == "")
        assert output.ok or output.text.startswith("error: ")
        output.text.encode()
