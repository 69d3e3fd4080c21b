"""``switchyard plan``: what it prints, in which order, and how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchyard_core import WIRE_FORMATS
from switchyard_core.cli import cli
from switchyard_core.scripted import ScriptedUpstream
from switchyard_planner_executor.printing import PRINTERS
from tests.planner_executor.gate_world import GOAL, PLAN, plan_of

#: The command as a process; a host that ignores Ctrl-C, as a job in the background does, would
#: hand that on to it.
COMMAND = (
    sys.executable,
    "-c",
    """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
from switchyard_core.cli import cli

cli(prog_name="switchyard")
""",
)
POLICY = """
schema_version = 1

[llm_clients.played]
format = "scripted"
speaks = "{wire_format}"
script = "script.json"

[targets.planner]
id = "planner-model"
llm_client = "played"

[targets.executor]
id = "executor-model"
llm_client = "played"

[routes.shop]
id = "team/shop"
type = "planner_executor"
planner_target = "planner"
executor_target = "executor"
tools = ["search_products"]
{options}
"""
#: What the executor says, by the number of turns it has had.
TURNS = (
    {"calls": [{"name": "search_products", "arguments": {"query": "tripod"}}]},
    {"text": "RESULT-ONE"},
    {"text": "RESULT-TWO"},
    {"text": "RESULT-THREE"},
)


@pytest.fixture(params=WIRE_FORMATS)
def wire_format(request):
    return request.param


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Write a policy and its script; return the policy's path."""
    monkeypatch.chdir(tmp_path)

    def write(options="", *, plan=PLAN, turns=TURNS, wire_format="openai_chat", faults=()):
        text = plan if isinstance(plan, str) else json.dumps(plan)
        scripts = [
            {"when": {"model": "^planner-model$"}, "turns": [{"text": text}]},
            {"when": {"model": "^executor-model$"}, "turns": list(turns), "faults": list(faults)},
        ]
        (tmp_path / "script.json").write_text(json.dumps({"version": 1, "scripts": scripts}))
        path = tmp_path / "policy.toml"
        path.write_text(POLICY.format(options=options, wire_format=wire_format))
        return str(path)

    return write


@pytest.fixture
def sent(monkeypatch):
    """Keep what is sent to the models."""
    found = []
    send = ScriptedUpstream.send

    async def keep(self, outgoing):
        found.append(outgoing)
        return await send(self, outgoing)

    monkeypatch.setattr(ScriptedUpstream, "send", keep)
    return found


def plan(*arguments):
    run = CliRunner().invoke(cli, ["plan", *arguments])
    assert "Traceback" not in run.output
    assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
    return run


def places(text, *parts):
    """Return where some parts stand, each once."""
    assert [text.count(part) for part in parts] == [1] * len(parts), text
    return [text.index(part) for part in parts]


def test_plan_stands_before_every_result(shop, wire_format):
    run = plan(shop(wire_format=wire_format), "REQUEST-WORD")

    assert run.exit_code == 0
    found = places(
        run.stdout,
        "Request: REQUEST-WORD",
        f"Plan: {GOAL}",
        "  1. find tripods  (search: tripod)",
        "  2. choose one",
        "  3. write a card",
        "Estimate (",
        "\nStep 1: find tripods",
        "[search_products: ok]",
        "RESULT-ONE",
        "\nStep 2: choose one",
        "RESULT-TWO",
        "\nStep 3: write a card",
        "RESULT-THREE",
        "completed: 4 executor calls (expected 4)",
    )
    assert found == sorted(found)
    assert run.stderr == ""


def test_failed_step_ends_with_1_and_says_what_did_not_run(shop, wire_format):
    path = shop(wire_format=wire_format, faults=[{"turn": 2, "times": 9, "status": 400}])

    run = plan(path, "x")

    assert run.exit_code == 1
    assert "RESULT-ONE" in run.stdout
    assert "failed: asking `executor` gave status 400" in run.stdout
    assert "Not run: step 3" in run.stdout


