"""``switchyard new-plugin``: what it writes, and when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from switchyard_core.cli import cli
from switchyard_core.declarations import Options, RouteType
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry


class Sticky:
    """An installed plugin that gives the route type ``glue``."""

    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return [RouteType(name="glue", options=Options, router=lambda o: o, summary="")]


def run(*arguments: str, registry: PluginRegistry | None = None) -> Result:
    given = registry if registry is not None else PluginRegistry()
    return CliRunner().invoke(cli, ["new-plugin", *arguments], obj=given)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_new_plugin_writes_a_distribution_and_says_what_next(here: Path) -> None:
    result = run("by-hour")

    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        "wrote the distribution switchyard-by-hour into by-hour:",
        *(f"  {name}" for name in listed(here / "by-hour")),
        "next:",
        "  pip install -e 'by-hour[test]'",
        "  python -m pytest by-hour",
        "  switchyard plugins",
    ]
    assert (here / "by-hour" / "switchyard_by_hour" / "router.py").is_file()


def test_new_plugin_writes_into_the_folder_that_is_named(here: Path) -> None:
    result = run("sticky", "--directory", "plugins/mine")

    assert result.exit_code == 0
    assert "into plugins/mine:" in result.output
    assert (here / "plugins" / "mine" / "pyproject.toml").is_file()


def test_new_plugin_with_an_illegal_name_offers_the_nearest(here: Path) -> None:
    result = run("Sticky Router")

    assert result.exit_code == 2
    assert "did you mean `sticky-router`?" in " ".join(result.output.split())
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("glue", "plugin `sticky` already provides the route type `glue`"),
        ("sticky", "plugin `sticky` already exists"),
        ("core", "package `switchyard_core` already exists"),
    ],
)
def test_new_plugin_with_a_name_that_is_taken_says_by_whom(
    here: Path, name: str, owner: str
) -> None:
    result = run(name, registry=PluginRegistry([("sticky", Sticky())]))

    assert result.exit_code == 2
    assert owner in result.output
    assert list(here.iterdir()) == []


def test_new_plugin_over_something_leaves_it_as_it_is(here: Path) -> None:
    assert run("sticky").exit_code == 0
    (here / "sticky" / "README.md").write_text("mine")

    result = run("sticky")

    assert result.exit_code == 2
    assert "error: `sticky` already exists and is not empty" in result.output
    assert (here / "sticky" / "README.md").read_text() == "mine"


def test_new_plugin_where_nothing_can_be_written_says_so(here: Path) -> None:
    (here / "file").write_text("")

    result = run("sticky", "--directory", "file/below")

    assert result.exit_code == 2
    assert "error: cannot write file/below: Not a directory" in result.output
    assert "Traceback" not in result.output


def listed(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
