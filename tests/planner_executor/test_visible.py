"""What models say cannot hide, move or imitate what stands around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_planner_executor.visible import is_blank, one_line, plain_lines

HOSTILE = "buy\n  2. free\x1b[2J\r\u202eesrever\u2028end"


def test_one_line_is_one_line_in_which_everything_can_be_seen() -> None:
    assert one_line(HOSTILE) == "buy 2. free\\u001b[2J \\u202eesrever end"


def test_lines_and_tabs_of_a_result_stay() -> None:
    assert plain_lines("a\tb\r\nc\x07") == "a\tb\nc\\u0007"


@pytest.mark.parametrize("text", ["a 😀 b", "👩\u200d🔬", "naïve “quoted”", "日本語"])
def test_what_people_write_stays(text: str) -> None:
    assert one_line(text) == text
    assert plain_lines(text) == text


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    shown = one_line(text).replace("\u200d", "")

    assert shown.isprintable() or not shown.strip()
    assert len(shown.splitlines()) <= 1


@given(st.text())
def test_blank_is_what_shows_nothing(text: str) -> None:
    if is_blank(text):
        assert not any(char.isalnum() for char in text)
