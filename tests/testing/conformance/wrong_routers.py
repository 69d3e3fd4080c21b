"""Deliberately wrong routers, each wrong in one way, and one that is right."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from switchyard_core import (
    Decision,
    Latch,
    LatchRecord,
    Options,
    Reason,
    Remember,
    Rewrite,
    RewriteType,
    RouteType,
    TargetName,
    hookimpl,
)
from switchyard_core.testing import RouterConformance

KNOWN = ("model", "messages", "input", "instructions", "system", "tools", "max_tokens")


class Two(Options):
    strong: TargetName
    weak: TargetName


class Swallowing(Two):
    @model_validator(mode="before")
    @classmethod
    def only_known(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in data.items() if key in ("strong", "weak")}


class Lax(BaseModel):
    model_config = ConfigDict(extra="allow")

    strong: TargetName
    weak: TargetName


class Inner(BaseModel):
    depth: int = 0


class Nested(Two):
    inner: Inner = Inner()


def drop_unknown(body, _parameters, _scope):
    gone = [key for key in body.keys() if key not in KNOWN]  # noqa: SIM118
    for key in gone:
        body.delete(key)
    return [f"dropped {key}" for key in gone]


def sort_keys(body, _parameters, _scope):
    members = sorted((key, body.raw(key)) for key in body.keys())  # noqa: SIM118
    if [key for key, _ in members] == list(body.keys()):
        return []
    for key, _ in members:
        body.delete(key)
    for key, raw in members:
        body.set(key, raw)
    return ["sorted the keys"]


def count_up(body, _parameters, _scope):
    number = body.value("metadata_count") or 0
    body.set("metadata_count", str(number + 1).encode())
    return ["counted"]


def rounded(body, _parameters, _scope):
    raw = body.raw("x-last")
    if raw is None or b"1.10" not in raw:
        return []
    body.set("x-last", raw.replace(b"1.10", b"1.1"))
    return ["rounded a number"]


REWRITES = (drop_unknown, sort_keys, count_up, rounded)


def plugin(decide: Callable[..., Any], options: type[BaseModel] = Two) -> object:
    """Return a plugin whose route type ``wrong`` decides by a function."""

    class Router:
        def __init__(self, options) -> None:
            self.options = options
            self.memory: list[object] = []

        async def route(self, request, context):
            return decide(self, request, context)

    class Plugin:
        @hookimpl
        def switchyard_route_types(self):
            return [RouteType(name="wrong", options=options, router=Router, summary="wrong")]

        @hookimpl
        def switchyard_rewrites(self):
            return [
                RewriteType(
                    name=each.__name__,
                    order=1100,
                    function=each,
                    summary="wrong",
                )
                for each in REWRITES
            ]

    return Plugin()


def to(target: str = "strong", code: str = "test", **more: Any) -> Decision:
    return Decision(target=target, reason=Reason(code=code), **more)


def drops_unknown_fields(_router, _request, _context):
    return to(rewrites=(Rewrite(name="drop_unknown"),))


def rounds_numbers(_router, _request, _context):
    return to(rewrites=(Rewrite(name="rounded"),))


def sorts_keys(_router, _request, _context):
    return to(rewrites=(Rewrite(name="sort_keys"),))


def counts_up(_router, _request, _context):
    return to(rewrites=(Rewrite(name="count_up"),))


def right(_router, request, context):
    edits = context.mutations.first(("file_edit",))
    return to("weak" if edits or request.stream else "strong")


def by_chance(_router, _request, context):
    """Right: the context's randomness may be used."""
    return to("weak" if context.random.random() < 0.5 else "strong")


def changes_fields(_router, request, _context):
    request.fields.set("stolen", b"true")
    return to()


def changes_tree(_router, request, _context):
    request.tree()["model"] = "stolen"
    return to()


def global_random(_router, _request, _context):
    return to(random.choice(("strong", "weak")))


def own_random(_router, _request, _context):
    return to(random.Random().choice(("strong", "weak")))


def clock(_router, _request, _context):
    return to("weak" if time.time() < 0 else "strong")


def calendar(_router, _request, _context):
    return to("weak" if datetime.now().hour > 24 else "strong")  # noqa: DTZ005


def sleeps(_router, _request, _context):
    time.sleep(0.0001)
    return to()


def connects(_router, _request, _context):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", 9), timeout=1):
        pass
    return to()


def starts_a_process(_router, _request, _context):
    subprocess.run(["true"], check=True)
    return to()


def undeclared(_router, _request, _context):
    return to("strongest")


def needs_history(_router, request, _context):
    return to("weak" if request.conversation.messages[-1].role == "user" else "strong")


def needs_few(_router, request, _context):
    if len(request.conversation.calls) > 500:
        raise MemoryError("too much")
    return to()


def by_hash(_router, request, _context):
    return to("weak" if hash(request.body) % 2 else "strong")


def remembers(router, request, _context):
    router.memory.append(request.body)
    return to("weak" if len(router.memory) % 2 else "strong")


def latches_in_vain(_router, _request, context):
    return latches_own(context, Latch)


def remembers_in_vain(_router, _request, context):
    return latches_own(context, Remember)


def latches_own(context, effect):
    identity = context.session.identity
    if identity is None or context.housekeeping:
        return to()
    return to(effects=(effect(identity, LatchRecord()),))


def latches_always(_router, _request, context):
    identity = context.session.identity
    effects = (Latch(identity, LatchRecord()),) if identity is not None else ()
    return to(effects=effects)


def latches_another(_router, _request, context):
    identity = context.session.identity
    if identity is None or context.housekeeping:
        return to()
    return to(effects=(Latch(type(identity)(session="else"), LatchRecord()),))


def sentence(_router, _request, _context):
    return to(code="Because of the edit.")


class Wrong(RouterConformance):
    """The suite of a router that decides by ``decide``; a subclass names it."""

    router_toml = 'type = "wrong"\nstrong = "strong"\nweak = "weak"'


def suite(decide: Callable[..., Any], options: type[BaseModel] = Two) -> Wrong:
    """Return the conformance tests of a wrong router."""
    return type("TestWrong", (Wrong,), {"plugins": (plugin(decide, options),)})()


class HashSuite(Wrong):
    plugins = (plugin(by_hash),)


class RightSuite(Wrong):
    plugins = (plugin(right),)
