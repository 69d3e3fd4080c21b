"""Turns a document into a policy, or into everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from switchyard_core.errors import Finding
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.document import Document
from switchyard_core.policy.draft import Draft, Space, TooManyFindings
from switchyard_core.policy.include import with_included
from switchyard_core.policy.lint import lint
from switchyard_core.policy.model import CheckResult, Policy, Price
from switchyard_core.policy.positions import Location
from switchyard_core.policy.providers import resolve_clients, resolve_targets, wire_formats
from switchyard_core.policy.recordings import resolve_replay
from switchyard_core.policy.routing import resolve_routes
from switchyard_core.policy.rulesets import check_used_packs, resolve_rule_sets
from switchyard_core.policy.schema import PriceModel, TopModel
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.sessions import resolve_housekeeping, resolve_identity
from switchyard_core.policy.validation import MOST_FINDINGS

__all__ = ["resolve"]

_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def resolve(
    document: Document,
    registry: PluginRegistry,
    *,
    environ: Mapping[str, str] | None,
    base: Path,
    path: Path | None,
) -> CheckResult:
    """Check a document and resolve every name in it.

    Args:
        document: The policy's text and values.
        registry: Installed plugins.
        environ: Environment variables, ``None`` when the environment must not be read.
        base: Folder that relative paths start from.
        path: File of the policy, if it comes from one.
    """
    included = with_included(document, base, path)
    draft = Draft(document=included.document, registry=registry, environ=environ, base=base)
    # A file that could not be read may well declare the rule set that is not there.
    excused = frozenset() if included.complete else frozenset({"SY404"})
    try:
        draft.add(included.findings)
        policy = _resolved(draft, path)
    except TooManyFindings:
        return _stopped(draft, excused)
    findings = [finding for finding in draft.findings if finding.code not in excused]
    errors = [finding for finding in findings if finding.severity == "error"]
    return _result(policy, [*findings, *lint(policy, registry.lint_rules, errors)])


def _resolved(draft: Draft, path: Path | None) -> Policy:
    """Return the policy as far as it is in order; the draft gets what is not."""
    document, registry = draft.document, draft.registry
    _check_top(draft)
    clients = resolve_clients(draft)
    targets = resolve_targets(draft, clients)
    own = resolve_rule_sets(draft)
    routes = resolve_routes(draft, wire_formats(draft))
    check_used_packs(draft, routes.values(), own)
    identity = resolve_identity(draft)
    housekeeping = resolve_housekeeping(draft)
    prices = _prices(draft)
    values = document.values
    return Policy(
        name=document.name,
        path=path,
        clients=clients,
        targets=targets,
        routes=routes,
        rule_sets={**registry.rule_sets, **own},
        identity_session=identity,
        housekeeping=housekeeping,
        default_route=values.get("default_route"),
        fallback_client=values.get("fallback_client"),
        prices=prices,
        replay=resolve_replay(draft),
        findings=(),
        document=document,
        tools={name: registry.tools[name] for route in routes.values() for name in route.tools},
    )


def _stopped(draft: Draft, excused: frozenset[str]) -> CheckResult:
    """Return the first findings of a policy that has too many, and one that says so."""
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
    # Findings about other files, such as an included one that is no TOML, come last.
    return tuple(
        sorted(
            findings,
            key=lambda f: (places.get(f.file, len(names)), f.line, f.column, f.code, f.path),
        )
    )


def _result(policy: Policy, findings: Iterable[Finding]) -> CheckResult:
    ordered = _ordered(policy.document, findings)
    if any(finding.severity == "error" for finding in ordered):
        return CheckResult(policy=None, findings=ordered)
    return CheckResult(policy=replace(policy, findings=ordered), findings=ordered)


def _check_top(draft: Draft) -> None:
    values = draft.document.values
    later = draft.refuse_future("", (), values)
    # Only the shape at the top; each table is validated by its own model.
    shape = {
        key: {} if isinstance(value, dict) else value
        for key, value in values.items()
        if key not in later and not (key == "housekeeping" and isinstance(value, list))
    }
    draft.validated((), TopModel, shape)
    required = values.get("requires")
    for index, name in enumerate(required if isinstance(required, list) else ()):
        if isinstance(name, str):
            _check_required(draft, ("requires", index), name)
    for key, table, code, word in (
        ("default_route", "routes", "SY306", "route"),
        ("fallback_client", "llm_clients", "SY202", "client"),
    ):
        name = values.get(key)
        if isinstance(name, str) and name not in draft.tables(table):
            space = Space(
                code=code,
                word=word,
                names=draft.tables(table),
                listed_as=f"declared {word}s",
                otherwise=f"declare it under `[{table}]`",
            )
            draft.unknown(space, name, (key,))


def _check_required(draft: Draft, location: Location, name: str) -> None:
    problem = f"distribution `{shown(name)}` is not installed"
    fix = f"run `pip install {shown(name)}`"
    if not _DISTRIBUTION.fullmatch(name):
        problem = f"`{shown(name)}` is not the name of a distribution"
        fix = "write the name alone, without a version"
    else:
        try:
            version(name)
        except PackageNotFoundError:
            pass
        else:
            return
    draft.report("SY507", problem, location, fix=fix)


def _prices(draft: Draft) -> dict[str, Price]:
    prices: dict[str, Price] = {}
    for model_id, raw in draft.tables("prices").items():
        model = draft.validated(("prices", model_id), PriceModel, raw)
        if model is not None:
            prices[model_id] = Price(**model.model_dump())
    return prices
