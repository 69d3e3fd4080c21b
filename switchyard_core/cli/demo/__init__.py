"""``switchyard demo``: plan on one model, execute on another, shown request by request."""

from __future__ import annotations

import asyncio
import os
import shutil
import textwrap
from typing import TYPE_CHECKING

import click

from switchyard_core.cli import cannot_run, installed_registry
from switchyard_core.cli.replaying import replay_options, unused_note
from switchyard_core.cli.words import Choice, Number
from switchyard_core.declarations import WIRE_FORMATS, WireFormat

if TYPE_CHECKING:
    from switchyard_core.cli.demo.performance import Performance, Scene
    from switchyard_core.replay import Replay

__all__ = ["command"]

#: Columns of the output: at most these, at least those.
_WIDEST, _NARROWEST = 100, 60
#: Room for the note on a line that was cut.
_NOTE = len("… (10000 more characters)")


@click.command(name="demo")
@click.option(
    "--wire-format",
    type=Choice([*WIRE_FORMATS, "all"]),
    default="openai_responses",
    show_default=True,
    help="Which API the demo's client speaks.",
)
@click.option(
    "--port",
    default=0,
    show_default=True,
    type=Number(0, 65535),
    help="Port on 127.0.0.1 for the demo's server; 0 takes a free one.",
)
@replay_options
@click.pass_context
def command(ctx: click.Context, wire_format: str, port: int, replay: Replay | None) -> None:
    """Show switchyard at work with an embedded scripted provider: no key, no network.

    Starts the real server on loopback, sends fixed requests over HTTP, and prints each decision
    and the changes of the body. Exits 0 when everything is as expected, 1 when not, and 2 when
    the demo cannot run.

    Example: switchyard demo --wire-format all
    """
    from switchyard_core.cli.demo.performance import Performance  # noqa: PLC0415  # fast --help
    from switchyard_core.errors import PluginError, PolicyError  # noqa: PLC0415  # fast --help

    try:
        performance = Performance(registry=installed_registry(ctx), port=port, replay=replay)
    except (PolicyError, PluginError) as error:
        cannot_run(ctx, f"the demo's policy cannot be used here:\n{error}")
    except OSError as error:
        cannot_run(ctx, f"cannot listen on 127.0.0.1:{port}: {error.strerror}")
    formats = [name for name in WIRE_FORMATS if wire_format in (name, "all")]
    played = asyncio.run(_play(performance, formats))
    if note := unused_note(replay):
        _say(f"\n{note}")
    ctx.exit(_summary(*played, formats))


async def _play(performance: Performance, formats: list[WireFormat]) -> tuple[int, int]:
    """Print the scenes; return how many failed, and how many there were."""
    failed = scenes = 0
    last = ""
    _say(f"switchyard on {performance.url}, an embedded scripted provider behind it")
    async for wire_format, scene in performance.play(*formats):
        if wire_format != last:
            _say(f"\n=== {wire_format} {'=' * (_width() - len(wire_format) - 5)}", bold=True)
            last = wire_format
        _print(scene)
        scenes += 1
        failed += bool(scene.problems())
    return failed, scenes


def _summary(failed: int, scenes: int, formats: list[WireFormat]) -> int:
    if failed:
        _say(f"\n{failed} of {scenes} requests did not go as expected", fg="red")
        return 1
    _say(f"\nall {scenes} requests went as expected ({', '.join(formats)})", fg="green")
    return 0


def _print(scene: Scene) -> None:
    step, width = scene.step, _width()
    _say(f"\n{scene.number}. {step.title}", bold=True)
    _say(textwrap.fill(step.about, width, initial_indent="   ", subsequent_indent="   "))
    final = ", final" if step.final else ""
    _say(f"   identity  {step.session}{final}")
    if scene.sent:
        for word in ("phase", "target", "reason"):
            _say(f"   {word:<9} {scene.headers.get(f'x-switchyard-{word}', '')}")
    _say(f"   status    {scene.status}", fg="red" if scene.status >= 400 else None)  # HTTP
    message = scene.error().get("message")
    if message:
        indent = " " * 13
        lines = textwrap.fill(
            str(message), width, initial_indent="   error     ", subsequent_indent=indent
        )
        _say(lines)
    _say(f"   latched   {scene.latched} of {scene.capacity} sessions")
    if scene.sent:
        _say("   what the provider got instead of what the client sent:")
        for line in scene.diff():
            _say(_cut(f"   {line}", width), fg={"+": "green", "-": "red", "@": "cyan"}.get(line[0]))
    else:
        _say("   nothing was sent to a provider")
    for problem in scene.problems():
        _say(f"   NOT AS EXPECTED: {problem}", fg="red", bold=True)


def _cut(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    kept = width - _NOTE
    return f"{line[:kept]}… ({len(line) - kept} more characters)"


def _width() -> int:
    columns = shutil.get_terminal_size((_WIDEST, 24)).columns
    return max(_NARROWEST, min(_WIDEST, columns))


def _say(text: str, *, fg: str | None = None, bold: bool | None = None) -> None:
    # click drops colours where the output is not a terminal.
    color = False if os.environ.get("NO_COLOR") else None
    click.echo(click.style(text, fg=fg, bold=bold) if fg or bold else text, color=color)
