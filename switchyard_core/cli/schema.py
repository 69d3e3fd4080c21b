"""``switchyard schema``: the policy format for editors and other tools."""

from __future__ import annotations

import json
from pathlib import Path

import click

from switchyard_core.cli import cannot_run, installed_registry

__all__ = ["command"]


@click.command(name="schema")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write (default: standard output).",
)
@click.pass_context
def command(ctx: click.Context, *, output: Path | None) -> None:
    """Print the JSON Schema of a policy, with the options of the installed plugins.

    Editors complete and explain the keys of a policy whose first line names the schema, as in
    `#:schema switchyard.schema.json`.

    `switchyard check` knows more, such as whether a named target exists. Exits 2 when the file
    cannot be written.

    Example: switchyard schema --output switchyard.schema.json
    """
    from switchyard_core.policy.schema import policy_schema  # noqa: PLC0415  # fast --help

    text = json.dumps(policy_schema(installed_registry(ctx)), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        cannot_run(ctx, f"cannot write {output}: {error.strerror}")
