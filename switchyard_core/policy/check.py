"""Checks a policy: turns a document into a policy or into findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar, get_args

from switchyard_core.clients import side_call_kinds
from switchyard_core.declarations import Endpoint, LatchStoreType, PlanStoreType
from switchyard_core.errors import Finding
from switchyard_core.models import DEFAULTS, profile_of
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.document import Document, dotted, leaves
from switchyard_core.policy.draft import Draft, TooManyFindings
from switchyard_core.policy.include import with_included
from switchyard_core.policy.lint import lint
from switchyard_core.policy.models import (
    Client,
    Housekeeping,
    Identity,
    Policy,
    Price,
    Route,
    Target,
    Top,
)
from switchyard_core.policy.places import Location
from switchyard_core.policy.recordings import resolve_replay
from switchyard_core.policy.routes import resolve_routes
from switchyard_core.policy.rulesets import check_used_packs, resolve_rule_sets
from switchyard_core.policy.secrets import can_be_seen, shown
from switchyard_core.policy.validation import MOST_FINDINGS
from switchyard_core.policy.wording import suggestion
from switchyard_core.wire import FORMATS
from switchyard_core.world import World

__all__ = ["CheckResult", "check_document", "check_workers"]

_TableT = TypeVar("_TableT", Client, Target)

#: Every call that some wire format has; another name has a finding of its own.
_CALLS: frozenset[str] = frozenset(get_args(Endpoint))

#: The tests that a housekeeping condition may make.
_TESTS = ("equals", "in", "matches", "exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The policy, ``None`` when it has errors, and all findings in order of position."""

    policy: Policy | None  # the policy, ``None`` when it has errors
    findings: tuple[Finding, ...]  # errors and warnings, in order of position

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Only the errors."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


def check_document(
    document: Document,
    registry: PluginRegistry,
    *,
    environ: Mapping[str, str] | None,
    base: Path,
    path: Path | None,
    today: date | None = None,
) -> CheckResult:
    """Check a document and resolve every name in it; arguments as for ``check_policy_text``."""
    if document.name.endswith(".test.toml") and "cases" in document.values:
        fix = f"name its policy, `{shown(document.name.removesuffix('.test.toml'))}.toml`"
        message = "this is a file with tests, not a policy"
        found = document.finding("SY104", message, ("cases",), at_key=True, fix=fix)
        return CheckResult(policy=None, findings=(found,))
    whole, problems, complete = with_included(document, base, path)
    draft = Draft(document=whole, registry=registry, environ=environ, base=base)
    # A file that cannot be read may declare the missing rule set.
    excused = frozenset() if complete else frozenset({"SY404"})
    try:
        draft.add(problems)
        policy = _resolved(draft, path)
        day = today or datetime.fromtimestamp(World().clock(), UTC).date()
        policy = replace(policy, checked_on=day)
    except TooManyFindings:
        return _stopped(draft, excused)
    findings = [finding for finding in draft.findings if finding.code not in excused]
    errors = [finding for finding in findings if finding.severity == "error"]
    findings += lint(policy, registry.lint_rules, errors)
    ordered = _ordered(policy.document, findings)
    if any(finding.severity == "error" for finding in ordered):
        return CheckResult(policy=None, findings=ordered)
    return CheckResult(policy=replace(policy, findings=ordered), findings=ordered)


def check_workers(policy: Policy, registry: PluginRegistry, workers: int) -> list[Finding]:
    """Return what is wrong with serving a policy by several processes that share nothing."""
    found = []
    for route in policy.routes.values() if workers > 1 else ():
        where = ("routes", route.name)
        if name := _private(route, "latch_store", registry.latch_stores):
            message = (
                f"the latch store `{name}` lives in one process, so {workers} workers would "
                "hand off the same session separately"
            )
            fix = "serve with --workers 1, or use a latch store that processes share"
            found.append(policy.finding("SY310", message, where, severity="error", fix=fix))
        if name := _private(route, "plan_store", registry.plan_stores):
            message = (
                f"the plan store `{name}` lives in one process: a plan that waits for approval is "
                f"known to one of {workers} workers"
            )
            fix = (
                "serve with --workers 1, use a plan store that processes share, or let callers "
                "send plans themselves"
            )
            found.append(policy.finding("SY311", message, where, fix=fix))
    return found


