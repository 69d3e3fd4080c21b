"""The settings that the pages of ``docs/clients`` tell a user to copy, as the tests use them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "clients"
#: The address that all pages name.
_ADDRESS = "http://127.0.0.1:4000"
_FILE = re.compile(r"`([~\w./-]+)`:\n\n```(?:toml|json)\n(.*?)```", re.DOTALL)
_SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a section says: lines for the shell, and files by path."""

    shell: str
    files: dict[str, str]

    def write(self, home: Path, repo: Path) -> None:
        """Write the files; ``~`` is ``home``, any other path is inside ``repo``."""
        for name, text in self.files.items():
            path = home / name[2:] if name.startswith("~/") else repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def settings(page: str, section: str, base_url: str) -> Settings:
    """Return the settings of one section (``## section``), pointed at ``base_url``.

    Raises:
        ValueError: There is no such section, or it has nothing to copy.
    """
    text = (PAGES / f"{page}.md").read_text()
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    by_heading = dict(zip(parts[1::2], parts[2::2], strict=True))
    if section not in by_heading:
        raise ValueError(f"{page}.md has no section `{section}`; it has {', '.join(by_heading)}")
    here = by_heading[section].replace(_ADDRESS, base_url)
    found = Settings(shell="".join(_SHELL.findall(here)), files=dict(_FILE.findall(here)))
    if not found.shell and not found.files:
        raise ValueError(f"section `{section}` of {page}.md has nothing to copy")
    return found
