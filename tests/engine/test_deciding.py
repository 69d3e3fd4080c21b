"""What the engine does about routers that break their contract, and about races."""

from __future__ import annotations

import asyncio
import logging

import pytest

from switchyard_core import (
    Decision,
    Latch,
    LatchRecord,
    Mutations,
    Options,
    PluginError,
    Reason,
    Rewrite,
    RewriteType,
    RouteType,
    TargetName,
    hookimpl,
)
from switchyard_core.testing import Harness, conversation
from tests.support.policies import PLUGINS
from tests.support.policies import plan_execute as policy

POLICY = """
schema_version = 1
[llm_clients.p]
format = "openai_chat"
base_url = "https://example.test"
[targets.a]
id = "model-a"
llm_client = "p"
[targets.b]
id = "model-b"
llm_client = "p"
[routes.r]
id = "r"
type = "custom"
target = "a"
"""


class CustomOptions(Options):
    target: TargetName


class Plugin:
    """A plugin whose router is a plain function."""

    def __init__(self, decide, rewrites=()) -> None:
        self._decide = decide
        self._rewrites = rewrites

    @hookimpl
    def switchyard_route_types(self):
        decide = self._decide

        class Router:
            def __init__(self, options) -> None:
                self.options = options

            async def route(self, request, context):
                return decide(request, context)

        return [RouteType(name="custom", options=CustomOptions, router=Router, summary="test")]

    @hookimpl
    def switchyard_rewrites(self):
        return self._rewrites


class Fault(BaseException):
    """What nobody expects."""


class Waiting:
    """A router that is a coroutine function."""

    def __init__(self, route) -> None:
        self.route = route


def harness(decide, rewrites=()) -> Harness:
    return Harness(POLICY, plugins=[Plugin(decide, rewrites)])


def planning(text: str) -> Harness:
    return Harness(text, plugins=PLUGINS)


def request():
    return conversation("openai_chat").user("hi").request(model="r")


def to(target: str, **changes) -> Decision:
    return Decision(target=target, reason=Reason(code="test"), **changes)


async def test_chosen_target_gets_the_request():
    routed = await harness(lambda *_: to("a")).run(request())

    assert routed.outgoing.model == "model-a"
    assert b'"model":"model-a"' in routed.outgoing.body


@pytest.mark.parametrize("target", ["b", "c"], ids=["not_of_the_route", "unknown"])
async def test_undeclared_target_is_the_plugins_fault(target):
    with pytest.raises(
        PluginError, match=rf"`custom` \(plugin `Plugin`\) chose the target `{target}`.*declared: a"
    ):
        await harness(lambda *_: to(target)).decide(request())


async def test_router_that_raises_is_named():
    with pytest.raises(PluginError, match=r"router `custom` \(plugin `Plugin`\) failed: ZeroDiv"):
        await harness(lambda *_: 1 / 0).decide(request())


async def test_router_that_returns_something_else_is_named():
    with pytest.raises(
        PluginError, match=r"`custom` \(plugin `Plugin`\) returned str, not a Decision"
    ):
        await harness(lambda *_: "a").decide(request())


async def test_unknown_rewrite_lists_the_known_ones():
    decision = to("a", rewrites=(Rewrite(name="shorten"),))

    with pytest.raises(
        PluginError, match=r"the rewrite `shorten`, which no installed plugin gives.*set_model"
    ):
        await harness(lambda *_: decision).run(request())


async def test_rewrite_of_a_plugin_runs_in_its_order():
    def shout(body, parameters, scope):
        del parameters, scope
        body.set("loud", b"true")
        return ["set loud"]

    kind = RewriteType(name="shout", order=1100, function=shout, summary="x")
    decision = to("a", rewrites=(Rewrite(name="shout"),))

    routed = await harness(lambda *_: decision, [kind]).run(request())

    assert routed.outgoing.body.endswith(b',"loud":true}')
    assert [report.name for report in routed.reports] == ["shout", "set_model"]


async def test_rewrite_that_raises_is_named():
    kind = RewriteType(name="shout", order=1, function=lambda *_: 1 / 0, summary="x")
    decision = to("a", rewrites=(Rewrite(name="shout"),))

    with pytest.raises(
        PluginError, match=r"rewrite `shout` \(plugin `Plugin`\) failed: ZeroDivisionError"
    ):
        await harness(lambda *_: decision, [kind]).run(request())