def test_unusable_plan_shows_what_the_planner_said(shop, wire_format):
    run = plan(shop(plan="1. look\n2. choose", wire_format=wire_format), "x")

    assert run.exit_code == 1
    assert "(plan_unusable)" in run.stderr
    assert "  | 1. look\n  | 2. choose" in run.stderr
    assert "Plan:" not in run.stdout


def test_empty_plan_is_shown_and_is_no_failure(shop):
    run = plan(shop(plan={"goal": "g", "steps": []}), "x")

    assert run.exit_code == 0
    assert "The plan has no steps." in run.stdout


# --- plans in files --------------------------------------------------------------------------


@pytest.mark.parametrize("replayed", [False, True])
def test_saved_plan_makes_exactly_the_calls_of_one_run(shop, wire_format, sent, replayed):
    path = shop(wire_format=wire_format)
    recording = ("--record", "calls")
    assert plan(path, "x", "--yes", *(recording if replayed else ())).exit_code == 0
    whole = [each.body for each in sent]
    del sent[:]

    only = plan(path, "x", "--plan-only", "--save", "plan.json")
    assert only.exit_code == 0
    assert "Nothing ran." in only.stdout
    assert [each.role for each in sent] == ["planner"]
    run = plan(path, "--from", "plan.json", "--yes", *(("--replay", "calls") if replayed else ()))

    assert run.exit_code == 0, run.output
    assert "RESULT-THREE" in run.stdout
    if replayed:
        assert len(sent) == 1
    else:
        assert [each.body for each in sent] == whole


def test_answer_of_a_run_can_be_run_again(shop):
    path = shop()
    found = plan(path, "x", "--output", "json")
    Path("answer.json").write_text(found.stdout)

    again = plan(path, "--from", "answer.json", "--yes")

    assert again.exit_code == 0
    assert "RESULT-THREE" in again.stdout


BAD_FILES = {
    "missing": (None, "cannot read plan.json: No such file"),
    "not json": ("{", "plan.json is not JSON"),
    "not utf-8": (b"\xff", "plan.json is not JSON: not UTF-8"),
    "deep": ("[" * 100_000, "plan.json is not JSON: nested too deeply"),
    "long": ("1" * 5000, "plan.json is not JSON: an integer of 5000 digits is too long"),
    "deep value": ('{"goal": ' + "[" * 900 + "]" * 900 + ', "steps": []}', "`goal`"),
    "twice": ('{"goal": "g", "goal": "h"}', "plan.json holds no plan: the key `goal` stands twice"),
    "no object": ("[]", "plan.json holds no plan"),
    "no goal": ('{"steps": []}', "`goal` is missing"),
    "schema": ('{"goal": "g", "steps": [{"step": 1}]}', "`steps[0].action` is missing"),
    "numbers": (json.dumps(plan_of("a", first=4)), "numbered 4"),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_bad_plan_file_ends_with_2(shop, fault, sent, tmp_path):
    text, told = BAD_FILES[fault]
    path = shop()
    if text is not None:
        (tmp_path / "plan.json").write_bytes(text if isinstance(text, bytes) else text.encode())

    run = plan(path, "--from", "plan.json", "--yes")

    assert run.exit_code == 2
    assert told in run.stderr
    assert "plan.json" in run.stderr
    assert sent == []


def test_plan_file_where_plans_are_approved_ends_with_2(shop, tmp_path):
    path = shop('approval = "always"')
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))

    run = plan(path, "--from", "plan.json", "--yes")

    assert run.exit_code == 2
    assert "allow_caller_plans" in run.stderr


def test_place_that_cannot_be_written_ends_with_2(shop, sent):
    run = plan(shop(), "x", "--save", "no/folder/plan.json")

    assert run.exit_code == 2
    assert "cannot write no/folder/plan.json" in run.stderr
    assert [each.role for each in sent] == ["planner"]


