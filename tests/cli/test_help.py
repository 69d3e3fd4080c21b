"""What every command has in common: help that fits, completion, colours."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from click.testing import CliRunner

from scripts.write_cli_page import HEAD, commands
from switchyard_core.cli import cli
from tests.server.servers import body, policy
from tests.support.cases import each_of

MAIN = [sys.executable, "-c", "from switchyard_core.cli import main; main()"]
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


def completed(*words, last=""):
    line = " ".join(["switchyard", *words, last])
    environ = {
        **ENVIRON,
        "_SWITCHYARD_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) + 1),
    }
    run = subprocess.run(MAIN, env=environ, capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_completion_knows_commands_options_values_and_files():
    assert completed(last="ex") == ["plain,explain"]
    assert "plain,--header" in completed("explain", last="--")
    assert completed("check", "--output", last="js") == ["plain,json"]
    assert completed("check", last="pol") == ["file,pol"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_of_each_shell_is_printed_and_documented(shell):
    environ = {**ENVIRON, "_SWITCHYARD_COMPLETE": f"{shell}_source"}
    run = subprocess.run(MAIN, env=environ, capture_output=True, text=True, check=True)
    assert f"_SWITCHYARD_COMPLETE={shell}_complete" in run.stdout
    assert f"_SWITCHYARD_COMPLETE={shell}_source" in HEAD


# --- exit codes --------------------------------------------------------------------------


@each_of("words", NAMES[1:])
def test_every_command_exits_2_on_wrong_usage(words):
    run = CliRunner().invoke(cli, [*words, "--no-such-option"])
    assert run.exit_code == 2
    assert "No such option" in run.output


# --- colours -----------------------------------------------------------------------------


@pytest.fixture
def coloured(tmp_path):
    """Arguments of commands that use colours, with the exit code of each."""
    good, broken = tmp_path / "good.toml", tmp_path / "broken.toml"
    good.write_text(policy("openai_chat", "http://127.0.0.1:1"))
    broken.write_text(good.read_text().replace('"planner"', '"planer"'))
    request = tmp_path / "request.json"
    request.write_bytes(body("openai_chat", edited=True))
    return {
        "check": (["check", "--offline", str(broken)], 1),
        "explain": (["explain", str(good), str(request)], 0),
        "demo": (["demo", "--wire-format", "openai_chat"], 0),
    }


def on_a_terminal(arguments, **environ):
    """Return what a command writes to a terminal, and its exit code."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [*MAIN, *arguments], stdin=subprocess.DEVNULL, stdout=its, env=ENVIRON | environ
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
    return output, process.wait(20)


@pytest.mark.parametrize("name", ["check", "explain", "demo"])
def test_colours_are_for_terminals_without_no_color(coloured, name):
    arguments, code = coloured[name]
    piped = subprocess.run([*MAIN, *arguments], env=ENVIRON, capture_output=True, check=False)
    plain, plain_code = on_a_terminal(arguments, NO_COLOR="1", TERM="xterm")
    vivid, vivid_code = on_a_terminal(arguments, NO_COLOR="", TERM="xterm")
    assert (piped.returncode, plain_code, vivid_code) == (code, code, code)
    assert b"\x1b[" in vivid
    assert b"\x1b[" not in plain
    assert b"\x1b[" not in piped.stdout + piped.stderr
    assert len(plain) > 100
