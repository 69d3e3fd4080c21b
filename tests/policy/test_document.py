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
        pytest.param("a = 1\r\n\r\n b 2\r\n", "SY103", 3, 4, id="missing_equals"),
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


@given(st.binary(max_size=200))
def test_parse_document_of_any_bytes_gives_a_document_or_a_finding(data: bytes) -> None:
    codes: list[str] = []
    try:
        values = dict(parse_document(data, "p.toml").values)
    except PolicyError as error:
        codes, values = [finding.code for finding in error.findings], {}
    assert codes in ([], ["SY102"], ["SY103"])
    assert values == {} or not codes
