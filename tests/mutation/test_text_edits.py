"""Which texts hold edits, in which form, and that reading them takes linear time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import tomli
from hypothesis import example, given
from hypothesis import strategies as st

from switchyard_core.mutation.text_edits import FORMS, TextEdit, text_edits

TEXTS = tomli.loads((Path(__file__).parents[1] / "data/text-edits.toml").read_text("utf-8"))[
    "texts"
]


def _text(row: dict[str, Any]) -> str:
    text: str = row["text"]
    return text.replace("\n", "\r\n") if row.get("crlf") else text


def _found(text: str) -> list[list[str]]:
    return [[edit.form, edit.path] for edit in text_edits(text)]


def test_texts_of_the_corpus_hold_the_edits_that_they_are_labelled_with() -> None:
    found = {row["name"]: _found(_text(row)) for row in TEXTS}

    assert found == {row["name"]: row["edits"] for row in TEXTS}


def test_corpus_has_edits_of_each_form_and_texts_without() -> None:
    forms = [edit[0] for row in TEXTS for edit in row["edits"]]

    assert all(forms.count(form) >= 4 for form in FORMS)
    assert sum(not row["edits"] for row in TEXTS) >= 12


def test_edits_of_the_corpus_survive_line_ends_and_prose_around_them() -> None:
    for row in TEXTS:
        for text in (
            row["text"].replace("\n", "\r\n"),
            f"Prose.\n\n{row['text']}\n\nMore prose.\n",
        ):
            unfinished = "cut off" in row["name"] or "not finished" in row["name"]
            assert unfinished or _found(text) == row["edits"], row["name"]


def test_offset_is_where_the_edit_begins() -> None:
    begins = {"search_replace": "calc.py", "write_tags": "<write_to_file>", "unified_diff": "---"}
    row = next(row for row in TEXTS if row.get("crlf"))
    text = _text(row)

    for edit in text_edits(text):
        assert text.startswith(begins.get(edit.form, edit.path), edit.offset), edit


def test_text_behind_a_megabyte_is_not_read() -> None:
    block = "a.py\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n"

    assert _found("x\n" * (512 * 1024 - 100) + block) == [["search_replace", "a.py"]]
    assert _found("x\n" * (512 * 1024) + block) == []


#: Pieces of which every form, and every broken form, is made.
PIECES = [
    *("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "```", "````", "```python", "```markdown"),
    *("~~~", "--- a/x.py", "+++ b/x.py", "@@ -1 +1 @@", "-a", "+b", " c", "*** Begin Patch"),
    *(
        "*** Update File: x.py",
        "*** End Patch",
        "<write_to_file>",
        "</write_to_file>",
        "<path>a.py",
    ),
    *("<path>a.py</path>", "<source>", "</source>", "<think>", "</think>", "a.py", "x" * 40, ""),
    *("<write_to_file path='a.py'>", "<" * 9 + " SEARCH", "`" * 50, "~" * 50 + "`", " " * 50),
    *("**a.py**:", "File: a.py", "> a.py", "\t", "<a " * 9, "<write_to_file " + "path " * 9 + ">"),
]
lines = st.lists(st.sampled_from(PIECES), max_size=30)


@given(lines, st.sampled_from(["\n", "\r\n"]))
@example(["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"], "\n")
def test_edits_of_any_text_are_in_order_and_name_a_file(pieces: list[str], end: str) -> None:
    text = end.join(pieces)
    edits = list(text_edits(text))

    assert all(edit.form in FORMS and edit.path.strip() for edit in edits)
    offsets = [edit.offset for edit in edits]
    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)
    assert [e.offset for e in text_edits(f"prose{end}{end}{text}")] == [
        offset + len(f"prose{end}{end}") for offset in offsets
    ]


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert all(isinstance(edit, TextEdit) for edit in text_edits(text))


def _steps(text: str) -> int:
    """Return how many lines of the reader's code run for a text, and of what it calls."""
    steps = 0

    def count(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        for _ in text_edits(text):
            pass
    finally:
        sys.settrace(before)
    return steps


def _shapes() -> Iterator[str]:
    yield from (f"{piece}\n" for piece in PIECES)
    yield from (f"{first}\n{second}\n" for first, second in pairwise(PIECES))
    yield from (f"{row['text']}\n" for row in TEXTS)


def test_twice_the_text_takes_twice_the_steps() -> None:
    dear = {}
    for shape in _shapes():
        # The first time tables are loaded and patterns compiled.
        _, once, twice, again = (_steps(shape * times) for times in (20, 20, 40, 80))
        if again - twice > 2.2 * (twice - once) + 50:
            dear[shape] = (once, twice, again)

    assert dear == {}
