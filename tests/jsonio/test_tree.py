from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.jsonio.scan import readable
from switchyard_core.jsonio.tree import ArrayText, JsonTextError, ObjectText, encode, loads
from tests.support.strategies import VALUES, objects


def written(members: list[tuple[str, str]], space: str = "") -> bytes:
    inner = ",".join(f"{space}{key}{space}:{space}{value}{space}" for key, value in members)
    return f"{space}{{{inner}}}{space}".encode()


@given(objects(), st.sampled_from(["", " ", "\n  ", "\r\n\t"]))
def test_object_untouched_dumps_its_very_bytes(members, space):
    data = written(members, space)

    tree = ObjectText(data)

    assert tree.dump() == data
    assert not tree.changed
    assert [tree.raw(json.loads(key)) for key, _ in members] == [v.encode() for _, v in members]


@given(objects(reserved=("model",)), objects(reserved=("model",)), VALUES)
def test_set_changes_one_value_and_keeps_all_other_bytes(before, after, value):
    names = {json.loads(key) for key, _ in before}
    after = [(key, text) for key, text in after if json.loads(key) not in names]
    data = written([*before, ('"model"', '"a"'), *after], " ")

    tree = ObjectText(data)
    tree.set("model", value.encode())

    assert tree.dump() == written([*before, ('"model"', value), *after], " ")


@given(objects())
def test_reading_into_every_value_changes_nothing(members):
    data = written(members)
    tree = ObjectText(data)

    keys = tree.keys()
    for key in keys:
        inner = tree.object(key)
        items = tree.array(key)
        for node in (inner, items):
            if node is not None:
                node.dump()

    assert tree.dump() == data


@given(st.lists(VALUES, max_size=5), VALUES)
def test_array_append_then_delete_gives_the_bytes_back(items, extra):
    data = ("[" + ", ".join(items) + "]").encode()
    array = ArrayText(data)

    array.append(extra.encode())
    assert array.raw(len(items)) == extra.encode()
    array.delete(len(items))

    assert array.dump() == data


def test_nested_edit_keeps_duplicate_keys_and_spacing():
    data = b'{ "a" : {"x":1 , "x":2.50, "y":[ ]} , "b":1e400 }'
    tree = ObjectText(data)

    inner = tree.object("a")
    assert inner is not None
    inner.set("y", b"true")

    assert tree.dump() == b'{ "a" : {"x":1 , "x":2.50, "y":true} , "b":1e400 }'


def test_duplicate_nested_key_last_one_is_read_and_all_are_deleted():
    tree = ObjectText(b'{"x":1,"y":2,"x":3}')

    assert tree.raw("x") == b"3"
    assert tree.delete("x")
    assert tree.dump() == b'{"y":2}'


@pytest.mark.parametrize(
    "data",
    [b'{"a":1,"a":2}', b'{"a":12,"a":1}', b'{"a":[1,2],"a":1}', b'{"a":"x,\\"a\\":1","a":"y"}'],
)
def test_unique_object_with_a_duplicate_key_is_refused(data):
    with pytest.raises(JsonTextError) as caught:
        ObjectText(data, unique=True)

    assert caught.value.duplicate == "a"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the body is empty"),
        (b"[1]", "expected a JSON object, found an array"),
        (b'"x"', "expected a JSON object, found a string"),
        (b'{"a":1', "not JSON: expecting ',' delimiter at line 1 column 7"),
        (
            b'{"a":\n "NaN", "\xc3\xa4": -Infinity}',
            "not JSON: `-Infinity` is not a JSON value at line 2 column 14",
        ),
        (b'{"a":NaN}', "not JSON: `NaN` is not a JSON value at line 1 column 6"),
        (b'{"a":"x\ty"}', "not JSON: invalid control character at line 1 column 8"),
        (b'{"a":"x', "not JSON: unterminated string starting at line 1 column 6"),
        (b"\xef\xbb\xbf{}", "the body starts with a byte order mark; send plain UTF-8"),
        (
            b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "nested too deeply: 100001 levels at line 1 column 100005",
        ),
    ],
    ids=[
        "empty",
        "array",
        "string",
        "cut",
        "infinity",
        "nan",
        "control",
        "unterminated",
        "mark",
        "deep",
    ],
)
def test_unfit_bytes_are_refused_with_the_place(data, message):
    with pytest.raises(JsonTextError) as caught:
        ObjectText(data)

    assert caught.value.message == message


