"""Recorded calls of a run: which there are, and that a run needs nothing else."""

from __future__ import annotations

import json

import pytest

from switchyard_core import Replay, Switchyard
from switchyard_core.errors import ReplayMiss
from switchyard_core.world import World
from tests.planner_executor.shop import (
    PLANNED,
    TURNS,
    Shop,
    every_caller,
    every_target,
    instructions_of,
    plan_of,
    scripted,
    tool,
)

pytest_plugins = ["pytester"]


def files_of(folder):
    """Return the recordings of a folder."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir())]


def shop_of(folder, mode, *, planned=PLANNED, turns=TURNS, **settings):
    """Return a shop that records to a folder, or replays it and whose provider is never reached."""

    async def never(out):
        raise AssertionError(out)

    before = {"before": never} if mode == "replay" else {}
    upstream = scripted([planned], turns, **before)
    return Shop(upstream=upstream, harness={"replay": Replay(folder, mode)}, **settings)


@every_target
async def test_run_of_n_steps_is_one_recording_more_and_one_per_round_of_tools(target, tmp_path):
    shop = shop_of(tmp_path, "record", target=target)

    await shop.ask()

    names = sorted(path.name.split("-", 1)[1] for path in tmp_path.iterdir())
    assert names == ["shop-executor.json"] * 4 + ["shop-planner.json"]
    assert len(shop.sent()) == len(names)
    # The calls of a run are not streamed, whatever the caller asks for.
    assert not any(file["request"]["body"].get("stream") for file in files_of(tmp_path))


@every_target
async def test_equal_messages_with_other_instructions_are_two_recordings(target, tmp_path):
    # The request is word for word what the first step says.
    planned = {"text": json.dumps(plan_of("choose one"))}
    settings = {"planned": planned, "turns": [{"text": "done"}], "target": target}
    shop = shop_of(tmp_path, "record", **settings)
    shop.reload(executor="planner")

    await shop.ask("Step 1: choose one")

    planner, executor = shop.bodies("planner")[0], shop.bodies("executor")[0]
    assert len(shop.sent()) == len(files_of(tmp_path)) == 2
    key = "input" if target == "openai_responses" else "messages"
    assert planner[key][-1] == executor[key][-1]
    assert instructions_of(planner) != instructions_of(executor)


@every_target
async def test_schema_tools_and_instructions_belong_to_the_key_and_sampling_does_not(
    target, tmp_path
):
    await shop_of(tmp_path, "record", target=target).ask()

    same = shop_of(tmp_path, "replay", target=target)
    more = {"temperature": 0.1, "max_completion_tokens": 77, "user": "u", "metadata": {"a": "b"}}
    assert (await same.ask(session="s", **more)).extension["status"] == "completed"
    for change in (
        {"target_options": 'structured_output = "prompt"'},
        {"options": 'planner_prompt = "PLAN OTHERWISE"'},
        {"options": 'executor_prompt = "You carry out, but otherwise"'},
        {"tools": [tool("look"), tool("peek")], "options": 'query_tool = "look"'},
    ):
        other = shop_of(tmp_path, "replay", target=target, **change)
        with pytest.raises(ReplayMiss):
            await other.ask()


@every_target
@every_caller
async def test_replay_needs_no_provider_and_gives_the_same_answer(target, caller, tmp_path):
    before = await shop_of(tmp_path, "record", target=target).ask()
    for door in ("library", "http"):
        for stream in (False, True):
            shop = shop_of(tmp_path, "replay", target=target, caller=caller, door=door)

            answer = await shop.ask(stream=stream)

            assert shop.sent() == []
            assert answer.status == 200
            if stream:
                assert f'"plan_digest":"{before.extension["plan_digest"]}"' in answer.stream
                continue
            assert answer.text == before.text
            assert answer.results == before.results
            assert answer.extension["usage"] == before.extension["usage"]


async def test_replay_needs_no_key(tmp_path):
    await shop_of(tmp_path, "record").ask()
    shop = shop_of(tmp_path, "replay")
    engine = shop.harness.engine
    yard = Switchyard.from_loaded(
        engine.policy, engine.registry, world=World(environ={}), replay=Replay(tmp_path, "replay")
    )
    shop.harness.engine = yard

    assert (await shop.ask()).extension["status"] == "completed"


@every_target
async def test_record_calls_for_what_is_missing_only(target, tmp_path):
    await shop_of(tmp_path, "record", target=target).ask()
    (planner,) = tmp_path.glob("*-planner.json")
    planner.unlink()
    shop = shop_of(tmp_path, "record", target=target)

    answer = await shop.ask()

    assert shop.roles == ["planner"]
    assert answer.extension["status"] == "completed"
    assert planner.is_file()


@every_target
async def test_tools_run_for_real_in_a_replay(target, tmp_path):
    ran: list[str] = []

    def look(given):
        ran.append(given.words)
        return "LOOKED-UP"

    for mode in ("record", "replay"):
        shop = shop_of(tmp_path, mode, target=target, tools=[tool("look", look)])
        assert (await shop.ask()).extension["status"] == "completed"

    assert ran == ["tripod", "tripod"]
    # What it returned is part of the next call's key, and of no recorded answer.
    assert not any("LOOKED-UP" in json.dumps(file["responses"]) for file in files_of(tmp_path))


async def test_miss_names_key_file_and_the_nearest_recording(tmp_path):
    await shop_of(tmp_path, "record").ask()

    with pytest.raises(ReplayMiss) as caught:
        await shop_of(tmp_path, "replay").ask("OTHER-WORD")

    error = caught.value
    assert error.key in error.path
    for word in (str(tmp_path), "TASK-WORD", "OTHER-WORD", "-shop-planner.json"):
        assert word in error.message


@every_caller
async def test_miss_in_a_step_is_not_a_failed_step(caller, tmp_path):
    await shop_of(tmp_path, "record").ask()
    for path in tmp_path.glob("*-executor.json"):
        if "RESULT-THREE" in path.read_text("utf-8"):
            path.unlink()

    answer = await shop_of(tmp_path, "replay", caller=caller, door="http").ask()

    answer.refused(502, "upstream_replay_miss")


REPLAYED = """
import asyncio
from tests.planner_executor.shop import PLANNED, TURNS, Shop, scripted

def test_shop(model_replay):
    shop = Shop(upstream=scripted([PLANNED], TURNS), harness={"replay": model_replay})
    assert asyncio.run(shop.ask()).extension["status"] == "completed"
"""


def test_without_recordings_a_test_is_skipped_and_fails_where_they_are_required(
    pytester, monkeypatch
):
    monkeypatch.delenv("SWITCHYARD_REPLAY", raising=False)
    options = ("-p", "no:randomly", "-p", "no:cacheprovider")
    pytester.makepyfile(test_it=REPLAYED)

    pytester.runpytest_inprocess(*options).assert_outcomes(skipped=1)
    pytester.runpytest_inprocess(*options, "--model-replay-required").assert_outcomes(errors=1)
    recording = pytester.runpytest_inprocess(*options, "--model-replay=record")
    recording.assert_outcomes(passed=1)
    pytester.runpytest_inprocess(*options, "--model-replay-required").assert_outcomes(passed=1)

    assert len(list((pytester.path / "recordings" / "test_it").iterdir())) == 1 + len(TURNS)
