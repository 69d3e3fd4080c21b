"""Deliberately wrong answering routers, each wrong in one way, and some that are right."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

from switchyard_core import (
    Decision,
    Options,
    Reason,
    RefusedError,
    RouteType,
    TargetName,
    Transcript,
    hookimpl,
)
from switchyard_core.answering import (
    Announced,
    AskError,
    Extension,
    Finished,
    ModelCall,
    ModelReply,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_core.testing import AnsweringConformance


class Two(Options):
    strong: TargetName
    weak: TargetName


async def asks_nobody(_router, _request, _context):
    return Decision(target="strong", reason=Reason(code="answers"))


def plugin(answer: Callable[..., Any], route: Callable[..., Any] = asks_nobody) -> object:
    """Return a plugin whose route type ``wrong`` answers by a function."""

    class Router:
        def __init__(self, options) -> None:
            self.options = options
            self.memory: list[object] = []

        async def route(self, request, context):
            return await route(self, request, context)

        async def answer(self, request, context):
            async with contextlib.aclosing(answer(self, request, context)) as events:
                async for event in events:
                    yield event

    class Plugin:
        @hookimpl
        def switchyard_route_types(self):
            return [
                RouteType(name="wrong", options=Two, router=Router, summary="wrong", kind="answers")
            ]

    return Plugin()


def section(text: str) -> list[Any]:
    return [SectionStarted(kind="answer"), TextDelta(text), SectionFinished()]


async def told(text: str, *before: Any) -> AsyncIterator[Any]:
    for event in (*before, *section(text), Finished("completed")):
        yield event


async def ask(context: Any, text: str = "hello", target: str = "strong", **more: Any) -> ModelReply:
    return await context.ask(target, ModelCall(text=text, **more))


# --- right ------------------------------------------------------------------------------------


async def or_none(context: Any, text: str, target: str) -> ModelReply | None:
    try:
        return await ask(context, text, target)
    except AskError:
        return None


async def right(_router, request, context):
    """Two calls at once, a conversation with a third, and a failed call said in the text."""
    yield Announced(phase="running", facts={"answer-id": context.new_id("answer")})
    text = request.user_message.text or "say something"
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        tasks = [group.create_task(or_none(context, text, name)) for name in ("strong", "weak")]
    first, second = (task.result() for task in tasks)
    talk = Transcript(context.targets["weak"].wire_format)
    talk.user(text)
    if second is not None:
        talk.reply(second)
    talk.user(f"and this one? {first.text if first is not None else 'none'}")
    try:
        last = await context.ask("weak", ModelCall(items=talk.items))
    except AskError as error:
        async for event in told(f"A model failed: {error.message}"):
            yield event
        return
    for reply in filter(None, (first, last)):
        for event in section(f"{reply.text} at {context.clock()}, {context.random.random()}"):
            yield event
        yield Usage(reply.usage)
    yield Extension({"replies": [last.text]})
    yield Finished("completed")


async def refusing(_router, request, context):
    """Right: refuses some requests, and lets the first failure through."""
    if not request.user_message.text.strip():
        raise RefusedError("no text", code="no_text")
    reply = await ask(context)
    for event in [*section(reply.text), Finished("completed")]:
        yield event


# --- wrong ------------------------------------------------------------------------------------


async def unfinished(_router, _request, _context):
    for event in section("text"):
        yield event


async def outside(_router, _request, _context):
    yield TextDelta("text")
    yield Finished("completed")


async def odd_fact(*_given):
    async for event in told("text", Announced(facts={"Plan Id": "1"})):
        yield event


async def odd_value(*_given):
    async for event in told("text", Announced(facts={"plan-id": "a\nb"})):
        yield event


async def no_json(*_given):
    async for event in told("text", Extension({"seen": object()})):
        yield event


async def silent(*_given):
    yield Extension({"text": "text"})
    yield Finished("completed")


async def refuses_all(*_given):
    raise RefusedError("never", code="never")
    yield


async def lets_fail(_router, _request, context):
    for event in section("wait"):
        yield event
    await ask(context)
    yield Finished("completed")


async def refuses_late(_router, _request, context):
    for event in section("wait"):
        yield event
    try:
        await ask(context)
    except AskError as error:
        raise RefusedError("late", code="late") from error
    yield Finished("completed")


async def fails_silently(_router, _request, context):
    try:
        reply = await ask(context)
    except AskError:
        yield Finished("failed")
        return
    async for event in told(reply.text):
        yield event


async def needs_history(_router, request, context):
    reply = await ask(context, request.conversation.messages[-1].role)
    async for event in told(reply.text):
        yield event


async def needs_few(_router, request, context):
    if len(request.conversation.calls) > 500:
        raise MemoryError("too much")
    reply = await ask(context)
    async for event in told(reply.text):
        yield event


async def dated(_router, _request, context):
    reply = await ask(context, f"it is {context.clock()}")
    async for event in told(reply.text):
        yield event


async def by_chance(_router, _request, context):
    reply = await ask(context, f"seed {context.random.random()}")
    async for event in told(reply.text):
        yield event


async def with_id(_router, _request, context):
    reply = await ask(context, instructions=context.new_id("task"))
    async for event in told(reply.text):
        yield event


async def another_target(_router, _request, context):
    reply = await ask(context, target=context.random.choice(("strong", "weak")))
    async for event in told(reply.text):
        yield event


async def remembers(router, _request, context):
    router.memory.append(1)
    reply = await ask(context, f"question {len(router.memory)}")
    async for event in told(reply.text):
        yield event


async def undeclared(_router, _request, context):
    reply = await ask(context, target="strongest")
    async for event in told(reply.text):
        yield event


async def undeclared_unsaid(_router, _request, context):
    with contextlib.suppress(Exception):
        await ask(context, target="strongest")
    async for event in told("text"):
        yield event


async def foreign_items(_router, _request, context):
    part = {"type": "input_text", "text": "hello"}
    items = ({"type": "message", "role": "user", "content": [part]},)
    reply = await context.ask("strong", ModelCall(items=items))
    async for event in told(reply.text):
        yield event


async def own_clock(*_given):
    async for event in told(f"at {time.time()}"):
        yield event


async def sleeps(*_given):
    time.sleep(0.0001)  # noqa: ASYNC251  # what is wrong with it
    async for event in told("text"):
        yield event


async def own_chance(*_given):
    async for event in told(f"drew {random.random()}"):
        yield event


async def own_id(*_given):
    async for event in told(f"id {uuid.uuid4()}"):
        yield event


async def changes_request(_router, request, _context):
    request.tree()["model"] = "stolen"
    async for event in told("text"):
        yield event


async def leaves_task(_router, _request, context):
    async def later() -> ModelReply:
        return await ask(context)

    task = asyncio.ensure_future(later())
    reply = await asyncio.shield(task)
    async for event in told(reply.text):
        yield event


async def holds_on(_router, _request, context):
    try:
        reply = await ask(context)
    except asyncio.CancelledError:
        await asyncio.Event().wait()
        raise
    async for event in told(reply.text):
        yield event


async def begins_late(_router, _request, context):
    for event in section("wait"):
        yield event
    task = asyncio.ensure_future(ask(context))
    yield SectionStarted(kind="answer")
    yield TextDelta("text")
    await task
    yield SectionFinished()
    yield Finished("completed")


async def asks_in_route(_router, _request, context):
    await ask(context)
    return Decision(target="strong", reason=Reason(code="answers"))


async def asks_by_hash(_router, _request, context):
    words = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}
    reply = await ask(context, " ".join(words))
    async for event in told(reply.text):
        yield event


class Wrong(AnsweringConformance):
    """The suite of a router that answers by a function; a subclass names it."""

    router_toml = 'type = "wrong"\nstrong = "strong"\nweak = "weak"'

    def reply(self, target, call):
        return ModelReply(text=f"reply of {target}")


def suite(answer: Callable[..., Any], **more: Any) -> Wrong:
    """Return the conformance tests of a wrong router."""
    return type("TestWrong", (Wrong,), {"plugins": (plugin(answer, **more),)})()


class RightSuite(Wrong):
    plugins = (plugin(right),)


class HashSuite(Wrong):
    plugins = (plugin(asks_by_hash),)
