"""The one home of RE2: no pattern of a policy, and no text, takes more than linear time."""

from __future__ import annotations

import pytest

from switchyard_core.patterns import MAX_PROGRAM, PatternError, compile_pattern, pattern_set
from switchyard_core.policy.secrets import looks_like_credential


def test_pattern_is_found_anywhere_in_a_text() -> None:
    found = compile_pattern("b+")

    assert found("abbc")
    assert not found("ac")


@pytest.mark.parametrize(
    ("how", "text", "holds"),
    [
        pytest.param({}, "A\nb", False, id="case"),
        pytest.param({"ignore_case": True}, "A-b", True, id="ignore_case"),
        pytest.param({}, "a\nb", False, id="line"),
        pytest.param({"dot_all": True}, "a\nb", True, id="dot_all"),
    ],
)
def test_pattern_follows_its_options(how: dict[str, bool], text: str, holds: bool) -> None:
    assert compile_pattern("a.b", **how)(text) is holds


def test_half_of_an_emoji_can_be_in_a_text_and_in_a_pattern() -> None:
    assert compile_pattern("a.b")("a\ud800b")
    assert not compile_pattern("\ud800")("a")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(?:a?){30}a{30}$"])
def test_nested_repetitions_take_linear_time(pattern: str) -> None:
    assert not compile_pattern(pattern)("a" * 100_000 + "b")


@pytest.mark.parametrize(
    ("pattern", "words", "column"),
    [
        pytest.param("ab(", "missing ): ab(", 0, id="bracket"),
        pytest.param("a(?=b)", "invalid perl operator: (?=", 1, id="look_ahead"),
        pytest.param(r"(a)\1", r"invalid escape sequence: \1", 3, id="back_reference"),
        pytest.param("x{0,900}.{0,900}", f"and {MAX_PROGRAM} are allowed", 0, id="large"),
        pytest.param("((a{900}){900}){900}", "invalid repetition size: {900}", 3, id="huge"),
        pytest.param("(" * 5000 + ")" * 5000, "", 0, id="deep"),
    ],
)
def test_pattern_that_cannot_run_in_linear_time_is_refused(
    pattern: str, words: str, column: int
) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)

    assert words in caught.value.message
    assert caught.value.column == column


def test_set_tells_which_patterns_match() -> None:
    found = pattern_set(["a+", "b", "a"])

    assert found("xa") == [0, 2]
    assert found(b"b") == [1]
    assert not found("c")
    assert not pattern_set(["a"], whole=True)("ab")


@pytest.mark.parametrize(
    "text",
    ["://" + "a:" * 200_000, "-eyJ" * 100_000, "-----BEGIN " * 40_000],
    ids=["url", "token", "key"],
)
def test_any_text_is_searched_for_credentials_in_linear_time(text: str) -> None:
    assert not looks_like_credential(text)
