"""What comes when: the plan before anything runs, results in order, and no plan made again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import switchyard_planner_executor.command as command_module
import switchyard_planner_executor.router as router_module
from switchyard_core import WIRE_FORMATS, Request, SectionFinished, SectionStarted
from switchyard_core.cli import cli
from switchyard_planner_executor import Plan, PlannerExecutorOptions, PlanRun, UnknownModeError
from tests.planner_executor.rows_world import (
    ASKED,
    GOAL,
    REQUEST,
    STEPS,
    TURNS,
    Shop,
    body_of,
    history_of,
    plan_json,
    planned,
)

ROOT = Path(__file__).parents[2]

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)
every_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)
every_door = pytest.mark.parametrize("door", ["library", "http"])
either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def run_of(shop, **options):
    """Return a run of the library with the shop's own context."""
    request = Request(wire_format="openai_chat", body=body_of("openai_chat"))
    engine = shop.yard
    runtime = engine.runtimes["shop"]
    context = await engine._decider.context(
        runtime,
        request,
        engine._decider.mark_of(request),
        engine._decider.asking(runtime, request, dry_run=False),
        dry_run=False,
    )
    values = runtime.route.options.model_dump(exclude_unset=True) | options
    return PlanRun(PlannerExecutorOptions.model_construct(**values), context)


def in_order(text, words):
    """Return whether words stand in a text in this order, the last place of each counts."""
    places = [text.rfind(word) for word in words]
    return -1 not in places and places == sorted(places)


# --- the library -------------------------------------------------------------------------


@every_target
async def test_r06_the_run_has_a_plan_and_nobody_parses_anything(target):
    run = await run_of(Shop(target))

    made = await run.make_plan(REQUEST)

    assert isinstance(run.plan, Plan)
    assert run.plan is made
    assert run.plan == Plan.model_validate_json(plan_json())
    assert (run.results, run.calls) == ([], 0)


@every_target
async def test_r06_results_follow_in_order(target):
    run = await run_of(Shop(target))
    await run.make_plan(REQUEST)

    events = [event async for event in run.execute()]

    assert [text.split()[0] for text in run.results] == ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]
    assert (run.status, run.calls, events[-1].status) == ("completed", 4, "completed")
    assert run.plan == Plan.model_validate_json(plan_json())


@every_target
async def test_r20_library_runs_no_step_of_an_empty_plan(target):
    shop = Shop(target, plans=[planned('{"goal": "Nothing to do.", "steps": []}')])
    run = await run_of(shop)
    await run.make_plan(REQUEST)

    events = [type(event).__name__ async for event in run.execute()]

    assert (events, run.results, run.status) == (["RunFinished"], [], "completed")
    assert [warning.code for warning in run.warnings] == ["plan_empty"]
    assert shop.executor_bodies == []


@pytest.mark.parametrize("mode", ["magentic", "magnetic"])
async def test_r22_library_call_with_another_mode_is_the_named_error(mode):
    shop = Shop()

    with pytest.raises(UnknownModeError) as caught:
        await run_of(shop, mode=mode)

    assert isinstance(caught.value, ValueError)
    assert "plan_then_execute, replan" in caught.value.message
    assert ("reserved" in caught.value.message) == (mode == "magentic")
    assert shop.provider.sent == []


@pytest.mark.parametrize("mode", [None, ""])
async def test_r22_library_call_without_a_mode_is_the_default(mode):
    run = await run_of(Shop(), mode=mode)

    assert run.mode == "plan_then_execute"


def test_r23_route_and_command_hold_no_run_logic_of_their_own():
    assert router_module.PlanRun is PlanRun
    source = Path(command_module.__file__).read_text("utf-8")
    # The command asks the route, and the route has the only run.
    assert not re.search(
        r"PlanRun|\.run\b import|ModelCall|Transcript|context\.ask|step_text", source
    )
    router = Path(router_module.__file__).read_text("utf-8")
    assert not re.search(r"ModelCall|Transcript|context\.ask|step_text|tools\.run", router)


