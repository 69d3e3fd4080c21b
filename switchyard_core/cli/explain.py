"""``switchyard explain``: the decision about a request and the changes of its body."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from switchyard_core.cli import cannot_run, faults, installed_registry, policy_argument
from switchyard_core.cli.words import Choice, meant
from switchyard_core.declarations import WIRE_FORMATS, WireFormat

if TYPE_CHECKING:
    from switchyard_core.errors import RequestError
    from switchyard_core.explain import Rehearsal, Rehearsed
    from switchyard_core.request import Request

__all__ = ["command"]

_FILE = click.Path(path_type=Path)


@click.command(name="explain")
@policy_argument(then="request_file")
@click.argument("request_file", metavar="REQUEST", required=False, type=_FILE)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="Add a header; may be repeated.",
)
@click.option(
    "--format",
    "wire_format",
    type=Choice(WIRE_FORMATS),
    help="Wire format of the body; otherwise told from the recorded path, the body or the route.",
)
@click.option(
    "--reply",
    "replies",
    multiple=True,
    metavar="TARGET=FILE",
    help="Text that a target replies to a router; repeat it for further replies, the last one "
    "is used again.",
)
@click.option(
    "--output",
    type=Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for programs.",
)
@click.option("--turns", is_flag=True, help="Play the history of each request turn by turn.")
@click.option("--timeline", "brief", is_flag=True, help="Print only the timeline.")
@click.pass_context
def command(  # noqa: PLR0913 - click passes options by name
    ctx: click.Context,
    *,
    policy: str,
    request_file: Path | None,
    headers: tuple[str, ...],
    wire_format: WireFormat | None,
    replies: tuple[str, ...],
    output: Literal["text", "json"],
    turns: bool,
    brief: bool,
) -> None:
    """Explain what POLICY (or switchyard.toml) does with REQUEST; no network.

    REQUEST is a file (`-`: standard input) with a body, a recorded request (an object with
    `request.body`), or several, one per line or in an array. They are played in order, each with
    the latches of earlier ones, with a timeline at the end. A router that asks a model without
    `--reply` ends with `would ask`. Exits 1 when the policy has errors or a request would be
    refused, 2 when it cannot run. Example: switchyard explain coding.toml request.json
    """
    from switchyard_core.errors import BodyError  # noqa: PLC0415  # fast --help
    from switchyard_core.explain import Rehearsal, read_requests, turns_of  # noqa: PLC0415  # fast --help
    from switchyard_core.policy.document import near_file  # noqa: PLC0415  # fast --help
    from switchyard_core.switchyard import Switchyard  # noqa: PLC0415  # fast --help

    if request_file is None:
        raise click.UsageError("name a file with a REQUEST, or `-` for standard input")
    name = "standard input" if str(request_file) == "-" else str(request_file)
    pairs = [_pair(text) for text in headers]
    registry = installed_registry(ctx)
    try:
        data = sys.stdin.buffer.read() if str(request_file) == "-" else request_file.read_bytes()
    except OSError as error:
        hint = near_file(str(request_file))
        reason = f"{error.strerror}; {hint}" if hint else error.strerror
        cannot_run(ctx, f"cannot read {request_file}: {reason}")
    with faults(ctx):
        engine = Switchyard.from_policy(policy, registry=registry)
    try:
        requests = read_requests(data, wire_format=wire_format, headers=pairs, policy=engine.policy)
    except BodyError as error:
        _print(error, output, name)
        ctx.exit(1)
    texts = _replies(replies, list(engine.policy.targets))
    if turns:
        requests = [turn for request in requests for turn in turns_of(request)]
    with faults(ctx):
        refused = asyncio.run(_play(Rehearsal(engine, texts), requests, output, name, brief=brief))
    ctx.exit(1 if refused else 0)


def _pair(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.UsageError(f"--header {text}: write it as NAME:VALUE")
    return name.strip(), value.strip()


def _replies(options: tuple[str, ...], targets: list[str]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for option in options:
        target, equals, file = option.partition("=")
        if not equals or not file:
            raise click.UsageError(f"--reply {option}: write it as TARGET=FILE")
        if target not in targets:
            known = ", ".join(targets)
            raise click.UsageError(
                f"--reply {option}: the policy has no target `{target}`; it has {known}"
                f"{meant(target, targets)}"
            )
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise click.UsageError(f"--reply {option}: cannot read {file}: {reason}") from None
        texts.setdefault(target, []).append(text.removesuffix("\n"))
    return texts


async def _play(
    rehearsal: Rehearsal,
    requests: list[Request],
    output: Literal["text", "json"],
    name: str,
    *,
    brief: bool,
) -> int:
    """Play and print the requests; return how many a server would refuse."""
    from switchyard_core.explain import Timeline, entry_of  # noqa: PLC0415  # fast --help

    alone, entries, refused = len(requests) == 1, [], 0
    for number, request in enumerate(requests, 1):
        played = await rehearsal.play(request)
        refused += played.error is not None
        entries.append(entry_of(number, played))
        if not brief:
            if not alone and output == "text":
                click.echo(f"{'' if number == 1 else chr(10)}== request {number}")
            _print_played(played, output, name, alone=alone)
    if alone and not brief:
        return refused
    timeline = Timeline(entries)
    if output == "json":
        click.echo(_json({"timeline": timeline.as_json()}, alone=brief))
    else:
        click.echo(f"{'' if brief else chr(10)}{timeline.as_text()}", nl=False)
    return refused


def _print_played(
    played: Rehearsed, output: Literal["text", "json"], name: str, *, alone: bool
) -> None:
    if played.found is None:
        if played.error is not None:
            _print(played.error, output, name)
    elif output == "json":
        click.echo(_json(played.found.as_json(), alone=alone))
    else:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        click.echo(played.found.as_text(color=color), nl=False, color=color)


def _print(error: RequestError, output: Literal["text", "json"], name: str) -> None:
    from switchyard_core.errors import BodyError  # noqa: PLC0415  # fast --help

    if output == "text":
        place = f" at `{error.param}`" if error.param else ""
        source = f"{name}: " if isinstance(error, BodyError) else ""
        click.echo(
            f"refused   {error.status} {error.code}{place}\n          {source}{error.message}"
        )
        if source and name.endswith(".toml"):
            click.echo("          REQUEST is a file with JSON; the policy comes first")
        return
    about = {key: getattr(error, key) for key in ("status", "code", "message", "param")}
    click.echo(_json({"error": about}, alone=False))


def _json(value: dict[str, Any], *, alone: bool) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2 if alone else None)
