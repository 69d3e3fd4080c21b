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

from switchyard_core.cli import cli
from switchyard_core.wire import WIRE_FORMATS
from switchyard_planner_executor.rendering import PRINTERS
from tests.planner_executor.shop import PLAN, plan_of

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
BLOCKED = {"calls": [{"name": "report_blocked", "arguments": {"reason": "sold out"}}]}
OUTPUTS = ("text", "json", "jsonl")


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Write a policy and its script; return the policy's path."""
    monkeypatch.chdir(tmp_path)

    def write(options="", *, plan=PLAN, turns=TURNS, wire_format="openai_chat", rows=(), faults=()):
        text = plan if isinstance(plan, str) else json.dumps(plan)
        scripts = [
            *rows,
            {"when": {"model": "^planner-model$"}, "turns": [{"text": text}]},
            {"when": {"model": "^executor-model$"}, "turns": list(turns), "faults": list(faults)},
        ]
        (tmp_path / "script.json").write_text(json.dumps({"version": 1, "scripts": scripts}))
        path = tmp_path / "policy.toml"
        path.write_text(POLICY.format(options=options, wire_format=wire_format))
        return str(path)

    return write


def plan(*arguments):
    run = CliRunner().invoke(cli, ["plan", *arguments])
    assert "Traceback" not in run.output
    assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
    return run


def recorded(folder="calls"):
    """Return the roles of the recorded calls."""
    names = sorted(path.stem.rpartition("-")[2] for path in Path(folder).glob("*.json"))
    return [names.count("planner"), names.count("executor")]


def test_plan_is_printed_before_every_result(shop):
    for wire_format in WIRE_FORMATS:
        run = plan(shop(wire_format=wire_format), "REQUEST-WORD")

        parts = [
            "Request: REQUEST-WORD",
            "Plan: GOAL-WORD",
            "  1. ACTION-ONE find tripods  (search: tripod)",
            "  2. ACTION-TWO choose one",
            "  3. ACTION-THREE write a card",
            "Running it takes about 4 model calls; if every step needs long, about 27 calls.",
            "\nStep 1: ACTION-ONE find tripods",
            "[search_products: ok]",
            "RESULT-ONE",
            "\nStep 2: ACTION-TWO choose one",
            "RESULT-TWO",
            "\nStep 3: ACTION-THREE write a card",
            "RESULT-THREE",
            "completed: 4 executor calls (expected 4)",
        ]
        assert [run.stdout.count(part) for part in parts] == [1] * len(parts), run.stdout
        places = [run.stdout.index(part) for part in parts]
        assert places == sorted(places)
        assert (run.exit_code, run.stderr) == (0, "")


def test_failed_step_ends_with_1_and_says_what_did_not_run(shop):
    run = plan(shop(faults=[{"turn": 2, "times": 9, "status": 400}]), "x")

    assert run.exit_code == 1
    assert "RESULT-ONE" in run.stdout
    assert "failed: asking `executor` gave status 400" in run.stdout
    assert "Not run: step 3" in run.stdout


def test_unusable_plan_shows_what_the_planner_said(shop):
    run = plan(shop(plan="1. look\n2. choose"), "x")

    assert run.exit_code == 1
    assert "(plan_unusable)" in run.stderr
    assert "  | 1. look\n  | 2. choose" in run.stderr
    assert "Plan:" not in run.stdout


def test_long_unusable_plan_is_shown_cut_and_says_how_to_see_all(shop):
    run = plan(shop(plan="no plan\n" * 1000), "x")

    assert run.stderr.count("  | no plan") == 500
    assert "… of 8000 characters; --verbose shows all" in run.stderr

    run = plan(shop(plan="no plan\n" * 1000), "x", "--verbose")

    assert run.stderr.count("  | no plan") == 1000
    assert "--verbose" not in run.stderr


def test_unusable_plan_is_printed_once_with_all_its_faults(shop):
    bad = '{"goal": "GOAL-WORD", "steps": [{"step": "1", "action": "\xa0"}], "stp": 1}'
    run = plan(shop(plan=bad), "x")

    assert run.stderr.count("GOAL-WORD") == 1
    for told in ("`steps[0].step` must", "`steps[0].action` must not be blank", "`stp` is not"):
        assert told in run.stderr


