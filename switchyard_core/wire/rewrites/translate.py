"""The rewrite that says a request in the wire format of its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.decision import RewriteScope
from switchyard_core.declarations import WireFormat
from switchyard_core.errors import RefusedError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import Facts
from switchyard_core.wire.rewrites.history import RemapParameters, remap_tool_ids

__all__ = ["TranslateParameters", "translate"]

_FACTS = {each.name for each in fields(Facts)}


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
    #: Which ids of tool calls the target takes, besides what its format says.
    id_style: Literal["format", "alphanumeric_9"] = "format"
    #: Whether only the tokens of the request are to be counted.
    counts: bool = False

    @property
    def facts(self) -> Facts:
        """What a writer has to know."""
        return Facts(**self.model_dump(include=_FACTS))


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
    changes = [f"translated from {source} to {target}", *request.told.lines]
    if parameters.id_style != "format":
        changes += remap_tool_ids(body, RemapParameters(style=parameters.id_style), scope)
    if parameters.counts:
        for key in set(body.keys()) - FORMATS[target].counted_keys:
            body.delete(key)
    return changes
