from __future__ import annotations

import pytest

from tests.clients.changes import inserted, with_model


def test_with_model_replaces_the_one_name_and_keeps_all_other_bytes() -> None:
    body = b'{"n": 1.10,  "model" : "a/b", "x":[1e400]}'

    assert with_model(body, "c") == b'{"n": 1.10,  "model" : "c", "x":[1e400]}'


def test_with_model_standing_at_two_places_is_refused() -> None:
    with pytest.raises(ValueError, match="2 places"):
        with_model(b'{"model":"a","tools":[{"model":"a"}]}', "b")


@pytest.mark.parametrize(
    ("before", "after", "run"),
    [
        pytest.param(b"abc", b"abc", b"", id="equal"),
        pytest.param(b"[1,2]", b"[0,1,2]", b"0,", id="at_the_front"),
        pytest.param(b"aab", b"aaab", b"a", id="ambiguous_place"),
        pytest.param(b"abc", b"abX", None, id="replaced"),
        pytest.param(b"abc", b"xaybzc", None, id="several_places"),
        pytest.param(b"abc", b"ab", None, id="removed"),
    ],
)
def test_inserted_names_the_one_run_or_nothing(
    before: bytes, after: bytes, run: bytes | None
) -> None:
    assert inserted(before, after) == run
