"""The reference pages: every code, every key, every default that can be read off a model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from switchyard_core.policy.models import (
    Client,
    Housekeeping,
    Identity,
    Price,
    ReplaySettings,
    Route,
    Target,
    Top,
)
from switchyard_core.policy.shapes import allowed_keys

ROOT = Path(__file__).parents[2]


def _codes_in_source() -> set[str]:
    folders = (ROOT / "switchyard_core", ROOT / "plugins")
    texts = (path.read_text() for folder in folders for path in folder.rglob("*.py"))
    return {code for text in texts for code in re.findall(r'"(SY\d{3})"', text)}


def test_every_code_of_the_source_is_explained_and_no_other() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    explained = re.findall(r"^### (SY\d{3}) ", page, re.MULTILINE)
    assert explained == sorted(set(explained))
    assert set(explained) == _codes_in_source()


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        pytest.param("Top level", Top, id="top"),
        pytest.param("`[llm_clients.<name>]`", Client, id="clients"),
        pytest.param("`[targets.<name>]`", Target, id="targets"),
        pytest.param("`[routes.<name>]`", Route, id="routes"),
        pytest.param("`[identity]`", Identity, id="identity"),
        pytest.param("`[[housekeeping]]`", Housekeeping, id="housekeeping"),
        pytest.param('`[prices."<target id>"]`', Price, id="prices"),
        pytest.param("`[replay]`", ReplaySettings, id="replay"),
    ],
)
def test_every_key_of_a_table_is_documented_and_no_other(
    heading: str, model: type[BaseModel]
) -> None:
    page = (ROOT / "docs" / "policy.md").read_text()
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    keys = [key.strip("[]") for key in re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)]
    assert sorted(keys) == sorted(allowed_keys(model))
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key not in keys:
            continue
        row = next(line for line in section.splitlines() if line.split("`")[1:2] in _marks(key))
        if field.is_required():
            assert "required" in row


def _marks(key: str) -> list[list[str]]:
    """Return how a key may stand in the first column: plain, or as a table."""
    return [[key], [f"[{key}]"], [f"[[{key}]]"]]
