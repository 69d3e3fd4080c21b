"""JUnit XML of policy tests."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from switchyard_core.cases import CaseResult, FileResult, Mismatch, as_junit
from switchyard_core.errors import Finding

WRONG = Mismatch(what="target", expected='"a"', got='"b"', where="x.test.toml:3:4")
PASSED = CaseResult(name="works", where="x.test.toml:1:1", state="PASS")
FAILED = CaseResult(
    name="a <b> & \x00c",
    where="x.test.toml:2:1",
    state="FAIL",
    mismatches=(WRONG,),
    story="the story\n",
)
BROKEN = CaseResult(name="asks", where="x.test.toml:9:1", state="ERROR", error="would ask `a`")


def test_junit_has_a_suite_per_file_and_counts_its_cases():
    whole = FileResult(file="x.test.toml", policy="x.toml", cases=(PASSED, FAILED, BROKEN))
    finding = Finding(code="SY601", message="no policy", file="y.test.toml")
    lost = FileResult(file="y.test.toml", policy="y.toml", findings=(finding,))

    root = ET.fromstring(as_junit([whole, lost]))

    counts = [(e.get("tests"), e.get("failures"), e.get("errors")) for e in (root, *root)]
    assert counts == [("4", "1", "2"), ("3", "1", "1"), ("1", "0", "1")]
    assert [e.get("name") for e in root] == ["x.test.toml", "y.test.toml"]


def test_junit_tells_failure_from_error_and_shows_why():
    root = ET.fromstring(
        as_junit([FileResult(file="x", policy="y", cases=(PASSED, FAILED, BROKEN))])
    )
    passed, failed, broken = root[0]

    assert list(passed) == []
    assert failed.get("name") == "a <b> & \ufffdc"
    assert failed[0].tag == "failure"
    assert failed[0].get("message") == WRONG.render()
    assert failed[0].text == f"x.test.toml:2:1\n{WRONG.render()}\nthe story\n"
    assert (broken[0].tag, broken[0].get("message")) == ("error", "would ask `a`")


def test_junit_of_a_file_with_mistakes_has_the_findings():
    finding = Finding(code="SY601", message="no policy", file="y.test.toml", fix="rename it")
    root = ET.fromstring(as_junit([FileResult(file="y", policy="y.toml", findings=(finding,))]))

    assert "fix: rename it" in root[0][0][0].text
