"""``switchyard new-plugin``: a new route plugin, ready to be installed and changed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from switchyard_core.cli import cannot_run, installed_registry
from switchyard_core.cli.scaffold import PluginNames, plugin_names, write_plugin

if TYPE_CHECKING:
    from switchyard_core.plugins import PluginRegistry

__all__ = ["command"]


@click.command(name="new-plugin")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Folder to write to (default: NAME in the current folder).",
)
@click.pass_context
def command(ctx: click.Context, *, name: str, directory: Path | None) -> None:
    """Write a route plugin called NAME.

    The distribution `switchyard-NAME` has a package with a router and its options, an entry
    point, a policy, and tests that pass once it is installed. The router keeps each session on
    one target; change it as you need. Exits 2 when the name is not available or the folder is
    not empty.

    Example: switchyard new-plugin night-shift
    """
    try:
        names = plugin_names(name)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    taken = _owner(names, installed_registry(ctx))
    if taken:
        raise click.BadParameter(f"{taken}; choose another name", param_hint="NAME")
    folder = directory if directory is not None else Path(name)
    try:
        written = write_plugin(names, folder)
    except FileExistsError as error:
        cannot_run(ctx, f"{error}; name another folder with --directory")
    except OSError as error:
        cannot_run(ctx, f"cannot write {error.filename}: {error.strerror}")
    click.echo(f"wrote the distribution {names.distribution} into {folder}:")
    for path in written:
        click.echo(f"  {path.as_posix()}")
    click.echo(f"next:\n  pip install -e '{folder}[test]'\n  python -m pytest {folder}")
    click.echo("  switchyard plugins")


def _owner(names: PluginNames, registry: PluginRegistry) -> str:
    """Return what already has one of the names, ``""`` if nothing."""
    for plugin in registry.plugins:
        if plugin.name == names.type:
            return f"plugin {plugin.label} already exists"
        if names.type in plugin.gives.get("route_type", ()):
            return f"plugin {plugin.label} already provides the route type `{names.type}`"
    # One of two packages with the same name would hide the other.
    if find_spec(names.module) is not None:
        return f"package `{names.module}` already exists"
    return ""
