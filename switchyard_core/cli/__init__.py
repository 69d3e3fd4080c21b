"""The command ``switchyard``.

Each command is a module of this package that exposes a click command named ``command``; it is
imported when it is asked for, so that ``switchyard check`` does not pay for the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from switchyard_core.cli.policies import DEFAULT_POLICY, default_policy, policy_argument
from switchyard_core.cli.replaying import replay_options, unused_note
from switchyard_core.cli.thinking import thinking
from switchyard_core.hookspecs import VERSION

if TYPE_CHECKING:
    from switchyard_core.plugins import PluginRegistry

__all__ = [
    "COMMANDS",
    "DEFAULT_POLICY",
    "CommandGroup",
    "cannot_run",
    "cli",
    "default_policy",
    "faults",
    "installed_registry",
    "main",
    "policy_argument",
    "replay_options",
    "thinking",
    "unused_note",
]

#: What there is in place of commands that other programs have.
_INSTEAD = {
    "help": "write `switchyard --help`, or `switchyard COMMAND --help`",
    "version": "write `switchyard --version`",
    "completion": "`_SWITCHYARD_COMPLETE=bash_source switchyard` prints it; or zsh_, fish_source",
}

#: Commands of the core: module names of this package, with hyphens for underscores.
COMMANDS: tuple[str, ...] = (
    "check",
    "classify",
    "demo",
    "explain",
    "init",
    "new-plugin",
    "packs",
    "plugins",
    "probe",
    "rule",
    "schema",
    "serve",
    "test",
)


def installed_registry(context: click.Context) -> PluginRegistry:
    """Return the registry of this run: the ``obj`` of the context, else the installed plugins."""
    from switchyard_core.plugins import PluginRegistry  # noqa: PLC0415  # fast --help

    root = context.find_root()
    if not isinstance(root.obj, PluginRegistry):
        root.obj = PluginRegistry.from_entry_points()
    return root.obj


def cannot_run(context: click.Context, message: str) -> NoReturn:
    """End the run with an error and exit code 2."""
    click.echo(f"error: {message}", err=True)
    context.exit(2)


@contextmanager
def faults(context: click.Context) -> Iterator[None]:
    """End the run when a policy or plugin is at fault: 1, or 2 when the command cannot run."""
    from switchyard_core.errors import PluginError, PolicyError  # noqa: PLC0415  # fast --help

    try:
        yield
    except PolicyError as error:
        click.echo(str(error), err=True)
        context.exit(2 if any(finding.code == "SY100" for finding in error.findings) else 1)
    except PluginError as error:
        cannot_run(context, str(error))


class CommandGroup(click.Group):
    """A group that imports its commands when they are asked for, then asks the plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, including those of plugins."""
        return sorted({*COMMANDS, *_plugin_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of the core or a plugin."""
        if cmd_name in COMMANDS:
            module = cmd_name.replace("-", "_")
            command = import_module(f"switchyard_core.cli.{module}").command
            return command if isinstance(command, click.Command) else None
        return _plugin_commands(ctx).get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a line; an unknown one ends the run with the nearest name."""
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, name):
            return super().resolve_command(ctx, args)
        from switchyard_core.policy.wording import suggestion  # noqa: PLC0415  # fast --help

        otherwise = "`switchyard --help` lists the commands"
        if name.endswith(".toml"):
            otherwise = f"say what to do with it, such as `switchyard check {name}`"
        otherwise = _INSTEAD.get(name, otherwise)
        fix = suggestion(name, self.list_commands(ctx), otherwise)
        raise click.UsageError(f"no command `{name}`: {fix}", ctx)


def _plugin_commands(context: click.Context) -> dict[str, click.Command]:
    """Return the commands of plugins; a name that two plugins claim is not used."""
    found: dict[str, tuple[str, click.Command]] = {}
    taken: dict[str, str] = dict.fromkeys(COMMANDS, "the core")
    from switchyard_core.errors import in_one_line  # noqa: PLC0415  # fast --help

    for label, hook in installed_registry(context).command_hooks:
        group = click.Group("switchyard")
        try:
            hook(group)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - must not stop the others
            _warn(f"plugin {label} could not add its commands: {in_one_line(error)}")
            continue
        for name, command in group.commands.items():
            if name in taken:
                _warn(f"command `{name}` of plugin {label} is not used: {taken[name]} has it too")
                found.pop(name, None)
                continue
            taken[name] = f"plugin {label}"
            found[name] = (label, command)
    return {name: command for name, (_, command) in found.items()}


def _warn(message: str) -> None:
    click.echo(f"warning: {message}", err=True)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    VERSION, "-V", "--version", prog_name="switchyard", message="%(prog)s %(version)s"
)
def cli() -> None:
    """Route the LLM traffic of coding agents by a policy. Example: switchyard demo."""


def main() -> None:
    """Run the command line; exits 0 when clean, 1 on findings, 2 when it could not run."""
    cli(prog_name="switchyard")