def test_empty_plan_is_shown_and_is_not_a_failure(shop):
    run = plan(shop(plan={"goal": "g", "steps": []}), "x")

    assert run.exit_code == 0
    assert "  The plan has no steps." in run.stdout


def test_reason_of_a_run_that_ended_early_is_told(shop):
    run = plan(shop('mode = "replan"\nmax_replans = 1', turns=[BLOCKED]), "x", "--yes")

    assert run.exit_code == 1
    assert "The run ended early: " in run.stdout


# --- plans in files --------------------------------------------------------------------------


def test_saved_plan_makes_exactly_the_calls_of_one_run(shop):
    for wire_format in WIRE_FORMATS:
        path, folder = shop(wire_format=wire_format), f"{wire_format}.calls"
        assert plan(path, "x", "--yes", "--record", folder).exit_code == 0
        assert recorded(folder) == [1, 4]

        only = plan(path, "x", "--plan-only", "--save", "plan.json", "--replay", folder)
        assert only.exit_code == 0
        assert "Nothing ran." in only.stdout
        # What is recorded is all that is needed, and of the executor's calls none is left over.
        run = plan(path, "--from", "plan.json", "--yes", "--replay", folder)
        assert run.exit_code == 0, run.output
        assert "RESULT-THREE" in run.stdout
        assert re.findall(r"\S+\.json", run.stderr) == [
            str(found) for found in Path(folder).glob("*-planner.json")
        ]


def test_answer_of_a_run_can_be_run_again(shop):
    path = shop()
    Path("answer.json").write_text(plan(path, "x", "--output", "json").stdout)

    again = plan(path, "--from", "answer.json", "--yes")

    assert again.exit_code == 0
    assert "RESULT-THREE" in again.stdout


BAD_FILES = {
    "missing": (None, "cannot read plan.json: No such file"),
    "not json": ("{", "plan.json: not JSON: a key in double quotes must stand in line 1, column 2"),
    "empty": ("\ufeff\n", "plan.json: not JSON: the file is empty"),
    "not utf-8": (b"\xff", "plan.json: not JSON: not UTF-8; save it as UTF-8"),
    "utf-16": ("{}".encode("utf-16"), "plan.json: not JSON: not UTF-8; save it as UTF-8"),
    "deep": ("[" * 100_000, "plan.json: not JSON: nested too deeply"),
    "long": ("1" * 5000, "plan.json: not JSON: an integer of 5000 digits is too long"),
    "two fences": ("```\n{}\n```\n```\n{}\n```", "line 1, column 1, not a code fence"),
    "deep value": ('{"goal": ' + "[" * 900 + "]" * 900 + ', "steps": []}', "`goal`"),
    "twice": ('{"goal": "g", "goal": "h"}', "plan.json: one object has the key `goal` twice"),
    "not an object": ("[]", "plan.json: the plan must be an object with `goal` and `steps`"),
    "blank goal": ('{"goal":" ","steps":[]}', "error: plan.json: `goal` must not be blank\n"),
    "hidden goal": (
        '{"goal":"\\u200b","steps":[]}',
        "error: plan.json: `goal` must not be blank\n",
    ),
    "no goal but a number": (
        '{"goal":0,"steps":[]}',
        "error: plan.json: `goal` must be a string\n",
    ),
    "inside": (
        '{"plan": {"goal": "", "steps": []}}',
        "error: plan.json: `goal` must not be blank\n",
    ),
    "many": (
        '{"goal":"","steps":[{"step":"1","action":" "}],"stp":1}',
        (
            "error: plan.json: `goal` must not be blank; `steps[0].step` must be an integer; "
            "`steps[0].action` must not be blank; `stp` is not a key of a plan\n"
        ),
    ),
    "no goal": ('{"steps": []}', "`goal` is missing"),
    "schema": ('{"goal": "g", "steps": [{"step": 1}]}', "`steps[0].action` is missing"),
    "numbers": (json.dumps(plan_of("a", first=4)), "numbered 4"),
}


