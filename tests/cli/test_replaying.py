"""``--record`` and ``--replay`` of every command that calls models."""

from __future__ import annotations

import re

import click
import httpx
import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli, replay_options
from switchyard_core.replay import Replay
from tests.cli.test_serve import BODY, CHAT, config, serving  # noqa: F401  # a fixture

commands = pytest.mark.parametrize("words", [["demo"], ["serve", "p.toml"]], ids=["demo", "serve"])


def run(*words):
    return CliRunner().invoke(cli, words)


@commands
def test_both_options_at_once_are_refused(words, tmp_path):
    result = run(*words, "--record", str(tmp_path), "--replay", str(tmp_path))

    assert result.exit_code == 2
    assert "--record and --replay exclude each other" in result.output


@commands
@pytest.mark.parametrize(
    ("folder", "state"), [("none", "does not exist"), (".", "contains no recordings")]
)
def test_a_folder_without_recordings_is_exit_2_and_says_how_to_record(
    words, tmp_path, folder, state
):
    place = tmp_path / folder

    result = run(*words, "--replay", str(place))

    assert result.exit_code == 2
    assert state in result.output
    assert f"--record {place}" in result.output
    assert "Traceback" not in result.output


@commands
@pytest.mark.parametrize("option", ["--record", "--replay"])
def test_a_folder_with_something_else_in_it_is_exit_2_and_names_the_file(words, tmp_path, option):
    (tmp_path / "package.json").write_text("{}")

    result = run(*words, option, str(tmp_path))

    assert result.exit_code == 2
    assert "package.json" in result.output


def test_the_demo_is_the_same_from_recordings_and_lists_those_it_does_not_use(tmp_path):
    recorded = run("demo", "--record", str(tmp_path), "--wire-format", "all")
    replayed = run("demo", "--replay", str(tmp_path), "--wire-format", "all")
    part = run("demo", "--replay", str(tmp_path), "--wire-format", "openai_chat")

    assert [each.exit_code for each in (recorded, replayed, part)] == [0, 0, 0], replayed.output
    assert recorded.output.splitlines()[1:] == replayed.output.splitlines()[1:]
    assert "not used" not in replayed.output
    assert re.search(r"\d+ recordings were not used:\n  .*-openai_responses-", part.output) or (
        "-anthropic_messages-" in part.output
    )


def test_the_demo_without_the_recordings_that_it_needs_fails_and_says_so(tmp_path):
    run("demo", "--record", str(tmp_path), "--wire-format", "openai_chat")

    result = run("demo", "--replay", str(tmp_path), "--wire-format", "anthropic_messages")

    assert result.exit_code == 1
    assert "nothing is recorded for this call" in result.output


def test_serve_records_then_replays_without_key_and_says_what_was_not_used(config, tmp_path):  # noqa: F811
    folder = tmp_path / "recordings"
    other = {**BODY, "messages": [{"role": "user", "content": "other"}]}
    with serving(config, "--record", str(folder)) as (_, url):
        recorded = [httpx.post(url + CHAT, json=body).json() for body in (BODY, other)]
    # A provider that cannot be reached, and a key that is not there.
    text = config.read_text()
    scripted = 'format = "scripted"\nscript = "script.json"\nspeaks = "openai_chat"'
    assert scripted in text
    real = 'format = "openai_chat"\nbase_url = "http://127.0.0.1:1"\napi_key_env = "NO_SUCH_KEY"'
    config.write_text(text.replace(scripted, real))

    with serving(config, "--replay", str(folder)) as (process, url):
        assert httpx.post(url + CHAT, json=BODY).json() == recorded[0]
        missed = httpx.post(url + CHAT, json={**BODY, "messages": []})
        process.terminate()
        _, err = process.communicate(timeout=20)

    assert missed.status_code == 502
    assert missed.json()["error"]["code"] == "upstream_replay_miss"
    assert f"--record {folder}" in missed.json()["error"]["message"]
    assert "1 recording was not used" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", ["--workers=2", "--dry-run"])
def test_serve_refuses_what_recordings_do_not_go_with(config, tmp_path, option):  # noqa: F811
    result = run("serve", str(config), "--record", str(tmp_path / "r"), option)

    assert result.exit_code == 2
    assert option.partition("=")[0] in result.output


def test_a_command_of_a_plugin_gets_a_replay(tmp_path):
    seen = []

    @click.command(name="own")
    @click.argument("word")
    @replay_options
    def own(word, replay):
        """Do something."""
        seen.append((word, replay))

    runner = CliRunner()
    assert runner.invoke(own, ["a"]).exit_code == 0
    assert runner.invoke(own, ["b", "--record", str(tmp_path)]).exit_code == 0
    assert "--replay DIR" in runner.invoke(own, ["--help"]).output

    assert seen[0] == ("a", None)
    assert isinstance(seen[1][1], Replay)
    assert seen[1][1].mode == "record"
