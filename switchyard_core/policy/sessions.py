"""Resolves ``[identity]`` and ``[[housekeeping]]``: what tells requests apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from switchyard_core.identity import HEADER_NAME
from switchyard_core.patterns import PatternError, compile_pattern
from switchyard_core.policy.draft import Draft
from switchyard_core.policy.model import Housekeeping
from switchyard_core.policy.positions import Location
from switchyard_core.policy.schema import HousekeepingModel, IdentityModel
from switchyard_core.policy.secrets import shown

__all__ = ["resolve_housekeeping", "resolve_identity"]

_TESTS = ("equals", "in", "matches", "exists")


def resolve_identity(draft: Draft) -> tuple[str, ...]:
    """Return the session sources, header names in lower case; wrong ones are reported."""
    raw = draft.document.values.get("identity", {})
    if not isinstance(raw, dict):
        return ()
    draft.validated(("identity",), IdentityModel, raw)
    sources: list[str] = []
    session = raw.get("session")
    for index, source in enumerate(session if isinstance(session, list) else ()):
        if isinstance(source, str):
            sources += _session_source(draft, ("identity", "session", index), source)
    return tuple(sources)


def _session_source(draft: Draft, location: Location, source: str) -> list[str]:
    kind, _, rest = source.partition(":")
    if kind == "body":
        compiled = draft.compiled(rest, location, shift=len("body:"))
        return [source] if compiled is not None else []
    if kind == "header" and HEADER_NAME.fullmatch(rest):
        return [f"header:{rest.lower()}"]
    draft.report(
        "SY109",
        f"`{shown(source)}` is not a session source",
        location,
        fix="write `header:<name>` or `body:<JSONPath>`",
    )
    return []


def resolve_housekeeping(draft: Draft) -> tuple[Housekeeping, ...]:
    """Return the conditions that mark side calls; wrong ones are reported."""
    raw = draft.document.values.get("housekeeping", [])
    if not isinstance(raw, list):
        return ()
    conditions: list[Housekeeping] = []
    for index, table in enumerate(raw):
        location: Location = ("housekeeping", index)
        before = len(draft.findings)
        draft.validated(location, HousekeepingModel, table)
        if isinstance(table, dict):
            condition = _condition(draft, location, table)
            if len(draft.findings) == before:
                conditions.append(condition)
    return tuple(conditions)


def _condition(draft: Draft, location: Location, table: Mapping[str, Any]) -> Housekeeping:
    path, header = table.get("path"), table.get("header")
    if ("path" in table) == ("header" in table):
        draft.report(
            "SY109",
            "a housekeeping condition reads either a `path` or a `header`",
            location,
            at_key=True,
            fix="give exactly one of them",
        )
    tests = [key for key in _TESTS if key in table]
    if len(tests) > 1:
        draft.report(
            "SY109",
            f"a housekeeping condition has one test, not {' and '.join(f'`{t}`' for t in tests)}",
            (*location, tests[1]),
            at_key=True,
            fix="write one table per condition",
        )
    _check_can_hold(draft, location, table)
    if isinstance(header, str) and not HEADER_NAME.fullmatch(header):
        draft.report(
            "SY109",
            f"`{shown(header)}` is not a header name",
            (*location, "header"),
            fix="use letters, digits and hyphens",
        )
    compiled = draft.compiled(path, (*location, "path")) if isinstance(path, str) else None
    return Housekeeping(
        header=header.lower() if isinstance(header, str) else None,
        path=compiled,
        test=_test(draft, location, table),
        wanted=table.get("exists") is not False,
    )


def _check_can_hold(draft: Draft, location: Location, table: Mapping[str, Any]) -> None:
    """Report a test that no value can pass."""
    key = "equals" if "equals" in table else "in"
    wanted = [table["equals"]] if "equals" in table else table.get("in")
    if not isinstance(wanted, list):
        return
    if not wanted:
        message, fix = "the list is empty, so the condition never holds", "list a value"
    elif "header" in table and not any(isinstance(value, str) for value in wanted):
        message = "the value of a header is text, so the condition never holds"
        fix = "write the value in quotes"
    else:
        return
    draft.report("SY109", message, (*location, key), fix=fix)


def _test(draft: Draft, location: Location, table: Mapping[str, Any]) -> Callable[[Any], bool]:
    if "equals" in table:
        return _same_as([table["equals"]])
    if isinstance(table.get("in"), list):
        return _same_as(table["in"])
    pattern = table.get("matches")
    if not isinstance(pattern, str):
        return _any_value
    try:
        found = compile_pattern(pattern, dot_all=True)
    except PatternError as error:
        draft.report(
            "SY402",
            f"not a regular expression: {error}",
            (*location, "matches"),
            offset=error.column,
            fix="correct the expression (RE2 syntax)",
        )
        return _any_value
    return lambda value: isinstance(value, str) and found(value)


def _same_as(wanted: list[Any]) -> Callable[[Any], bool]:
    # `True == 1` in Python, not in JSON.
    return lambda value: any(
        value == item and isinstance(value, bool) == isinstance(item, bool) for item in wanted
    )


def _any_value(_value: Any) -> bool:
    return True