def test_bad_plan_file_ends_with_2_and_asks_nobody(shop, tmp_path):
    path = shop()
    for fault, (text, told) in BAD_FILES.items():
        if text is not None:
            (tmp_path / "plan.json").write_bytes(text if isinstance(text, bytes) else text.encode())

        run = plan(path, "--from", "plan.json", "--yes", "--record", "calls")

        assert run.exit_code == 2, fault
        assert told in run.stderr, fault
        assert "plan.json" in run.stderr, fault
        assert (run.stdout, recorded()) == ("", [0, 0]), fault


def test_plan_file_may_be_what_a_model_printed(shop, tmp_path):
    path, body = shop(), json.dumps(PLAN)
    for text in (
        "\ufeff" + body,
        f"```json\n{body}\n```",
        f"\ufeffHere it is:\r\n```json\r\n{body}\r\n```\r\nDone.",
        json.dumps({"plan": PLAN}),
    ):
        (tmp_path / "plan.json").write_bytes(text.encode())

        run = plan(path, "--from", "plan.json", "--plan-only")

        assert (run.exit_code, run.stderr) == (0, ""), text
        assert "ACTION-THREE" in run.stdout, text


def test_saved_plan_runs_where_plans_are_approved(shop):
    path = shop('approval = "always"')
    assert plan(path, "x", "--plan-only", "--save", "plan.json").exit_code == 0

    waits = plan(path, "--from", "plan.json", "--record", "calls")
    assert waits.exit_code == 3
    assert "Nothing ran: the plan waits for approval. There is no terminal" in waits.stdout
    assert recorded() == [0, 0]

    run = plan(path, "--from", "plan.json", "--yes", "--record", "calls")
    assert run.exit_code == 0, run.output
    assert "RESULT-THREE" in run.stdout
    # The planner is not asked again.
    assert recorded() == [0, 4]


def test_verbose_says_how_the_estimate_is_counted(shop):
    run = plan(shop(), "x", "--plan-only", "--verbose")

    assert "- tokens sent: " in run.stdout
    assert "How this is counted:\n- 4 characters count as one token" in run.stdout


def test_place_that_cannot_be_written_is_told_before_the_planner_is_asked(shop):
    path = shop()
    Path("file").write_text("kept")
    for place, told in (
        ("no/folder/plan.json", "No such file or directory; make the folder no/folder first, or"),
        ("file/plan.json", "Not a directory; choose another place for --save"),
        ("x" * 300, "File name too long; choose another place for --save"),
    ):
        run = plan(path, "x", "--save", place, "--record", "calls")

        assert (run.exit_code, run.stdout) == (2, ""), place
        assert f"cannot write {place}: {told}" in run.stderr, place
        assert recorded() == [0, 0], place