# --- the route ---------------------------------------------------------------------------


@every_target
async def test_r17_the_plan_is_told_before_the_first_step_is_asked_for(target):
    shop = Shop(target)
    events = shop.yard.answer(Request(wire_format="openai_chat", body=body_of("openai_chat")))
    kinds = []

    async for event in events:
        if isinstance(event, SectionStarted):
            kinds.append(event.kind)
        if isinstance(event, SectionFinished):
            break

    assert kinds == ["plan"]
    assert [out.role for out in shop.provider.sent] == ["planner"]
    await events.aclose()
    assert [out.role for out in shop.provider.sent] == ["planner"]


@every_target
@every_caller
async def test_r17_a_stream_goes_on_only_when_the_plan_was_taken(target, caller):
    shop = Shop(target)
    body = body_of(caller, stream=True)
    seen = ""

    async with await shop.yard.handle(Request(wire_format=caller, body=body)) as response:
        chunks = aiter(response.chunks)
        while f"3. {STEPS[2][0]}" not in seen:
            seen += (await anext(chunks)).decode()
            assert [out.role for out in shop.provider.sent] == ["planner"]
        rest = "".join([chunk.decode() async for chunk in chunks])

    assert "RESULT" not in seen
    assert in_order(rest, ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]) or "RESULT-THREE" in rest
    assert len(shop.executor_bodies) == 4