def test_loads_of_a_body_that_is_too_deep_says_where():
    with pytest.raises(JsonTextError) as caught:
        loads(b'{\n"x":"[[",\n"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}")

    assert caught.value.message == "nested too deeply: 200001 levels at line 3 column 200005"


@pytest.mark.parametrize("digits", [4_300, 4_301, 100_000])
def test_loads_of_an_integer_longer_than_python_converts_gives_a_number(digits):
    found = loads(b'{"a": [' + b"9" * digits + b', 1], "b": -' + b"9" * digits + b"}")

    assert found["a"][1] == 1
    assert found["a"][0] > 10**300 > 0 > found["b"]


def test_loads_of_a_broken_text_with_a_long_integer_says_what_is_wrong():
    with pytest.raises(JsonTextError):
        loads(b'{"a": ' + b"9" * 5_000 + b", }")


def test_loads_says_what_is_wrong_like_every_other_reader():
    with pytest.raises(JsonTextError) as caught:
        loads(b'{"a": }')

    assert caught.value.message == "not JSON: expecting value at line 1 column 7"


def test_lone_surrogate_is_read_and_kept():
    data = rb'{"text":"cut \ud83d","more":"\\ud800"}'
    tree = ObjectText(data)

    assert tree.text("text") == "cut \ud83d"
    assert tree.text("more") == r"\ud800"
    assert tree.dump() == data


def test_readable_masks_only_lone_surrogates_and_keeps_offsets():
    data = rb'"\ud83d\ude00 \ud83d \\ud800 \ude00"'

    assert readable(data) == rb'"\ud83d\ude00 \ufffd \\ud800 \ufffd"'


def test_insert_is_spaced_like_its_neighbours():
    tree = ObjectText(b'{\n  "a": 1,\n  "b": 2\n}')

    tree.insert(1, "new", b"0")
    tree.set("last", b"9")

    assert tree.dump() == b'{\n  "a": 1,\n  "new": 0,\n  "b": 2,\n  "last": 9\n}'


def test_delete_of_the_last_member_keeps_the_closing_place():
    tree = ObjectText(b'{\n  "a": 1,\n  "b": 2\n}')

    tree.delete("b")

    assert tree.dump() == b'{\n  "a": 1\n}'


def test_copy_is_independent():
    tree = ObjectText(b'{"a":{"b":1}}')
    twin = tree.copy()

    inner = twin.object("a")
    assert inner is not None
    inner.set("b", b"2")

    assert tree.dump() == b'{"a":{"b":1}}'
    assert twin.dump() == b'{"a":{"b":2}}'


def test_tags_move_with_their_items():
    array = ArrayText(b"[1,2,3]")
    array.tag(2, "mine")

    array.insert(0, b"0")
    array.delete(1)

    assert [array.tagged(index, "mine") for index in range(3)] == [False, False, True]
    assert array.dump() == b"[0,2,3]"


@pytest.mark.parametrize("value", ["é", "\ud83d", 10**40, {"b": 1, "a": [None, True]}])
def test_encode_writes_what_json_reads(value):
    assert json.loads(encode(value)) == value


def test_encode_of_half_a_character_keeps_raw_numbers_and_writes_no_infinity():
    raw = msgspec.Raw(b'{"n": 1.10, "big": 1e400}')

    assert encode({"cut": "\ud83d", "raw": raw, "list": [float("inf"), 2**70]}) == (
        b'{"cut":"\\ud83d","raw":{"n": 1.10, "big": 1e400},"list":[null,1180591620717411303424]}'
    )


def test_encode_keeps_key_order():
    assert encode({"b": 1, "a": 2}) == b'{"b":1,"a":2}'
