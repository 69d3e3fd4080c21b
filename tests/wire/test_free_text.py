"""Free text in arguments, and back, wherever the pieces are cut."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from switchyard_core.jsonio.tree import encode
from switchyard_core.wire.free_text import ObjectOnly, Retelling, Unwrapped, Wrapped

TEXT = st.text(
    st.one_of(st.sampled_from('"\\/\n\r\t\b😀é\u2028\x00{}'), st.characters(codec="utf-8")),
    max_size=40,
)


def retold(retelling: Retelling, text: str, cuts: set[int]) -> str:
    """Return what a text becomes that comes in pieces; each of them is a JSON string."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    raws = [encode(text[a:b]) for a, b in pairwise(places)]
    given = [*map(retelling.piece, raws), retelling.rest()]
    return "".join(json.loads(raw) for raw in given if raw)


CUTS = st.sets(st.integers(0, 400), max_size=12)
STYLES = (
    lambda text: json.dumps({"input": text}),
    lambda text: json.dumps({"input": text}, ensure_ascii=False),
    lambda text: json.dumps({"input": text}, indent=2),
    lambda text: ' {"input" :\n' + json.dumps(text).replace("/", "\\/") + "}",
    lambda text: '{"input":"' + "".join(f"\\u{unit:04X}" for unit in _units(text)) + '"}',
)


def _units(text: str) -> list[int]:
    raw = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]


@given(TEXT, st.sampled_from(STYLES), CUTS)
@example("😀", STYLES[4], {*range(40)})
@example('\\"\\', STYLES[0], {*range(40)})
def test_the_text_comes_out_of_its_arguments(text, style, cuts):
    assert retold(Unwrapped(), style(text), cuts) == text


@given(TEXT, CUTS)
def test_pieces_of_the_text_are_whole_characters(text, cuts):
    arguments = json.dumps({"input": text})
    unwrapped = Unwrapped()
    places = sorted({0, len(arguments), *(cut % len(arguments) for cut in cuts)})

    for a, b in pairwise(places):
        piece = unwrapped.piece(encode(arguments[a:b]))
        json.loads(piece or b'""').encode()  # half a pair of surrogates cannot be


def test_what_models_write_in_its_place():
    cases = {
        # What is not of the shape is the text itself.
        '{"patch":"x"}': '{"patch":"x"}',
        '{"reason":"r","input":"x"}': '{"reason":"r","input":"x"}',
        "*** Begin Patch": "*** Begin Patch",
        '"x"': '"x"',
        '{"input":7}': '{"input":7}',
        "{}": "{}",
        "": "",
        '{"inp': '{"inp',
        # Behind the text nothing counts, and a text may break off.
        '{"input":"x","more":1}': "x",
        '{"input":"x"}\n': "x",
        '{"input":"x': "x",
        '{"input":"x\\': "x\\",
        '{"input":"\\ud83d': "\\ud83d",
        # Escapes that are none, and characters that need one.
        '{"input":"\\d+ \\\'a\\\'"}': "\\d+ \\'a\\'",
        '{"input":"a\nb\tc"}': "a\nb\tc",
        '{"input":"\\u12"}': "\\u12",
        '{"input":"\\ud83d!"}': "\ud83d!",
        '{"input":"\\ude00"}': "\ude00",
    }
    every = set(range(40))
    missed = [
        (given, found)
        for given, expected in cases.items()
        for cuts in (set[int](), every)
        if (found := retold(Unwrapped(), given, cuts)) != expected
    ]

    assert missed == []


@given(TEXT, CUTS)
def test_the_text_goes_into_arguments_and_comes_out_again(text, cuts):
    arguments = retold(Wrapped(), text, cuts)

    assert json.loads(arguments) == {"input": text}
    assert retold(Unwrapped(), arguments, cuts) == text


def test_arguments_of_a_format_that_takes_objects_alone():
    cases = {
        '{"a":1}': '{"a":1}',
        ' \n {"a":1}': ' \n {"a":1}',
        "null": "",
        "  ": "",
        "[1]": '{"_raw":"[1]"}',
        "ls -la": '{"_raw":"ls -la"}',
        '"{}"': "{}",
        '"{\\"a\\":1}"': '{"a":1}',
        '"ls"': '{"_raw":"\\"ls\\""}',
    }
    missed = [
        (given, found)
        for given, expected in cases.items()
        for cuts in (set[int](), {1}, set(range(20)))
        if (found := retold(ObjectOnly("_raw", waits=False), given, cuts)) != expected
    ]
    broken = retold(ObjectOnly("_raw", waits=True), '{"a":', set())

    assert missed == []
    assert broken == '{"_raw":"{\\"a\\":"}'
