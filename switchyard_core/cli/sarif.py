"""Findings as SARIF 2.1.0, the form that code-scanning services read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from switchyard_core.errors import Finding
from switchyard_core.hookspecs import VERSION

__all__ = ["sarif_log"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(
    findings: Sequence[Finding], pages: Mapping[str, str], *, complete: bool
) -> dict[str, Any]:
    """Return a SARIF log with one run.

    ``pages`` has Markdown about each code, below a heading ``# CODE title``; ``complete`` says
    whether every file could be read.
    """
    codes = sorted({finding.code for finding in findings})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "switchyard",
                        "version": VERSION,
                        "rules": [_rule(code, pages.get(code, f"# {code}")) for code in codes],
                    }
                },
                "invocations": [{"executionSuccessful": complete}],
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, codes.index(finding.code)) for finding in findings],
            }
        ],
    }


def _rule(code: str, page: str) -> dict[str, Any]:
    title, _, body = page.partition("\n")
    short = title.removeprefix("# ").removeprefix(code).strip() or code
    body = body.strip() or short
    return {
        "id": code,
        "shortDescription": {"text": short},
        "help": {"text": body, "markdown": body},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    lines = [finding.message, *finding.notes]
    if finding.fix:
        lines.append(f"fix: {finding.fix}")
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(finding.file)}}
    }
    if finding.line:
        location["physicalLocation"]["region"] = {
            "startLine": finding.line,
            "startColumn": finding.column,
        }
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": "\n".join(lines)},
        "locations": [location],
    }


def _uri(name: str) -> str:
    """Return a path as a URI: relative to the working directory, or with the scheme ``file``."""
    path = PurePath(name)
    text = quote(path.as_posix(), errors="surrogateescape")
    return f"file://{text}" if path.is_absolute() else text
