"""The files of a new plugin: complete, with no placeholder left, and never over others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import tomli

from switchyard_core.cli.scaffold import plugin_files, plugin_names, write_plugin

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "switchyard_sticky_router"


def test_example_is_what_the_command_writes() -> None:
    wanted = {str(path): text for path, text in plugin_files(plugin_names("sticky")).items()}
    found = {
        path.relative_to(EXAMPLE).as_posix(): path.read_text(encoding="utf-8")
        for path in EXAMPLE.rglob("*")
        if path.is_file() and not {"__pycache__", ".pytest_cache", ".ruff_cache"} & {*path.parts}
    }

    assert found == wanted, "run: rm -r the example, then switchyard new-plugin sticky --directory"


@pytest.mark.parametrize("name", ["sticky", "by-hour", "class", "router"])
def test_files_have_no_placeholder_and_are_what_their_names_say(name: str) -> None:
    names = plugin_names(name)
    files = {str(path): text for path, text in plugin_files(names).items()}

    assert [path for path, text in files.items() if "<<" in text or ">>" in text] == []
    assert f"{names.module}/py.typed" in files
    for path, text in files.items():
        if path.endswith(".py"):
            assert ast.get_docstring(ast.parse(text))
    project = tomli.loads(files["pyproject.toml"])["project"]
    assert project["name"] == names.distribution
    assert project["entry-points"]["switchyard"] == {names.type: names.module}
    assert tomli.loads(files["policy.toml"])["routes"][names.type]["type"] == names.type


def test_write_plugin_into_an_empty_folder(tmp_path: Path) -> None:
    written = write_plugin(plugin_names("sticky"), tmp_path)

    assert sorted(map(str, written)) == sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_write_plugin_over_something_writes_nothing(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "sticky"
    kept = folder
    if kind == "folder":
        folder.mkdir()
        kept = folder / "mine.txt"
    kept.write_text("mine")

    with pytest.raises(FileExistsError, match="already exists"):
        write_plugin(plugin_names("sticky"), folder)

    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [kept]
    assert kept.read_text() == "mine"
