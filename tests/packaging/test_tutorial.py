"""docs/tutorial.md, played from its first block to its last in a fresh environment.

Marks right above a fenced block:

- ``<!-- file: PATH -->``      the block is written to a file
- ``<!-- append: PATH -->``    the block is added to a file, after two empty lines
- ``<!-- contains: PATH -->``  the block is part of a file
- ``<!-- run -->``             the block is run by a shell and succeeds
- ``<!-- run: exit N -->``     it ends with another code
- ``<!-- output -->``          the lines of the block are printed by the last run, in their order
- ``<!-- not run: WHY -->``    what a test cannot do
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, Environment

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(400)]

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def blocks() -> list[re.Match[str]]:
    return list(_BLOCK.finditer(PAGE))


def test_every_block_is_marked_and_only_publishing_is_not_run() -> None:
    unmarked = [block["text"] for block in blocks() if block["mark"] is None]
    skipped = [block["text"] for block in blocks() if (block["mark"] or "").startswith("not run")]

    assert unmarked == []
    assert [text for text in skipped if "twine upload" not in text] == []
    assert PAGE.count("```") == 2 * len(blocks())


def test_tutorial_plays_to_its_end(authors: Environment, tmp_path: Path) -> None:
    printed = ""
    try:
        for block in blocks():
            word, _, rest = block["mark"].partition(":")
            if word == "file":
                (tmp_path / rest.strip()).write_text(block["text"], encoding="utf-8")
            elif word == "append":
                with (tmp_path / rest.strip()).open("a", encoding="utf-8") as file:
                    file.write(f"\n\n{block['text']}")
            elif word == "contains":
                assert block["text"] in (tmp_path / rest.strip()).read_text(encoding="utf-8")
            elif word == "run":
                printed = run(
                    authors, tmp_path, block["text"], int(rest.split()[-1] if rest else 0)
                )
            elif word == "output":
                require_lines(block["text"], printed)
    finally:
        authors.run("python", "-m", "pip", "uninstall", "--yes", "switchyard-by-size")


def run(environment: Environment, folder: Path, script: str, code: int) -> str:
    """Run a block as its reader would, who stops at the first error; return what it prints."""
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env=environment.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == code, f"{script}\n{done.stdout}"
    return done.stdout


def require_lines(block: str, printed: str) -> None:
    """Fail unless every line of the block was printed, in this order."""
    place = 0
    for line in block.splitlines():
        found = printed.find(f"{line}\n", place)
        assert found >= 0, f"`{line}` was not printed, or not there:\n{printed}"
        place = found + len(line)