async def test_dry_run_changes_nothing_and_reports_a_full_store():
    router = planning(policy("openai_chat", options="latch_capacity = 1"))
    edited = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")
    store = router.engine.runtimes["plan_execute"].store

    first = await router.decide(edited.request(session="s"), dry_run=True)
    assert await store.count() == 0
    await router.decide(edited.request(session="s"))
    full = await router.decide(edited.request(session="t"), dry_run=True)

    assert first.warnings == ()
    assert [warning.code for warning in full.warnings] == ["latch_capacity"]
    assert await store.count() == 1


async def test_two_handoffs_of_one_session_at_once_give_one_handoff_prompt():
    options = 'handoff_prompt = "Carry the plan out."'
    router = planning(policy("openai_chat", options=options))
    edited = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")
    later = edited.reads("read_file", path="b.py")

    routed = await asyncio.gather(
        router.run(edited.request(session="s")), router.run(later.request(session="s"))
    )

    assert sum(b"Carry the plan out." in one.outgoing.body for one in routed) == 1
    assert [one.decision.phase for one in routed] == ["executing", "executing"]


async def test_latch_of_a_race_is_decided_again_with_the_winners_record():
    """A store that another process writes to: the record that won is the one that counts."""
    options = 'handoff_prompt = "Carry the plan out."'
    router = planning(policy("openai_chat", options=options))
    runtime = router.engine.runtimes["plan_execute"]
    foreign = LatchRecord(handoff_key=b"x" * 16)
    latch = runtime.store.latch

    async def beaten(identity, record):
        await latch(identity, foreign)
        return await latch(identity, record)

    runtime.store.latch = beaten
    edited = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")

    decision = await router.decide(edited.request(session="s"))

    assert decision.reason.code == "latched"
    assert not any(isinstance(effect, Latch) for effect in decision.effects)


async def test_finish_frees_a_final_identity_only_on_success():
    router = planning(policy("openai_chat"))
    store = router.engine.runtimes["plan_execute"].store
    edited = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")
    await router.decide(edited.request(session="s"))

    decision = await router.decide(edited.request(session="s", final=True))
    await router.engine.finish(decision, ok=False)
    kept = await store.count()
    await router.engine.finish(decision, ok=True)

    assert (kept, await store.count()) == (1, 0)


async def test_requests_without_a_session_are_said_once_and_counted(caplog):
    caplog.set_level(logging.INFO, "switchyard")
    router = planning(policy("openai_chat"))

    for _ in range(3):
        await router.decide(request_of_route())

    runtime = router.engine.runtimes["plan_execute"]
    assert runtime.without_identity == 3
    said = [r.levelname for r in caplog.records if "bring no session id" in r.getMessage()]
    assert said == ["INFO"]


async def test_dry_run_without_a_session_is_neither_said_nor_counted(caplog):
    caplog.set_level(logging.INFO, "switchyard")
    router = planning(policy("openai_chat"))

    await router.decide(request_of_route(), dry_run=True)

    assert router.engine.runtimes["plan_execute"].without_identity == 0
    assert caplog.records == []


async def test_session_header_that_is_no_identity_is_named_in_the_decision_and_once_in_the_log(
    caplog,
):
    router = planning(policy("openai_chat"))
    story = conversation("openai_chat").user("hi").request(headers={"x-session-id": "sess\u00e4"})

    decisions = [await router.decide(story) for _ in range(2)]

    for decision in decisions:
        assert decision.identity is None
        assert [warning.code for warning in decision.warnings] == ["session_id_unfit"]
        assert "`header:x-session-id`" in decision.warnings[0].detail
    assert router.engine.runtimes["plan_execute"].without_identity == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "header:x-session-id" in caplog.text
    assert "sess\u00e4" not in caplog.text


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), Fault()],
    ids=lambda error: type(error).__name__,
)
async def test_router_that_raises_what_ends_programs_is_named(error):
    def fail(*_):
        raise error

    with pytest.raises(PluginError, match=type(error).__name__) as caught:
        await harness(fail).run(request())

    assert caught.value.__cause__ is error


