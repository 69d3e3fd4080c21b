"""Runs the calls of a reply together and says what came of each."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from switchyard_core.answering import RequestedCall, ToolOutput, ToolSpec
from switchyard_core.declarations import Tool
from switchyard_core.tools import wording
from switchyard_core.tools.wording import spec_of

__all__ = ["MAX_OUTPUT_CHARS", "Result", "Toolbox", "is_async", "work"]

_LOG = logging.getLogger("switchyard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a function's call."""

    text: str
    error: str = ""


def is_async(function: object) -> bool:
    """Return whether a function, or an object that is called like one, is ``async``."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004 - not whether, but how
    )


async def work(tool: Tool, arguments: BaseModel) -> Result:
    """Call a tool's function; run it as its own task, which ends early only when cancelled.

    A tool may raise anything, ``SystemExit`` and its own ``CancelledError`` too; the one
    would end the event loop, and the other looks like the end of this task.
    """
    function = tool.function
    try:
        if is_async(function):
            return _result(tool.name, await function(arguments))
        returned, raised = await _in_thread(tool, lambda: function(arguments))
        if raised is not None:
            return _failed(tool.name, raised)
        # A plain function may return what has to be awaited, as a lambda around another does.
        return _result(tool.name, await returned if inspect.isawaitable(returned) else returned)
    except BaseException as error:
        task = asyncio.current_task()
        asked_to_end = task is not None and task.cancelling() > 0
        if isinstance(error, asyncio.CancelledError) and asked_to_end:
            raise
        return _failed(tool.name, error)


def _failed(name: str, error: BaseException) -> Result:
    _LOG.error("tool `%s` failed", name, exc_info=error)
    return Result(text=wording.failed(name, error), error="exception")


async def _in_thread(
    tool: Tool, call: Callable[[], Any]
) -> tuple[Any, None] | tuple[None, BaseException]:
    """Run a function in its own thread, with this task's context variables.

    Not in the loop's pool: a few threads that hang would hold up every later call, and the end
    of the process. Returns what it raised, too: a future and a coroutine refuse some errors.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(outcome: object) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        outcome: object
        try:
            outcome = context.run(call), None
        except BaseException as raised:  # noqa: BLE001 - a tool may raise anything
            outcome = None, raised
        try:
            loop.call_soon_threadsafe(deliver, outcome)
        except RuntimeError:
            _LOG.warning("tool `%s` ended after its event loop", tool.name)

    threading.Thread(target=run, name=f"tool {tool.name}", daemon=True).start()
    outcome: tuple[Any, None] | tuple[None, BaseException] = await done
    return outcome


def _result(name: str, returned: Any) -> Result:
    if isinstance(returned, str):
        text = str(returned)
    else:
        try:
            text = to_json(returned, inf_nan_mode="null").decode()
        except Exception as error:  # noqa: BLE001 - a value's own methods may raise anything
            _LOG.error("tool `%s` returned a value that is not JSON", name, exc_info=error)
            return Result(text=wording.no_text(name, returned), error="exception")
    # Half a surrogate pair cannot be sent as text.
    return Result(text=text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))


#: Most characters of one tool's output unless a router says otherwise.
MAX_OUTPUT_CHARS = 20_000
#: Most calls of one reply that run at the same time; the others wait for one of these.
MAX_AT_ONCE = 32
#: Seconds that the end of a host waits for tools with side effects.
GRACE_S = 10.0

_LOG = logging.getLogger("switchyard")


