"""``switchyard plan``: a plan and its results on the command line.

The route does everything; this module asks it, prints what it says, and has no logic of a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from switchyard_core import (
    PluginError,
    PluginRegistry,
    PolicyError,
    Replay,
    Request,
    RequestError,
    Switchyard,
    UpstreamError,
)
from switchyard_core.answering import AnswerEvent, Extension, Finished, Progress
from switchyard_core.cli import policy_argument, replay_options, thinking, unused_note
from switchyard_core.errors import ReplayError
from switchyard_planner_executor.plan import (
    RAW_TEXT_CHARS,
    PlanError,
    UnusablePlanError,
    read_plan_file,
)
from switchyard_planner_executor.rendering import PRINTERS, Printer
from switchyard_planner_executor.text import is_blank, plain_lines

__all__ = ["command"]

_DONE, _FAILED, _UNUSABLE, _NOT_APPROVED, _INTERRUPTED = 0, 1, 2, 3, 130
_TYPE = "planner_executor"
#: What is wrong with the environment and not with a plan.
_NO_KEY = frozenset({"missing_api_key", "missing_credential"})
_FILE = click.Path(dir_okay=False, path_type=Path)


class _CannotRun(Exception):  # noqa: N818  # ends the command with a message
    """Why the command cannot do what it was asked."""


@click.command(name="plan")
@policy_argument(then="request", path=_FILE)
@click.argument("request", required=False, default="")
@click.option("--route", "route_id", metavar="ID", help="Route id; needed when there are several.")
@click.option("--plan-only", is_flag=True, help="Show the plan and run nothing.")
@click.option("--yes", is_flag=True, help="Run the plan without asking.")
@click.option(
    "--from",
    "source",
    type=_FILE,
    metavar="FILE",
    help="Run this plan (JSON) instead of asking for one.",
)
@click.option("--verbose", is_flag=True, help="Show how the estimate is counted.")
@click.option("--save", type=_FILE, metavar="FILE", help="Write the plan to this file, for --from.")
@click.option(
    "--output",
    type=click.Choice(sorted(PRINTERS)),
    default="text",
    show_default=True,
    help="text for people, json for the result, jsonl for every event.",
)
@replay_options
@click.pass_context
def command(  # noqa: PLR0913, PLR0917  # one per option
    ctx: click.Context,
    policy: Path,
    request: str,
    route_id: str | None,
    plan_only: bool,  # noqa: FBT001  # click passes it by name
    yes: bool,  # noqa: FBT001  # click passes it by name
    source: Path | None,
    verbose: bool,  # noqa: FBT001  # click passes it by name
    save: Path | None,
    output: str,
    replay: Replay | None,
) -> None:
    """Make a plan for a REQUEST, show it, then run it step by step.

    The policy's route of type planner_executor does the work. At a terminal you are asked before
    anything runs. Exits 0 when all steps are done, 1 when a step or the plan failed, 2 when it
    cannot run, 3 when the plan waits for approval, 130 when you stopped it.

    Example: switchyard plan shop.toml "plan a picnic" --replay recordings
    """
    printer = PRINTERS[output](sys.stdout, verbose=verbose)
    message = ""
    try:
        registry = ctx.find_root().obj
        shared = registry if isinstance(registry, PluginRegistry) else None
        yard = Switchyard.from_policy(policy, registry=shared, replay=replay)
        route = _route(yard, route_id)
        plan = _read_plan(source, route.options)
        if plan is not None:
            yard = _with_plans(yard, replay)
        _check_place(save)
        session = _Session(
            yard=yard,
            printer=printer,
            route=route,
            text=_shown_request(request, plan),
            plan=plan,
            save=save,
        )
        code = asyncio.run(session.run(plan_only=plan_only, yes=yes))
    except KeyboardInterrupt:
        printer.interrupted()
        code = _INTERRUPTED
    except (_CannotRun, PolicyError, PluginError) as error:
        code, message = _UNUSABLE, str(error)
    except ReplayError as error:
        code, message = _UNUSABLE, error.message
    except UpstreamError as error:
        code, message = _FAILED, error.message
    except RequestError as error:
        code = _UNUSABLE if error.code in _NO_KEY else _FAILED
        message = _told(error, whole=verbose)
    except OSError as error:
        # The output went to a full disk, or to a reader that is gone.
        code, message = _UNUSABLE, f"cannot write the output: {error.strerror or error}"
    # Where only a plan is made, the recordings of its steps could not be used.
    note = unused_note(replay) if code == _DONE and not plan_only else ""
    for text in (f"error: {message}" if message else "", note):
        if text:
            click.echo(text, err=True)
    ctx.exit(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """One use of the command: a request, and perhaps the approval of its plan."""

    yard: Switchyard
    printer: Printer
    route: Any
    text: str
    plan: Mapping[str, Any] | None
    save: Path | None

    async def run(self, *, plan_only: bool, yes: bool) -> int:
        """Return the exit code."""
        asks = not yes and not plan_only and sys.stdin.isatty() and sys.stdout.isatty()
        wish: dict[str, Any] = {} if self.plan is None else {"plan": dict(self.plan)}
        if asks or plan_only or (self.plan is not None and self.route.options.approval == "always"):
            wish["approval"] = "always"
        self.printer.request(self.text)
        try:
            result = await self._send(wish)
            # More than once where a new plan for the rest waits for approval as well.
            while result["status"] == "planned" and not plan_only:
                if not (yes or (asks and _agreed())):
                    self.printer.waits(result, self._advice(asked=asks))
                    return _NOT_APPROVED
                named = {key: result[key] for key in ("plan_id", "plan_digest")}
                result = await self._send({"approve": named})
        finally:
            await self.yard.aclose()
        self.printer.finished(result)
        return _FAILED if result["status"] == "failed" else _DONE

    def _advice(self, *, asked: bool) -> str:
        """Return how to continue with a plan that waits; it is gone when the command ends."""
        advice = "Run the command again with --yes: a plan is made and run without a question."
        if self.plan is not None:
            advice = "Run the command again with --yes to run it."
        if not asked:
            advice = f"There is no terminal to ask you at. {advice}"
        if self.plan is not None:
            return advice
        if self.save is None:
            return f"{advice} To look at a plan first, add --plan-only --save FILE."
        return f"{advice} To run this very plan: --from {self.save} --yes."

    async def _send(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the route and print what happens; return the machine-readable part."""
        body: dict[str, Any] = {
            "model": self.route.id,
            "messages": [{"role": "user", "content": self.text}],
        }
        if wish:
            body["switchyard"] = dict(wish)
        result: dict[str, Any] = {}
        events: AsyncGenerator[AnswerEvent] = self.yard.answer(
            Request(wire_format="openai_chat", body=body)
        )
        async with contextlib.aclosing(events):
            with thinking() as sign:
                if not wish.keys() & {"plan", "approve"}:
                    sign.show("planning")
                async for event in events:
                    if isinstance(event, Progress):
                        sign.stop()
                        self.printer.event(event.data)
                        self._keep(event.data)
                        if event.data["event"] == "step_started":
                            sign.show(f"step {event.data['step']}")
                    elif isinstance(event, Extension):
                        result = dict(event.data)
                    elif isinstance(event, Finished):
                        result["status"] = event.status
        return result

    def _keep(self, event: Mapping[str, Any]) -> None:
        """Write a plan to where the user wants it, as soon as it exists."""
        if self.save is None or event["event"] != "plan_created":
            return
        text = json.dumps(event["plan"], indent=2, ensure_ascii=False) + "\n"
        try:
            self.save.write_text(text, "utf-8")
        except OSError as error:
            # It was paid for: it is shown whatever the output is.
            self.printer.unsaved(event["plan"])
            raise _unwritable(self.save, error) from None


