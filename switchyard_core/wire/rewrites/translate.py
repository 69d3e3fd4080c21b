"""The rewrite that says a request in the wire format of its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.decision import RewriteScope
from switchyard_core.declarations import WireFormat
from switchyard_core.errors import RefusedError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import Facts

__all__ = ["TranslateParameters", "translate"]


class TranslateParameters(BaseModel):
    """Where a request goes, and what is known of the model there; see :class:`Facts`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wire_format: WireFormat
    #: What becomes of content and tools that only the caller's provider can serve.
    on_untranslatable: Literal["drop", "refuse"] = "drop"
    max_output: int | None = None
    reasoning_key: str = ""
    system_rows: bool = False
    thinks: bool = False
    forced_schema: bool = False
    cache_marks: bool = False

    @property
    def facts(self) -> Facts:
        """What a writer has to know."""
        return Facts(**self.model_dump(exclude={"wire_format", "on_untranslatable"}))


def translate(
    body: ObjectText, parameters: TranslateParameters, scope: RewriteScope
) -> Sequence[str]:
    """Say the request in another wire format; later rewrites see that one."""
    source, target = scope.wire_format, parameters.wire_format
    if source == target:
        return ()
    request = FORMATS[source].neutral(body)
    written = FORMATS[target].write(request, parameters.facts)
    if request.told.lost and parameters.on_untranslatable == "refuse":
        lost = "; ".join(request.told.lost)
        raise RefusedError(
            message=f"the target speaks `{target}`, which cannot say all of this request: {lost}",
            code="untranslatable",
        )
    body.become(written)
    scope.wire_format = target
    return (f"translated from {source} to {target}", *request.told.lines)
