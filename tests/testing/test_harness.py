"""The harness: a policy run without a socket."""

from __future__ import annotations

import types
from importlib.metadata import EntryPoint, EntryPoints, entry_points

import pytest

import switchyard_demo_routers
import switchyard_plan_execute
from switchyard_core import PluginError, PolicyError, RequestError, UpstreamError
from switchyard_core.hookspecs import VERSION
from switchyard_core.testing import FakeReply, FakeUpstream, Harness, conversation, registry_of
from switchyard_core.wire import WIRE_FORMATS

POLICY = """\
schema_version = 1

[llm_clients.provider]
format = "{format}"
base_url = "https://example.com/v1"
api_key_env = "PROVIDER_KEY"

[targets.planner]
id = "provider/capable"
llm_client = "provider"

[targets.executor]
id = "provider/efficient"
llm_client = "provider"

[routes.main]
id = "switchyard/plan-execute"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
latch_capacity = 1
"""

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)


def harness(wire_format, **more):
    text = POLICY.replace("{format}", wire_format)
    return Harness(text, plugins=[switchyard_plan_execute], **more)


@each_format
async def test_run_returns_decision_outgoing_reports_and_answer(wire_format):
    async with harness(wire_format) as ready:
        routed = await ready.run(conversation(wire_format).user("fix it").request(session="s"))

    assert (routed.decision.target, routed.decision.phase) == ("planner", "planning")
    assert routed.outgoing.model == "provider/capable"
    assert "insert_planning_prompt" in [report.name for report in routed.reports]
    assert routed.status == 200
    assert b"ok" in routed.answer
    assert ready.upstream.closed


@each_format
async def test_dry_run_changes_nothing(wire_format):
    ready = harness(wire_format)
    edited = conversation(wire_format).user("fix it").edits("edit_file", path="a.py")
    compacted = conversation(wire_format).user("go on")

    await ready.decide(edited.request(session="s"), dry_run=True)
    assert (await ready.decide(compacted.request(session="s"))).phase == "planning"
    await ready.decide(edited.request(session="s"))
    assert (await ready.decide(compacted.request(session="s"))).phase == "executing"


@each_format
async def test_refused_returns_the_error_when_nothing_was_sent(wire_format):
    ready = harness(wire_format)
    edited = conversation(wire_format).user("fix it").edits("edit_file", path="a.py")
    await ready.run(edited.request(session="one"))

    error = await ready.refused(edited.request(session="two"))

    assert error.code == "latch_capacity"
    assert len(ready.upstream.requests) == 1


async def test_refused_fails_when_the_request_went_through():
    with pytest.raises(AssertionError, match="went to `planner`"):
        await harness("openai_chat").refused(conversation("openai_chat").user("a").request())


async def test_run_raises_what_the_provider_did():
    ready = harness("openai_chat", replies=[UpstreamError("gone"), FakeReply(status=500)])
    request = conversation("openai_chat").user("a").request()

    with pytest.raises(UpstreamError, match="gone"):
        await ready.run(request)
    assert (await ready.run(request)).status == 500


def test_broken_policy_raises_with_its_findings():
    with pytest.raises(PolicyError, match="SY"):
        Harness("schema_version = 1\nroutes = 3\n")


