"""Setting the model and the parameters that a target declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.jsontext import ObjectText, encode

__all__ = [
    "EffortParameters",
    "ExtraBodyParameters",
    "ModelParameters",
    "fill_extra_body",
    "set_effort",
    "set_model",
]

#: Where each wire format keeps the reasoning effort: a key, and the object it stands in.
_EFFORT: Mapping[str, tuple[str | None, str]] = {
    "openai_chat": (None, "reasoning_effort"),
    "openai_responses": ("reasoning", "effort"),
    "anthropic_messages": ("output_config", "effort"),
}


class ModelParameters(BaseModel):
    """The target's model id."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str


class ExtraBodyParameters(BaseModel):
    """Top-level keys that fill what the request does not set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    extra_body: Mapping[str, Any]


class EffortParameters(BaseModel):
    """The reasoning effort that the target asks for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    effort: str


def set_model(body: ObjectText, parameters: ModelParameters, scope: RewriteScope) -> Sequence[str]:
    """Set ``model``."""
    if body.text("model") == parameters.id:
        return ()
    body.set("model", encode(parameters.id))
    return (f"set model to {parameters.id}",)


def fill_extra_body(
    body: ObjectText,
    parameters: ExtraBodyParameters,
    scope: RewriteScope,
) -> Sequence[str]:
    """Add the keys that the request does not set."""
    changes = []
    for key, value in parameters.extra_body.items():
        if key not in body:
            body.set(key, encode(value))
            changes.append(f"set {key}")
    return changes


def set_effort(
    body: ObjectText, parameters: EffortParameters, scope: RewriteScope
) -> Sequence[str]:
    """Set the reasoning effort where the wire format keeps it; its neighbours stay."""
    outer, key = _EFFORT[scope.wire_format]
    value = encode(parameters.effort)
    holder = body
    if outer is not None:
        if (body.raw(outer) or b"null") == b"null":
            body.set(outer, b"{}")
        inner = body.object(outer)
        if inner is None:
            return ()
        holder = inner
    if holder.raw(key) == value:
        return ()
    holder.set(key, value)
    return (f"set {outer + '.' if outer else ''}{key} to {parameters.effort}",)
