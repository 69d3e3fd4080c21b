"""Printing changes spacing and nothing else."""

import json

from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.jsonio.printing import pretty
from tests.support.cases import each_of

DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DOCUMENTS)
def test_pretty_agrees_with_the_indentation_of_the_standard_library(document):
    assert pretty(json.dumps(document).encode()) == json.dumps(document, indent=2)


def test_pretty_keeps_the_spelling_of_every_token():
    data = rb'{ "a" :1.10,"n":[1e400,-0, 12345678901234567890123456789],"a":"\u00e9\/\ud800" }'
    assert pretty(data) == (
        '{\n  "a": 1.10,\n  "n": [\n    1e400,\n    -0,\n    12345678901234567890123456789\n  ],'
        '\n  "a": "\\u00e9\\/\\ud800"\n}'
    )


def test_pretty_reads_any_depth():
    data = b"[" * 5_000 + b"]" * 5_000
    assert "".join(pretty(data).split()) == data.decode()


@each_of(
    "text",
    [
        "",
        "not json",
        '{"a":1',
        '{"a":1,}',
        "[1,]",
        "[1 2]",
        '{"a" 1}',
        "{1:2}",
        "[}",
        "1 2",
        "01",
        "1.",
        "truer",
        '"a\nb"',
        r'"\x"',
        "[]]",
        ",",
    ],
)
def test_pretty_of_what_is_not_json_is_the_text_itself(text):
    assert pretty(text.encode()) == text


def test_pretty_of_bytes_that_are_not_utf8_replaces_them():
    assert pretty(b"\xff{}") == "\ufffd{}"
