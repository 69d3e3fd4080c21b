"""Writes docs/cli.md from the help of every command; tests fail when the two differ.

python scripts/write_cli_page.py
"""

from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from switchyard_core.cli import cli

HEAD = """# Command line

Every command says what it does with `--help`; this page is written from that by
`python scripts/write_cli_page.py`. Exit codes: 0 all is well, 1 findings or a refused request,
2 it could not run (wrong usage, an unreadable file, a broken plugin).
"""


def main() -> None:
    """Write the page."""
    page = HEAD
    for name in cli.list_commands(click.Context(cli)):
        run = CliRunner().invoke(cli, [name, "--help"], prog_name="switchyard", terminal_width=80)
        page += f"\n## switchyard {name}\n\n```text\n{run.output.rstrip()}\n```\n"
    (Path(__file__).parents[1] / "docs" / "cli.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
