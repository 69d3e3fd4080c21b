"""The bounds of our dependencies exclude known holes, and the audit tells when it has no data."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.audit import AuditError, audit, installed, lowest, requirements

#: Versions with a hole that a request, an answer or a policy could reach, or that a scan reports.
HOLES = [
    ("certifi", "2024.6.2", "CVE-2024-39689"),
    ("click", "8.3.2", "CVE-2026-7246"),
    ("h11", "0.14.0", "CVE-2025-43859"),
    ("h11", "0.15.0", "CVE-2025-43859"),
    ("httptools", "0.6.2", "CVE-2024-27982"),
    ("idna", "3.6", "CVE-2024-3651"),
    ("idna", "3.14", "CVE-2026-45409"),
    ("jsonpath-ng", "1.7.0", "CVE-2025-56005 by ply"),
    ("pygments", "2.19.2", "CVE-2026-4539"),
    ("pytest", "9.0.2", "CVE-2025-71176"),
    ("tree-sitter", "0.26.0", "crashes on commands"),
]
#: Their next major version is expected to take away what we call.
BOUNDED = ("click", "httpx", "jsonpath-ng", "pluggy", "pydantic", "tree-sitter", "uvicorn")


@pytest.mark.parametrize(("name", "version", "why"), HOLES, ids=[f"{h[0]}-{h[1]}" for h in HOLES])
def test_version_with_a_known_hole_is_excluded(name, version, why):
    found = [item for item in requirements() if canonicalize_name(item.name) == name]

    assert found, f"{name} has no lower bound ({why})"
    assert [str(item) for item in found if item.specifier.contains(version)] == [], why


@pytest.mark.parametrize("name", BOUNDED)
def test_next_major_version_waits_until_it_was_tried(name):
    (found,) = [item for item in requirements() if item.name == name]

    assert not found.specifier.contains("999")


def test_every_requirement_has_a_lowest_version_that_is_not_above_the_installed_one():
    wanted = requirements()

    assert set(lowest(wanted)) == {item.name for item in wanted}
    here = installed(wanted)
    assert {"h11", "httpcore", "pydantic-core"} <= set(here)
    assert [
        i.name for i in wanted if not i.specifier.contains(here[canonicalize_name(i.name)])
    ] == []


def test_requirement_without_a_lower_bound_is_refused():
    with pytest.raises(ValueError, match="`h11<1` needs one lower bound"):
        lowest([Requirement("h11<1")])


SETS = {"lowest": {"a": "1.0"}, "installed": {"a": "2.0", "b": "3.0"}}
HOLE = {"id": "PYSEC-0", "fix_versions": ["1.1"], "aliases": [], "description": "d"}


def index(holes, *, unknown=()):
    """Return what stands for pip-audit; it knows the hole of h11 0.14.0 and these."""
    known = {("h11", "0.14.0"), *holes}

    def ask(versions):
        return [
            {"name": name, "skip_reason": "not found"}
            if name in unknown
            else {"name": name, "version": v, "vulns": [HOLE] if (name, v) in known else []}
            for name, v in versions.items()
        ]

    return ask


def test_audit_without_a_hole_passes():
    code, lines = audit(SETS, index([]))

    assert code == 0
    assert lines == ["0 known holes and 0 unknown versions among 1 lowest, 2 installed"]


def test_audit_names_the_hole_the_set_and_the_mended_version():
    code, lines = audit(SETS, index([("a", "1.0")]))

    assert code == 1
    assert lines[0] == "lowest: a 1.0: PYSEC-0, mended in 1.1"


def test_version_that_the_index_does_not_know_is_a_failure():
    code, lines = audit(SETS, index([], unknown=["b"]))

    assert code == 1
    assert lines[0] == "installed: b: not looked at: not found"


def test_audit_without_data_says_so_and_is_not_run():
    # Such an index answers each question with "not found", and pip-audit then ends with 0.
    code, lines = audit(SETS, index([], unknown=["h11", "a", "b"]))

    assert code == 77
    assert lines == [
        "NOT RUN: no data about known holes: the one in h11 0.14.0, known to all, is not there"
    ]


def test_audit_that_cannot_ask_says_why_and_is_not_run():
    def fail(versions):
        raise AuditError("no route to host")

    assert audit(SETS, fail) == (77, ["NOT RUN: no data about known holes: no route to host"])
