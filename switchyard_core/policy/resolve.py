"""Turns a document into a policy, or into everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from switchyard_core.errors import Finding
from switchyard_core.mutation import RuleProblem, check_rule_set
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.document import Document
from switchyard_core.policy.draft import Draft, Space
from switchyard_core.policy.lint import credentials, lint
from switchyard_core.policy.model import CheckResult, Policy, Price, Route
from switchyard_core.policy.positions import Location
from switchyard_core.policy.providers import resolve_clients, resolve_targets, wire_formats
from switchyard_core.policy.routing import resolve_routes
from switchyard_core.policy.schema import PriceModel, TopModel
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.sessions import resolve_housekeeping, resolve_identity

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
    draft = Draft(document=document, registry=registry, environ=environ, base=base)
    draft.findings += credentials(document)
    _check_top(draft)
    clients = resolve_clients(draft)
    targets = resolve_targets(draft, clients)
    own = _own_rule_sets(draft)
    routes = resolve_routes(draft, wire_formats(draft))
    _check_used_packs(draft, routes.values(), own)
    identity = resolve_identity(draft)
    housekeeping = resolve_housekeeping(draft)
    prices = _prices(draft)
    policy = None
    if not any(finding.severity == "error" for finding in draft.findings):
        values = document.values
        policy = Policy(
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
            findings=(),
            document=document,
        )
        draft.findings += lint(policy, registry.lint_rules)
    return _result(policy, draft.findings)


def _result(policy: Policy | None, findings: Iterable[Finding]) -> CheckResult:
    ordered = tuple(sorted(findings, key=lambda f: (f.line, f.column, f.code, f.path)))
    if policy is None or any(finding.severity == "error" for finding in ordered):
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


def _own_rule_sets(draft: Draft) -> dict[str, RuleSetModel]:
    """Return the policy's own rule sets that are in order."""
    raw_sets = draft.tables("mutation_rules")
    models: dict[str, RuleSetModel] = {}
    for name, raw in raw_sets.items():
        model = draft.validated(("mutation_rules", name), RuleSetModel, raw)
        if model is not None:
            models[name] = model
    packs = draft.registry.rule_sets
    available = {**packs, **models}
    for name, model in models.items():
        for problem in check_rule_set(name, model, available, reserved=packs):
            parent = _parent(model, problem)
            if parent in raw_sets and parent not in models:
                # That rule set exists and has findings of its own.
                continue
            _report_rule(draft, ("mutation_rules", name), problem)
    return models


def _parent(model: RuleSetModel, problem: RuleProblem) -> str:
    match problem.location:
        case ("extends", int(index)):
            return model.extends[index]
    return ""


def _report_rule(draft: Draft, location: Location, problem: RuleProblem) -> None:
    draft.report(
        problem.code,
        problem.message,
        (*location, *problem.location),
        at_key=not problem.location,
        offset=problem.column,
        fix=problem.fix,
        notes=problem.notes,
    )


def _check_used_packs(
    draft: Draft, routes: Iterable[Route], own: Mapping[str, RuleSetModel]
) -> None:
    """Report packs of plugins that a policy uses and that are wrong in themselves."""
    packs = draft.registry.rule_sets
    available = {**packs, **own}
    waiting = [(name, ("routes", route.name)) for route in routes for name in route.rule_sets]
    seen: set[str] = set()
    while waiting:
        name, location = waiting.pop()
        if name in seen or name not in available:
            continue
        seen.add(name)
        waiting += [(parent, location) for parent in available[name].extends]
        problems = check_rule_set(name, packs[name], packs) if name in packs else []
        if problems:
            draft.report(
                "SY508",
                f"mutation pack `{name}` of a plugin is wrong: {problems[0].message}",
                location,
                at_key=True,
                fix="report this to the author of the plugin",
            )


def _prices(draft: Draft) -> dict[str, Price]:
    prices: dict[str, Price] = {}
    for model_id, raw in draft.tables("prices").items():
        model = draft.validated(("prices", model_id), PriceModel, raw)
        if model is not None:
            prices[model_id] = Price(**model.model_dump())
    return prices
