"""What a route is served with: its tools, its plan store, what targets cost, and reloads."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from switchyard_core import Options, PlanStoreType, PluginError, Tool, hookimpl
from switchyard_core.answering import RequestedCall
from switchyard_core.policy import load_policy_text
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.stores import MemoryPlanStore, PlanRecord
from switchyard_core.switchyard import Switchyard
from switchyard_core.testing import Harness, registry_of
from tests.support.tool_route import POLICY, ToolRoutePlugin


class Nothing(Options):
    pass


async def greet(arguments):
    return "hello"


async def fail(arguments):
    raise ValueError


def tool(function):
    return Tool(
        name=function.__name__, description="does it", parameters=Nothing, function=function
    )


PLUGIN = ToolRoutePlugin(tool(greet), tool(fail))
TOOLS = 'tools = ["fail", "greet"]\n'
TURN = 'type = "tool_route"'


def call(name):
    return RequestedCall(id="c", name=name, arguments="{}")


def harness(text, *plugins):
    return Harness(text, plugins=[PLUGIN, *plugins])


def successor(engine, text):
    return engine.successor(load_policy_text(text, "p.toml", engine.registry))


async def test_context_holds_the_tools_the_plans_and_the_prices():
    engine = harness(POLICY + TOOLS).engine
    runtime = engine.runtimes["main"]

    assert [spec.name for spec in runtime.tools.specs] == ["fail", "greet"]
    assert isinstance(runtime.plans, MemoryPlanStore)
    assert (runtime.plans.capacity, runtime.plans.ttl_s) == (8, 60.0)
    assert runtime.targets["one"].price is not None
    assert runtime.targets["one"].price.output == 2.0
    assert runtime.targets["two"].price is None


async def test_route_without_tools_offers_none():
    runtime = harness(POLICY).engine.runtimes["main"]

    (output,) = await runtime.tools.run([call("greet")])

    assert runtime.tools.specs == ()
    assert output.error == "unknown"


async def test_plan_store_has_the_clock_of_the_engine():
    engine = harness(POLICY).engine
    plans = engine.runtimes["main"].plans
    await plans.add(PlanRecord(plan_id="a", state="planned", created_s=1_700_000_000.0 - 60))

    assert (await plans.get("a")).state == "expired"


async def test_calls_of_tools_are_counted_by_route_tool_and_result():
    engine = harness(POLICY + TOOLS).engine
    await engine.runtimes["main"].tools.run([call(n) for n in ("greet", "fail", "none", "greet")])

    assert engine.runtimes["main"].tool_calls == {
        ("greet", "ok"): 2,
        ("fail", "exception"): 1,
        ("", "unknown"): 1,
    }


# --- reloads --------------------------------------------------------------------------------------


async def test_reload_goes_on_with_plans_and_counters_and_has_the_new_limits():
    before = harness(POLICY + TOOLS).engine
    await before.runtimes["main"].plans.add(PlanRecord(plan_id="a"))
    await before.runtimes["main"].tools.run([call("greet")])

    after = successor(before, POLICY + TOOLS + "plan_capacity = 3\nplan_ttl_s = 5.0\n")
    await before.runtimes["main"].tools.run([call("greet")])
    runtime = after.runtimes["main"]

    assert runtime.plans is before.runtimes["main"].plans
    assert (runtime.plans.capacity, runtime.plans.ttl_s) == (3, 5.0)
    assert await runtime.plans.count() == 1
    # The second call began under the policy before.
    assert runtime.tool_calls == {("greet", "ok"): 2}


async def test_reload_settles_calls_that_began_before_it():
    go, written = asyncio.Event(), []

    async def write(arguments):
        await go.wait()
        written.append("done")

    slow = Tool(
        name="write",
        description="d",
        parameters=Nothing,
        function=write,
        side_effects=True,
        timeout_s=0.01,
    )
    before = Harness(POLICY + 'tools = ["write"]\n', plugins=[ToolRoutePlugin(slow)]).engine
    (output,) = await before.runtimes["main"].tools.run([call("write")])
    after = successor(before, POLICY)
    closing = asyncio.create_task(after.runtimes["main"].tools.settle())
    await asyncio.sleep(0)
    go.set()
    await closing

    assert output.error == "timeout"
    assert written == ["done"]
    assert after.runtimes["main"].tools.specs == ()


class OtherStore:
    @hookimpl
    def switchyard_plan_stores(self):
        return [PlanStoreType(name="other", factory=MemoryPlanStore, summary="another")]


@pytest.mark.parametrize(
    "change",
    [(TURN, TURN + '\nplan_store = "other"'), ("[routes.main]", "[routes.renamed]")],
    ids=["store", "name"],
)
async def test_reload_with_another_store_or_name_begins_with_no_plan(change):
    before = harness(POLICY, OtherStore()).engine
    await before.runtimes["main"].plans.add(PlanRecord(plan_id="a"))
    after = successor(before, POLICY.replace(*change))
    (runtime,) = after.runtimes.values()

    assert await runtime.plans.count() == 0
    assert await before.runtimes["main"].plans.count() == 1


class Half:
    capacity = 1


class BadStores:
    @hookimpl
    def switchyard_plan_stores(self):
        def refuse(*limits):
            raise OSError("no database")

        return [
            PlanStoreType(name="half", factory=lambda *_limits: Half(), summary=""),
            PlanStoreType(name="down", factory=refuse, summary=""),
        ]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("half", "the plan store `half` (plugin `BadStores`) lacks a part of its contract"),
        ("down", "the plan store `down` (plugin `BadStores`) cannot be made: OSError: no database"),
    ],
)
def test_plan_store_that_breaks_its_contract_is_named_and_changes_nothing(name, what):
    before = harness(POLICY, BadStores()).engine
    text = POLICY + f'plan_capacity = 2\nplan_store = "{name}"\n'

    with pytest.raises(PluginError) as raised:
        successor(before, text)

    assert str(raised.value).startswith(what)
    assert before.runtimes["main"].plans.capacity == 8


# --- metrics and the end --------------------------------------------------------------------------


async def page(engine, path):
    transport = httpx.ASGITransport(app=SwitchyardApp(engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://s.test") as client:
        return await client.get(path)


async def test_metrics_count_calls_of_tools_and_show_the_plans():
    engine = harness(POLICY + TOOLS).engine
    await engine.runtimes["main"].plans.add(PlanRecord(plan_id="a"))
    await engine.runtimes["main"].tools.run([call("greet"), call("none"), call("fail")])

    lines = (await page(engine, "/metrics")).text.splitlines()
    gauges = (await page(engine, "/v1/stats")).json()["gauges"]

    assert "# TYPE switchyard_tool_calls_total counter" in lines
    assert [line for line in lines if line.startswith("switchyard_tool_calls_total{")] == [
        'switchyard_tool_calls_total{result="unknown",route="main",tool=""} 1.0',
        'switchyard_tool_calls_total{result="exception",route="main",tool="fail"} 1.0',
        'switchyard_tool_calls_total{result="ok",route="main",tool="greet"} 1.0',
    ]
    assert "# TYPE switchyard_plans gauge" in lines
    assert 'switchyard_plans{route="main"} 1.0' in lines
    assert 'switchyard_plan_capacity{route="main"} 8.0' in lines
    assert {"name": "switchyard_plans", "route": "main", "value": 1} in gauges


async def test_closing_the_engine_waits_for_tools_with_side_effects():
    begun, go, written = asyncio.Event(), asyncio.Event(), []

    async def write(arguments):
        begun.set()
        await go.wait()
        written.append("done")

    slow = Tool(
        name="write", description="d", parameters=Nothing, function=write, side_effects=True
    )
    registry = registry_of([ToolRoutePlugin(slow)])
    policy = load_policy_text(POLICY + 'tools = ["write"]\n', "p.toml", registry)
    engine = Switchyard(policy, registry)
    run = asyncio.create_task(engine.runtimes["main"].tools.run([call("write")]))
    await begun.wait()
    run.cancel()
    closing = asyncio.create_task(engine.aclose())
    await asyncio.sleep(0)
    go.set()
    await closing

    assert written == ["done"]
    assert run.cancelled()
