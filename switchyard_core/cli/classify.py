"""``switchyard classify``: the labels of commands, tool calls and texts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from switchyard_core.cli import DEFAULT_POLICY, default_policy, faults, installed_registry
from switchyard_core.cli.words import meant

if TYPE_CHECKING:
    from switchyard_core.conversation import ToolCall
    from switchyard_core.mutation import MutationRules, Verdict
    from switchyard_core.plugins import PluginRegistry

__all__ = ["command"]

_KEYS = ("label", "rule_set", "rule", "word", "detail")


@click.command(name="classify")
@click.argument("text", metavar="[COMMAND]", default="-")
@click.option(
    "--policy", type=click.Path(), help="Rules of a policy's route; default: switchyard.toml."
)
@click.option("--route", help="Which route; needed when its routes have different rules.")
@click.option("--pack", help="Rules of an installed pack; default without a policy: coding_agents.")
@click.option("--tool", default="bash", show_default=True, help="Name of the tool that is called.")
@click.option(
    "--workspace",
    multiple=True,
    metavar="DIR",
    help="A root of the workspace; repeatable.",
)
@click.option(
    "--text",
    "as_text",
    is_flag=True,
    help="COMMAND, or all input, is one text of an assistant.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(  # noqa: PLR0913  # one per option
    ctx: click.Context,
    *,
    text: str,
    policy: str | None,
    route: str | None,
    pack: str | None,
    tool: str,
    workspace: tuple[str, ...],
    as_text: bool,
    as_json: bool,
) -> None:
    """Show the label of a command, the rule and the word that decided.

    COMMAND is a shell command, a patch, a script, or the tool's arguments as a JSON object.
    Without COMMAND, or with `-`, standard input is read as JSONL: each line is a string or an
    object with `command` or `arguments`, and optionally `tool` and `workspace`. Each answer is
    JSON that repeats its other keys. With --text, each edit is answered.

    Exits 1 for errors in the policy or in a line, 2 when it cannot run.

    Example: switchyard classify "sed -i s/a/b/ app.py"
    """
    if fault := _root_fault(workspace):
        raise click.BadParameter(fault, param_hint="--workspace")
    registry = installed_registry(ctx)
    if policy is not None and pack is not None:
        raise click.UsageError("--pack and --policy exclude each other")
    if policy is None and pack is None and Path(DEFAULT_POLICY).is_file():
        policy = default_policy()
    if policy is None and route is not None:
        raise click.UsageError("--route needs --policy")
    with faults(ctx):
        if policy is None:
            rules = _pack_rules(registry, pack or ("text_edits" if as_text else "coding_agents"))
        else:
            rules = _policy_rules(registry, policy, route)
    if as_text:
        text = sys.stdin.read() if text == "-" else text
        _classify_text(rules, text, workspace, as_json=as_json)
        return
    if text == "-":
        ctx.exit(1 if _classify_lines(rules, tool, workspace) else 0)
    try:
        call = _call(tool, text)
    except ValueError as error:
        raise click.UsageError(f"COMMAND {error}") from None
    verdict = rules.label(call, workspace=workspace)
    if as_json:
        click.echo(_line({"command": text, "tool": tool}, verdict))
        return
    click.echo("\n".join(_told(verdict)))


def _pack_rules(registry: PluginRegistry, pack: str) -> MutationRules:
    from switchyard_core.mutation import compile_rules  # noqa: PLC0415  # fast --help

    if pack not in registry.rule_sets:
        names = ", ".join(sorted(registry.rule_sets))
        raise click.UsageError(
            f"unknown pack `{pack}`; installed packs: {names}{meant(pack, registry.rule_sets)}"
        )
    return compile_rules((pack,), registry.rule_sets)


def _policy_rules(registry: PluginRegistry, policy: str, name: str | None) -> MutationRules:
    from switchyard_core.mutation import compile_rules  # noqa: PLC0415  # fast --help
    from switchyard_core.policy import load_policy  # noqa: PLC0415  # fast --help

    loaded = load_policy(policy, registry=registry)
    routes = {key: route for key, route in loaded.routes.items() if route.rule_sets}
    if name is not None and name not in routes:
        known = ", ".join(routes) or "none"
        raise click.UsageError(
            f"no route `{name}` with mutation rules; routes with rules: {known}"
            + meant(name, routes)
        )
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
        except ValueError as error:
            # No shell command begins like this.
            if given.lstrip().startswith('{"'):
                raise ValueError(f"begins like a JSON object, but is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        # The keys of a command in tools, and of the text in free-form calls.
        arguments = {"command": arguments, "input": arguments}
    return ToolCall(id="", name=tool, source=arguments)


def _told(verdict: Verdict) -> list[str]:
    rule = f"{verdict.rule_set} / {verdict.rule}" if verdict.rule_set else "none applies"
    lines = [verdict.label, f"  rule    {rule}"]
    lines += [f"  place   character {verdict.offset}"] if verdict.offset is not None else []
    lines += [f"  word    {verdict.word}"] if verdict.word else []
    lines += [f"  reason  {verdict.detail}"] if verdict.detail else []
    return lines


def _classify_text(
    rules: MutationRules, text: str, workspace: tuple[str, ...], *, as_json: bool
) -> None:
    """Answer each edit in a text of the assistant."""
    verdicts = rules.label_text(text, workspace=workspace)
    for verdict in verdicts:
        click.echo(
            _line({"offset": verdict.offset}, verdict) if as_json else "\n".join(_told(verdict))
        )
    if not verdicts and not as_json:
        click.echo("read_only\n  reason  the text contains no edit that a rule reads")


def _classify_lines(rules: MutationRules, tool: str, workspace: tuple[str, ...]) -> int:
    """Answer each line of standard input; return how many cannot be read."""
    failed = 0
    for number, found, unread in _lines():
        given = {"command": found} if isinstance(found, str) else found
        try:
            call = _line_call(given, tool, unread)
        except ValueError as error:
            failed += 1
            click.echo(json.dumps({"error": f"line {number}: {error}"}, ensure_ascii=False))
            continue
        verdict = rules.label(call, workspace=(*workspace, *_roots(given)))
        click.echo(_line({**given, "tool": call.name}, verdict))
    return failed


def _line_call(given: Any, tool: str, unread: str) -> ToolCall:
    """Return the call of a line; ValueError when there is none."""
    if fault := unread or _line_fault(given):
        raise ValueError(fault)
    name = tool if given.get("tool") is None else given["tool"]
    return _call(name, _first(given, "arguments", "command"))


def _line_fault(given: Any) -> str:
    """Return what is wrong with a line, ``""`` when it can be answered."""
    if not isinstance(given, dict) or _first(given, "arguments", "command") is None:
        return "not a string or an object with `command` or `arguments`"
    if not isinstance(given.get("tool"), str | None):
        return "`tool` is not a string"
    fault = _root_fault(_roots(given))
    key = "cwd" if given.get("workspace") is None else "workspace"
    return f"`{key}`: {fault}" if fault else ""


def _root_fault(roots: Sequence[Any]) -> str:
    """Return why directories cannot be roots of the workspace, ``""`` when they can."""
    from switchyard_core.mutation.paths import is_root  # noqa: PLC0415  # fast --help

    for root in roots:
        if not isinstance(root, str) or not is_root(root):
            shown = json.dumps(root, ensure_ascii=False)
            return f'{shown} is not an absolute directory; write where it is, such as "~/proj"'
    return ""


def _roots(given: dict[str, Any]) -> list[Any]:
    """Return the roots of the workspace that a line names."""
    value = _first(given, "workspace", "cwd")
    return value if isinstance(value, list) else [] if value is None else [value]


def _first(given: dict[str, Any], *keys: str) -> Any:
    """Return the first value that is there; ``null`` is none."""
    return next((given[key] for key in keys if given.get(key) is not None), None)


def _lines() -> Iterator[tuple[int, Any, str]]:
    """Yield number and value of each line, and why it has none."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            try:
                yield number, json.loads(line.decode("utf-8")), ""
            except UnicodeDecodeError:
                yield number, None, "not UTF-8"
            except ValueError as error:
                yield number, None, f"not JSON: {getattr(error, 'msg', error)}"


def _line(given: dict[str, Any], verdict: Verdict) -> str:
    answer = {key: getattr(verdict, key) for key in _KEYS}
    return json.dumps({**given, **answer}, ensure_ascii=False)
