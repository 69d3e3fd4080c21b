"""``switchyard check``: every problem of every policy, in one run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import click

from switchyard_core.cases import SUFFIX, check_cases
from switchyard_core.cli import default_policy, installed_registry
from switchyard_core.cli.rule import code_pages
from switchyard_core.cli.sarif import sarif_log
from switchyard_core.cli.words import Choice
from switchyard_core.engine.calling import request_url, script_findings
from switchyard_core.errors import Finding
from switchyard_core.models import DEFAULTS
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, Route, Target, check_policy
from switchyard_core.replay import holds_recordings, recording_findings
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.wire.losses import losses

__all__ = ["command"]

#: Code of a file that could not be read: the run is then incomplete.
_UNREADABLE = "SY100"
#: How the table of losses begins to say that something is not sent.
_GONE = "left out"
_KEYS = ("code", "severity", "message", "line", "column", "path", "notes", "fix")


@click.command(name="check")
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--output",
    type=Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="For people, for programs, as annotations of GitHub Actions, or as SARIF 2.1.0.",
)
@click.option("--offline", is_flag=True, help="Do not look at environment variables.")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@click.option(
    "--explain-targets",
    is_flag=True,
    help="Say where requests go, what is known of each target's model, and what each route loses "
    "where it translates between wire formats.",
)
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    output: Literal["text", "json", "github", "sarif"],
    offline: bool,  # noqa: FBT001 - click passes options by name
    strict: bool,  # noqa: FBT001
    explain_targets: bool,  # noqa: FBT001
) -> None:
    """Check policies and report every problem with file, line and column.

    FILES are policies, test files and folders of recordings; without any, switchyard.toml.

    Exits 0 without errors, 1 with errors (with --strict also with warnings), and 2 when a file
    cannot be read. `switchyard rule CODE` explains a finding.

    Example: switchyard check policies/*.toml --offline --strict
    """
    registry = installed_registry(ctx)
    environ = None if offline else os.environ
    results = [(name, _check(name, registry, environ)) for name in files or (default_policy(),)]
    if output == "json":
        click.echo(json.dumps(_as_json(results, explain_targets=explain_targets), indent=2))
    elif output == "sarif":
        findings = [finding for _, result in results for finding in result.findings]
        complete = all(finding.code != _UNREADABLE for finding in findings)
        log = sarif_log(findings, code_pages(registry.lint_rules), complete=complete)
        click.echo(json.dumps(log, indent=2))
    elif output == "github":
        for _, result in results:
            for finding in result.findings:
                click.echo(_annotation(finding))
    else:
        for name, result in results:
            for line in (_told if explain_targets else _own_losses)(name, result):
                click.echo(line)
        _print_text(results)
    ctx.exit(_exit_code([result for _, result in results], strict=strict))


def _check(name: str, registry: PluginRegistry, environ: Mapping[str, str] | None) -> CheckResult:
    if holds_recordings(Path(name)):
        return CheckResult(policy=None, findings=recording_findings(Path(name)))
    if name.endswith(SUFFIX) and Path(name).is_file():
        return CheckResult(policy=None, findings=check_cases(Path(name), registry))
    result = check_policy(name, registry, environ=environ)
    scripts = script_findings(result.policy) if result.policy is not None else ()
    if not scripts:
        return result
    return CheckResult(policy=None, findings=(*result.findings, *scripts))


def _exit_code(results: Sequence[CheckResult], *, strict: bool) -> int:
    findings = [finding for result in results for finding in result.findings]
    if any(finding.code == _UNREADABLE for finding in findings):
        return 2
    failing = findings if strict else [f for f in findings if f.severity == "error"]
    return 1 if failing else 0


def _print_text(results: Sequence[tuple[str, CheckResult]]) -> None:
    colour = False if os.environ.get("NO_COLOR") else None
    errors = warnings = 0
    for _, result in results:
        for finding in result.findings:
            is_error = finding.severity == "error"
            errors, warnings = errors + is_error, warnings + (not is_error)
            code = click.style(finding.code, fg="red" if is_error else "yellow", bold=True)
            click.echo(finding.render().replace(finding.code, code, 1), color=colour)
    files = f"{len(results)} {'file' if len(results) == 1 else 'files'}"
    if errors or warnings:
        click.echo(f"{files} checked: {_count(errors, 'error')}, {_count(warnings, 'warning')}")
    else:
        click.echo(f"{files} checked: no findings")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _facts(target: Target) -> dict[str, object]:
    """Return what counts for a target, from the policy or its profile."""
    accepts = target.accepts
    told: dict[str, object] = {key: getattr(target, key) for key in DEFAULTS}
    told |= {"prefix_bound": accepts.prefix_bound or None}
    told |= {"system_rows": accepts.system_rows or None, "reads": list(accepts.reads) or None}
    told["reasoning"] = accepts.reasoning.model_dump(exclude_none=True) or None
    return {key: value for key, value in told.items() if value is not None}


def _told(name: str, result: CheckResult) -> Iterator[str]:
    """Yield what is known of a policy's targets, and what each route translates, for people."""
    for target in result.policy.targets.values() if result.policy is not None else ():
        yield f"{name}: target {target.name}: {target.id} ({target.wire_format})"
        yield f"  requests go to {request_url(target.client, 'create')}"
        for key, value in _facts(target).items():
            yield f"  {key} = {json.dumps(value)}"
        for entry in target.accepts.facts:
            yield f"  profile {entry.id}: {entry.source}, read {entry.as_of} ({entry.sure})"
        for who, rule in target.accepts.rules:
            yield f"    {rule.summary} ({who})"
        if not target.accepts.entries:
            yield "  no profile" + (": switched off" if target.profile is False else "")
    for route in result.policy.routes.values() if result.policy is not None else ():
        yield f"{name}: route {route.name}: targets speak {', '.join(route.wire_formats) or '-'}"
        for caller, spoken, lost in _pairs(route):
            yield f"  {caller} -> {spoken} leaves out {_gone(lost)}"


def _own_losses(name: str, result: CheckResult) -> Iterator[str]:
    """Yield what a route loses between the wire formats of its own targets, for people."""
    for route in result.policy.routes.values() if result.policy is not None else ():
        for one, other, lost in _pairs(route):
            if one in route.wire_formats:
                yield f"{name}: route {route.name}: {one} -> {other} loses {_gone(lost)}"


def _gone(lost: Mapping[str, str]) -> str:
    return "; ".join(what for what, becomes in lost.items() if becomes.startswith(_GONE))


def _pairs(route: Route) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield caller, target and what the pair does not keep, for each that a route translates.

    A route that writes its answers itself sends no request of a caller on.
    """
    for target in route.wire_formats if route.type.kind != "answers" else ():
        for caller in WIRE_FORMATS:
            if caller != target:
                yield caller, target, losses(caller, target)


def _as_json(
    results: Sequence[tuple[str, CheckResult]], *, explain_targets: bool = False
) -> object:
    return {
        "version": 1,
        "files": [
            {
                "file": name,
                "ok": not result.errors,
                "findings": [
                    {key: getattr(finding, key) for key in _KEYS} for finding in result.findings
                ],
                **(_explained(result) if explain_targets else {}),
            }
            for name, result in results
        ],
    }


def _explained(result: CheckResult) -> dict[str, object]:
    routes = result.policy.routes.values() if result.policy is not None else ()
    told = {
        route.name: {
            "formats": list(route.wire_formats),
            "translates": [
                {"caller": caller, "target": target, "changes": dict(lost)}
                for caller, target, lost in _pairs(route)
            ],
        }
        for route in routes
    }
    return {"targets": _targets_as_json(result), "routes": told}


def _targets_as_json(result: CheckResult) -> object:
    return {
        target.name: {
            "id": target.id,
            "format": target.wire_format,
            "url": request_url(target.client, "create"),
            "facts": _facts(target),
            "profiles": [
                {
                    "id": entry.id,
                    "source": entry.source,
                    "as_of": entry.as_of.isoformat(),
                    "sure": entry.sure,
                }
                for entry in target.accepts.facts
            ],
            "rules": [{"by": who, "rule": rule.summary} for who, rule in target.accepts.rules],
        }
        for target in (result.policy.targets.values() if result.policy is not None else ())
    }


def _annotation(finding: Finding) -> str:
    """Return a workflow command of GitHub Actions."""
    kind = "error" if finding.severity == "error" else "warning"
    message = finding.message + (f" at {finding.path}" if finding.path else "")
    lines = [message, *finding.notes, *([f"fix: {finding.fix}"] if finding.fix else [])]
    text = _escaped("\n".join(lines))
    name = _escaped(finding.file).replace(":", "%3A").replace(",", "%2C")
    place = f"file={name}"
    if finding.line:
        place += f",line={finding.line},col={finding.column}"
    return f"::{kind} {place},title={finding.code}::{text}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
