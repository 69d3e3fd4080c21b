"""Recorded calls of a run: which there are, and that a run needs nothing else."""

from __future__ import annotations

import json

import pytest

from switchyard_core import WIRE_FORMATS, Options, ReplayMiss, Request, Tool, hookimpl
from switchyard_core.replay import Replay
from switchyard_core.testing import FakeUpstream
from tests.planner_executor.rows_world import (
    REQUEST,
    STEPS,
    TURNS,
    Shop,
    body_of,
    plan_json,
    planned,
)
from tests.replay.calls import call

pytest_plugins = ["pytester"]

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)
every_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)


def files_of(folder):
    """Return the recordings of a folder."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir())]


async def recorded_run(target, folder, **settings):
    """Record a run; return its shop and its answer."""
    shop = Shop(target, replay=Replay(folder, "record"), **settings)
    return shop, await shop.ask()


def without_a_provider(target, folder, **settings):
    """Return a shop that replays and whose provider must not be reached, without any key."""
    shop = Shop(target, replay=Replay(folder, "replay"), environ={}, **settings)

    async def never(outgoing):
        raise AssertionError(outgoing)

    shop.provider.before = never
    return shop


@every_target
async def test_r16_equal_messages_with_other_instructions_are_two_recordings(target, tmp_path):
    # The request is word for word what the first step says.
    text = "Step 1: ACTION-TWO name the best one"
    plan = plan_json([("ACTION-TWO name the best one", None)])
    shop = Shop(
        target,
        replay=Replay(tmp_path, "record"),
        plans=[planned(plan)],
        turns=[{"text": "done"}],
        one_target=True,
    )

    await shop.ask(text=text)

    assert len(shop.provider.sent) == len(files_of(tmp_path)) == 2
    key = "input" if target == "openai_responses" else "messages"
    said = [
        [item for item in body[key] if item["role"] != "system"]
        for body in (shop.planner_bodies[0], shop.executor_bodies[0])
    ]
    assert said[0] == said[1]


@every_target
async def test_r28_schema_model_tools_and_instructions_belong_to_the_key(target, tmp_path):
    await recorded_run(target, tmp_path)

    for change in (
        {"planner_options": 'structured_output = "prompt"'},
        {"options": 'planner_prompt = "PLAN OTHERWISE"'},
        {"options": 'executor_prompt = "You carry out, but otherwise"'},
        {"tools": "[]", "plans": [planned(plan_json([(a, None) for a, _ in STEPS]))]},
    ):
        shop = without_a_provider(target, tmp_path, **change)
        with pytest.raises(ReplayMiss):
            await shop.yard.handle(Request(wire_format="openai_chat", body=body_of("openai_chat")))


@every_target
async def test_r28_sampling_limits_and_names_do_not(target, tmp_path):
    await recorded_run(target, tmp_path)
    shop = without_a_provider(target, tmp_path)

    more = {"temperature": 0.1, "max_completion_tokens": 77, "user": "u", "metadata": {"a": "b"}}
    answer = await shop.ask(headers={"x-switchyard-session-id": "s"}, **more)

    assert answer.extension["status"] == "completed"


@every_target
async def test_r29_a_run_of_n_steps_is_one_recording_more_and_one_per_tool_round(target, tmp_path):
    shop, _ = await recorded_run(target, tmp_path)

    names = sorted(path.name.split("-", 1)[1] for path in tmp_path.iterdir())
    searches = sum(query is not None for _, query in STEPS)
    assert names == ["shop-executor.json"] * (len(STEPS) + searches) + ["shop-planner.json"]
    assert len(shop.provider.sent) == len(names)


@every_target
@every_caller
@pytest.mark.parametrize("door", ["library", "http"])
async def test_r30_replay_needs_neither_network_nor_key(target, caller, door, tmp_path):
    _, before = await recorded_run(target, tmp_path)
    shop = without_a_provider(target, tmp_path)

    answer = await shop.ask(caller, door=door)

    assert answer.status == 200
    assert answer.text == before.text
    assert answer.extension["plan_digest"] == before.extension["plan_digest"]
    assert answer.usage == before.usage
    assert shop.provider.sent == []


@every_target
async def test_r31_record_calls_for_what_is_missing_only(target, tmp_path):
    await recorded_run(target, tmp_path)
    [planner] = tmp_path.glob("*-planner.json")
    planner.unlink()

    shop, answer = await recorded_run(target, tmp_path)

    assert [out.role for out in shop.provider.sent] == ["planner"]
    assert answer.extension["status"] == "completed"
    assert planner.is_file()


class Words(Options):
    query: str


class Lookup:
    """Gives a tool that notes each time it runs."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @hookimpl
    def switchyard_tools(self):
        def look_up(words: Words) -> str:
            self.ran.append(words.query)
            return "LOOKED-UP"

        return [Tool(name="look_up", description="Looks up.", parameters=Words, function=look_up)]


