"""``switchyard packs``: the rule sets that are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from switchyard_core.cli import installed_registry

if TYPE_CHECKING:
    from switchyard_core.plugins import PluginRegistry

__all__ = ["command"]


@click.group(name="packs")
def command() -> None:
    """List the installed packs of mutation rules, or print one.

    Example: switchyard packs show coding_agents
    """


@command.command(name="list")
@click.pass_context
def list_packs(ctx: click.Context) -> None:
    """List the packs: name, number of rules, where it is from, what it is for.

    Example: switchyard packs list
    """
    registry = installed_registry(ctx)
    width = max((len(name) for name in registry.packs), default=0)
    for name in sorted(registry.packs):
        rules = registry.rule_sets[name]
        count = f"{len(rules.rules)} rule{'s' * (len(rules.rules) != 1)}"
        click.echo(f"{name:{width}}  {count:>9}  {registry.packs[name].source}")
        if rules.description:
            click.echo(f"{'':{width}}  {rules.description}")


@command.command(name="show")
@click.argument("name")
@click.pass_context
def show_pack(ctx: click.Context, name: str) -> None:
    """Print a pack as it is written: TOML that a policy may copy from.

    Exits 2 when there is no such pack. Example: switchyard packs show coding_agents
    """
    registry = installed_registry(ctx)
    if name not in registry.packs:
        click.echo(f"error: no pack is called `{name}`; {_known(registry)}", err=True)
        ctx.exit(2)
    click.echo(registry.packs[name].text.rstrip())


def _known(registry: PluginRegistry) -> str:
    names = ", ".join(sorted(registry.packs))
    return f"installed packs: {names}" if names else "no packs are installed"
