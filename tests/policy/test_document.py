"""Reading a file: whatever it is, the answer is a document or a finding."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.errors import Finding, PolicyError
from switchyard_core.policy.document import MAX_BYTES, dotted, parse_document, read_document


def refused(source: str | bytes) -> Finding:
    with pytest.raises(PolicyError) as caught:
        parse_document(source, "p.toml")
    (finding,) = caught.value.findings
    return finding


def test_parse_document_with_bom_and_crlf_counts_columns_without_them() -> None:
    document = parse_document(b"\xef\xbb\xbfa = 1\r\nb = '''\r\nx'''\r\nc = 2\r\n", "p.toml")
    assert document.values == {"a": 1, "b": "x", "c": 2}
    finding = document.finding("SY000", "m", ("c",))
    assert (finding.file, finding.line, finding.column, finding.path) == ("p.toml", 4, 5, "c")
    assert document.finding("SY000", "m", ("a",), at_key=True).column == 1
    assert document.where(("a",)) == "p.toml:1:5"


@pytest.mark.parametrize(
    ("source", "code", "line", "column"),
    [
        pytest.param("a = 1\nb = [1,\n x", "SY103", 3, 2, id="broken_value"),
        pytest.param("a = 1\r\n\r\n b 2\r\n", "SY103", 3, 2, id="missing_equals"),
        pytest.param('{"json": true}', "SY103", 1, 1, id="json"),
        pytest.param(b"a = 1\nb = '\xc3\xa9\xff'", "SY102", 2, 7, id="not_utf8"),
        pytest.param(b"\xef\xbb\xbfb = '\xff'", "SY102", 1, 6, id="not_utf8_after_bom"),
        pytest.param("a = " + "[" * 5000, "SY101", 1, 69, id="deep"),
        pytest.param("a." * 3000 + "b = 1", "SY101", 1, 129, id="long_key"),
        pytest.param("a = " + "1" * 5000, "SY103", 1, 5, id="long_number"),
        pytest.param("#" * (MAX_BYTES + 1), "SY101", 1, MAX_BYTES + 1, id="large_text"),
        pytest.param("é".encode() * MAX_BYTES, "SY101", 1, MAX_BYTES // 2 + 1, id="large_bytes"),
    ],
)
def test_parse_document_of_something_else_gives_one_finding(
    source: str | bytes, code: str, line: int, column: int
) -> None:
    finding = refused(source)
    assert (finding.code, finding.line, finding.column) == (code, line, column)
    assert finding.fix


def test_read_document_of_a_file_gives_its_values(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"a = 1\n")
    assert read_document(path).values == {"a": 1}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "missing.toml", "cannot read the file: no such file or directory", id="missing"
        ),
        pytest.param("", "cannot read the file: is a directory", id="folder"),
        pytest.param("a\0b", "cannot read the file: not a usable path", id="nul"),
    ],
)
def test_read_document_that_is_no_readable_file_gives_sy100(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        read_document(f"{tmp_path}/{name}")
    (finding,) = caught.value.findings
    assert (finding.code, finding.message, finding.line) == ("SY100", message, 0)


@pytest.mark.parametrize(
    ("location", "text"),
    [
        pytest.param(("routes", "a-b_c", 2, "x"), "routes.a-b_c[2].x", id="plain"),
        pytest.param(("prices", "a/b c"), 'prices."a/b c"', id="quoted"),
        pytest.param(("\n",), '"\\u000a"', id="control"),
        pytest.param(("x", "sk-abcdefghijklmnop1234"), 'x."(hidden)"', id="credential"),
        pytest.param(("",), '""', id="empty"),
        pytest.param((), "", id="root"),
    ],
)
def test_dotted_location_reads_like_a_key(location: tuple[str | int, ...], text: str) -> None:
    assert dotted(location) == text


# --- texts that are not TOML ------------------------------------------------------------------


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


@given(st.binary(max_size=200))
def test_parse_document_of_any_bytes_gives_a_document_or_a_finding(data: bytes) -> None:
    codes: list[str] = []
    try:
        values = dict(parse_document(data, "p.toml").values)
    except PolicyError as error:
        codes, values = [finding.code for finding in error.findings], {}
    assert set(codes) in (set(), {"SY102"}, {"SY103"})
    assert values == {} or not codes