@every_target
async def test_r31_tools_run_for_real_in_a_replay(target, tmp_path):
    search = {"name": "look_up", "arguments": {"query": "tripod"}, "id": "call_1"}
    settings = {"tools": '["look_up"]', "turns": [{"calls": [search]}, *TURNS[1:]]}
    one, two = Lookup(), Lookup()
    await recorded_run(target, tmp_path, plugins=[one], **settings)

    shop = without_a_provider(target, tmp_path, plugins=[two], **settings)
    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert one.ran == two.ran == ["tripod"]
    # What it returned is part of the next call's key, and of no recorded answer.
    assert not any("LOOKED-UP" in json.dumps(file["responses"]) for file in files_of(tmp_path))


@every_target
async def test_r32_a_miss_names_key_file_and_the_nearest_recording(target, tmp_path):
    await recorded_run(target, tmp_path)
    shop = without_a_provider(target, tmp_path)

    with pytest.raises(ReplayMiss) as caught:
        await shop.yard.handle(
            Request(wire_format="openai_chat", body=body_of("openai_chat", "OTHER-WORD"))
        )

    error = caught.value
    assert error.key in error.path
    assert str(tmp_path) in error.message
    # A difference to the recorded plan's call, of the words that differ.
    assert "REQUEST-WORD" in error.message
    assert "OTHER-WORD" in error.message
    assert "-shop-planner.json" in error.message


@every_target
@every_caller
async def test_r32_a_miss_in_a_step_is_no_failed_step(target, caller, tmp_path):
    await recorded_run(target, tmp_path)
    for path in tmp_path.glob("*-executor.json"):
        if "RESULT-THREE" in path.read_text("utf-8"):
            path.unlink()
    shop = without_a_provider(target, tmp_path)

    answer = await shop.ask(caller, door="http")

    assert answer.status == 502
    assert answer.error["code"] == "upstream_replay_miss"
    assert answer.headers["x-should-retry"] == "false"


R33 = """
import asyncio
from tests.planner_executor.rows_world import Shop

def test_shop(model_replay):
    answer = asyncio.run(Shop(replay=model_replay).ask())
    assert answer.extension["status"] == "completed"
"""


def test_r33_without_recordings_a_test_is_skipped_and_fails_where_they_are_required(
    pytester, monkeypatch
):
    monkeypatch.delenv("SWITCHYARD_REPLAY", raising=False)
    options = ("-p", "no:randomly", "-p", "no:cacheprovider")
    pytester.makepyfile(test_it=R33)

    pytester.runpytest_inprocess(*options).assert_outcomes(skipped=1)
    pytester.runpytest_inprocess(*options, "--model-replay-required").assert_outcomes(errors=1)
    recording = pytester.runpytest_inprocess(*options, "--model-replay=record")
    recording.assert_outcomes(passed=1)
    pytester.runpytest_inprocess(*options, "--model-replay-required").assert_outcomes(passed=1)

    assert len(list((pytester.path / "recordings" / "test_it").iterdir())) == 1 + len(TURNS)


@every_target
@every_caller
async def test_r36_streams_are_replayed_as_they_came(target, caller, tmp_path):
    _, whole = await recorded_run(target, tmp_path)
    shop = without_a_provider(target, tmp_path)

    answer = await shop.ask(caller, stream=True)

    # The calls of a run are not streamed: the caller's stream has one piece per section.
    assert not any(file["request"]["body"].get("stream") for file in files_of(tmp_path))
    assert answer.streamed
    assert answer.text == whole.text
    deltas = [
        text for event in answer.events for text in [_delta(caller, event)] if text and text.strip()
    ]
    assert len(deltas) == 1 + len(STEPS) + 1
    assert REQUEST not in "".join(deltas)


@every_target
async def test_r36_a_recorded_stream_comes_back_chunk_by_chunk(target, tmp_path):
    outgoing, provider = call(target, stream=True), FakeUpstream()

    async def nobody():
        raise AssertionError

    recording = await Replay(tmp_path, "record").send(outgoing, lambda: provider.send(outgoing))
    came = [chunk async for chunk in recording.chunks]
    replayed = await Replay(tmp_path, "replay").send(outgoing, nobody)

    assert [chunk async for chunk in replayed.chunks] == came
    assert len(came) > 3


def _delta(caller, event):
    if caller == "openai_chat":
        return event["choices"][0]["delta"].get("content")
    if caller == "openai_responses":
        return event["delta"] if event["type"] == "response.output_text.delta" else None
    return event["delta"]["text"] if event["type"] == "content_block_delta" else None