def _unwritable(path: Path, error: OSError) -> _CannotRun:
    fix = "choose another place for --save"
    if isinstance(error, FileNotFoundError):
        fix = f"make the folder {path.parent} first, or {fix}"
    return _CannotRun(f"cannot write {path}: {error.strerror or error}; {fix}")


def _check_place(path: Path | None) -> None:
    """Refuse a place that cannot be written before a planner is paid for."""
    if path is None:
        return
    try:
        new = not path.exists()
        if new or path.is_file():
            with path.open("ab"):
                pass
        if new:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def _agreed() -> bool:
    # The event loop's own handler would only take note of Ctrl-C and keep waiting for the line.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm("Run this plan?", default=False, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return False
    finally:
        signal.signal(signal.SIGINT, handler)


def _shown_request(text: str, plan: Mapping[str, Any] | None) -> str:
    if plan is not None and is_blank(text):
        return str(plan["goal"])
    if is_blank(text):
        raise _CannotRun('say what you want: switchyard plan POLICY "..."')
    return text


def _route(yard: Switchyard, name: str | None) -> Any:
    routes = [r for r in yard.policy.routes.values() if r.type.name == _TYPE]
    ids = ", ".join(f"`{route.id}`" for route in routes)
    if not routes:
        raise _CannotRun(f"{yard.policy.name} has no route of type `{_TYPE}`")
    if name is None and len(routes) > 1:
        raise _CannotRun(f"several routes can plan: {ids}; say which with --route")
    for route in routes:
        if name in (None, route.id, route.name, *route.aliases):
            return route
    raise _CannotRun(f"no route of type `{_TYPE}` is called `{name}` (there are {ids})")


def _with_plans(yard: Switchyard, replay: Replay | None) -> Switchyard:
    """Return a switchyard that takes a plan from a file also where plans wait for approval.

    The route's ``allow_caller_plans`` is about callers; here the owner of the policy approves.
    """
    routes = {
        name: route.model_copy(
            update={"options": route.options.model_copy(update={"allow_caller_plans": True})}
        )
        if route.type.name == _TYPE
        else route
        for name, route in yard.policy.routes.items()
    }
    return Switchyard.from_loaded(replace(yard.policy, routes=routes), yard.registry, replay=replay)


def _read_plan(source: Path | None, options: Any) -> Mapping[str, Any] | None:
    if source is None:
        return None
    try:
        return read_plan_file(
            source.read_bytes(), max_steps=options.max_steps, searchable=options.searchable
        )
    except OSError as error:
        raise _CannotRun(f"cannot read {source}: {error.strerror}") from None
    except PlanError as error:
        raise _CannotRun(f"{source}: {error.detail}") from None


def _told(error: RequestError, *, whole: bool = False) -> str:
    """Return an error; of an unusable plan also what the planner said, the beginning or all."""
    if not isinstance(error, UnusablePlanError):
        return f"{error.message} ({error.code})"
    text = error.raw_text
    shown = text if whole else text[:RAW_TEXT_CHARS]
    lines = [f"{error.summary} ({error.code})", "the planner said:"]
    lines += [f"  | {line}" for line in plain_lines(shown).splitlines()]
    if len(shown) < len(text):
        lines.append(f"  … of {len(text)} characters; --verbose shows all")
    return "\n".join(lines)