# --- usage and policy ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "say what you want"),
        (("  ",), "say what you want"),
        (("x", "--route", "shopp"), "no route of type `planner_executor` is called `shopp`"),
        (("x", "--output", "xml"), "xml"),
        (("x", "--record", "a", "--replay", "b"), "exclude each other"),
        (("x", "--replay", "nowhere"), "does not exist"),
    ],
)
def test_wrong_usage_ends_with_2(shop, arguments, told):
    run = plan(shop(), *arguments)

    assert run.exit_code == 2
    assert told in run.stderr


def test_bad_policy_ends_with_2(shop):
    run = plan(shop('mode = "magentic"'), "x")
    assert run.exit_code == 2
    assert "SY315" in run.stderr
    assert "policy.toml:" in run.stderr

    missing = plan("nowhere.toml", "x")
    assert missing.exit_code == 2
    assert "nowhere.toml" in missing.stderr


@pytest.mark.parametrize("name", ["team/shop", "shop", "team/other"])
def test_route_is_chosen_by_id_or_name(shop, name):
    path = shop()
    text = Path(path)
    text.write_text(
        text.read_text()
        + '\n[routes.other]\nid = "team/other"\ntype = "planner_executor"\n'
        + 'planner_target = "planner"\nexecutor_target = "executor"\n'
        + 'tools = ["search_products"]\nmax_steps = 2\n'
    )

    undecided = plan(path, "x")
    assert undecided.exit_code == 2
    assert "`team/shop`, `team/other`; say which with --route" in undecided.stderr

    # The other one takes two steps at most.
    assert plan(path, "x", "--route", name).exit_code == (1 if name == "team/other" else 0)


def test_missing_key_is_a_message(shop):
    path = shop()
    file = Path(path)
    client = 'format = "openai_chat"\nbase_url = "http://127.0.0.1:9"\napi_key_env = "NO_SUCH_KEY"'
    played = 'format = "scripted"\nspeaks = "openai_chat"\nscript = "script.json"'
    file.write_text(file.read_text().replace(played, client))

    run = plan(path, "x")

    assert run.exit_code == 2
    assert "NO_SUCH_KEY" in run.stderr


# --- output ----------------------------------------------------------------------------------


def test_json_is_the_result_alone(shop):
    run = plan(shop(), "x", "--output", "json")

    found = json.loads(run.stdout)
    assert found["status"] == "completed"
    assert [step["result"] for step in found["steps"]][2] == "RESULT-THREE"


def test_jsonl_is_every_event_on_a_line(shop):
    run = plan(shop(), "x", "--output", "jsonl")

    events = [json.loads(line)["event"] for line in run.stdout.splitlines()]
    assert events[:3] == ["request", "plan_created", "step_started"]
    assert events[-1] == "run_finished"
    assert events.count("step_finished") == 3


# --- approval --------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
def test_plan_that_needs_approval_waits_without_a_terminal(shop, sent, output):
    run = plan(shop('approval = "always"'), "x", "--output", output)

    assert run.exit_code == 3
    assert [each.role for each in sent] == ["planner"]
    if output == "text":
        assert "  3. write a card" in run.stdout
        assert "Nothing ran: the plan waits for approval" in run.stdout
        assert "--yes" in run.stdout
        # There, a plan from a file would be refused.
        assert "--from" not in run.stdout
    elif output == "json":
        assert json.loads(run.stdout)["status"] == "planned"


def test_advice_names_the_file_of_the_plan(shop):
    options = 'approval = "always"\nallow_caller_plans = true'
    run = plan(shop(options), "x", "--save", "plan.json")

    assert run.exit_code == 3
    assert "--from plan.json --yes" in run.stdout
    assert plan(shop(options), "--from", "plan.json", "--yes").exit_code == 0


def test_yes_approves(shop, sent):
    run = plan(shop('approval = "always"'), "x", "--yes")

    assert run.exit_code == 0
    assert run.stdout.count(f"Plan: {GOAL}") == 1
    assert "RESULT-THREE" in run.stdout
    assert [each.role for each in sent].count("planner") == 1


