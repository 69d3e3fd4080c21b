"""What every command has in common: help that fits, completion, colours."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from scripts.write_cli_page import HEAD, commands
from switchyard_core.cli import cli
from tests.server.servers import body, policy
from tests.support.cases import each_of

MAIN = [sys.executable, "-c", "from switchyard_core.cli import main; main()"]
#: Runs the commands of its argument, a JSON list; a line with the exit code ends each.
SEVERAL = """
import json, sys
from switchyard_core.cli import cli
for arguments in json.loads(sys.argv[1]):
    try:
        cli(arguments, prog_name="switchyard")
    except SystemExit as end:
        sys.stderr.flush()
        print("ended with", end.code, flush=True)
"""
COMMANDS = [(), ("packs",), *commands(cli)]
NAMES = [pytest.param(words, id=" ".join(words) or "switchyard") for words in COMMANDS]
#: Variables that change colours or completion, of whoever runs the tests.
FOREIGN = ("NO_COLOR", "FORCE_COLOR", "_SWITCHYARD_COMPLETE")
ENVIRON = {name: value for name, value in os.environ.items() if name not in FOREIGN}


def help_of(words):
    run = CliRunner().invoke(
        cli, [*words, "--help"], prog_name="switchyard", terminal_width=80, env={"COLUMNS": "80"}
    )
    assert run.exit_code == 0
    return run.output.rstrip("\n").split("\n")


@each_of("words", NAMES)
def test_help_fits_a_screen_and_has_an_example(words):
    lines = help_of(words)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    example = " ".join(" ".join(lines).split()).partition("Example: switchyard ")[2]
    assert example.startswith(" ".join(words[:1]))


@each_of("words", NAMES)
def test_example_of_the_help_names_options_that_exist(words):
    lines = help_of(words)
    text = " ".join(" ".join(lines).split())
    example = text.partition("Example: ")[2].partition(" Options:")[0]
    known = " ".join(lines[lines.index("Options:") :])
    for word in example.split():
        assert not word.startswith("--") or word in known or not words


# --- completion --------------------------------------------------------------------------


def completing(line, number):
    return {
        "_SWITCHYARD_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(number),
    }


def completed(*words, last=""):
    environ = completing(" ".join(["switchyard", *words, last]), len(words) + 1)
    run = CliRunner().invoke(cli, [], prog_name="switchyard", env=environ)
    assert run.exit_code == 0
    return run.stdout.split()


def test_completion_knows_commands_options_values_and_files():
    assert completed(last="ex") == ["plain,explain"]
    assert "plain,--header" in completed("explain", last="--")
    assert completed("check", "--output", last="js") == ["plain,json"]
    assert completed("check", last="pol") == ["file,pol"]


def test_completion_is_what_a_shell_gets_from_the_command():
    environ = ENVIRON | completing("switchyard ex", 1)
    run = subprocess.run(MAIN, env=environ, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["plain,explain"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_of_each_shell_is_printed_and_documented(shell):
    environ = {"_SWITCHYARD_COMPLETE": f"{shell}_source"}
    run = CliRunner().invoke(cli, [], prog_name="switchyard", env=environ)
    assert run.exit_code == 0
    assert f"_SWITCHYARD_COMPLETE={shell}_complete" in run.stdout
    assert f"_SWITCHYARD_COMPLETE={shell}_source" in HEAD


# --- exit codes --------------------------------------------------------------------------


@each_of("words", NAMES[1:])
def test_every_command_exits_2_on_wrong_usage(words):
    run = CliRunner().invoke(cli, [*words, "--no-such-option"])
    assert run.exit_code == 2
    assert "No such option" in run.output


# --- colours -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What commands that use colours write: to a pipe, and to terminals without and with them."""
    folder = tmp_path_factory.mktemp("coloured")
    good, broken = folder / "good.toml", folder / "broken.toml"
    good.write_text(policy("openai_chat", "http://127.0.0.1:1"))
    broken.write_text(good.read_text().replace('"planner"', '"planer"'))
    request = folder / "request.json"
    request.write_bytes(body("openai_chat", edited=True))
    commands = [
        ["check", "--offline", str(broken)],
        ["explain", str(good), str(request)],
        ["demo", "--wire-format", "openai_chat"],
    ]
    words = [sys.executable, "-c", SEVERAL, json.dumps(commands)]
    piped = subprocess.run(words, env=ENVIRON, stdout=-1, stderr=subprocess.STDOUT, check=True)
    return {
        "piped": piped.stdout,
        "plain": on_a_terminal(words, NO_COLOR="1", TERM="xterm"),
        "vivid": on_a_terminal(words, NO_COLOR="", TERM="xterm"),
    }


def on_a_terminal(words, **environ):
    """Return what a process writes to a terminal; its output and its errors."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env=ENVIRON | environ
    )
    os.close(its)
    output = b""
    try:
        while chunk := os.read(ours, 65536):
            output += chunk
    except OSError:  # how Linux says that nobody has the terminal open any more
        pass
    finally:
        os.close(ours)
    assert process.wait(20) == 0
    return output


@pytest.mark.timeout(90)  # the first one starts the processes of all
@pytest.mark.parametrize(
    ("number", "code"), [(0, b"1"), (1, b"0"), (2, b"0")], ids=["check", "explain", "demo"]
)
def test_colours_are_for_terminals_without_no_color(written, number, code):
    parts = {how: re.split(rb"ended with (\d+)\r?\n", all_) for how, all_ in written.items()}
    assert {part[2 * number + 1] for part in parts.values()} == {code}
    piped, plain, vivid = (parts[how][2 * number] for how in ("piped", "plain", "vivid"))
    assert b"\x1b[" in vivid
    assert b"\x1b[" not in plain
    assert b"\x1b[" not in piped
    assert len(plain) > 100