def test_harness_reads_a_policy_file(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(POLICY.replace("{format}", "openai_chat"))

    assert list(Harness(path, installed=True).policy.routes) == ["main"]


def test_registry_holds_the_core_and_what_is_given_and_nothing_that_is_installed():
    registry = registry_of([switchyard_demo_routers])

    assert "noop" in registry.route_types
    assert "memory" in registry.latch_stores
    assert "plan_execute" not in registry.route_types


def test_given_module_that_is_installed_is_named_with_its_distribution():
    (given,) = (p for p in registry_of([switchyard_demo_routers]).plugins if "noop" in str(p.gives))

    assert given.label == f"`demo_routers` ({given.distribution} {given.version})"
    assert given.version == VERSION


def test_installed_plugins_are_loaded_when_asked_for_and_given_ones_once():
    registry = registry_of([switchyard_demo_routers, switchyard_demo_routers], installed=True)

    assert {"noop", "plan_execute"} <= registry.route_types.keys()


def broken_plugin():
    plugin = types.ModuleType("broken_plugin")
    plugin.switchyard_route_types = lambda: ()
    return plugin


@pytest.mark.parametrize("installed", [False, True])
def test_broken_plugin_that_is_given_is_named(installed):
    with pytest.raises(PluginError, match="broken_plugin"):
        registry_of([broken_plugin()], installed=installed)


def test_broken_plugin_that_is_only_installed_is_no_error(monkeypatch):
    broken = EntryPoint(name="other", value="no_such_module_xyz", group="switchyard")
    monkeypatch.setattr(
        "switchyard_core.testing.harness.entry_points",
        lambda group: EntryPoints([*entry_points(group=group), broken]),
    )

    assert "other" in [plugin.name for plugin in registry_of(installed=True).broken]
    assert registry_of([switchyard_demo_routers]).broken == ()


def test_unhashable_plugin_object_is_taken():
    class Plugin(list):
        pass

    assert "Plugin" in [plugin.name for plugin in registry_of([Plugin()]).plugins]


def test_policy_of_a_plugin_that_was_not_given_says_how_to_give_it():
    with pytest.raises(PolicyError, match="SY301") as caught:
        Harness(POLICY.replace("{format}", "openai_chat"))

    assert "`plugins=[...]`" in caught.value.__notes__[0]


@each_format
async def test_explain_tells_target_and_change_without_a_call(wire_format):
    ready = harness(wire_format)

    explained = await ready.explain(conversation(wire_format).user("fix it").request(session="s"))

    assert explained.decision.target == "planner"
    assert any("provider/capable" in line for line in explained.diff())
    assert ready.upstream.requests == []


async def test_refused_fails_when_something_was_sent_before_the_refusal():
    async def refuse(_outgoing):
        raise RequestError(message="too late", code="late")

    ready = harness("openai_chat", upstream=FakeUpstream(before=refuse))
    with pytest.raises(AssertionError, match="something was sent"):
        await ready.refused(conversation("openai_chat").user("a").request())


# --- what the caller sees ----------------------------------------------------------------------


@each_format
async def test_served_is_the_same_through_both_doors(wire_format):
    story = conversation(wire_format).user("fix it")
    edited = story.edits("edit_file", path="a.py")
    seen = {}
    for door in ("library", "http"):
        ready = harness(wire_format, door=door)
        planned = await ready.ask(story.request(session="a"))
        executed = await ready.ask(edited.request(session="a"))
        refused = await ready.ask(edited.request(session="b"))
        assert await ready.latched() == 1
        assert (refused.code, refused.sent) == ("latch_capacity", ())
        seen[door] = [
            (each.status, each.target, each.phase, each.reason, each.warnings, each.code)
            for each in (planned, executed, refused)
        ] + [planned.tree, executed.outgoing.body]

    assert seen["library"] == seen["http"]
    assert [row[:4] for row in seen["http"][:2]] == [
        (200, "planner", "planning", "no_mutation"),
        (200, "executor", "executing", "mutation_in_history"),
    ]


async def test_served_has_the_warnings_and_the_answer():
    body = conversation("openai_responses").user("go").request(previous_response_id="resp_1")

    for door in ("library", "http"):
        served = await harness("openai_responses", door=door).ask(body)
        assert served.warnings == ("history_missing",)
        assert b"ok" in served.answer


async def test_client_reaches_every_path_of_the_server():
    async with harness("openai_chat").client() as client:
        assert "switchyard_latch_capacity" in (await client.get("/metrics")).text


async def test_latched_of_a_route_without_a_store_says_so():
    text = POLICY.replace("{format}", "openai_chat").partition("type =")[0]
    ready = Harness(text + 'type = "noop"\ntarget = "planner"\n', plugins=[switchyard_demo_routers])

    with pytest.raises(AssertionError, match="`main` has no latch store"):
        await ready.latched()


async def test_clock_of_routers_can_be_moved():
    ready = harness("openai_chat", now=5.0)
    runtime = ready.engine.runtimes["main"]
    routed = runtime.routed(conversation("openai_chat").user("a").request())
    context = await runtime.context(routed, None, ready.engine.world)

    assert context.clock() == 5.0
    ready.now += 60
    assert context.clock() == 65.0
