"""Routers of plugins are built by the check, and blamed by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from pydantic import field_validator

from switchyard_core.declarations import Options, RouteType
from switchyard_core.errors import Finding
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text

TEXT = 'schema_version = 1\n[targets]\n[routes.r]\nid = "r"\ntype = "mine"\n'


class Empty(Options):
    text: str | None = None


class Right:
    def __init__(self, options: Empty) -> None:
        self.options = options

    async def route(self, request: object, context: object) -> object:
        raise AssertionError


class NoArguments:
    async def route(self, request: object, context: object) -> object:
        raise AssertionError


class Raises(Right):
    def __init__(self, options: Empty) -> None:
        raise RuntimeError("no\nluck \x1b[31m sk-abc")


class Nothing:
    def __init__(self, options: Empty) -> None:
        self.options = options


class Synchronous(Nothing):
    def route(self, request: object, context: object) -> object:
        raise AssertionError


class Attribute(Nothing):
    route = 3


def _logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def inner(*arguments: Any) -> Any:
        return function(*arguments)

    return inner


class Decorated(Right):
    route = _logged(Right.route)


class Crashing(Options):
    word: str = ""

    @field_validator("word")
    @classmethod
    def _look(cls, value: str) -> str:
        return {"a": value}[value]


class Gives:
    def __init__(self, router: Callable[[Any], Any], options: type[Options] = Empty) -> None:
        self.router, self.options = router, options

    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return [RouteType(name="mine", options=self.options, router=self.router, summary="s")]


def _made(router: Callable[[Empty], object]) -> Callable[[Empty], object]:
    """A factory, into which the registry cannot look."""

    def make(options: Empty) -> object:
        return router(options)

    return make


def found(plugin: Gives, text: str = TEXT) -> list[Finding]:
    registry = PluginRegistry([("bad", plugin)])
    return list(check_policy_text(text, "p.toml", registry).findings)


@pytest.mark.parametrize("router", [Right, Decorated, _made(Right)])
def test_router_that_keeps_its_contract_is_not_mentioned(router: Callable[[Any], Any]) -> None:
    assert found(Gives(router)) == []


@pytest.mark.parametrize(
    ("router", "message"),
    [
        pytest.param(NoArguments, "cannot be built: TypeError: ", id="takes_no_options"),
        pytest.param(Raises, "cannot be built: RuntimeError: no luck ?[31m sk-abc", id="raises"),
        pytest.param(_made(Nothing), "has no method `route`", id="no_route"),
        pytest.param(_made(Attribute), "has no method `route`", id="route_is_no_method"),
        pytest.param(lambda _: None, "has no method `route`", id="gives_nothing"),
        pytest.param(_made(Synchronous), "`route` that is not `async def`", id="sync"),
    ],
)
def test_router_that_breaks_its_contract_is_a_finding_at_the_type(
    router: Callable[[Any], Any], message: str
) -> None:
    (finding,) = found(Gives(router))
    assert (finding.code, finding.line, finding.column) == ("SY505", 5, 8)
    assert finding.path == "routes.r.type"
    assert "the router `mine` (plugin `bad`) " in finding.message
    assert message in finding.message


@pytest.mark.parametrize(
    ("router", "reason"),
    [
        (Nothing, "`Nothing`, which has no method `route`"),
        (Attribute, "`Attribute`, which has no method `route`"),
        (Synchronous, "`Synchronous`, which has a method `route` that is not `async def`"),
    ],
)
def test_registry_refuses_a_router_class_that_cannot_route(router: type, reason: str) -> None:
    registry = PluginRegistry([("bad", Gives(router))])
    (plugin,) = registry.broken
    assert plugin.code == "SY506"
    assert reason in plugin.error
    (finding,) = found(Gives(router))
    assert (finding.code, finding.path) == ("SY301", "routes.r.type")
    assert plugin.error in finding.notes


def test_options_model_that_crashes_is_a_finding_and_not_a_traceback() -> None:
    (finding,) = found(Gives(Right, Crashing), TEXT + 'word = "b"\n')
    assert (finding.code, finding.path) == ("SY505", "routes.r")
    assert finding.message == "the options model `Crashing` failed: KeyError: 'b'"
