"""Results of policy tests for people, for programs, and as JUnit XML for CI systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree as ET

from switchyard_core.cases.run import CaseResult, Coverage, FileResult, State

__all__ = ["as_json", "as_junit", "as_text", "exit_code"]

#: Characters that XML 1.0 cannot hold in any form.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_INDENT = " " * 8


def exit_code(results: Sequence[FileResult]) -> int:
    """Return 0 when every case passes, 1 when one fails, 2 when one cannot run."""
    if any(result.count("ERROR") for result in results):
        return 2
    return 1 if any(result.count("FAIL") for result in results) else 0


def as_text(
    results: Sequence[FileResult],
    untested: Sequence[str] = (),
    *,
    coverage: bool = False,
    paint: Callable[[State], str] = str,
) -> str:
    """Return results for people; ``untested`` are policies without a test file."""
    lines: list[str] = []
    for result in results:
        lines += [result.file, *_file(result, paint)]
        if coverage and result.coverage is not None:
            lines += _coverage(result.coverage)
    if coverage:
        lines += [f"{policy}: no test file" for policy in untested]
    lines.append(_summary(results, untested))
    return "\n".join(lines) + "\n"


def as_json(results: Sequence[FileResult], untested: Sequence[str] = ()) -> dict[str, Any]:
    """Return results as plain data."""
    return {
        "version": 1,
        "passed": _count(results, "PASS"),
        "failed": _count(results, "FAIL"),
        "errors": _count(results, "ERROR"),
        "untested": list(untested),
        "files": [
            {
                "file": result.file,
                "policy": result.policy,
                "findings": [finding.render() for finding in result.findings],
                "cases": [_case_json(case) for case in result.cases],
                "coverage": None if result.coverage is None else asdict(result.coverage),
            }
            for result in results
        ],
    }


def _file(result: FileResult, paint: Callable[[State], str]) -> Iterator[str]:
    for finding in result.findings:
        first, *rest = finding.render().split("\n")
        yield f"  {paint('ERROR')} {first}"
        yield from (f"{_INDENT}{line.strip()}" for line in rest)
    for case in result.cases:
        yield f"  {paint(case.state)}{' ' * (6 - len(case.state))}{case.name}"
        if case.state == "PASS":
            continue
        lines = [wrong.render() for wrong in case.mismatches]
        if case.error:
            lines += [f"{case.where}: {case.error}"]
        yield from (f"{_INDENT}{line}" for text in lines for line in text.split("\n"))
        yield from (f"{_INDENT}| {line}".rstrip() for line in case.story.splitlines())


def _coverage(coverage: Coverage) -> Iterator[str]:
    routes = f"{coverage.routes - coverage.missing('route')} of {coverage.routes} routes"
    rules = f"{coverage.rules - coverage.missing('rule')} of {coverage.rules} own rules"
    yield f"  exercised: {routes}, {rules}"
    for part in coverage.uncovered:
        yield f"  {part.where}: no case exercises the {part.kind} `{part.name}`"


def _summary(results: Sequence[FileResult], untested: Sequence[str]) -> str:
    text = f"{_count(results, 'PASS')} passed"
    failed, errors = _count(results, "FAIL"), _count(results, "ERROR")
    if failed:
        text += f", {failed} failed"
    if errors:
        text += f", {errors} {'error' if errors == 1 else 'errors'}"
    text += f" in {len(results)} {'file' if len(results) == 1 else 'files'}"
    if untested:
        number = len(untested)
        text += f"; {number} {'policy has' if number == 1 else 'policies have'} no test file"
    return text


def _count(results: Sequence[FileResult], state: State) -> int:
    return sum(result.count(state) for result in results)


def _case_json(case: CaseResult) -> dict[str, Any]:
    return {
        "name": case.name,
        "where": case.where,
        "state": case.state,
        "mismatches": [asdict(wrong) for wrong in case.mismatches],
        "error": case.error,
        "explanation": "" if case.state == "PASS" else case.story,
    }


def as_junit(results: Sequence[FileResult]) -> str:
    """Return results as an XML document: a suite per test file, in their order.

    A file with mistakes is a suite with one case, ``load``, in error.
    """
    root = ET.Element("testsuites", name="switchyard")
    total = [0, 0, 0]
    for result in results:
        cases = result.cases or (_loading(result),)
        states = [case.state for case in cases]
        counts = [len(cases), states.count("FAIL"), states.count("ERROR")]
        total = [sum(pair) for pair in zip(total, counts, strict=True)]
        suite = ET.SubElement(root, "testsuite", {"name": _xml(result.file), **_counts(counts)})
        for case in cases:
            _add(suite, result.file, case)
    root.attrib.update(_counts(total))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _loading(result: FileResult) -> CaseResult:
    text = "\n".join(finding.render() for finding in result.findings)
    return CaseResult(name="load", where=result.file, state="ERROR", error=text)


def _add(suite: ET.Element, file: str, case: CaseResult) -> None:
    element = ET.SubElement(suite, "testcase", name=_xml(case.name), classname=_xml(file))
    if case.state == "PASS":
        return
    lines = [wrong.render() for wrong in case.mismatches] or case.error.splitlines()
    tag = "failure" if case.state == "FAIL" else "error"
    child = ET.SubElement(element, tag, message=_xml(lines[0] if lines else case.state))
    child.text = _xml("\n".join([case.where, *lines, case.story]).rstrip() + "\n")


def _counts(counts: Sequence[int]) -> dict[str, str]:
    tests, failures, errors = map(str, counts)
    return {"tests": tests, "failures": failures, "errors": errors}


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
