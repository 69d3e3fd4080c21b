"""The time that a step and its run have, and the end of a step without a result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Deadline", "StepFailure"]

_T = TypeVar("_T")


class StepFailure(Exception):  # noqa: N818  # a step's end, not an error of ours
    """Ends a step without a result.

    Args:
        code: One word; see :class:`~switchyard_planner_executor.events.StepFailed`.
        error: One sentence for people.
    """

    def __init__(self, code: str, error: str) -> None:
        self.code = code
        self.error = error
        super().__init__(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """When a step has to be done.

    Args:
        step_at: Time of the event loop at which the step's time is over.
        step_s: Seconds that the step was given.
        run_at: Time of the event loop at which the run's time is over.
        run_s: Seconds that the run was given.
    """

    step_at: float
    step_s: float
    run_at: float
    run_s: float

    async def within(self, doing: Awaitable[_T]) -> _T:
        """Await something as long as there is time.

        Raises:
            StepFailure: ``timeout`` or ``run_timeout``.
        """
        try:
            async with asyncio.timeout_at(min(self.step_at, self.run_at)):
                return await doing
        except TimeoutError:
            if self.run_at <= self.step_at:
                text = f"the run took longer than {self.run_s:g} s"
                raise StepFailure("run_timeout", text) from None
            raise StepFailure("timeout", f"it took longer than {self.step_s:g} s") from None
