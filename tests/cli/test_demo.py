"""The demo: the story, its output, and how it fails."""

import json
import socket

import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli
from switchyard_core.cli.demo.performance import Performance
from switchyard_core.cli.demo.story import load_story
from switchyard_core.plugins import PluginRegistry
from switchyard_core.wire import WIRE_FORMATS


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)


def demo(*arguments, **more):
    return CliRunner().invoke(cli, ["demo", *arguments], **more)


async def scenes(wire_format, story=None):
    performance = Performance(story=story)
    return [scene async for _, scene in performance.play(wire_format)]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_demo_tells_the_whole_story(wire_format):
    played = await scenes(wire_format)

    assert [problem for scene in played for problem in scene.problems()] == []
    told = [
        (scene.status, scene.headers.get("x-switchyard-phase"), scene.latched) for scene in played
    ]
    assert told == [
        (200, "planning", 0),
        (200, "planning", 0),
        (200, "executing", 1),
        (200, "executing", 1),
        (200, "executing", 2),
        (400, None, 2),
        (200, "executing", 1),
        (200, "executing", 2),
    ]
    assert [len(scene.sent) for scene in played] == [1, 1, 1, 1, 1, 0, 1, 1]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_demo_diff_shows_planning_instruction_and_handoff_prompt(wire_format):
    planning, _, handoff, *_ = ["\n".join(s.diff()) for s in await scenes(wire_format)]

    assert "planning phase" in planning
    assert '+  "model": "scripted/planner"' in planning
    assert "planning phase" not in handoff
    assert "The plan is settled" in handoff
    assert '+  "model": "scripted/executor"' in handoff


async def test_demo_sends_the_bodies_of_its_story_unchanged_but_for_the_rewrites():
    (first, *_) = await scenes("openai_chat")
    before, after = json.loads(first.body), json.loads(first.sent[0])

    assert after["messages"][1:] == before["messages"]
    assert after["tools"] == before["tools"]


@pytest.mark.parametrize("arguments", [[], ["--wire-format", "all"]], ids=["default", "all"])
def test_demo_command_prints_every_request_and_ends_well(arguments):
    result = demo(*arguments)
    formats = len(WIRE_FORMATS) if arguments else 1

    assert result.exit_code == 0, result.output
    assert result.output.count("The first edit hands off") == formats
    assert "nothing was sent to a provider" in result.output
    assert f"all {8 * formats} requests went as expected" in result.output
    assert "\x1b" not in result.output


def test_demo_lines_are_as_wide_as_the_terminal_at_most(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    assert max(len(line) for line in demo().output.splitlines()) <= 80


def test_demo_colours_a_terminal_unless_told_not_to(monkeypatch):
    assert "\x1b[32m" in demo(color=True).output

    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in demo(color=True).output


def test_demo_that_goes_otherwise_says_so_and_exits_1(monkeypatch):
    story = load_story().model_dump()
    story["steps"][0]["expect"].update(target="executor", latched=1)
    story["steps"][5]["expect"]["code"] = "other"
    changed = type(load_story()).model_validate_json(json.dumps(story))
    monkeypatch.setattr("switchyard_core.cli.demo.performance.load_story", lambda: changed)

    result = demo()

    assert result.exit_code == 1
    assert "NOT AS EXPECTED: the target is 'planner', expected 'executor'" in result.output
    assert "NOT AS EXPECTED: the number of latched sessions is 0, expected 1" in result.output
    assert "NOT AS EXPECTED: the code is 'latch_capacity', expected 'other'" in result.output
    assert "2 of 8 requests did not go as expected" in result.output


def test_demo_on_a_taken_port_could_not_run():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        result = demo("--port", str(port))

    assert result.exit_code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in result.output


def test_demo_without_its_route_type_could_not_run():
    result = demo(obj=PluginRegistry())

    assert result.exit_code == 2
    assert "plan_execute" in result.output
    assert "Traceback" not in result.output


async def test_answer_that_is_no_json_has_no_error_object():
    (first, *_) = await scenes("openai_chat")
    scene = type(first)(
        **{name: getattr(first, name) for name in first.__slots__ if name != "answer"},
        answer=b"<html>",
    )

    assert scene.error() == {}
