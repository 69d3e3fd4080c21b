from __future__ import annotations

import json

import pytest
from hypothesis import given

from switchyard_core.jsonio.tree import JsonTextError
from switchyard_core.wire.format import Verbatim, encode_items
from tests.support.strategies import VALUES


@given(value=VALUES)
def test_any_item_is_written_as_it_came(value):
    raw = ('{ "x" : %s }' % value).encode("utf-8", "surrogatepass")  # noqa: UP031  # braces

    assert encode_items([Verbatim(raw)]) == b"[" + raw + b"]"


def test_item_reads_as_a_tree_and_a_dict_of_it_can_be_changed():
    item = Verbatim(b'{"price": 1.10}')

    assert item == {"price": 1.1}
    assert json.dumps(item) == '{"price": 1.1}'
    assert encode_items([item, {**item, "x": 1}]) == b'[{"price": 1.10},{"price":1.1,"x":1}]'


def test_what_is_no_object_is_no_item():
    with pytest.raises(JsonTextError):
        Verbatim(b"{")