BLOCKED = {"calls": [{"name": "report_blocked", "arguments": {"reason": "sold out"}}]}


@pytest.mark.parametrize(("arguments", "code"), [(("--yes",), 0), ((), 3)])
def test_new_plan_of_the_rest_waits_as_well(shop, sent, monkeypatch, arguments, code):
    # Number 1 is blocked; the planner is asked twice and answers by its second turn's number.
    options = 'approval = "always"\nmode = "replan"'
    path = shop(options, plan=plan_of("first", "second"), turns=[BLOCKED])
    script = Path("script.json")
    told = json.loads(script.read_text())
    rest = {"turns": [{"text": json.dumps(plan_of("another way", first=2))}]}
    told["scripts"].insert(0, {"when": {"model": "^planner-model$", "body": "sold out"}, **rest})
    told["scripts"].insert(
        0,
        {
            "when": {"model": "^executor-model$", "body": "another way"},
            "turns": [{"text": "RESULT-REST"}],
        },
    )
    script.write_text(json.dumps(told))

    run = plan(path, "x", *arguments)

    assert run.exit_code == code, run.output
    if code == 0:
        assert "New plan for the rest, because a step ended with `blocked`" in run.stdout
        assert "RESULT-REST" in run.stdout
        assert "Nothing ran" not in run.stdout
        assert [each.role for each in sent].count("planner") == 2


# --- at a terminal ---------------------------------------------------------------------------


class Terminal:
    """The command at a terminal of its own."""

    def __init__(self, *arguments):
        self._end, other = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, "plan", *arguments],
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        self.text = ""

    def until(self, part):
        """Read until some text was seen; ``None`` reads to the end."""
        while part is None or part not in self.text:
            assert select.select([self._end], [], [], 20)[0], self.text
            try:
                read = os.read(self._end, 4096)
            except OSError:
                # The other side was closed.
                read = b""
            if not read:
                assert part is None, self.text
                break
            self.text += read.decode()

    def type(self, keys):
        os.write(self._end, keys)

    def interrupt(self):
        """Press Ctrl-C until something comes of it.

        One that arrives just before the process begins to wait for a line does not end the wait;
        a person presses again.
        """
        for _ in range(10):
            self.process.send_signal(signal.SIGINT)
            if select.select([self._end], [], [], 2)[0]:
                return

    def ended(self):
        """Return the exit code."""
        self.until(None)
        os.close(self._end)
        return self.process.wait(20)


@pytest.mark.parametrize(
    ("keys", "code", "ran"),
    [(b"y\n", 0, True), (b"n\n", 3, False), (b"\n", 3, False), (b"\x04", 3, False)],
    ids=["yes", "no", "enter", "end"],
)
def test_question_at_a_terminal(shop, keys, code, ran):
    terminal = Terminal(shop(), "x")
    terminal.until("Run this plan? [y/N]")
    assert "  3. write a card" in terminal.text
    assert "Step 1" not in terminal.text

    terminal.type(keys)

    assert terminal.ended() == code
    assert ("RESULT-THREE" in terminal.text) == ran
    assert ("Nothing ran" in terminal.text) != ran


def test_stop_at_the_question(shop):
    terminal = Terminal(shop(), "x")
    terminal.until("Run this plan? [y/N]")

    terminal.interrupt()

    assert terminal.ended() == 130
    assert "Stopped." in terminal.text
    assert "Traceback" not in terminal.text


def test_yes_asks_nothing_at_a_terminal(shop):
    terminal = Terminal(shop(), "x", "--yes")

    assert terminal.ended() == 0
    assert "Run this plan?" not in terminal.text


