"""``switchyard plan``: a plan and its results on the command line.

Everything is done by the route; this module asks it, prints what it says, and holds no logic of
a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from switchyard_core import (
    AnswerEvent,
    Extension,
    Finished,
    PluginError,
    PluginRegistry,
    PolicyError,
    Progress,
    Replay,
    ReplayError,
    Request,
    RequestError,
    Switchyard,
    UpstreamError,
)
from switchyard_core.cli import replay_options, unused_note
from switchyard_planner_executor.printing import PRINTERS, Printer
from switchyard_planner_executor.strict_json import NotJsonError, RepeatedKeyError, loads
from switchyard_planner_executor.visible import plain_lines

__all__ = ["command"]

_DONE, _FAILED, _UNUSABLE, _NOT_APPROVED, _INTERRUPTED = 0, 1, 2, 3, 130
_TYPE = "planner_executor"
#: What a route says of a plan of the caller's, which here is a file.
_PLAN_FILE = frozenset({"plan_invalid", "caller_plans_off"})

#: What is wrong with the environment and not with a plan.
_NO_KEY = frozenset({"missing_api_key", "missing_credential"})


class _CannotRun(Exception):  # noqa: N818  # ends the command with a message
    """Why the command cannot do what it was asked."""

    def __init__(self, message: str, code: int = _UNUSABLE) -> None:
        self.code = code
        super().__init__(message)


@click.command(name="plan")
@click.argument("policy", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("request", required=False, default="")
@click.option("--route", "route_id", metavar="ID", help="Route id; needed when there are several.")
@click.option("--plan-only", is_flag=True, help="Show the plan and run nothing.")
@click.option("--yes", is_flag=True, help="Run the plan without asking.")
@click.option(
    "--from",
    "source",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run this plan (JSON) instead of asking for one.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan to this file, for --from.",
)
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
    save: Path | None,
    output: str,
    replay: Replay | None,
) -> None:
    """Make a plan for a REQUEST, show it, then run it step by step.

    The policy's route of type planner_executor does the work. At a terminal you are asked before
    anything runs, unless you say --yes. Exits 0 when all steps are done, 1 when a step or the
    plan failed, 2 when the policy or the command cannot be used, 3 when the plan waits for
    approval, 130 when you stopped it.

    Example: switchyard plan policies/planner_executor.toml "plan a picnic" --replay recordings
    """
    printer = PRINTERS[output](sys.stdout)
    try:
        session = _Session(
            yard=_yard(ctx, policy, replay),
            printer=printer,
            route_id=route_id,
            text=request,
            plan=_read_plan(source),
            save=save,
        )
        code = asyncio.run(session.run(plan_only=plan_only, yes=yes))
    except _CannotRun as error:
        _stop(ctx, str(error), error.code)
    except (PolicyError, PluginError) as error:
        _stop(ctx, str(error), _UNUSABLE)
    except ReplayError as error:
        _stop(ctx, error.message, _UNUSABLE)
    except (RequestError, UpstreamError) as error:
        word = error.code if isinstance(error, RequestError) else ""
        unusable = word in _PLAN_FILE or word in _NO_KEY
        where = f"{source}: " * (word in _PLAN_FILE)
        _stop(ctx, where + _told(error), _UNUSABLE if unusable else _FAILED)
    except KeyboardInterrupt:
        printer.interrupted()
        code = _INTERRUPTED
    except OSError as error:
        # The output went to a full disk, or to a reader that is gone.
        _stop(ctx, f"cannot write the output: {error.strerror or error}", _UNUSABLE)
    note = unused_note(replay) if code == _DONE else ""
    if note:
        click.echo(note, err=True)
    ctx.exit(code)


class _Session:
    """One use of the command: a request, and perhaps the approval of its plan."""

    def __init__(
        self,
        *,
        yard: Switchyard,
        printer: Printer,
        route_id: str | None,
        text: str,
        plan: Mapping[str, Any] | None,
        save: Path | None,
    ) -> None:
        self._yard = yard
        self._printer = printer
        self._route = _route(yard, route_id)
        self._plan = plan
        self._save = save
        self._text = text
        if plan is not None and not text.strip():
            # Only shown: a plan file without a goal is the route's to refuse.
            self._text = str(plan.get("goal") or "(a plan from a file)")
        if not self._text.strip():
            msg = 'say what you want: switchyard plan POLICY "..."'
            raise _CannotRun(msg)

    async def run(self, *, plan_only: bool, yes: bool) -> int:
        """Return the exit code."""
        asks = not yes and not plan_only and sys.stdin.isatty() and sys.stdout.isatty()
        wants: dict[str, Any] = {}
        if self._plan is not None:
            wants["plan"] = dict(self._plan)
        if asks or plan_only:
            wants["approval"] = "always"
        self._printer.request(self._text)
        try:
            found = await self._send(wants)
            # More than once where a new plan of the rest waits for approval as well.
            while found["status"] == "planned" and not plan_only:
                if not (yes or (asks and _agreed())):
                    self._printer.waits(found, self._advice())
                    return _NOT_APPROVED
                keys = ("plan_id", "plan_digest")
                found = await self._send({"approve": {key: found[key] for key in keys}})
        finally:
            await self._yard.aclose()
        self._printer.finished(found)
        return _FAILED if found["status"] == "failed" else _DONE

    def _advice(self) -> str:
        """Return how to go on with a plan that waits; it is gone when the command ends."""
        advice = "Run the command again with --yes: a plan is made and run without a question."
        options: Any = self._route.options
        if options.approval == "always" and not options.allow_caller_plans:
            return advice
        if self._save is None:
            return f"{advice} To look at a plan first, add --plan-only --save FILE."
        return f"{advice} To run this very plan: --from {self._save} --yes."

    async def _send(self, wants: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the route and print what happens; return the machine-readable part."""
        body: dict[str, Any] = {
            "model": self._route.id,
            "messages": [{"role": "user", "content": self._text}],
        }
        if wants:
            body["switchyard"] = dict(wants)
        extension: dict[str, Any] = {}
        events: AsyncGenerator[AnswerEvent] = self._yard.answer(
            Request(wire_format="openai_chat", body=body)
        )
        async with contextlib.aclosing(events):
            async for event in events:
                if isinstance(event, Progress):
                    self._keep(event.data)
                    self._printer.event(event.data)
                elif isinstance(event, Extension):
                    extension = dict(event.data)
                elif isinstance(event, Finished):
                    extension["status"] = event.status
        return extension

    def _keep(self, event: Mapping[str, Any]) -> None:
        """Write a plan to where the user wants it, as soon as it is there."""
        if self._save is None or event["event"] != "plan_created":
            return
        text = json.dumps(event["plan"], indent=2, ensure_ascii=False) + "\n"
        try:
            self._save.write_text(text, "utf-8")
        except OSError as error:
            msg = f"cannot write {self._save}: {error.strerror}"
            raise _CannotRun(msg) from None


