"""Spellings of one tool name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.mutation.names import NameFolding, fold_name
from switchyard_core.mutation.tables import load_table

FOLDING = NameFolding(
    servers=frozenset(load_table("names")["servers"]),
    verbs=frozenset(load_table("names")["verbs"]),
)


@pytest.mark.parametrize(
    "name", ["writeFile", "write_file", "write-file", "Write File", "WRITE.FILE"]
)
def test_fold_name_makes_spellings_equal(name: str) -> None:
    assert fold_name(name) == "writefile"


@pytest.mark.parametrize(
    "name",
    [
        "mcp__fs__write_file",
        "mcp__my_fs__write_file",
        "mcp__a__b__write_file",
        "mcp_fs_write_file",
        "mcp_my_fs_write_file",
        "mcp--fs--write_file",
        "fs_write_file",
        "ext__write_file",
        "functions.write_file",
        "fs/write_file",
        "fs:write_file",
        "copilot_writeFile",
        "desktop-commander_write_file",
    ],
)
def test_prefixed_name_holds_its_tool(name: str) -> None:
    assert "writefile" in {fold_name(candidate) for candidate in FOLDING.candidates(name)}


@pytest.mark.parametrize("name", ["developer_edit", "serena_edit", "mcp__x__edit", "mcp_x_edit"])
def test_single_word_behind_a_server_is_its_tool(name: str) -> None:
    assert "edit" in set(FOLDING.candidates(name))


@pytest.mark.parametrize(
    "name",
    [
        "todo_edit",
        "TodoEdit",
        "preview_edit_file",
        "get_edit_file",
        "my_preview_edit_file",
        "mcp_todo_edit",
        "something_edit",
        "_edit_x",
        "editor",
    ],
)
def test_edit_word_inside_another_name_is_no_tool(name: str) -> None:
    candidates = {fold_name(candidate) for candidate in FOLDING.candidates(name)}

    assert not candidates & {"edit", "editfile"}


@given(st.text())
def test_any_name_comes_first_among_its_candidates(name: str) -> None:
    assert next(FOLDING.candidates(name)) == name
    assert all(candidate in name or "_" in candidate for candidate in FOLDING.candidates(name))
