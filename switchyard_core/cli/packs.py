"""``switchyard packs``: the installed rule sets."""

from __future__ import annotations

import click

from switchyard_core.cli import cannot_run, installed_registry
from switchyard_core.cli.words import meant

__all__ = ["command"]


@click.group(name="packs")
def command() -> None:
    """List the installed packs of mutation rules, or print one.

    Example: switchyard packs show coding_agents
    """


@command.command(name="list")
@click.pass_context
def list_packs(ctx: click.Context) -> None:
    """List the packs: name, number of rules, source, description.

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
    """Print the TOML of a pack, which a policy can copy from.

    Exits 2 when the pack is unknown. Example: switchyard packs show coding_agents
    """
    registry = installed_registry(ctx)
    if name not in registry.packs:
        known = ", ".join(sorted(registry.packs)) or "none"
        cannot_run(
            ctx, f"unknown pack `{name}`; installed packs: {known}{meant(name, registry.packs)}"
        )
    click.echo(registry.packs[name].text.rstrip())