def _private(
    route: Route, key: str, stores: Mapping[str, LatchStoreType] | Mapping[str, PlanStoreType]
) -> str:
    """Return the name of a route's store if it lives in one process, else ``""``."""
    name = getattr(route.options, key, None)
    store = stores.get(name) if isinstance(name, str) else None
    return "" if store is None or store.shared else str(name)


def _resolved(draft: Draft, path: Path | None) -> Policy:
    """Return the policy with everything that is valid; the draft gets the findings."""
    document, registry = draft.document, draft.registry
    _check_top(draft)
    prices = _prices(draft)
    clients = _resolve(draft, "llm_clients", Client, _check_client)
    draft.bearers = {"client": clients, "route_type": registry.route_types}
    targets = {
        name: _fitted(draft, target)
        for name, target in _resolve(draft, "targets", Target, _check_target).items()
    }
    own = resolve_rule_sets(draft)
    routes = resolve_routes(draft, targets)
    check_used_packs(draft, routes.values(), own)
    identity = draft.validated(("identity",), Identity, draft.tables("identity"))
    housekeeping = _housekeeping(draft)
    return Policy(
        name=document.name,
        path=path,
        clients=clients,
        targets={
            name: target.model_copy(update={"price": prices.get(target.id)})
            for name, target in targets.items()
        },
        routes=routes,
        rule_sets={**registry.rule_sets, **own},
        identity_session=identity.session if identity is not None else (),
        housekeeping=housekeeping,
        default_route=_text(document, "default_route"),
        fallback_client=_text(document, "fallback_client"),
        prices=prices,
        replay=resolve_replay(draft),
        findings=(),
        document=document,
        tools={name: registry.tools[name] for route in routes.values() for name in route.tools},
    )


def _fitted(draft: Draft, target: Target) -> Target:
    """Return a target with what its model accepts; what the policy says stands."""
    accepts = profile_of(
        draft.registry.profiles,
        model=target.id,
        wire_format=target.wire_format,
        host=target.host,
        name=target.profile,
        fit=target.fit,
    )
    if isinstance(target.profile, str) and not accepts.entries:
        message = f"the profile `{target.profile}` knows nothing of `{target.wire_format}`"
        fix = "name a profile for the wire format of the client, or remove the key"
        draft.report("SY212", message, ("targets", target.name, "profile"), fix=fix)
    known = {
        key: value
        for key in DEFAULTS
        if key not in target.model_fields_set and (value := getattr(accepts, key)) is not None
    }
    return target.model_copy(update={**known, "accepts": accepts})


def _text(document: Document, key: str) -> str | None:
    value = document.values.get(key)
    return value if isinstance(value, str) else None


def _stopped(draft: Draft, excused: frozenset[str]) -> CheckResult:
    """Return the first findings of a policy with too many, and one that says so."""
    kept = [finding for finding in draft.findings if finding.code not in excused]
    kept = kept[:MOST_FINDINGS]
    last = Finding(
        code="SY115",
        message=f"more than {len(kept)} findings; the rest of the policy was not checked",
        file=draft.document.name,
        fix="correct these and check again",
    )
    return CheckResult(policy=None, findings=(*_ordered(draft.document, kept), last))


