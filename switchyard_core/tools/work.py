"""Calling the function of a tool: in a thread or awaited, and whatever it raises is caught."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from switchyard_core.declarations import Tool
from switchyard_core.tools import wording

__all__ = ["Result", "is_async", "work"]

_LOG = logging.getLogger("switchyard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a function's call.

    Args:
        text: What the model is told.
        error: The word for what went wrong, ``""`` for nothing.
    """

    text: str
    error: str = ""


def is_async(function: object) -> bool:
    """Return whether a function, or an object that is called like one, is ``async``."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004 - not whether, but how
    )


async def work(tool: Tool, arguments: BaseModel) -> Result:
    """Call a tool's function; to be a task of its own, which ends early only by being cancelled.

    A tool may raise anything, ``SystemExit`` and a ``CancelledError`` of its own too; the one
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
    """Run a function in a thread of its own, with this task's context variables.

    Not in the loop's pool: a few threads that hang would hold up every later call, and the end
    of the process.

    Returns:
        What it returned, or what it raised: a future and a coroutine refuse some errors.
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
            _LOG.error("tool `%s` returned no JSON", name, exc_info=error)
            return Result(text=wording.no_text(name, returned), error="exception")
    # Half a surrogate pair is no text that could be sent.
    return Result(text=text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
