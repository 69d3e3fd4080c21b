"""``switchyard classify``: what the mutation rules say about commands and tool calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from switchyard_core.cli import installed_registry

if TYPE_CHECKING:
    from switchyard_core.conversation import ToolCall
    from switchyard_core.mutation import MutationRules, Verdict
    from switchyard_core.plugins import PluginRegistry

__all__ = ["command"]

_KEYS = ("label", "rule_set", "rule", "word", "detail")


@click.command(name="classify")
@click.argument("text", metavar="[COMMAND]", default="-")
@click.option("--policy", type=click.Path(), help="Take the rules of a policy's route.")
@click.option("--route", help="Which route; needed when its routes have different rules.")
@click.option(
    "--pack",
    help="Without a policy: the rules of an installed pack.  [default: coding_agents]",
)
@click.option("--tool", default="bash", show_default=True, help="Name of the tool that is called.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    text: str,
    policy: str | None,
    route: str | None,
    pack: str | None,
    tool: str,
    as_json: bool,
) -> None:
    """Say which label a command gets, by which rule, and which word decided.

    COMMAND is what the tool is given: a shell command, a patch, a script, or its arguments as a
    JSON object. Without COMMAND, or with `-`, standard input is read as JSONL: each line a
    command as a string, or an object with `command` or `arguments`, and perhaps `tool`; each is
    answered with one line of JSON that repeats the object's other keys.

    Exits 0, 1 when the policy has errors or a line cannot be read, 2 when it could not run.

    Example: switchyard classify "sed -i s/a/b/ app.py"
    """
    from switchyard_core.errors import PluginError, PolicyError  # noqa: PLC0415  # fast --help

    registry = installed_registry(ctx)
    if policy is None and route is not None:
        raise click.UsageError("--route needs --policy")
    if policy is not None and pack is not None:
        raise click.UsageError("--pack and --policy exclude each other")
    try:
        if policy is None:
            rules = _pack_rules(registry, pack or "coding_agents")
        else:
            rules = _policy_rules(registry, policy, route)
    except PolicyError as error:
        click.echo(str(error), err=True)
        ctx.exit(2 if any(finding.code == "SY100" for finding in error.findings) else 1)
    except PluginError as error:
        click.echo(f"error: {error}", err=True)
        ctx.exit(2)
    if text == "-":
        ctx.exit(1 if _classify_lines(rules, tool) else 0)
    verdict = rules.label(_call(tool, text))
    if as_json:
        click.echo(_line({"command": text, "tool": tool}, verdict))
    else:
        _print(verdict)


def _pack_rules(registry: PluginRegistry, pack: str) -> MutationRules:
    from switchyard_core.mutation import compile_rules  # noqa: PLC0415  # fast --help

    if pack not in registry.rule_sets:
        names = ", ".join(sorted(registry.rule_sets))
        raise click.UsageError(f"no pack is called `{pack}`; installed packs: {names}")
    return compile_rules((pack,), registry.rule_sets)


def _policy_rules(registry: PluginRegistry, policy: str, name: str | None) -> MutationRules:
    from switchyard_core.mutation import compile_rules  # noqa: PLC0415  # fast --help
    from switchyard_core.policy import load_policy  # noqa: PLC0415  # fast --help

    loaded = load_policy(policy, registry=registry)
    routes = {key: route for key, route in loaded.routes.items() if route.rule_sets}
    if name is not None and name not in routes:
        known = ", ".join(routes) or "none"
        raise click.UsageError(f"no route `{name}` with mutation rules; routes with rules: {known}")
    chosen = [routes[name]] if name is not None else list(routes.values())
    kinds = {(route.rule_sets, route.unmatched, route.workspace) for route in chosen}
    if len(kinds) > 1:
        raise click.UsageError(f"the routes have different rules; add --route: {', '.join(routes)}")
    if not kinds:
        raise click.UsageError("no route of the policy has mutation rules")
    sets, unmatched, workspace = kinds.pop()
    return compile_rules(sets, loaded.rule_sets, unmatched=unmatched, workspace=workspace)


def _call(tool: str, given: Any) -> ToolCall:
    from switchyard_core.conversation import ToolCall  # noqa: PLC0415  # fast --help

    arguments = given
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            arguments = json.loads(given)
        except ValueError:
            arguments = given
    if not isinstance(arguments, dict):
        # The keys under which tools take a command, and free-form calls their text.
        arguments = {"command": arguments, "input": arguments}
    return ToolCall(id="", name=tool, source=arguments)


def _classify_lines(rules: MutationRules, tool: str) -> int:
    """Answer each line of standard input; return how many cannot be read."""
    failed = 0
    for number, found in _lines():
        given = {"command": found} if isinstance(found, str) else found
        name = given.get("tool", tool) if isinstance(given, dict) else None
        value = given.get("arguments", given.get("command")) if isinstance(given, dict) else None
        if not isinstance(name, str) or value is None:
            failed += 1
            message = f"line {number}: not a string or an object with `command` or `arguments`"
            click.echo(json.dumps({"error": message}))
            continue
        click.echo(_line({**given, "tool": name}, rules.label(_call(name, value))))
    return failed


def _lines() -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError:
                yield number, None


def _line(given: dict[str, Any], verdict: Verdict) -> str:
    answer = {key: getattr(verdict, key) for key in _KEYS}
    return json.dumps({**given, **answer}, ensure_ascii=False)


def _print(verdict: Verdict) -> None:
    rule = f"{verdict.rule_set} / {verdict.rule}" if verdict.rule_set else "none applies"
    click.echo(verdict.label)
    click.echo(f"  rule    {rule}")
    if verdict.word:
        click.echo(f"  word    {verdict.word}")
    if verdict.detail:
        click.echo(f"  reason  {verdict.detail}")
