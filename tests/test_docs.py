"""What the documentation shows is true: policies load, Python runs, commands are described.

Marks in Markdown, right above a fenced block:

- ``<!-- policy -->``       a ``toml`` block that is a whole policy: it has no finding
- ``<!-- policy: broken -->``  a policy that shows a mistake: it has at least one error
- ``<!-- not run -->``      a ``python`` block that needs what a test has not got
- ``<!-- file: PATH -->``, ``<!-- append: PATH -->``  a file of the tutorial, or its end, which
  tests/packaging/test_tutorial.py plays

A ``toml`` block with ``schema_version`` at its start is a policy, marked or not. Every
``python`` block runs, those of one page in order, in one namespace, on one event loop, with
``await`` where an example wants it, in a folder that has the checkout's ``policies/``.
"""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import inspect
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text
from switchyard_core.server import Limits
from tests.support.cases import each_of

ROOT = Path(__file__).resolve().parents[1]
_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n+)?(?P<indent> *)```(?P<language>\w*)[^\n]*\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> Iterator[Block]:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            if match["language"] == language:
                yield Block(
                    page=page,
                    line=text.count("\n", 0, match.start("text")) + 1,
                    language=language,
                    mark=match["mark"] or "",
                    text=match["text"],
                )


def is_file(block: Block) -> bool:
    return block.mark.startswith(("file:", "append:"))


def examples() -> list[Block]:
    return [b for b in blocks("python") if b.mark != "not run" and not is_file(b)]


def policies() -> list[Block]:
    return [
        block
        for block in blocks("toml")
        if block.mark.startswith("policy")
        or (block.text.startswith("schema_version") and not is_file(block))
    ]


def commands() -> dict[str, click.Command]:
    """Return every command that a person can type, by its words."""
    found: dict[str, click.Command] = {}

    def collect(group: click.Command, words: tuple[str, ...]) -> None:
        if isinstance(group, click.Group):
            for name in group.list_commands(click.Context(group)):
                command = group.get_command(click.Context(group), name)
                if command is not None and not command.hidden:
                    collect(command, (*words, name))
        else:
            found[" ".join(words)] = group

    collect(cli, ("switchyard",))
    return found


@pytest.fixture(scope="module")
def registry() -> PluginRegistry:
    return PluginRegistry.from_entry_points()


def by_place(found: list[Block]) -> list[object]:
    return [pytest.param(block, id=block.place.replace("/", "-")) for block in found]


@each_of("block", by_place([b for b in policies() if "broken" not in b.mark]))
def test_policy_in_the_docs_has_no_finding(block: Block, registry: PluginRegistry) -> None:
    result = check_policy_text(block.text, block.place, registry, base_dir=ROOT / "policies")

    assert [finding.render() for finding in result.findings] == []


@pytest.mark.parametrize("page", sorted({b.page for b in examples()}), ids=lambda p: p.stem)
def test_python_in_the_docs_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Examples name files of the checkout, such as policies/plan_execute.toml.
    (tmp_path / "policies").symlink_to(ROOT / "policies")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "example"}
    with asyncio.Runner() as runner:
        for block in (b for b in examples() if b.page == page):
            # The lines before the block keep the line numbers of a traceback right.
            source = "\n" * (block.line - 1) + textwrap.dedent(block.text)
            # Without `dont_inherit` the examples would get this module's own future imports.
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            code = compile(source, str(page), "exec", flags=flags, dont_inherit=True)
            waiting = eval(code, namespace)
            if inspect.iscoroutine(waiting):
                runner.run(waiting)


def test_broken_policies_in_the_docs_are_broken(registry: PluginRegistry) -> None:
    accepted = [
        block.place
        for block in policies()
        if "broken" in block.mark
        and check_policy_text(block.text, block.place, registry).policy is not None
    ]

    assert accepted == []


@each_of("words", sorted(commands()))
def test_command_line_page_shows_the_help_of_every_command(words: str) -> None:
    """``docs/cli.md`` has, per command, a ``text`` block with the help as it is printed."""
    documented = [block.text.rstrip() for block in blocks("text") if block.page.name == "cli.md"]

    assert help_text(words) in documented, f"paste this into docs/cli.md:\n{help_text(words)}"


def help_text(words: str) -> str:
    """Return what ``switchyard <command> --help`` prints on a terminal of 80 columns."""
    program, *arguments = words.split()
    environment = dict.fromkeys(("COLUMNS", "FORCE_COLOR", "TERMINAL_WIDTH"))
    result = CliRunner().invoke(
        cli,
        [*arguments, "--help"],
        prog_name=program,
        terminal_width=80,
        env=environment | {"NO_COLOR": "1", "TERM": "dumb"},
    )
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def test_limits_on_the_servers_page_are_those_that_can_be_set_with_their_defaults() -> None:
    page = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
    section = page.partition("## Limits")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| (\S+) \| `--limit (\w+)` \|", section, re.MULTILINE)

    assert {name: float(default) for default, name in rows} == dataclasses.asdict(Limits())


@each_of("page", pages())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    broken = [link for link in _LINK.findall(text) if not (page.parent / link).exists()]

    assert broken == []


def test_readme_names_the_two_commands_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert "./demo" in readme
    assert "./test" in readme
    assert "./test" in gate
    assert all(os.access(ROOT / name, os.X_OK) for name in ("demo", "test"))
