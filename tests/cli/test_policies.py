"""Which policy a command takes: the one that is named, else the file that `init` writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli

#: Commands that are given no policy, and words of their output with the default one.
_COMMANDS = {
    "check": (["check", "--offline"], 0, "1 file checked: no findings"),
    "test": (["test"], 0, "2 passed in 1 file"),
    "explain": (["explain", "request.json"], 0, "planner"),
    "probe": (["probe", "planner", "--dry-run"], 0, '"model": '),
    "serve": (["serve", "--dry-run", "--record", "x"], 2, "--dry-run calls no provider"),
    "plan": (["plan", "a picnic"], 2, "has no route of type `planner_executor`"),
    "classify": (["classify", "ls"], 0, "read_only"),
}
_DEFAULT = "policy: switchyard.toml\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def started(folder: Path) -> Path:
    assert CliRunner().invoke(cli, ["init"]).exit_code == 0
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "switchyard/plan-execute", "messages": messages}
    policy = (folder / "switchyard.toml").read_text()
    body["model"] = policy.partition("[routes.")[2].partition('id = "')[2].partition('"')[0]
    (folder / "request.json").write_text(json.dumps(body))
    return folder


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(("words", "code", "said"), _COMMANDS.values(), ids=_COMMANDS)
def test_command_without_a_policy_takes_the_one_that_init_wrote_and_says_so(
    words: list[str], code: int, said: str
) -> None:
    run = CliRunner().invoke(cli, words)
    assert run.exit_code == code, run.output
    assert said in run.output
    assert run.stderr.startswith(_DEFAULT)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [words for name, (words, _, _) in _COMMANDS.items() if name != "classify"],
    ids=[name for name in _COMMANDS if name != "classify"],
)
def test_command_without_any_policy_says_what_to_do(words: list[str]) -> None:
    run = CliRunner().invoke(cli, words)
    assert run.exit_code == 2
    assert "name a policy: this folder has no `switchyard.toml`" in run.output
    assert "`switchyard init` writes one" in run.output


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["explain", "switchyard.toml"], "name a file with a REQUEST", id="explain"),
        pytest.param(["probe", "switchyard.toml"], "name a TARGET of the policy", id="probe"),
        pytest.param(["plan", "switchyard.toml"], "has no route of type", id="plan"),
    ],
)
def test_word_that_names_a_policy_is_not_taken_for_another_argument(
    words: list[str], said: str
) -> None:
    run = CliRunner().invoke(cli, words)
    assert run.exit_code == 2
    assert said in run.output
    assert _DEFAULT not in run.output


@pytest.mark.usefixtures("started")
def test_rules_of_a_pack_are_taken_when_it_is_named() -> None:
    run = CliRunner().invoke(cli, ["classify", "ls", "--pack", "coding_agents"])
    assert (run.exit_code, run.stderr) == (0, "")


@pytest.mark.usefixtures("started")
def test_serve_takes_config_as_another_way_to_name_its_policy() -> None:
    serve = ["serve", "--dry-run", "--record", "x"]
    run = CliRunner().invoke(cli, [*serve, "--config", "switchyard.toml"])
    assert "--dry-run calls no provider" in run.output
    both = CliRunner().invoke(cli, [*serve, "a.toml", "--config", "b.toml"])
    assert (both.exit_code, "name one policy" in both.output) == (2, True)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        pytest.param("pluginz", "no command `pluginz`: did you mean `plugins`?", id="near"),
        pytest.param("Serv", "did you mean `serve`?", id="case"),
        pytest.param("plans", "did you mean `plan`?", id="of_a_plugin"),
        pytest.param("my.toml", "such as `switchyard check my.toml`", id="policy"),
        pytest.param("zzz", "`switchyard --help` lists the commands", id="far"),
    ],
)
def test_unknown_command_says_what_was_meant(word: str, said: str) -> None:
    run = CliRunner().invoke(cli, [word])
    assert run.exit_code == 2
    assert said in run.output
