"""Rewrites that add a text or set what the target declares, each for every wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire.registry import format_of
from switchyard_core.wire.rewrites.texts import text as fixed_text
from switchyard_core.wire.views import view_of

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

#: Where each wire format keeps the reasoning effort: a key, and the object that it is in.
_EFFORT: Mapping[str, tuple[str | None, str]] = {
    "openai_chat": (None, "reasoning_effort"),
    "openai_responses": ("reasoning", "effort"),
    "anthropic_messages": ("output_config", "effort"),
}


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UserTextParameters(_Parameters):
    """The text to add; not blank."""

    text: str


class PromptParameters(_Parameters):
    """An instruction and its place.

    Args:
        text: The instruction; not blank.
        position: Before or after the caller's own instructions.
    """

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
    """Add a user's words at the end; nothing comes between an open call and its result."""
    if format_of(scope.wire_format).read(body).ends_with_open_call:
        return ()
    return _told(view_of(body, scope.wire_format).append_user_text(parameters.text))


def insert_prompt(
    body: ObjectText, parameters: PromptParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add an instruction before or after the caller's own, without touching theirs."""
    view = view_of(body, scope.wire_format)
    return _told(view.add_instruction(parameters.text, append=parameters.position == "append"))


def end_with_user_turn(body: ObjectText, parameters: None, scope: RewriteScope) -> Sequence[str]:
    """Add a short user turn when the history ends with assistant text.

    The text is kept. A trailing tool call is an open call, and nothing follows it.
    """
    del parameters
    view = view_of(body, scope.wire_format)
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
    outer, key = _EFFORT[scope.wire_format]
    holder: ObjectText | None = body
    if outer is not None:
        if (body.raw(outer) or b"null") == b"null":
            body.set(outer, b"{}")
        holder = body.object(outer)
    value = encode(parameters.effort)
    if holder is None or holder.raw(key) == value:
        return ()
    holder.set(key, value)
    return (f"set {outer + '.' if outer else ''}{key} to {parameters.effort}",)


def set_model(body: ObjectText, parameters: ModelParameters, scope: RewriteScope) -> Sequence[str]:
    """Set ``model``."""
    del scope
    if body.text("model") == parameters.id:
        return ()
    body.set("model", encode(parameters.id))
    return (f"set model to {parameters.id}",)


def _told(change: str) -> Sequence[str]:
    return (change,) if change else ()
