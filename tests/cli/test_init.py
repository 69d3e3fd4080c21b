"""``switchyard init``: what it writes is clean and tested, and it overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli
from click.testing import CliRunner, Result

from switchyard_core.cli import cli
from switchyard_core.cli.scaffold import CLIENTS, starter_files
from switchyard_core.plugins import PluginRegistry, builtins
from tests.support.policies import PLUGINS

REGISTRY = PluginRegistry([("core", builtins), *((p.__name__, p) for p in PLUGINS)])


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), obj=REGISTRY)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("client", CLIENTS)
def test_init_writes_a_policy_that_is_clean_under_check(client: str) -> None:
    written = run("init", "--client", client, "mine.toml")
    checked = run("check", "--strict", "--offline", "mine.toml")

    assert written.exit_code == 0, written.output
    assert written.output.splitlines()[0] == "wrote mine.toml and mine.test.toml"
    assert (checked.exit_code, checked.output) == (0, "1 file checked: no findings\n")


@pytest.mark.parametrize("client", CLIENTS)
def test_init_writes_tests_that_pass_and_cover_the_policy(client: str) -> None:
    run("init", "--client", client, "mine.toml")

    tested = run("test", "mine.test.toml", "--coverage")

    assert tested.exit_code == 0, tested.output
    assert len(tomli.loads(Path("mine.test.toml").read_text())["cases"]) == 2


@pytest.mark.parametrize("client", CLIENTS)
def test_rule_set_that_the_comments_propose_can_be_taken_over(client: str) -> None:
    text = starter_files(client, Path("mine.toml"))[Path("mine.toml")]
    head, _, proposals = text.partition("# What else a route can do")
    lines = [line[4:] for line in proposals.splitlines() if line.startswith("#   ")]
    keys = [line for line in lines if line.startswith(("mutation_rules", "handoff_prompt"))]
    rules = [line for line in lines if line.startswith(("[[", "label", "match"))]
    Path("mine.toml").write_text("\n".join([head, *keys, *rules]) + "\n")

    checked = run("check", "--strict", "--offline", "mine.toml")

    assert (len(keys), len(rules)) == (2, 3)
    assert checked.exit_code == 0, checked.output


def test_init_without_arguments_writes_a_policy_for_any_agent(folder: Path) -> None:
    result = run("init")

    assert result.exit_code == 0
    names = {path.name for path in folder.iterdir()}
    assert names == {"switchyard.toml", "switchyard.test.toml"}
    assert 'format = "openai_chat"' in Path("switchyard.toml").read_text()
    assert result.output.endswith("  switchyard serve\n")


@pytest.mark.parametrize("there", ["mine.toml", "mine.test.toml"])
def test_init_over_an_existing_file_writes_nothing_and_exits_2(folder: Path, there: str) -> None:
    Path(there).write_text("mine")

    result = run("init", "mine.toml")

    assert result.exit_code == 2
    assert result.stderr == (
        f"error: `{there}` already exists; nothing was written, name another file\n"
    )
    assert {path.name: path.read_text() for path in folder.iterdir()} == {there: "mine"}


def test_init_over_a_dangling_link_writes_nothing(folder: Path) -> None:
    Path("mine.toml").symlink_to("elsewhere.toml")

    assert run("init", "mine.toml").exit_code == 2
    assert not Path("elsewhere.toml").exists()
    assert [path.name for path in folder.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("mine", "mine.toml", id="no_suffix"),
        pytest.param("policies/mine.test.toml", "policies/mine.toml", id="a_test_file"),
    ],
)
def test_init_of_a_name_that_is_none_for_a_policy_exits_2(name: str, meant: str) -> None:
    result = run("init", name)

    assert result.exit_code == 2
    assert f"did you mean `{meant}`?" in " ".join(result.stderr.split())


def test_init_of_an_unprintable_name_exits_2(folder: Path) -> None:
    result = run("init", "a\nschema_version = 2 #.toml")

    assert result.exit_code == 2
    assert list(folder.iterdir()) == []


def test_init_into_an_absent_folder_exits_2() -> None:
    result = run("init", "absent/mine.toml")

    assert result.exit_code == 2
    assert result.stderr == "error: cannot write absent/mine.toml: No such file or directory\n"


def test_names_in_the_comments_are_quoted_for_a_shell() -> None:
    text = starter_files("codex", Path("my policy.toml"))[Path("my policy.toml")]

    assert "#   switchyard check 'my policy.toml'\n" in text
    assert "#   switchyard test 'my policy.test.toml'\n" in text
    assert "<<" not in text


def test_every_client_of_init_has_both_templates_and_no_other_is_shipped() -> None:
    folder = Path(__file__).parents[2] / "switchyard_core" / "cli" / "scaffold" / "policies"

    names = {path.name for path in folder.iterdir()}

    assert names == {f"{c}.{e}.tmpl" for c in CLIENTS for e in ("toml", "test.toml")}
