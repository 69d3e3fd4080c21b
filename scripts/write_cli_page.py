"""Writes docs/cli.md from the help of every command; tests fail when the two differ.

python scripts/write_cli_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from switchyard_core.cli import cli

HEAD = """# Command line

Every command says what it does with `--help`; this page is written from that by
`python scripts/write_cli_page.py`. Exit codes: 0 all is well, 1 findings or a refused request,
2 it could not run (wrong usage, an unreadable file, a broken plugin).

Colours are used only on a terminal, and not where `NO_COLOR` is set to something.

The shell completes commands, options and files if this line is in its start file
(`~/.bashrc`, `~/.zshrc`, `~/.config/fish/completions/switchyard.fish`):

```sh
eval "$(_SWITCHYARD_COMPLETE=bash_source switchyard)"        # bash 4.4 or newer
eval "$(_SWITCHYARD_COMPLETE=zsh_source switchyard)"         # zsh
_SWITCHYARD_COMPLETE=fish_source switchyard | source         # fish
```
"""


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of groups one level down included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        elif command is not None:
            yield (*words, name)


def main() -> None:
    """Write the page."""
    page = HEAD
    for words in commands(cli):
        arguments = [*words, "--help"]
        run = CliRunner().invoke(cli, arguments, prog_name="switchyard", terminal_width=80)
        help_text = "\n".join(line.rstrip() for line in run.output.strip().splitlines())
        page += f"\n## switchyard {' '.join(words)}\n\n```text\n{help_text}\n```\n"
    (Path(__file__).parents[1] / "docs" / "cli.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
