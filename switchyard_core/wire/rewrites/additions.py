"""Rewrites that add a text or set what the target declares, each for every wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire import format_of
from switchyard_core.wire.texts import fixed_text

__all__ = [
    "EffortParameters",
    "ExtraBodyParameters",
    "ModelParameters",
    "PromptParameters",
    "UserTextParameters",
    "append_user_text",
    "end_with_user_turn",
    "insert_prompt",
    "reasoning_effort",
    "set_model",
    "target_parameters",
]


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UserTextParameters(_Parameters):
    """The text to add; not blank."""

    text: str


class PromptParameters(_Parameters):
    """An instruction, not blank, and its place relative to the caller's own."""

    text: str
    position: Literal["prepend", "append"] = "prepend"


class ModelParameters(_Parameters):
    """The target's model id."""

    id: str


class ExtraBodyParameters(_Parameters):
    """Top-level keys that fill what the request does not set."""

    extra_body: Mapping[str, Any]


class EffortParameters(_Parameters):
    """The reasoning effort that the target asks for."""

    effort: str


def append_user_text(
    body: ObjectText, parameters: UserTextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add a user's words at the end, unless a call is open."""
    if format_of(scope.wire_format).read(body).ends_with_open_call:
        return ()
    return _told(format_of(scope.wire_format).view(body).append_user_text(parameters.text))


def insert_prompt(
    body: ObjectText, parameters: PromptParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add an instruction before or after the caller's own."""
    view = format_of(scope.wire_format).view(body)
    return _told(view.add_instruction(parameters.text, append=parameters.position == "append"))


def end_with_user_turn(body: ObjectText, parameters: None, scope: RewriteScope) -> Sequence[str]:
    """Add a short user turn when the history ends with assistant text; an open call stays."""
    del parameters
    view = format_of(scope.wire_format).view(body)
    conversation = format_of(scope.wire_format).read(body)
    if not conversation.messages or conversation.messages[-1].role != "assistant":
        return ()
    if view.items is None or conversation.ends_with_open_call:
        return ()
    view.items.append(view.user_item(fixed_text("go_on")))
    return (f"added a user message as {view.key}[{len(view.items) - 1}]",)


def target_parameters(
    body: ObjectText, parameters: ExtraBodyParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add the keys that the request does not set."""
    del scope
    changes = []
    for key, value in parameters.extra_body.items():
        if key not in body:
            body.set(key, encode(value))
            changes.append(f"set {key}")
    return changes


def reasoning_effort(
    body: ObjectText, parameters: EffortParameters, scope: RewriteScope
) -> Sequence[str]:
    """Set the reasoning effort where the wire format keeps it; its neighbours stay."""
    keys = format_of(scope.wire_format).effort
    holder: ObjectText | None = body
    for key in keys[:-1]:
        if holder is not None and (holder.raw(key) or b"null") == b"null":
            holder.set(key, b"{}")
        holder = None if holder is None else holder.object(key)
    value = encode(parameters.effort)
    if holder is None or holder.raw(keys[-1]) == value:
        return ()
    holder.set(keys[-1], value)
    return (f"set {'.'.join(keys)} to {parameters.effort}",)


def set_model(body: ObjectText, parameters: ModelParameters, scope: RewriteScope) -> Sequence[str]:
    """Set ``model``."""
    del scope
    if body.text("model") == parameters.id:
        return ()
    body.set("model", encode(parameters.id))
    return (f"set model to {parameters.id}",)


def _told(change: str) -> Sequence[str]:
    return (change,) if change else ()
