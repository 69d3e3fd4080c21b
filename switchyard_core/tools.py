"""Running the tools that a route lists: what a model asks for goes in, what it is told comes out.

Whatever goes wrong in a call is a result for the model, never an exception of the router.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from switchyard_core.asking import RequestedCall, ToolOutput, ToolSpec
from switchyard_core.declarations import Tool

__all__ = ["MAX_OUTPUT_CHARS", "Toolbox"]

#: Most characters of one tool's output unless a router says otherwise.
MAX_OUTPUT_CHARS = 20_000


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

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as models are told of them, in the policy's order."""
        raise NotImplementedError

    async def run(
        self, calls: Sequence[RequestedCall], *, max_output_chars: int = MAX_OUTPUT_CHARS
    ) -> tuple[ToolOutput, ...]:
        """Run the calls of one reply together; results in call order.

        A cancelled run ends its calls, but for tools with side effects: these are allowed to
        finish, and the log says so.

        Args:
            calls: What the model asks for.
            max_output_chars: Longer output is cut, and says so.
        """
        raise NotImplementedError
