"""``switchyard init``: a commented policy to start from, with its tests."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from switchyard_core.cli import DEFAULT_POLICY, cannot_run
from switchyard_core.cli.scaffold import CLIENTS, write_starter
from switchyard_core.cli.words import Choice

__all__ = ["command"]


@click.command(name="init")
@click.argument("file", type=click.Path(path_type=Path), default=DEFAULT_POLICY)
@click.option(
    "--client",
    type=Choice(CLIENTS),
    default="openai",
    show_default=True,
    help="The agent that will use it, or the wire format of any other agent.",
)
@click.pass_context
def command(ctx: click.Context, *, file: Path, client: str) -> None:
    """Write a starter policy and its test file; nothing is overwritten.

    FILE is the policy; its tests are beside it. Commands that are given no policy use the
    default, switchyard.toml. The policy plans on one model and executes on another; insert your
    models. Exits 2 when a file already exists or cannot be written.

    Example: switchyard init --client codex policies/codex.toml
    """
    try:
        policy, tests = write_starter(client, file)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="FILE") from None
    except FileExistsError as error:
        cannot_run(ctx, f"{error}; nothing was written, name another file")
    except OSError as error:
        cannot_run(ctx, f"cannot write {error.filename}: {error.strerror}")
    shown, shown_tests = shlex.quote(str(policy)), shlex.quote(str(tests))
    click.echo(f"wrote {policy} and {tests}\nnext:")
    for words in ("check --offline", "test", "serve"):
        # The default needs no name.
        name = "" if shown == DEFAULT_POLICY else f" {shown_tests if words == 'test' else shown}"
        click.echo(f"  switchyard {words}{name}")