def test_place_is_as_it_was_when_no_plan_is_made(shop):
    path = shop(plan="no plan")
    Path("old.json").write_text("kept")
    for place in ("old.json", "new.json"):
        assert plan(path, "x", "--save", place).exit_code == 1
    assert (Path("old.json").read_text(), Path("new.json").exists()) == ("kept", False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("output", OUTPUTS)
def test_plan_that_could_not_be_saved_is_shown(shop, output):
    run = plan(shop(), "x", "--save", "/dev/full", "--yes", "--output", output, "--record", "calls")

    assert run.exit_code == 2
    assert "cannot write /dev/full: No space left on device" in run.stderr
    assert recorded() == [1, 0]
    assert run.stdout.count("ACTION-THREE write a card") == 1
    if output == "json":
        Path("plan.json").write_text(run.stdout)
        assert plan(shop(), "--from", "plan.json", "--plan-only").exit_code == 0


# --- usage and policy ------------------------------------------------------------------------


def test_wrong_usage_ends_with_2(shop):
    path = shop()
    for arguments, told in (
        ((), "say what you want"),
        (("  ",), "say what you want"),
        (("x", "--route", "shopp"), "no route of type `planner_executor` is called `shopp`"),
        (("x", "--output", "xml"), "xml"),
        (("x", "--record", "a", "--replay", "b"), "exclude each other"),
        (("x", "--replay", "nowhere"), "does not exist"),
    ):
        run = plan(path, *arguments)

        assert (run.exit_code, told in run.stderr) == (2, True), (arguments, run.stderr)


def test_bad_policy_ends_with_2(shop):
    run = plan(shop('mode = "magentic"'), "x")
    assert run.exit_code == 2
    assert "SY315" in run.stderr
    assert "policy.toml:" in run.stderr

    missing = plan("nowhere.toml", "x")
    assert missing.exit_code == 2
    assert "nowhere.toml" in missing.stderr


def test_route_is_chosen_by_id_or_name(shop):
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
    for name, code in (("team/shop", 0), ("shop", 0), ("team/other", 1)):
        assert plan(path, "x", "--route", name).exit_code == code


def test_missing_key_is_a_message(shop):
    file = Path(shop())
    client = 'format = "openai_chat"\nbase_url = "http://127.0.0.1:9"\napi_key_env = "NO_SUCH_KEY"'
    played = 'format = "scripted"\nspeaks = "openai_chat"\nscript = "script.json"'
    file.write_text(file.read_text().replace(played, client))

    run = plan(str(file), "x")

    assert run.exit_code == 2
    assert "NO_SUCH_KEY" in run.stderr


# --- output ----------------------------------------------------------------------------------


def test_json_is_the_result_alone_and_jsonl_every_event(shop):
    path = shop()

    found = json.loads(plan(path, "x", "--output", "json").stdout)
    lines = plan(path, "x", "--output", "jsonl").stdout.splitlines()

    assert found["status"] == "completed"
    assert [step["result"] for step in found["steps"]][2] == "RESULT-THREE"
    events = [json.loads(line)["event"] for line in lines]
    assert events[:3] == ["request", "plan_created", "step_started"]
    assert events[-1] == "run_finished"
    assert events.count("step_finished") == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("output", OUTPUTS)
def test_output_that_cannot_be_written_is_a_message(shop, output):
    with Path("/dev/full").open("w") as full:
        arguments = [*COMMAND, "plan", shop(), "x", "--yes", "--output", output]
        run = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, check=False)

    assert run.returncode == 2
    assert b"cannot write the output: No space left on device" in run.stderr
    assert b"Traceback" not in run.stderr


def test_plan_cannot_imitate_more_than_it_is(shop):
    action = "a\n  2. fake\n\nEstimate: free\x1b]0;x\x07"
    made = {"goal": "\x1b[2Jgoal", "steps": [{"step": 1, "action": action, "query": None}]}

    run = plan(shop(plan=made), "x", "--plan-only")

    assert "Plan: \\u001b[2Jgoal\n" in run.stdout
    assert "  1. a 2. fake Estimate: free\\u001b]0;x\\u0007\n" in run.stdout
    assert "\x1b" not in run.stdout


def test_goal_of_a_plan_file_cannot_imitate_a_plan(shop):
    goal = "Buy it\nPlan: harmless\n  1. do nothing\x1b[2J"
    path = shop()
    Path("plan.json").write_text(json.dumps(plan_of("look", goal=goal)))

    run = plan(path, "--from", "plan.json", "--plan-only")

    assert run.stdout.startswith("Request: Buy it Plan: harmless 1. do nothing\\u001b[2J\n")
    assert run.stdout.count("\nPlan: ") == 1
    assert "\x1b" not in run.stdout


# --- approval --------------------------------------------------------------------------------


@pytest.mark.parametrize("output", OUTPUTS)
def test_plan_that_needs_approval_waits_without_a_terminal(shop, output):
    run = plan(shop('approval = "always"'), "x", "--output", output, "--record", "calls")

    assert run.exit_code == 3
    assert recorded() == [1, 0]
    if output == "text":
        assert "  3. ACTION-THREE write a card" in run.stdout
        assert "Nothing ran: the plan waits for approval" in run.stdout
        assert "--yes" in run.stdout
        assert "There is no terminal to ask you at" in run.stdout
    elif output == "json":
        assert json.loads(run.stdout)["status"] == "planned"
    else:
        assert json.loads(run.stdout.splitlines()[-1])["status"] == "planned"
    assert "--yes" in run.stdout + run.stderr


