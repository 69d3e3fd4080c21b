"""What must go with dropped reasoning, lest the provider refuses the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.registry import format_of
from switchyard_core.formats.rewrites.reasoning import ORPHAN
from switchyard_core.jsontext import ArrayText, ObjectText

__all__ = ["CompanionParameters", "When", "in_chat", "in_messages", "in_responses", "needed"]

#: ``dropped``: only when an earlier rewrite of the request removed reasoning.
When = Literal["always", "dropped"]

_THINKING = ("thinking", "redacted_thinking")


class CompanionParameters(BaseModel):
    """When to run.

    Args:
        when: ``always`` at another origin, ``dropped`` at the same one.
        drop_continuation: Whether the continuation by id names something that only the
            planner's provider knows, while the history is all here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: When = "always"
    drop_continuation: bool = False


def needed(when: When, scope: RewriteScope) -> bool:
    """Return whether a rewrite that follows dropped reasoning has to run."""
    return when == "always" or bool(scope.facts.get("dropped_reasoning"))


def in_responses(
    body: ObjectText, parameters: CompanionParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove the ids of items that followed a dropped reasoning item, and foreign continuations.

    Calls and results are paired by ``call_id``, so nothing else refers to those ids.
    """
    changes = []
    items = body.array("input")
    if items is not None and needed(parameters.when, scope):
        for index, item in items.objects():
            if items.tagged(index, ORPHAN) and item.delete("id"):
                changes.append(f"removed the id of input[{index}]")
    return changes + _drop_continuation(body, parameters, scope)


def _drop_continuation(
    body: ObjectText, parameters: CompanionParameters, scope: RewriteScope
) -> list[str]:
    if not parameters.drop_continuation:
        return []
    keys = format_of(scope.wire_format).continuation(body)
    return [f"removed {key}" for key in keys if body.delete(key)]


def in_messages(
    body: ObjectText, parameters: CompanionParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove ``thinking`` when the last tool loop has no thinking block left.

    With it goes the ``clear_thinking_*`` context edit, which requires thinking; other edits stay.
    """
    changes = _drop_continuation(body, parameters, scope)
    messages = body.array("messages")
    if messages is None or not needed(parameters.when, scope):
        return changes
    if not _loop_lacks_thinking(messages) or not _thinks(body):
        return changes
    body.delete("thinking")
    return [*changes, "removed thinking", *_drop_clear_thinking(body)]


def _thinks(body: ObjectText) -> bool:
    thinking = body.object("thinking")
    return thinking is not None and thinking.text("type") != "disabled"


def _loop_lacks_thinking(messages: ArrayText) -> bool:
    """Whether the history ends inside a tool loop whose assistant turns hold no thinking."""
    inside = False
    for index in range(len(messages) - 1, -1, -1):
        message = messages.object(index)
        if message is None:
            return inside
        role, kinds = message.text("role"), _kinds(message)
        if role == "user" and "tool_result" not in kinds:
            return inside
        if role == "assistant":
            if any(kind in _THINKING for kind in kinds):
                return False
            inside = inside or "tool_use" in kinds
    return inside


def _kinds(message: ObjectText) -> list[str]:
    content = message.array("content")
    return [block.text("type") or "" for _, block in content.objects()] if content else []


def _drop_clear_thinking(body: ObjectText) -> list[str]:
    management = body.object("context_management")
    edits = management.array("edits") if management is not None else None
    if management is None or edits is None:
        return []
    changes = []
    for index in range(len(edits) - 1, -1, -1):
        edit = edits.object(index)
        kind = edit.text("type") if edit is not None else None
        if kind is not None and kind.startswith("clear_thinking_"):
            edits.delete(index)
            changes.append(f"removed the context edit {kind}")
    if changes and not len(edits):
        management.delete("edits")
        if not len(management):
            body.delete("context_management")
    return changes


def in_chat(
    body: ObjectText, parameters: CompanionParameters, scope: RewriteScope
) -> Sequence[str]:
    """Return nothing: Chat reasoning stands on the message itself and has no companions."""
    del body, parameters, scope
    return ()
