"""Options that inherit `LatchOptions` give a route a latch store; an effect without one is told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from switchyard_core import (
    Decision,
    Effect,
    Identity,
    Latch,
    LatchOptions,
    LatchRecord,
    LatchStoreName,
    Options,
    Reason,
    ReleaseAfterSuccess,
    Remember,
    RouteType,
    TargetName,
    UpdateRecord,
    hookimpl,
)
from switchyard_core.policy import check_policy_text
from switchyard_core.testing import Harness, conversation, registry_of

POLICY = """
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "https://provider.test/v1"

[targets.one]
id = "provider/one"
llm_client = "provider"

[routes.main]
id = "main"
type = "keeps"
target = "one"
"""
WHO, RECORD = Identity(session="s"), LatchRecord(data=b"kept")


class WithStore(LatchOptions):
    target: TargetName


class WithoutStore(Options):
    target: TargetName


class NamesAlone(Options):
    """Has the options of a store, and nothing that says that there is one."""

    target: TargetName
    latch_store: LatchStoreName = "memory"
    latch_capacity: int = 4096


def keeps(options: type[Options], *effects: Effect) -> Any:
    """Return a plugin whose router gives these effects."""

    class Router:
        def __init__(self, options: Any) -> None:
            self.target = options.target

        async def route(self, _request, _context):
            return Decision(target=self.target, reason=Reason(code="kept"), effects=effects)

    return plugin(options, Router)


def plugin(options: type[Options], router: Any) -> Any:
    class Plugin:
        @hookimpl
        def switchyard_route_types(self):
            return [RouteType(name="keeps", options=options, router=router, summary="keeps")]

    return Plugin()


def request():
    return conversation("openai_chat").user("go").request("main", session="s")


async def test_options_that_inherit_latch_options_give_a_route_its_store():
    harness = Harness(
        POLICY + "latch_capacity = 7\n", plugins=[keeps(WithStore, Latch(WHO, RECORD))]
    )

    decision = await harness.decide(request())

    store = harness.engine.runtimes["main"].store
    assert (store.capacity, await store.get(WHO)) == (7, RECORD)
    assert decision.warnings == ()


@pytest.mark.parametrize("options", [WithoutStore, NamesAlone])
def test_other_options_give_none_whatever_their_names(options):
    harness = Harness(POLICY, plugins=[keeps(options)])

    assert harness.engine.runtimes["main"].store is None


@pytest.mark.parametrize("effect", [Latch, UpdateRecord, Remember])
async def test_effect_without_a_store_is_a_warning_and_one_line_in_the_log(effect, caplog):
    harness = Harness(POLICY, plugins=[keeps(WithoutStore, effect(WHO, RECORD))])

    with caplog.at_level(logging.WARNING, logger="switchyard"):
        decisions = [await harness.decide(request()) for _ in range(3)]

    for decision in decisions:
        (warning,) = decision.warnings
        assert warning.code == "no_latch_store"
        assert f"`{effect.__name__}`" in warning.detail
        assert "`LatchOptions`" in warning.detail
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("route=main ")
    assert "type `keeps`" in line


async def test_dry_run_warns_and_does_not_log(caplog):
    harness = Harness(POLICY, plugins=[keeps(WithoutStore, Latch(WHO, RECORD))])

    decision = await harness.decide(request(), dry_run=True)

    assert [warning.code for warning in decision.warnings] == ["no_latch_store"]
    assert caplog.records == []


async def test_release_needs_no_store():
    harness = Harness(POLICY, plugins=[keeps(WithoutStore, ReleaseAfterSuccess(WHO))])

    assert (await harness.decide(request())).warnings == ()


async def test_reload_does_not_log_it_again(caplog):
    harness = Harness(POLICY, plugins=[keeps(WithoutStore, Latch(WHO, RECORD))])
    await harness.decide(request())

    await harness.engine.successor(harness.policy).decide(request())

    assert len(caplog.records) == 1


# --- at check ----------------------------------------------------------------------------------


class LatchingRouter:
    def __init__(self, options: Any) -> None:
        self.target = options.target

    async def route(self, _request, context):
        effects = (Latch(context.session.identity, RECORD),)
        return Decision(target=self.target, reason=Reason(code="kept"), effects=effects)


def findings(options: type[Options], router: Any) -> list[str]:
    registry = registry_of([plugin(options, router)])
    return [finding.render() for finding in check_policy_text(POLICY, "p.toml", registry).findings]


def test_check_warns_of_a_router_that_latches_without_a_store():
    (found,) = findings(WithoutStore, LatchingRouter)

    assert found.startswith("p.toml:14:8: SY509 warning: ")
    assert "effect `Latch`" in found
    assert "inherit `switchyard_core.LatchOptions`" in found


def test_check_says_nothing_of_a_router_that_has_a_store_or_does_not_latch():
    class Plain:
        def __init__(self, options: Any) -> None:
            self.target = options.target

        async def route(self, _request, _context):
            return Decision(target=self.target, reason=Reason(code="plain"))

    assert findings(WithStore, LatchingRouter) == []
    assert findings(WithoutStore, Plain) == []
