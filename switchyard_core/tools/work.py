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
    try:
        returned = await _returned(tool, arguments)
        return _result(tool.name, returned)
    except BaseException as error:
        if isinstance(error, GeneratorExit) or (
            isinstance(error, asyncio.CancelledError) and _is_cancelled()
        ):
            raise
        _LOG.error("tool `%s` failed", tool.name, exc_info=error)
        return Result(text=wording.failed(tool.name, error), error="exception")


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _returned(tool: Tool, arguments: BaseModel) -> Any:
    function = tool.function
    if is_async(function):
        return await function(arguments)
    returned = await _in_thread(tool, lambda: function(arguments))
    # A plain function may return what has to be awaited, as a lambda around another does.
    return await returned if inspect.isawaitable(returned) else returned


async def _in_thread(tool: Tool, call: Callable[[], Any]) -> Any:
    """Run a function in a thread of its own, with this task's context variables.

    Not in the loop's pool: a few threads that hang would hold up every later call. The end of
    the process waits only for tools that change something.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(returned: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(returned)
        else:
            done.set_exception(_Raised(error))

    def run() -> None:
        returned, error = None, None
        try:
            returned = context.run(call)
        except BaseException as raised:  # noqa: BLE001 - a tool may raise anything
            error = raised
        try:
            loop.call_soon_threadsafe(deliver, returned, error)
        except RuntimeError:
            _LOG.warning("tool `%s` ended after its event loop", tool.name)

    threading.Thread(target=run, name=f"tool {tool.name}", daemon=not tool.side_effects).start()
    try:
        return await done
    except _Raised as raised:
        raise raised.error from None


class _Raised(Exception):  # noqa: N818 - carries another error through a future
    """An error of a thread; a future refuses some kinds and the loop reacts to others."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__()


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
