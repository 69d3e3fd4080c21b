"""``switchyard check``: output, exit codes, and no traceback for a user's mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from switchyard_core.cli import cli
from switchyard_core.declarations import Options, RouteType
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.testing.harness import registry_of

GOOD = """\
schema_version = 1
[llm_clients.c]
format = "openai_chat"
base_url = "https://example.com/v1"
api_key_env = "CHECK_TEST_KEY"
[targets]
[routes.r]
id = "r"
type = "open"
"""


class Open(Options):
    text: str | None = None


class Router:
    def __init__(self, options: Open) -> None:
        self.options = options

    async def route(self, request: object, context: object) -> object:
        raise AssertionError


class Plugin:
    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return [RouteType(name="open", options=Open, router=Router, summary="s")]


def run(*arguments: str, env: dict[str, str | None] | None = None) -> Result:
    registry = PluginRegistry([("test", Plugin())])
    return CliRunner().invoke(cli, ["check", *arguments], obj=registry, env=env)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHECK_TEST_KEY", "k")
    (tmp_path / "good.toml").write_text(
        "schema_version = 1\n[targets]\n[routes.r]\nid = 'r'\ntype = 'open'\n"
    )
    (tmp_path / "warned.toml").write_text(GOOD)
    (tmp_path / "bad.toml").write_text(GOOD.replace('"open"', '"opne"').replace("[targets]", ""))
    return tmp_path


def test_check_of_a_clean_policy_exits_0(folder: Path) -> None:
    result = run("good.toml")
    assert (result.exit_code, result.output) == (0, "1 file checked: no findings\n")


def test_check_reports_every_problem_of_every_file_and_exits_1(folder: Path) -> None:
    result = run("bad.toml", "good.toml", "warned.toml")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "bad.toml:1:1: SY105 missing key `targets`",
        "  fix: add a table `[targets]`            (more: switchyard rule SY105)",
        "bad.toml:9:8: SY301 unknown route type `opne` at routes.r.type",
        "  installed route types: open",
        "  fix: did you mean `open`?            (more: switchyard rule SY301)",
        "warned.toml:2:14: SY221 warning: no target uses client `c` at llm_clients.c",
        "  fix: remove it, or name it in a target            (more: switchyard rule SY221)",
        "3 files checked: 2 errors, 1 warning",
    ]


def test_check_with_warnings_only_fails_when_strict(folder: Path) -> None:
    assert run("warned.toml").exit_code == 0
    assert run("warned.toml", "--strict").exit_code == 1


def test_check_looks_at_the_environment_unless_offline(folder: Path) -> None:
    online = run("warned.toml", env={"CHECK_TEST_KEY": None})
    assert online.exit_code == 1
    assert "SY204 environment variable `CHECK_TEST_KEY` is not set" in online.output
    assert run("warned.toml", "--offline", env={"CHECK_TEST_KEY": None}).exit_code == 0


@pytest.mark.parametrize("name", ["none.toml", "."])
def test_check_of_an_unreadable_file_exits_2_and_still_checks_the_others(
    folder: Path, name: str
) -> None:
    result = run(name, "bad.toml")
    assert result.exit_code == 2
    assert f"{name}: SY100 cannot read the file" in result.output
    assert "SY301" in result.output