@pytest.mark.parametrize("output", ["text", "jsonl"])
def test_stop_while_a_step_runs_tells_what_was_done(shop, output):
    turns = (*TURNS[:2], {"text": "never", "delay_s": 60})
    arguments = [*COMMAND, "plan", shop(turns=turns), "x", "--output", output]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        mark = "Step 2:" if output == "text" else '"step_started", "step": 2'
        line = ""
        while mark not in line:
            line = process.stdout.readline().decode()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=20)

    assert process.returncode == 130
    assert errors == b""
    told = rest.decode()
    if output == "text":
        assert re.search(r"Stopped\.\n.*find tripods: done\n.*choose one: stopped\n", told)
        assert "write a card: not run" in told
    else:
        states = [("completed", 1), ("stopped", 2), ("not_run", 3)]
        steps = [{"step": number, "status": state} for state, number in states]
        assert json.loads(told.splitlines()[-1]) == {"event": "interrupted", "steps": steps}


def test_result_of_a_run_that_was_stopped_names_the_steps():
    out = io.StringIO()
    printer = PRINTERS["json"](out)
    steps = [{"step": number, "action": "x", "query": None} for number in (1, 2)]
    printer.event({"event": "plan_created", "plan": {"goal": "g", "steps": steps}})
    printer.event({"event": "step_started", "step": 1})

    printer.interrupted()

    found = json.loads(out.getvalue())
    states = [(step["step"], step["status"]) for step in found["steps"]]
    assert (found["status"], states) == ("interrupted", [(1, "stopped"), (2, "not_run")])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
def test_output_that_cannot_be_written_is_a_message(shop, output):
    with Path("/dev/full").open("w") as full:
        arguments = [*COMMAND, "plan", shop(), "x", "--yes", "--output", output]
        run = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, check=False)

    assert run.returncode == 2
    assert b"cannot write the output: No space left on device" in run.stderr
    assert b"Traceback" not in run.stderr


def test_plan_at_a_terminal_cannot_imitate_more_than_it_is(shop):
    action = "a\n  2. fake\n\nEstimate: free\x1b]0;x\x07"
    text = json.dumps(
        {"goal": "\x1b[2Jgoal", "steps": [{"step": 1, "action": action, "query": None}]}
    )

    run = plan(shop(plan=text), "x", "--plan-only")

    assert "Plan: \\u001b[2Jgoal\n" in run.stdout
    assert "  1. a 2. fake Estimate: free\\u001b]0;x\\u0007\n" in run.stdout
    assert "\x1b" not in run.stdout


def test_goal_of_a_plan_file_cannot_imitate_a_plan(shop, tmp_path):
    goal = "Buy it\nPlan: harmless\n  1. do nothing\x1b[2J"
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"goal": goal, "steps": [{"step": 1, "action": "look"}]}))

    run = plan(shop(), "--from", str(file), "--plan-only")

    assert run.stdout.startswith("Request: Buy it Plan: harmless 1. do nothing\\u001b[2J\n")
    assert run.stdout.count("\nPlan: ") == 1
    assert "\x1b" not in run.stdout


def test_why_a_run_ended_early_is_told(shop):
    blocked = {"calls": [{"name": "report_blocked", "arguments": {"reason": "sold out"}}]}

    run = plan(shop('mode = "replan"\nmax_replans = 1', turns=[blocked]), "x", "--yes")

    assert run.exit_code == 1
    assert "The run ended early: " in run.stdout


# --- recordings ------------------------------------------------------------------------------


def test_recorded_calls_replay_and_a_miss_is_told(shop, wire_format, sent):
    path = shop(wire_format=wire_format)
    first = plan(path, "x", "--record", "calls")
    assert first.exit_code == 0
    before = len(sent)

    again = plan(path, "x", "--replay", "calls")
    assert again.exit_code == 0
    assert again.stdout == first.stdout

    other = plan(path, "something else", "--replay", "calls")
    assert other.exit_code == 2
    assert "nothing is recorded for this call" in other.stderr
    assert "something else" in other.stderr
    assert "--record calls" in other.stderr
    assert len(sent) == before
