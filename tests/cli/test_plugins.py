"""``switchyard plugins``, and the commands that plugins add."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from switchyard_core.cli import COMMANDS, cli, installed_registry, main
from switchyard_core.declarations import (
    LatchStoreType,
    Options,
    PlanStoreType,
    RouteType,
    Tool,
)
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry


class Gives:
    """A plugin that gives one route type, one store and, if asked, commands."""

    def __init__(self, name: str, commands: tuple[str, ...] = ()) -> None:
        self.name, self.commands = name, commands

    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return [RouteType(name=self.name, options=Options, router=lambda o: o, summary="for tests")]

    @hookimpl
    def switchyard_latch_stores(self) -> list[LatchStoreType]:
        name = f"{self.name}_store"
        return [LatchStoreType(name=name, factory=lambda _capacity: None, summary="")]

    @hookimpl
    def switchyard_register_commands(self, cli: click.Group) -> None:
        for name in self.commands:
            cli.add_command(_greeting(name, self.name))


def _greeting(name: str, owner: str) -> click.Command:
    @click.command(name=name, help=f"Greets for {owner}.")
    def greet() -> None:
        click.echo(f"hello from {owner}")

    return greet


class Broken:
    @hookimpl
    def switchyard_route_types(self) -> Any:
        raise ValueError("no config")


class FailingCommands:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    @hookimpl
    def switchyard_register_commands(self, cli: click.Group) -> None:
        assert cli.name == "switchyard"
        raise self.error


def run(registry: PluginRegistry, *arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, obj=registry)


def test_plugins_lists_what_each_gives() -> None:
    result = run(PluginRegistry([("one", Gives("alpha"))]), "plugins")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "one  given directly  ok",
        "  route type alpha: for tests",
        "  latch stores: alpha_store",
    ]


class GivesTools:
    @hookimpl
    def switchyard_tools(self) -> list[Tool]:
        return [
            Tool(
                name="send_mail",
                description="Sends a mail. Only to those who want one.\nAnd more.",
                parameters=Options,
                function=str,
                side_effects=True,
                timeout_s=5,
            ),
            Tool(name="look", description="Looks", parameters=Options, function=str),
        ]

    @hookimpl
    def switchyard_plan_stores(self) -> list[PlanStoreType]:
        return [PlanStoreType(name="table", factory=lambda *_limits: None, summary="")]


def test_plugins_says_of_one_without_any_hook_that_it_gives_nothing() -> None:
    result = run(PluginRegistry([("empty", object())]), "plugins")

    assert result.exit_code == 0
    assert "  gives nothing: no function of the module is marked with `hookimpl`" in result.output


def test_plugins_lists_tools_with_what_they_do_and_whether_they_change_anything() -> None:
    registry = PluginRegistry([("shop", GivesTools())])
    report = json.loads(run(registry, "plugins", "--json").output)

    assert run(registry, "plugins").output.splitlines() == [
        "shop  given directly  ok",
        "  plan stores: table",
        "  tool send_mail: Sends a mail (has side effects)",
        "  tool look: Looks",
    ]
    assert report["plugins"][0]["tools"] == [
        {
            "name": "send_mail",
            "description": "Sends a mail. Only to those who want one.\nAnd more.",
            "side_effects": True,
            "timeout_s": 5,
        },
        {"name": "look", "description": "Looks", "side_effects": False, "timeout_s": 30.0},
    ]


def test_tool_that_two_plugins_give_is_listed_as_not_used() -> None:
    registry = PluginRegistry([("a", GivesTools()), ("b", GivesTools())])
    result = run(registry, "plugins")

    assert result.exit_code == 2
    assert "  tool look: not used, see below" in result.output
    assert "conflict: tool `look` is given by `a` and by `b`; neither is used" in result.output


def test_plugins_with_a_broken_one_says_why_and_exits_2() -> None:
    result = run(PluginRegistry([("bad", Broken()), ("one", Gives("alpha"))]), "plugins")
    assert result.exit_code == 2
    state, reason, good = result.output.splitlines()[:3]
    assert (state, good) == ("bad  given directly  broken", "one  given directly  ok")
    assert reason.startswith(
        "  plugin `bad` failed in `switchyard_route_types`: ValueError: no config at "
    )


def test_plugins_with_a_conflict_names_both_and_exits_2() -> None:
    registry = PluginRegistry([("one", Gives("same")), ("two", Gives("same"))])
    result = run(registry, "plugins")
    assert result.exit_code == 2
    assert "  route type same: not used, see below" in result.output
    assert (
        "conflict: route type `same` is given by `one` and by `two`; neither is used"
        in result.output
    )


def test_plugins_without_any_says_so() -> None:
    result = run(PluginRegistry(), "plugins")
    assert (result.exit_code, result.output) == (
        0,
        "no plugins are installed; reinstall switchyard-core\n",
    )


def test_plugins_as_json_holds_everything() -> None:
    registry = PluginRegistry([("bad", Broken()), ("one", Gives("s")), ("two", Gives("s"))])
    report = json.loads(run(registry, "plugins", "--json").output)
    assert [entry["state"] for entry in report["plugins"]] == ["broken", "ok", "ok"]
    assert report["plugins"][0]["code"] == "SY506"
    assert report["plugins"][1]["gives"] == {"route_type": ["s"], "latch_store": ["s_store"]}
    assert [conflict["name"] for conflict in report["conflicts"]] == ["s_store", "s"]


# --- the group ----------------------------------------------------------------------------------


def test_command_of_a_plugin_runs_and_is_listed() -> None:
    registry = PluginRegistry([("one", Gives("alpha", ("greet",)))])
    assert run(registry, "greet").output == "hello from alpha\n"
    listed = cli.list_commands(click.Context(cli, obj=registry))
    assert listed == sorted([*COMMANDS, "greet"])


def test_command_named_like_one_of_the_core_is_left_out_with_a_warning() -> None:
    registry = PluginRegistry([("one", Gives("alpha", ("check", "greet")))])
    result = run(registry, "greet")
    assert "hello from alpha" in result.output
    assert "command `check` of plugin `one` is not used: the core has it too" in result.output


def test_command_that_two_plugins_add_belongs_to_neither() -> None:
    given = [("one", Gives("alpha", ("greet",))), ("two", Gives("beta", ("greet",)))]
    result = run(PluginRegistry(given), "greet")
    assert result.exit_code == 2
    assert "command `greet` of plugin `two` is not used: plugin `one` has it too" in result.output
    assert "no command `greet`" in result.output


def test_plugin_that_fails_to_add_commands_does_not_stop_the_others() -> None:
    for error, told in (
        (ValueError("no config"), "ValueError: no config"),
        (ValueError("two\n  lines"), "ValueError: two lines"),
        (SystemExit(3), "SystemExit: 3"),
    ):
        given = [("bad", FailingCommands(error)), ("one", Gives("alpha", ("greet",)))]
        result = run(PluginRegistry(given), "greet")
        assert result.exit_code == 0, told
        assert f"plugin `bad` could not add its commands: {told}\n" in result.output
        assert "hello from alpha" in result.output, told


def test_unknown_command_exits_2() -> None:
    result = run(PluginRegistry(), "chekc")
    assert result.exit_code == 2
    assert "no command `chekc`: did you mean `check`?" in result.output


def test_installed_registry_is_built_once_per_run() -> None:
    context = click.Context(cli)
    first = installed_registry(context)
    assert installed_registry(click.Context(cli, parent=context)) is first


def test_main_prints_the_version_and_exits_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["switchyard", "--version"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
    assert capsys.readouterr().out == "switchyard 0.1.0\n"
