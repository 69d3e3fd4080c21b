"""``switchyard packs``: what is installed, and each pack as it is written."""

from __future__ import annotations

import pytest
import tomli
from click.testing import CliRunner, Result

from switchyard_core.cli import cli
from switchyard_core.declarations import MutationPack
from switchyard_core.hookspecs import hookimpl
from switchyard_core.mutation import RuleSetModel, core_packs
from switchyard_core.plugins import PluginRegistry


class Gives:
    @hookimpl
    def switchyard_mutation_packs(self) -> list[MutationPack]:
        text = "description = 'Ours'\n[[rules]]\nlabel = 'file_edit'\nmatch = ['save']\n"
        return [MutationPack(name="ours", text=text, source="ours.toml")]


def run(*arguments: str, registry: PluginRegistry | None = None) -> Result:
    return CliRunner().invoke(cli, ["packs", *arguments], obj=registry)


def test_packs_list_names_every_shipped_pack_and_its_description() -> None:
    result = run("list")
    assert result.exit_code == 0
    for pack in core_packs():
        assert f"{pack.name} " in result.output
        assert tomli.loads(pack.text)["description"] in result.output


def test_packs_list_shows_those_of_plugins() -> None:
    result = run("list", registry=PluginRegistry([("one", Gives())]))
    assert result.output == "ours     1 rule  ours.toml\n      Ours\n"


@pytest.mark.parametrize("name", [pack.name for pack in core_packs()])
def test_packs_show_prints_a_rule_set_that_a_policy_may_use(name: str) -> None:
    result = run("show", name)
    assert result.exit_code == 0
    model = RuleSetModel.model_validate(tomli.loads(result.output))
    (pack,) = (pack for pack in core_packs() if pack.name == name)
    assert model == RuleSetModel.model_validate(tomli.loads(pack.text))


def test_packs_show_of_an_unknown_one_exits_2_and_lists_the_others() -> None:
    result = run("show", "nope")
    assert result.exit_code == 2
    assert "unknown pack `nope`; installed packs: coding_agents, " in result.output


def test_packs_show_without_any_says_so() -> None:
    result = run("show", "nope", registry=PluginRegistry())
    assert result.output == "error: unknown pack `nope`; installed packs: none\n"