def _agreed() -> bool:
    """Return whether the user at the terminal wants the plan to run.

    Raises:
        KeyboardInterrupt: The user stopped the command.
    """
    # The event loop's own handler would only take note of Ctrl-C and wait on for the line.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm("Run this plan?", default=False, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return False
    finally:
        signal.signal(signal.SIGINT, handler)


def _yard(ctx: click.Context, policy: Path, replay: Replay | None) -> Switchyard:
    registry = ctx.find_root().obj
    return Switchyard.from_policy(
        policy,
        registry=registry if isinstance(registry, PluginRegistry) else None,
        replay=replay,
    )


def _route(yard: Switchyard, wanted: str | None) -> Any:
    """Return the route to ask."""
    routes = [r for r in yard.policy.routes.values() if r.type.name == _TYPE]
    known = ", ".join(f"`{route.id}`" for route in routes)
    if not routes:
        msg = f"{yard.policy.name} has no route of type `{_TYPE}`"
        raise _CannotRun(msg)
    if wanted is None:
        if len(routes) == 1:
            return routes[0]
        msg = f"several routes can plan: {known}; say which with --route"
        raise _CannotRun(msg)
    for route in routes:
        if wanted in (route.id, route.name, *route.aliases):
            return route
    msg = f"no route of type `{_TYPE}` is called `{wanted}` (there are {known})"
    raise _CannotRun(msg)


def _read_plan(source: Path | None) -> Mapping[str, Any] | None:
    if source is None:
        return None
    try:
        found = loads(source.read_bytes())
    except OSError as error:
        msg = f"cannot read {source}: {error.strerror}"
        raise _CannotRun(msg) from None
    except NotJsonError as error:
        msg = f"{source} is not JSON: {error}"
        raise _CannotRun(msg) from None
    except RepeatedKeyError as error:
        msg = f"{source} holds no plan: {error}"
        raise _CannotRun(msg) from None
    # The machine-readable part of an answer holds its plan, too.
    if isinstance(found, dict) and isinstance(found.get("plan"), dict):
        found = found["plan"]
    if not isinstance(found, dict):
        msg = f"{source} holds no plan: it must be an object with `goal` and `steps`"
        raise _CannotRun(msg)
    return found


def _told(error: RequestError | UpstreamError) -> str:
    """Return an error for people, with the raw text of a plan that could not be used."""
    if isinstance(error, UpstreamError):
        return error.message
    lines = [f"{error.message} ({error.code})"]
    raw = error.details.get("raw_text")
    if raw is not None:
        whose = "the planner said:" if error.code == "plan_unusable" else "the plan was:"
        lines += [whose, *(f"  | {line}" for line in plain_lines(str(raw)).splitlines())]
    return "\n".join(lines)


def _stop(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    ctx.exit(code)
