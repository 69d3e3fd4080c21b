"""The repository holds nothing of the machine it was written on, and its pieces agree."""

from __future__ import annotations

import re
from pathlib import Path

from switchyard_core.hookspecs import VERSION
from tests.architecture.sources import ROOT, project_files

#: Somebody's home folder. Documents and data use `/home/user` or `/home/dev` for "a home".
_HOME = re.compile(r"(?<![\w.])/(?:root|(?:home|Users)/(?!user\b|dev\b|me\b|you\b)[\w.-]+)/")
#: Commands, requests and rules that are about paths of somebody's machine.
_DATA = re.compile(r"^tests/(?:data|captures|scenarios)/|^switchyard_core/mutation/data/|\.jsonl$")
_LEFT_OVER = re.compile(r"\b(?:TODO|FIXME)\b|^(?:<{7}|>{7}) ", re.MULTILINE)


def test_no_file_names_the_machine_it_was_written_on() -> None:
    # The path of this checkout, unless it is so short that it could mean anything.
    here = str(ROOT) + "/" if len(ROOT.parts) > 2 else None

    found = [
        f"{path.relative_to(ROOT)}: {match}"
        for path, text in _texts()
        if not _is_data(path)
        for match in [*_HOME.findall(text), *([here] if here and here in text else [])]
    ]

    assert found == []


def test_no_file_holds_an_open_task_or_a_merge_conflict() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path, text in _texts()
        if path != Path(__file__) and not _is_data(path) and path.name != "pyproject.toml"
        if (found := _LEFT_OVER.search(text))
    ]

    assert found == []


def test_every_text_file_ends_with_one_newline() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path, text in _texts()
        if text and (not text.endswith("\n") or text.endswith("\n\n"))
        if "__snapshots__" not in path.parts and path.suffix not in {".json", ".jsonl"}
    ]

    assert found == []


def test_version_is_the_newest_of_the_changelog() -> None:
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert newest is not None
    assert newest[1] == VERSION


def test_scripts_that_people_start_are_executable() -> None:
    scripts = [ROOT / name for name in ("demo", "test", ".ci/run")]

    assert [s.name for s in scripts if not s.stat().st_mode & 0o100] == []


def _is_data(path: Path) -> bool:
    return bool(_DATA.search(path.relative_to(ROOT).as_posix()))


def _texts() -> list[tuple[Path, str]]:
    texts = []
    for path in project_files():
        try:
            texts.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue  # pictures and the like
    return texts
