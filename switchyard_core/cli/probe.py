"""``switchyard probe``: what a target's model refuses, asked with a dozen cheap requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import click

from switchyard_core.cli import cannot_run, faults, installed_registry, policy_argument
from switchyard_core.engine.calling import Upstreams
from switchyard_core.engine.probing import Found, probe_target, probes_for
from switchyard_core.errors import RequestError
from switchyard_core.jsonio.printing import pretty
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Policy, Target, load_policy
from switchyard_core.policy.wording import suggestion
from switchyard_core.world import World

__all__ = ["command"]


@click.command(name="probe")
@policy_argument(then="target", path=click.Path(path_type=Path))
@click.argument("target", required=False, default="", metavar="TARGET")
@click.option("--dry-run", is_flag=True, help="Print the requests and send nothing.")
@click.pass_context
def command(ctx: click.Context, policy: Path, target: str, dry_run: bool) -> None:  # noqa: FBT001
    """Ask the model of a TARGET of a POLICY what it refuses, and print the rules to paste.

    POLICY is switchyard.toml unless you name another.

    Sends about a dozen short requests with your own key; they cost what such requests cost.
    Nothing is changed and nothing is remembered.

    Exits 0 when nothing is refused that the policy does not avoid already, 1 when something is,
    and 2 when the plain request gets no answer.

    Example: switchyard probe policy.toml executor --dry-run
    """
    registry = installed_registry(ctx)
    with faults(ctx):
        loaded = load_policy(policy, registry)
    chosen = _target(ctx, loaded, target)
    if dry_run:
        for probe in probes_for(chosen):
            click.echo(f"{probe.name}\n{pretty(probe.body)}\n")
        return
    try:
        found = asyncio.run(_probe(chosen, loaded, registry))
    except RequestError as error:
        cannot_run(ctx, error.message)
    if found[0].state != "accepted":
        cannot_run(ctx, "the plain request was not accepted, so the others would tell nothing")
    pasted = _to_paste(chosen, found)
    click.echo(pasted, nl=False)
    ctx.exit(1 if pasted else 0)


def _target(ctx: click.Context, policy: Policy, name: str) -> Target:
    if name in policy.targets:
        return policy.targets[name]
    declared = ", ".join(sorted(policy.targets)) or "none"
    if not name:
        raise click.UsageError(f"name a TARGET of the policy: {declared}")
    fix = suggestion(name, policy.targets, "name one of these")
    return cannot_run(ctx, f"unknown target `{name}`: {fix} (declared targets: {declared})")


async def _probe(target: Target, policy: Policy, registry: PluginRegistry) -> list[Found]:
    upstreams = Upstreams(policy, registry.rewrites, World(environ=os.environ))
    found = []
    try:
        async for one in probe_target(target, upstreams, registry.rewrites):
            known = ""
            if one.known and one.state != "unknown":
                known = " (the policy avoids it)" if one.state == "refused" else " (and changed)"
            click.echo(f"{one.state:<9} {one.probe.name}{known}")
            if one.detail and not one.known:
                click.echo(f"          {' '.join(one.detail.split())}")
            found.append(one)
    finally:
        await upstreams.aclose()
    return found


def _to_paste(target: Target, found: Sequence[Found]) -> str:
    """Return the keys and rules that would avoid the refusals, ``""`` for none."""
    refused = [one for one in found if one.state == "refused" and not one.known]
    keys = [one.probe.key for one in refused if one.probe.key]
    rules = list(dict.fromkeys(one.rule for one in refused if one.rule))
    if not (keys or rules):
        return ""
    lines = ["", f"add to [targets.{target.name}]:", *keys]
    if rules:
        lines += ["fit = [", *(f"  {rule}," for rule in rules), "]"]
    return "\n".join(lines) + "\n"