def test_advice_names_the_file_of_the_plan(shop):
    path = shop('approval = "always"\nallow_caller_plans = true')

    run = plan(path, "x", "--save", "plan.json")

    assert run.exit_code == 3
    assert "--from plan.json --yes" in run.stdout
    assert plan(path, "--from", "plan.json", "--yes").exit_code == 0


def test_yes_approves(shop):
    run = plan(shop('approval = "always"'), "x", "--yes", "--record", "calls")

    assert run.exit_code == 0
    assert run.stdout.count("Plan: GOAL-WORD") == 1
    assert "RESULT-THREE" in run.stdout
    assert recorded() == [1, 4]


@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no terminal"])
def test_new_plan_of_the_rest_waits_as_well(shop, yes):
    rest = json.dumps(plan_of("another way", first=2))
    rows = [
        {
            "when": {"model": "^executor-model$", "body": "another way"},
            "turns": [{"text": "RESULT-REST"}],
        },
        {"when": {"model": "^planner-model$", "body": "sold out"}, "turns": [{"text": rest}]},
    ]
    options = 'approval = "always"\nmode = "replan"'
    path = shop(options, plan=plan_of("first", "second"), turns=[BLOCKED], rows=rows)

    run = plan(path, "x", *(["--yes"] if yes else []))

    assert run.exit_code == (0 if yes else 3), run.output
    if yes:
        assert "New plan for the rest, because a step ended with `blocked`" in run.stdout
        assert "RESULT-REST" in run.stdout
        assert "Nothing ran" not in run.stdout


# --- at a terminal ---------------------------------------------------------------------------


class Terminal:
    """The command at its own terminal."""

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
    assert "  3. ACTION-THREE write a card" in terminal.text
    assert "Step 1" not in terminal.text

    terminal.type(keys)

    assert terminal.ended() == code
    assert ("RESULT-THREE" in terminal.text) == ran
    assert ("Nothing ran" in terminal.text) != ran


def test_terminal_shows_that_the_planner_works_and_what_is_printed_replaces_it(shop):
    terminal = Terminal(shop(), "x", "--yes")

    assert terminal.ended() == 0
    assert "planning 0:00:00" in terminal.text.replace("\x1b[33m", "").replace("\x1b[0m", "")
    # The line is cleared before the plan.
    assert terminal.text.rindex("planning") < terminal.text.index("Plan: GOAL-WORD")


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
def test_plan_is_printed_before_the_first_step_and_stopping_tells_what_was_done(shop, output):
    turns = (*TURNS[:2], {"text": "never", "delay_s": 60})
    arguments = [*COMMAND, "plan", shop(turns=turns), "x", "--output", output]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        mark = "Step 2:" if output == "text" else '"step_started", "step": 2'
        seen = line = ""
        while mark not in line:
            line = process.stdout.readline().decode()
            seen += line
        # All that is printed is there while the step still runs.
        assert seen.index("ACTION-THREE") < seen.index("RESULT-ONE")
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


def test_json_of_a_run_that_was_stopped_names_the_steps():
    out = io.StringIO()
    printer = PRINTERS["json"](out)
    printer.event({"event": "plan_created", "plan": plan_of("one", "two")})
    printer.event({"event": "step_started", "step": 1})

    printer.interrupted()

    found = json.loads(out.getvalue())
    states = [(step["step"], step["status"]) for step in found["steps"]]
    assert (found["status"], states) == ("interrupted", [(1, "stopped"), (2, "not_run")])


# --- recordings ------------------------------------------------------------------------------


def test_recorded_calls_replay_and_a_miss_is_told(shop):
    path = shop()
    first = plan(path, "x", "--record", "calls")
    assert first.exit_code == 0

    again = plan(path, "x", "--replay", "calls")
    assert (again.exit_code, again.stdout) == (0, first.stdout)

    only = plan(path, "x", "--plan-only", "--replay", "calls")
    assert (only.exit_code, only.stderr) == (0, "")

    other = plan(path, "something else", "--replay", "calls")
    assert other.exit_code == 2
    for word in ("nothing is recorded for this call", "something else", "--record calls"):
        assert word in other.stderr