@every_target
@every_caller
@every_door
@either_way
async def test_r18_goal_and_every_action_come_before_any_result(target, caller, door, stream):
    shop = Shop(target)

    answer = await shop.ask(caller, door=door, stream=stream)

    text = answer.text
    plan, _, rest = text.partition("## Step 1")
    assert in_order(plan, [GOAL, *(action for action, _ in STEPS)])
    assert "RESULT" not in plan
    assert in_order(rest, ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"])


@every_caller
@either_way
async def test_r18_they_do_with_a_step_that_fails_too(caller, stream):
    shop = Shop(caller, faults=[{"turn": 2, "status": 400, "message": "no"}])

    answer = await shop.ask(caller, stream=stream)

    plan, _, rest = answer.text.partition("## Step 1")
    assert in_order(plan, [GOAL, *(action for action, _ in STEPS)])
    assert in_order(rest, ["RESULT-ONE", "## Step 2", "This step failed", "Not run: step 3."])


@every_target
@every_caller
@either_way
async def test_r20_empty_plan_is_an_answer_that_says_so(target, caller, stream):
    shop = Shop(target, plans=[planned('{"goal": "Nothing to do.", "steps": []}')])

    answer = await shop.ask(caller, stream=stream)

    assert answer.status == 200
    assert "the plan has no steps" in answer.text.casefold()
    assert "Nothing to do." in answer.text
    extension = answer.extension
    assert (extension["status"], extension["steps"]) == ("completed", [])
    assert [warning["code"] for warning in extension["warnings"]] == ["plan_empty"]
    assert answer.headers["x-switchyard-warning"] == "plan_empty"
    assert shop.executor_bodies == []


@every_target
async def test_r21_later_steps_run_as_written_after_a_search_that_finds_nothing(target):
    steps = [(f"DO-{n}", "submarine" if n == 2 else None) for n in range(1, 5)]
    search = {"name": "search_products", "arguments": {"query": "submarine"}, "id": "call_1"}
    turns = [
        {"text": "one"},
        {"calls": [search]},
        {"text": "nothing found"},
        {"text": "three"},
        {"text": "four"},
    ]
    shop = Shop(target, plans=[planned(plan_json(steps))], turns=turns, options='mode = "replan"')

    answer = await shop.ask()

    assert 'No product matches "submarine".' in shop.raw[2].replace('\\"', '"')
    last = [history_of(body)[-1].get("content") for body in shop.executor_bodies]
    assert "DO-3" in last[3]
    assert "DO-4" in last[4]
    assert [step["status"] for step in answer.extension["steps"]] == ["completed"] * 4
    assert answer.extension["steps"][1]["tool_calls"][0]["ok"] is True
    assert len(shop.planner_bodies) == 1


@every_target
async def test_r22_nothing_is_planned_again_in_the_default_mode(target):
    shop = Shop(target, faults=[{"turn": 2, "status": 400}])

    answer = await shop.ask()

    assert answer.extension["status"] == "failed"
    assert len(shop.planner_bodies) == 1
    assert not any("report_blocked" in raw for raw in shop.raw)


@every_caller
@either_way
async def test_phase_says_where_the_plan_stands(caller, stream):
    shop = Shop(options='approval = "always"')

    waits = await shop.ask(caller, door="http", stream=stream)
    word = f"reject {waits.headers['x-switchyard-plan-id']}"
    gone = await shop.ask(caller, door="http", stream=stream, headers={"x-switchyard-plan": word})

    for answer, status in ((waits, "planned"), (gone, "rejected")):
        assert answer.extension["status"] == answer.headers["x-switchyard-phase"] == status
        assert answer.headers["x-switchyard-plan-digest"] == waits.extension["plan_digest"]
        assert [step["status"] for step in answer.extension["steps"]] == ["not_run"] * 3
    assert shop.executor_bodies == []


# --- the command -------------------------------------------------------------------------


def plan(*arguments, policy="policies/planner_executor.toml"):
    """Run the command on the recorded replies."""
    replay = str(ROOT / "policies/recordings/planner_executor")
    return CliRunner().invoke(
        cli, ["plan", str(ROOT / policy), ASKED, "--replay", replay, *arguments]
    )


def test_r18_command_prints_goal_and_every_action_before_any_result():
    done = plan("--yes")

    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    goal = next(n for n, line in enumerate(lines) if line.startswith("Plan: "))
    actions = [n for n, line in enumerate(lines) if re.match(r"\s*[1-4]\. ", line)][:4]
    results = [
        next(n for n, line in enumerate(lines) if text in line)
        for text in ("Seven photography", "The set: Instant", "$166.90", "Happy birthday")
    ]
    assert lines.index(next(line for line in lines if ASKED in line)) < goal
    assert [goal, *actions, *results] == sorted([goal, *actions, *results])


def test_r19_command_shows_the_raw_text_of_what_is_no_plan(tmp_path):
    script = {"version": 1, "scripts": [{"turns": [{"text": "1. Search.\n2. Buy it."}]}]}
    (tmp_path / "script.json").write_text(json.dumps(script))
    (tmp_path / "policy.toml").write_text(
        """
schema_version = 1
[llm_clients.played]
format = "scripted"
speaks = "openai_chat"
script = "script.json"
[targets.both]
id = "provider/both"
llm_client = "played"
[routes.shop]
id = "team/shop"
type = "planner_executor"
planner_target = "both"
executor_target = "both"
"""
    )

    done = CliRunner().invoke(cli, ["plan", str(tmp_path / "policy.toml"), "a gift", "--yes"])

    assert done.exit_code == 1
    assert "plan_unusable" in done.stderr
    assert "  | 1. Search.\n  | 2. Buy it.\n" in done.stderr
    assert "Traceback" not in done.output


def test_r29_command_makes_one_call_for_the_plan_and_one_more_per_step_and_tool_round():
    folder = ROOT / "policies/recordings/planner_executor"
    names = sorted(path.name.rpartition("-")[2] for path in folder.iterdir())
    assert names == ["executor.json"] * 5 + ["planner.json"]


def test_turns_of_the_scripted_run_are_the_steps_and_one_tool_round():
    assert len(TURNS) == len(STEPS) + sum(query is not None for _, query in STEPS)
