"""A run in the library, with nothing around it; and that there is no other way to run a plan."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

import switchyard_planner_executor.command as command_module
import switchyard_planner_executor.router as router_module
from switchyard_core import RouteContext, SessionView, TargetView, Toolbox
from switchyard_core.answering import (
    AskError,
    ModelCall,
    ModelReply,
    SectionFinished,
    SectionStarted,
)
from switchyard_planner_executor import Plan, PlannerExecutorOptions, PlanRun, UnknownModeError
from tests.planner_executor.shop import (
    EXECUTOR,
    LOOK,
    PLAN,
    PLANNER,
    REFUSED,
    RESULTS,
    TASK,
    Models,
    Says,
    Shop,
    every_target,
)

NOTHING_TO_DO = {"goal": "Nothing to do.", "steps": []}


def run_of(*, plan: Says = PLAN, executor: Any = RESULTS, **options: Any) -> PlanRun:
    """Return a run of the library, for whose models a test speaks."""
    models = Models([plan], executor)

    async def ask(target: str, call: ModelCall) -> ModelReply:
        reply = await models(target, call)
        if isinstance(reply, AskError):
            raise reply
        return reply

    ids = {"planner": PLANNER, "executor": EXECUTOR}
    targets = {
        name: TargetView(name=name, id=model, wire_format="openai_responses", origin=name)
        for name, model in ids.items()
    }
    context = RouteContext(
        route="shop",
        targets=targets,
        session=SessionView(),
        mutations=None,
        ask=ask,
        tools=Toolbox({"look": LOOK}),
    )
    values = {"planner_target": "planner", "executor_target": "executor", "tools": ["look"]}
    return PlanRun(PlannerExecutorOptions.model_construct(**values, **options), context)


async def test_run_has_a_plan_and_nobody_parses_anything() -> None:
    run = run_of()

    made = await run.make_plan(TASK)

    assert run.plan is made
    assert made == Plan.model_validate(PLAN)
    assert (run.results, run.calls) == ([], 0)


async def test_results_follow_in_order_and_the_plan_stays() -> None:
    run = run_of()
    await run.make_plan(TASK)

    events = [event async for event in run.execute()]

    assert run.results == ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]
    assert (run.status, run.calls, events[-1].status) == ("completed", 4, "completed")
    assert run.plan == Plan.model_validate(PLAN)


async def test_failed_step_ends_a_run_without_an_exception() -> None:
    run = run_of(executor=["RESULT-ONE", REFUSED, REFUSED])
    await run.make_plan(TASK)

    events = [type(event).__name__ async for event in run.execute()]

    assert (run.results, run.status, run.reason) == (["RESULT-ONE"], "failed", "step_failed")
    assert events[-2:] == ["StepFailed", "RunFinished"]


async def test_plan_of_ones_own_runs_without_the_planner() -> None:
    run = run_of(plan=REFUSED)

    run.use_plan(Plan.model_validate(PLAN))
    async with contextlib.aclosing(run.execute()) as events:
        async for _ in events:
            pass

    assert run.status == "completed"


async def test_no_step_of_an_empty_plan_runs() -> None:
    run = run_of(plan=NOTHING_TO_DO)
    await run.make_plan(TASK)

    events = [type(event).__name__ async for event in run.execute()]

    assert (events, run.results, run.status) == (["RunFinished"], [], "completed")
    assert [warning.code for warning in run.warnings] == ["plan_empty"]


async def test_run_without_a_plan_says_what_to_call_first() -> None:
    with pytest.raises(RuntimeError, match="call make_plan or use_plan first"):
        async with contextlib.aclosing(run_of().execute()) as events:
            await anext(events)


def test_mode_of_a_library_call_is_checked() -> None:
    assert [run_of(mode=mode).mode for mode in (None, "")] == ["plan_then_execute"] * 2
    for mode, what in (("magentic", "reserved"), ("magnetic", "there is no mode")):
        with pytest.raises(UnknownModeError, match=f"{what}.*modes: plan_then_execute, replan"):
            run_of(mode=mode)


def test_route_and_command_have_no_run_logic() -> None:
    assert router_module.PlanRun is PlanRun
    words = r"ModelCall|Transcript|context\.ask|step_text|tools\.run"
    # The command asks the route, and the route has the only run.
    for module, forbidden in ((router_module, words), (command_module, f"{words}|PlanRun")):
        assert not re.search(forbidden, Path(module.__file__).read_text("utf-8"))


@every_target
async def test_plan_is_told_before_the_first_step_is_asked_for(target: str) -> None:
    shop = Shop(target=target)
    kinds = []

    async with contextlib.aclosing(shop.events()) as events:
        async for event in events:
            if isinstance(event, SectionStarted):
                kinds.append(event.kind)
            if isinstance(event, SectionFinished):
                break
        assert (kinds, shop.roles) == (["plan"], ["planner"])

    assert shop.roles == ["planner"]