async def test_cancelled_request_is_no_fault_of_the_router_that_waits():
    started = asyncio.Event()

    async def wait(*_):
        started.set()
        await asyncio.sleep(30)

    router = harness(lambda *_: None)
    router.engine.runtimes["r"].router = Waiting(wait)
    task = asyncio.create_task(router.decide(request()))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"phase": 5}, "phase"),
        ({"reason": "x"}, "reason"),
        ({"warnings": [1]}, "warnings"),
        ({"effects": ("latch",)}, "effects"),
        ({"rewrites": None}, "rewrites"),
        ({"target": None}, "target"),
    ],
    ids=["phase", "reason", "warnings", "effects", "rewrites", "target"],
)
async def test_decision_of_wrong_types_is_the_plugins_fault_before_anything_is_sent(changes, field):
    router = harness(lambda *_: to("a").with_(**changes))

    with pytest.raises(PluginError, match=f"the router `custom`.*`{field}`") as caught:
        await router.run(request())

    assert caught.value.plugin == "Plugin"
    assert router.upstream.requests == []


def request_of_route():
    return conversation("openai_chat").user("hi").request()


async def test_policys_own_session_sources_are_read_after_the_known_headers():
    top = '[identity]\nsession = ["header:x-my-session", "body:$.meta.session"]'
    router = planning(policy("openai_chat", top=top))
    story = conversation("openai_chat").user("hi")

    by_header = await router.decide(story.request(headers={"x-my-session": "h"}))
    by_body = await router.decide(story.request(meta={"session": "b"}))
    known = await router.decide(story.request(session="k", meta={"session": "b"}))

    found = [decision.identity for decision in (by_header, by_body, known)]
    assert [(identity.session, identity.source) for identity in found] == [
        ("h", "header:x-my-session"),
        ("b", "body:$.meta.session"),
        ("k", "header:x-switchyard-session-id"),
    ]


async def test_unknown_model_goes_to_the_default_route():
    router = planning(policy("openai_chat", top='default_route = "plan_execute"'))

    decision = await router.decide(conversation("openai_chat").user("hi").request(model="gpt-x"))

    assert decision.route == "plan_execute"


async def test_decision_trace_tells_how_it_came_about():
    router = planning(policy("openai_chat"))
    edited = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")

    trace = (await router.decide(edited.request(session="s"))).trace

    assert trace["identity"]["source"] == "header:x-switchyard-session-id"
    assert (trace["latched_before"], trace["latched_after"]) == (False, True)
    assert [(call["tool"], call["label"]) for call in trace["calls"]] == [
        ("edit_file", "file_edit")
    ]


@pytest.mark.parametrize("how", ["fields", "body"])
async def test_router_that_changes_the_request_is_named(how):
    def change(request, _context):
        if how == "fields":
            request.fields.set("stolen", b"true")
        else:
            request.body = b"{}"
        return to("a")

    with pytest.raises(PluginError, match="changed the request; it must return rewrites instead"):
        await harness(change).decide(request())


async def test_who_cannot_call_the_provider_takes_no_slot():
    text = policy("openai_chat").replace('api_key_env = "PROVIDER_KEY"', "forward_auth = true")
    router = Harness(text, plugins=PLUGINS)
    edited = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")

    error = await router.refused(edited.request(session="s"))

    assert (error.status, error.code) == (401, "missing_credential")
    assert await router.engine.runtimes["plan_execute"].store.count() == 0


async def test_calls_behind_the_first_edit_are_labelled_only_for_an_explanation():
    router = Harness(policy("openai_chat"), plugins=PLUGINS)
    told = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")
    told = told.reads("read_file", path="b.py").edits("edit_file", path="c.py")

    served = await router.decide(told.request())
    explained = await router.decide(told.request(), dry_run=True)

    assert [call["tool"] for call in served.trace["calls"]] == ["edit_file"]
    assert [call["tool"] for call in explained.trace["calls"]] == [
        "edit_file",
        "read_file",
        "edit_file",
    ]
    assert served.reason == explained.reason


async def test_verdicts_are_whole_after_a_search_that_stopped_early():
    told = conversation("openai_chat").user("fix").edits("edit_file", path="a.py")
    request = told.reads("read_file", path="b.py").edits("write_file", path="c.py").request()
    router = Harness(policy("openai_chat"), plugins=PLUGINS)
    await router.decide(request, dry_run=True)
    mutations = Mutations(request, router.engine.runtimes["plan_execute"].rules)

    first = mutations.first({"file_edit"})
    labelled = len(mutations.labelled)

    assert (first.number, labelled) == (0, 1)
    assert [verdict.tool for verdict in mutations.verdicts] == [
        "edit_file",
        "read_file",
        "write_file",
    ]
    assert mutations.first({"read_only"}).number == 1
    assert mutations.first({"scratch_write"}) is None
