"""``switchyard plugins``: what is installed, what it gives, and why something is broken."""

from __future__ import annotations

import json
import os

import click

from switchyard_core.cli import installed_registry
from switchyard_core.plugins import PluginInfo, PluginRegistry

__all__ = ["command"]

_WORDS: tuple[tuple[str, str], ...] = (
    ("route_type", "route types"),
    ("mutation_pack", "rule sets"),
    ("model_profile", "model profiles"),
    ("latch_store", "latch stores"),
    ("plan_store", "plan stores"),
    ("tool", "tools"),
    ("rewrite", "rewrites"),
    ("lint_rule", "lint rules"),
)


@click.command(name="plugins")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """List the installed plugins and what they provide.

    Exits 2 when a plugin is broken or two plugins provide the same name.

    Example: switchyard plugins --json
    """
    registry = installed_registry(ctx)
    if as_json:
        click.echo(json.dumps(_as_json(registry), indent=2))
    else:
        _print_text(registry)
    ctx.exit(2 if registry.broken or registry.conflicts else 0)


def _print_text(registry: PluginRegistry) -> None:
    colour = False if os.environ.get("NO_COLOR") else None
    if not registry.plugins:
        click.echo("no plugins are installed; reinstall switchyard-core")
    for plugin in registry.plugins:
        source = f"{plugin.distribution} {plugin.version}".strip() or "given directly"
        state = click.style(plugin.state, fg="green" if plugin.state == "ok" else "red")
        click.echo(f"{click.style(plugin.name, bold=True)}  {source}  {state}", color=colour)
        for line in _lines(plugin, registry):
            click.echo(f"  {line}")
    for conflict in registry.conflicts:
        click.echo(f"conflict: {conflict.message}; neither is used")


def _lines(plugin: PluginInfo, registry: PluginRegistry) -> list[str]:
    lines = [plugin.error] if plugin.error else []
    for kind, word in _WORDS:
        names = next((names for key, names in plugin.gives.items() if key == kind), ())
        if kind == "route_type":
            lines += [f"route type {name}: {_summary(name, registry)}" for name in names]
        elif kind == "tool":
            lines += [f"tool {name}: {_tool(name, registry)}" for name in names]
        elif names:
            lines.append(f"{word}: {', '.join(names)}")
    if plugin.state == "ok" and not plugin.hooks:
        lines.append(
            "gives nothing: no function of the module is marked with `hookimpl`; where a class has "
            "them, let the entry point name an object of it, as in `package:plugin`"
        )
    return lines


def _summary(name: str, registry: PluginRegistry) -> str:
    route_type = registry.route_types.get(name)
    return route_type.summary if route_type is not None else "not used, see below"


def _tool(name: str, registry: PluginRegistry) -> str:
    tool = registry.tools.get(name)
    if tool is None:
        return "not used, see below"
    # It is written for a model and may be long.
    summary = tool.description.strip().splitlines()[0].partition(". ")[0].rstrip(".")
    return f"{summary} (has side effects)" if tool.side_effects else summary


def _as_json(registry: PluginRegistry) -> object:
    return {
        "version": 1,
        "plugins": [
            {
                **_members(plugin, "name", "distribution", "version", "state", "error", "code"),
                "gives": {kind: list(names) for kind, names in plugin.gives.items()},
                "hooks": list(plugin.hooks),
                "tools": [
                    _members(tool, "name", "description", "side_effects", "timeout_s")
                    for name, tool in registry.tools.items()
                    if name in plugin.gives.get("tool", ())
                ],
            }
            for plugin in registry.plugins
        ],
        "conflicts": [_members(each, "kind", "name", "message") for each in registry.conflicts],
    }


def _members(value: object, *names: str) -> dict[str, object]:
    return {name: getattr(value, name) for name in names}