class Toolbox:
    """The tools of one route.

    Args:
        tools: By name.
        note: Called with the name of the tool and ``ok`` or the error's word after each call; an
            unknown tool's name is ``""``.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool] = MappingProxyType({}),
        note: Callable[[str, str], None] | None = None,
    ) -> None:
        self.tools = tools
        self._note = note
        # Calls that continue although nobody waits for them; the loop holds tasks weakly.
        self._left: dict[asyncio.Task[Result], Tool] = {}

    def following(self, tools: Mapping[str, Tool]) -> Toolbox:
        """Return a box of other tools for the same route, counted and settled with this one."""
        box = Toolbox(tools, self._note)
        box._left = self._left
        return box

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as models are told of them, in the policy's order."""
        return tuple(spec_of(tool) for tool in self.tools.values())

    async def run(
        self, calls: Sequence[RequestedCall], *, max_output_chars: int = MAX_OUTPUT_CHARS
    ) -> tuple[ToolOutput, ...]:
        """Run the calls of one reply together; results in call order.

        A cancelled run ends its calls, but for tools with side effects and for threads: these
        are allowed to finish, and the log says so. A call that takes too long is treated alike.

        Args:
            calls: What the model asks for.
            max_output_chars: Longer output is cut, and says so.
        """
        slots = asyncio.Semaphore(MAX_AT_ONCE)

        async def one(call: RequestedCall) -> ToolOutput:
            async with slots:
                return await self._one(call, max_output_chars)

        return tuple(await asyncio.gather(*(one(call) for call in calls)))

    async def settle(self) -> None:
        """Wait for the tools with side effects that outlived their run or their time.

        For hosts that are about to end their event loop; the wait is a limited one.
        """
        waiting = [task for task, tool in self._left.items() if tool.side_effects]
        if waiting:
            await asyncio.wait(waiting, timeout=GRACE_S)

    async def _one(self, call: RequestedCall, most: int) -> ToolOutput:
        start = time.monotonic()
        tool = self.tools.get(call.name)
        if tool is None:
            result = Result(text=wording.unknown(call.name, self.tools), error="unknown")
        else:
            arguments = _arguments(tool, call.arguments)
            result = (
                arguments if isinstance(arguments, Result) else await self._call(tool, arguments)
            )
        self._count(tool, result)
        return ToolOutput(
            call=call,
            text=wording.cut(result.text, max(most, 0)),
            ok=not result.error,
            error=result.error,
            ms=(time.monotonic() - start) * 1000,
        )

    async def _call(self, tool: Tool, arguments: BaseModel) -> Result:
        begun = asyncio.Event()

        async def working() -> Result:
            begun.set()
            return await work(tool, arguments)

        task = asyncio.create_task(working())
        try:
            # Not `wait_for`: that waits on for a tool that does not let itself be cancelled.
            await asyncio.wait({task}, timeout=tool.timeout_s)
        except asyncio.CancelledError:
            if begun.is_set() and _goes_on(tool):
                _LOG.warning("tool `%s` continues, although its run was cancelled", tool.name)
                task.add_done_callback(lambda done: self._outlived(tool, done, counted=False))
            else:
                task.cancel()
            self._leave(task, tool)
            raise
        if task.done() and not task.cancelled():
            return task.result()
        goes_on = _goes_on(tool)
        _LOG.warning(
            "tool `%s` gave no result within %g s%s",
            tool.name,
            tool.timeout_s,
            "; it continues" if goes_on else "",
        )
        if goes_on:
            task.add_done_callback(lambda done: self._outlived(tool, done, counted=True))
        else:
            task.cancel()
        self._leave(task, tool)
        return Result(
            text=wording.late(tool.name, tool.timeout_s, goes_on=goes_on), error="timeout"
        )

    def _leave(self, task: asyncio.Task[Result], tool: Tool) -> None:
        self._left[task] = tool
        task.add_done_callback(self._left.pop)

    def _outlived(self, tool: Tool, task: asyncio.Task[Result], *, counted: bool) -> None:
        """Report the end of a call that nobody waited for."""
        if task.cancelled():
            return
        result = task.result()
        _LOG.info("tool `%s` ended after its run: %s", tool.name, result.error or "ok")
        if not counted:
            self._count(tool, result)

    def _count(self, tool: Tool | None, result: Result) -> None:
        if tool is None or result.error == "arguments":
            _LOG.info("cannot run a tool call of a model: %s", result.text.partition("\n")[0])
        if self._note is not None:
            self._note(tool.name if tool is not None else "", result.error or "ok")


def _goes_on(tool: Tool) -> bool:
    """Return whether a call is not to be, or cannot be, ended halfway."""
    return tool.side_effects or not is_async(tool.function)


def _arguments(tool: Tool, text: str) -> BaseModel | Result:
    try:
        # Some providers send nothing for a call without arguments.
        return tool.parameters.model_validate_json(text if text.strip() else "{}")
    except ValidationError as error:
        return Result(text=wording.invalid(tool.name, tool.parameters, error), error="arguments")
    except BaseException as error:  # noqa: BLE001 - a validator of a plugin may raise anything
        _LOG.error("tool `%s` cannot read its arguments", tool.name, exc_info=error)
        return Result(text=wording.failed(tool.name, error), error="exception")
