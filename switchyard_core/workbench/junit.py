"""Results of policy tests as JUnit XML, which CI systems show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from switchyard_core.workbench.cases import CaseResult, FileResult

__all__ = ["junit"]

#: Characters that XML 1.0 cannot hold in any form.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(results: Sequence[FileResult]) -> str:
    """Return results as an XML document: a suite per test file, in their order.

    A file with mistakes is a suite with one case, ``load``, in error.
    """
    root = ET.Element("testsuites", name="switchyard")
    total = [0, 0, 0]
    for result in results:
        cases = result.cases or (_loading(result),)
        counts = [len(cases), result.count("FAIL"), result.count("ERROR")]
        total = [sum(pair) for pair in zip(total, counts, strict=True)]
        suite = ET.SubElement(root, "testsuite", {"name": _text(result.file), **_counts(counts)})
        for case in cases:
            _add(suite, result.file, case)
    root.attrib.update(_counts(total))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _loading(result: FileResult) -> CaseResult:
    text = "\n".join(finding.render() for finding in result.findings)
    return CaseResult(name="load", where=result.file, state="ERROR", error=text)


def _add(suite: ET.Element, file: str, case: CaseResult) -> None:
    element = ET.SubElement(suite, "testcase", name=_text(case.name), classname=_text(file))
    if case.state == "PASS":
        return
    lines = [wrong.render() for wrong in case.mismatches] or case.error.splitlines()
    tag = "failure" if case.state == "FAIL" else "error"
    child = ET.SubElement(element, tag, message=_text(lines[0] if lines else case.state))
    child.text = _text("\n".join([case.where, *lines, case.story]).rstrip() + "\n")


def _counts(counts: Sequence[int]) -> dict[str, str]:
    tests, failures, errors = map(str, counts)
    return {"tests": tests, "failures": failures, "errors": errors}


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
