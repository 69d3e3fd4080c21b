"""Texts that are not TOML: what is given twice, what is not closed, what is too deep."""

from __future__ import annotations

import pytest

from switchyard_core.errors import Finding, PolicyError
from switchyard_core.policy.document import parse_document
from switchyard_core.policy.outline import Outline


def refused(text: str) -> Finding:
    with pytest.raises(PolicyError) as caught:
        parse_document(text, "p.toml")
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize(
    ("text", "place", "name", "first"),
    [
        pytest.param("a = 1\n a = 2\n", (2, 2), "key `a`", "1:1", id="key"),
        pytest.param("[a]\n[b]\n[a]\n", (3, 2), "table `a`", "1:2", id="table"),
        pytest.param("a = {x=1}\n[a]\n", (2, 2), "key `a`", "1:1", id="table_after_value"),
        pytest.param("a.b = 1\n[a]\n", (2, 2), "key `a`", "1:1", id="table_after_dotted_key"),
        pytest.param("[a]\nb=1\n[[a]]\n", (3, 3), "table `a`", "1:2", id="array_after_table"),
        pytest.param("[[a]]\nb=1\n[a]\n", (3, 2), "table `a`", "1:3", id="table_after_array"),
        pytest.param("a=[]\n[[a]]\n", (2, 3), "key `a`", "1:1", id="array_after_value"),
        pytest.param("a = {x=1, y={z=1}, x={q=2}}", (1, 20), "key `a.x`", "1:6", id="inline"),
        pytest.param("a={b.c=1,b=2}", (1, 10), "key `a.b`", "1:4", id="inline_dotted"),
        pytest.param("a=1\na.b=2\n", (2, 1), "key `a`", "1:1", id="dotted_after_value"),
        pytest.param("[x]\na.b=1\na.c=2\na.b=3\n", (4, 3), "key `x.a.b`", "2:3", id="dotted"),
        pytest.param("[a.b]\nx=1\n[a]\nb.c=1\n", (4, 1), "table `a.b`", "1:4", id="into_table"),
        pytest.param(
            "[[r]]\nx=1\n[[r]]\nx=1\nx=2", (5, 1), "key `r[1].x`", "4:1", id="element_of_array"
        ),
        pytest.param(
            "[[a.b]]\n[a.b.c]\nx=1\n[a.b.c]\n", (4, 6), "table `a.b[0].c`", "2:6", id="in_element"
        ),
    ],
)
def test_something_given_twice_is_named_with_both_places(
    text: str, place: tuple[int, int], name: str, first: str
) -> None:
    finding = refused(text)
    assert (finding.code, finding.line, finding.column) == ("SY103", *place)
    assert finding.message == f"not TOML: {name} is given twice"
    assert finding.notes == (f"first given at p.toml:{first}",)
    assert finding.fix == "remove one of them; nothing after this place was read"


def test_repeated_key_that_looks_like_a_credential_is_not_repeated() -> None:
    key = "sk-proj-abcdefghijklmnop1234"
    assert key not in refused(f'"{key}" = 1\n"{key}" = 2\n').render()


@pytest.mark.parametrize(
    ("text", "place", "note"),
    [
        pytest.param('a = """x\nb = 1\n', (3, 1), "the string began at p.toml:1:5", id="multi"),
        pytest.param("a = '''x\n", (2, 1), "the string began at p.toml:1:5", id="literal"),
        pytest.param('b=1\na = "x\n', (2, 7), "the string began at p.toml:2:5", id="one_line"),
        pytest.param(
            "a = [1,\n2\nb = 3", (3, 1), "the bracket was opened at p.toml:1:5", id="array"
        ),
        pytest.param(
            "a = [[1], [2\n\n", (3, 1), "the bracket was opened at p.toml:1:11", id="inner_array"
        ),
        pytest.param("a = {x=1\n\n", (3, 1), "the bracket was opened at p.toml:1:5", id="table"),
    ],
)
def test_something_not_closed_says_where_it_began(
    text: str, place: tuple[int, int], note: str
) -> None:
    finding = refused(text)
    assert (finding.code, finding.line, finding.column) == ("SY103", *place)
    assert finding.notes == (note,)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("b = 1\na = " + "[" * 65 + "]" * 65, (2, 69), id="arrays"),
        pytest.param("[" + "a." * 64 + "b]\n", (1, 130), id="header"),
        pytest.param("x = {" + "a={" * 70 + "}" * 71, (1, 6 + 63 * 3), id="inline_tables"),
    ],
)
def test_nesting_is_reported_where_it_gets_too_deep(text: str, place: tuple[int, int]) -> None:
    finding = refused(text)
    assert (finding.code, finding.line, finding.column) == ("SY101", *place)


def test_nesting_of_64_levels_is_read() -> None:
    assert parse_document("a = " + "[" * 64 + "]" * 64, "p.toml").values["a"] == _nested(64)


def _nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "text", ["a", "[", "[[", "a = ", 'a = "', "= [", '"\\x" = 1', "a = [=,}", ""]
)
def test_outline_of_a_broken_text_ends_without_an_error(text: str) -> None:
    assert Outline(text).repeat is None
