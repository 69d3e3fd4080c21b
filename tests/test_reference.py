"""Every hook, public name, option and code of the project has its page or entry."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import switchyard_core
from scripts.write_reference_page import reference
from switchyard_core import PluginRegistry, hookspecs
from switchyard_core.declarations import RouteType
from tests.support.cases import each_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HOOKS = [name for name in hookspecs.__all__ if name.startswith("switchyard_")]
NAMES = [name for name in switchyard_core.__all__ if not name.startswith("__")]
SECTIONS = ["When", "Arguments", "Result", "On error", "Since", "Example"]
TYPES = sorted(
    (
        route_type
        for name, route_type in PluginRegistry.from_entry_points().route_types.items()
        if route_type.options.__module__.split(".")[0] in {p.name for p in ROOT.glob("plugins/*")}
    ),
    key=lambda route_type: route_type.name,
)

each_hook = pytest.mark.parametrize("hook", HOOKS)


def hook_page(hook: str) -> str:
    return (DOCS / "hooks" / f"{hook}.md").read_text(encoding="utf-8")


def signature(hook: str) -> str:
    return f"{hook}({', '.join(inspect.signature(getattr(hookspecs, hook)).parameters)})"


def section(page: str, title: str) -> str:
    """Return what stands below a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n", page, re.MULTILINE)
    assert found is not None, f"no heading `{title}`"
    return re.split(rf"^#{{1,{len(found[1])}}} ", page[found.end() :], flags=re.MULTILINE)[0]


# --- names ----------------------------------------------------------------------------------------


def test_reference_page_is_what_the_docstrings_say() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")

    assert page == reference(), "run: python scripts/write_reference_page.py"


def test_reference_page_has_every_public_name_and_no_other() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")

    top, *_ = re.split(r"^## switchyard_core\.", page, flags=re.MULTILINE)
    assert re.findall(r"^### `(\w+)`$", top, re.MULTILINE) == sorted(NAMES, key=str.lower)
    assert len(NAMES) <= 70


@each_of("name", NAMES)
def test_reference_entry_says_something(name: str) -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    entry = section(page, f"`{name}`")

    assert "```text" in entry
    assert ":class:" not in entry
    assert "``" not in entry.replace("```", "")


# --- hooks ----------------------------------------------------------------------------------------


def test_every_page_is_about_a_hook() -> None:
    assert sorted(path.stem for path in (DOCS / "hooks").glob("*.md")) == sorted(HOOKS)


@each_hook
def test_hook_page_has_the_signature_and_every_section(hook: str) -> None:
    page = hook_page(hook)
    titles = re.findall(r"^## (.+)$", page, re.MULTILINE)

    assert page.startswith(f"# `{signature(hook)}`\n")
    assert titles == SECTIONS
    assert [title for title in titles if not section(page, title).strip()] == []


@each_hook
def test_hook_page_names_each_argument_and_the_version(hook: str) -> None:
    page, spec = hook_page(hook), getattr(hookspecs, hook)
    arguments = section(page, "Arguments")
    since = re.search(r"versionadded:: (\S+)", spec.__doc__)

    for name in inspect.signature(spec).parameters:
        assert f"- `{name}`: " in arguments
    assert since is not None
    assert section(page, "Since").strip() == since[1]


@each_hook
def test_hook_page_shows_a_plugin_that_uses_it_and_runs_it(hook: str) -> None:
    example = section(hook_page(hook), "Example")

    assert f"def {hook}(" in example
    assert "<!-- not run -->" not in example
    assert "assert " in example


@each_hook
def test_hook_stands_in_the_index_with_its_signature(hook: str) -> None:
    index = (DOCS / "plugin_hooks.md").read_text(encoding="utf-8")

    assert f"[`{signature(hook)}`](hooks/{hook}.md)" in index


# --- options and codes ----------------------------------------------------------------------------


@each_of("route_type", TYPES)
def test_options_of_a_built_in_route_type_are_documented_and_no_other(
    route_type: RouteType,
) -> None:
    page = DOCS / f"{route_type.name}.md"
    if not page.exists():
        page = DOCS / "demo_routers.md"
    rows = _rows(section(page.read_text(encoding="utf-8"), f"`{route_type.name}`"))
    fields = {field.alias or n: field for n, field in route_type.options.model_fields.items()}

    assert sorted(rows) == sorted(fields)
    for key, field in fields.items():
        assert field.is_required() == (rows[key] == "required")


def _rows(text: str) -> dict[str, str]:
    """Return the defaults of the tables whose first column is a key, by the key."""
    found = {}
    for table in re.findall(r"^\| key \| default \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE):
        for line in table.splitlines():
            key, default = (cell.strip() for cell in line.split("|")[1:3])
            if re.fullmatch(r"`\w+`", key):
                found[key.strip("`")] = default
    return found


def test_every_code_of_a_refused_request_is_in_the_servers_table() -> None:
    table = section((DOCS / "server.md").read_text(encoding="utf-8"), "Errors")
    refusals = r"(?:RequestError|BodyError|\w+Error)\((?:[^()]|\([^()]*\))*?\bcode=\"([a-z_]+)\""
    # Explaining reads files of people; it refuses no request.
    paths = (p for p in (ROOT / "switchyard_core").rglob("*.py") if "explain" not in p.parts)
    texts = (path.read_text(encoding="utf-8") for path in paths)
    codes = {code for text in texts for code in re.findall(refusals, text)}

    assert {"duplicate_key", "latch_capacity", "model_not_found"} <= codes
    assert sorted(code for code in codes if f"`{code}`" not in table) == []