def _ordered(document: Document, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    names = [one.name for one in (document, *document.included)]
    places = {name: index for index, name in reversed(list(enumerate(names)))}
    # Findings about other files, such as an included one that is not TOML, come last.
    return tuple(
        sorted(
            findings,
            key=lambda f: (places.get(f.file, len(names)), f.line, f.column, f.code, f.path),
        )
    )


def _check_top(draft: Draft) -> None:
    # Only the shape at the top; each table is validated by its own model.
    shape = {
        key: {} if isinstance(value, dict) else value
        for key, value in draft.document.values.items()
        if not (key == "housekeeping" and isinstance(value, list))
    }
    top = draft.validated((), Top, shape)
    for number, name in enumerate(top.requires if top is not None else ()):
        for plugin in draft.registry.broken_of(name):
            fix = "repair the plugin, or install a version that fits; see `switchyard plugins`"
            draft.report(plugin.code, plugin.error, ("requires", number), fix=fix)
    for key in ("llm_clients", "targets", "routes", "mutation_rules", "prices"):
        for name in draft.tables(key):
            _check_name(draft, (key, name))


def _check_name(draft: Draft, location: Location) -> None:
    """Report a table whose name nobody could see or spell."""
    name = str(location[-1])
    if can_be_seen(name):
        return
    plain = "".join(char for char in name if char.isprintable()).strip()
    hidden = next((char for char in name if not char.isprintable()), "")
    if not plain:
        message, fix = "the name of this table is blank", f"write a name, `[{location[0]}.NAME]`"
    elif hidden:
        message = f"the name of this table holds U+{ord(hidden):04X}, which cannot be seen"
        fix = f"write `[{dotted((*location[:-1], plain))}]`"
    else:
        message = "the name of this table begins or ends with a space"
        fix = f"write `[{dotted((*location[:-1], plain))}]`"
    draft.report("SY116", message, location, at_key=True, fix=fix)


def _resolve(
    draft: Draft,
    key: str,
    model: type[_TableT],
    check: Callable[[Draft, Location, Mapping[str, Any]], None],
) -> dict[str, _TableT]:
    """Return the valid tables under a key; the draft gets the findings."""
    found: dict[str, _TableT] = {}
    for name, raw in draft.tables(key).items():
        location, before = (key, name), len(draft.findings)
        if draft.is_pointed(location, raw, model):
            continue
        shape = raw
        if isinstance(raw, dict) and isinstance(raw.get("extra_body"), dict):
            # SY211 checks its content.
            shape = {**raw, "extra_body": {}}
        table = draft.validated(location, model, shape)
        if isinstance(raw, dict):
            check(draft, location, raw)
        if table is not None and len(draft.findings) == before:
            extra = {"extra_body": raw["extra_body"]} if shape is not raw else {}
            found[name] = table.model_copy(update={"name": name, **extra})
    return found


def _prices(draft: Draft) -> dict[str, Price]:
    tables = draft.tables("prices").items()
    found = {name: draft.validated(("prices", name), Price, raw) for name, raw in tables}
    return {name: price for name, price in found.items() if price is not None}


def _check_client(draft: Draft, location: Location, raw: Mapping[str, Any]) -> None:
    """Report keys of a client that are missing or exclude each other."""
    scripted = raw.get("format") == "scripted"
    real = ("base_url", "paths", "api_key_env", "forward_auth")
    script = ("script", "speaks")
    for key in script if scripted else real[:1]:
        if key not in raw and "format" in raw:
            message, fix = f"missing key `{key}` of a client", f"add `{key} = ...` to this table"
            draft.report("SY206", f"{message} with this `format`", location, at_key=True, fix=fix)
    for key in real if scripted else (*script, "strict"):
        if key in raw and isinstance(raw.get("format"), str):
            message = f"`{key}` has no meaning for a client with this `format`"
            draft.report("SY206", message, (*location, key), at_key=True, fix="remove the key")
    _check_paths(draft, location, raw)
    if raw.get("forward_auth") is True and "api_key_env" in raw:
        draft.report(
            "SY205",
            "`forward_auth` and `api_key_env` exclude each other",
            (*location, "forward_auth"),
            at_key=True,
            notes=("either the caller's credential or the server's key is sent to the provider",),
            fix="remove one of them",
        )
    extra, first = raw.get("extra_headers"), dict[str, Location]()
    for name in extra if isinstance(extra, dict) else ():
        where = (*location, "extra_headers", name)
        if first.setdefault(name.lower(), where) != where:
            place = draft.document.where(first[name.lower()], at_key=True)
            draft.report(
                "SY210",
                f"header `{shown(name)}` is given twice; header names are case-insensitive",
                where,
                at_key=True,
                notes=(f"first given at {place}",),
                fix="remove one of them",
            )


def _check_paths(draft: Draft, location: Location, raw: Mapping[str, Any]) -> None:
    """Report paths for calls that the wire format does not have."""
    spoken, paths = raw.get("format"), raw.get("paths")
    if not isinstance(spoken, str) or spoken not in FORMATS or not isinstance(paths, dict):
        return
    known = FORMATS[spoken].paths
    for name in paths:
        if name in _CALLS and name not in known:
            draft.report(
                "SY206",
                f"`{spoken}` has no call `{shown(name)}`",
                (*location, "paths", name),
                at_key=True,
                notes=(f"calls: {', '.join(known)}",),
                fix="remove the key",
            )


def _check_target(draft: Draft, location: Location, raw: Mapping[str, Any]) -> None:
    """Report what JSON cannot represent in ``extra_body``."""
    extra = raw.get("extra_body")
    for inner, value in leaves(extra if isinstance(extra, dict) else {}):
        if isinstance(value, float) and not math.isfinite(value):
            problem = "JSON has no such number"
        elif not isinstance(value, str | int | float):
            problem = "JSON has no dates; write a string"
        else:
            continue
        fix = "use strings, finite numbers, booleans, arrays and tables"
        draft.report("SY211", problem, (*location, "extra_body", *inner), fix=fix)


def _housekeeping(draft: Draft) -> tuple[Housekeeping, ...]:
    raw = draft.document.values.get("housekeeping")
    conditions = []
    for index, table in enumerate(raw if isinstance(raw, list) else ()):
        condition = draft.validated(("housekeeping", index), Housekeeping, table)
        if isinstance(table, dict):
            _check_condition(draft, ("housekeeping", index), table)
        if condition is not None:
            conditions.append(condition)
    return tuple(conditions)


def _check_kinds(draft: Draft, location: Location, table: Mapping[str, Any]) -> None:
    """Report a selection of side calls by kind that has no effect or a wrong name."""
    for key in ("kind", *_TESTS):
        if key in table:
            message = f"`{key}` has no meaning beside `kinds`, which selects known side calls"
            draft.report("SY109", message, (*location, key), at_key=True, fix="remove the key")
    if table["kinds"] == []:
        message = "`kinds` is empty, so it selects nothing"
        draft.report("SY109", message, (*location, "kinds"), fix="name a kind, or remove the table")
    if "target" not in table:
        message = "`kinds` without `target` changes nothing"
        fix = "name the target that serves these side calls"
        draft.report("SY109", message, location, at_key=True, fix=fix)
    own = draft.document.values.get("housekeeping")
    tables = [table for table in own if isinstance(table, dict)] if isinstance(own, list) else []
    marked = {str(each["kind"]) for each in tables if "kind" in each}
    known = sorted({*side_call_kinds(), *marked})
    kinds = table["kinds"] if isinstance(table["kinds"], list) else []
    for number, kind in enumerate(kinds):
        if isinstance(kind, str) and kind not in known:
            draft.report(
                "SY109",
                f"nothing marks side calls of kind `{shown(kind)}`",
                (*location, "kinds", number),
                notes=(f"kinds: {', '.join(known)}",),
                fix=suggestion(kind, known, "remove it, or mark such calls with `kind`"),
            )


def _check_condition(draft: Draft, location: Location, table: Mapping[str, Any]) -> None:
    """Report conflicting keys of a condition, and a test that never holds."""
    if sum(key in table for key in ("path", "header", "kinds")) != 1:
        message = "a housekeeping condition reads either a `path` or a `header`, or selects `kinds`"
        draft.report("SY109", message, location, at_key=True, fix="give exactly one of them")
    if "kinds" in table:
        _check_kinds(draft, location, table)
    tests = [key for key in _TESTS if key in table]
    if len(tests) > 1:
        several = " and ".join(f"`{test}`" for test in tests)
        message = f"a housekeeping condition has one test, not {several}"
        fix = "write one table per condition"
        draft.report("SY109", message, (*location, tests[1]), at_key=True, fix=fix)
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
