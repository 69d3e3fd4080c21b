"""What must go with dropped reasoning, lest the provider refuses the rest."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.registry import format_of
from switchyard_core.formats.rewrites.reasoning import ORPHAN, STRIPPED
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = ["CompanionParameters", "When", "in_chat", "in_messages", "in_responses", "needed"]

#: ``dropped``: only when an earlier rewrite of the request removed reasoning.
When = Literal["always", "dropped"]

_THINKING = ("thinking", "redacted_thinking")
#: Item types of which the id is optional.
_NEED_NO_ID = ("function_call", "custom_tool_call", "shell_call", "apply_patch_call")


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


def _needed(when: When, scope: RewriteScope) -> bool:
    """As :func:`needed`; reasoning that became text has companions too."""
    return needed(when, scope) or bool(scope.facts.get("converted_reasoning"))


def in_responses(
    body: ObjectText, parameters: CompanionParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove the ids of items that followed a dropped reasoning item, and foreign continuations.

    Calls and results are paired by ``call_id``, so nothing else refers to those ids. An item
    whose type demands an id gets a fresh one; a message becomes the short form that has none.
    """
    changes = []
    items = body.array("input")
    if items is not None and _needed(parameters.when, scope):
        for index, item in items.objects():
            if items.tagged(index, ORPHAN) and "id" in item:
                _lose_id(item)
                changes.append(f"removed the id of input[{index}]")
    return changes + _drop_continuation(body, parameters, scope)


def _lose_id(item: ObjectText) -> None:
    kind, old = item.text("type"), item.text("id") or ""
    if kind in _NEED_NO_ID or kind is None:
        item.delete("id")
        return
    if kind == "message":
        item.delete("id")
        said = _plain_text(item)
        if said is not None:
            item.delete("status")
            item.set("content", encode(said))
        return
    digest = blake2b(old.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    item.set("id", encode(f"{old.partition('_')[0][:8]}_{digest}"))


def _plain_text(item: ObjectText) -> str | None:
    """Return a message's text if it has nothing else, such as annotations or a refusal."""
    parts = item.array("content")
    if parts is None:
        return None
    found = [part for _, part in parts.objects()]
    plain = all(
        part.text("type") == "output_text"
        and (part.raw("annotations") or b"[]") == b"[]"
        and (part.raw("logprobs") or b"[]") == b"[]"
        for part in found
    )
    if not plain or len(found) != len(parts):
        return None
    return "".join(part.text("text") or "" for part in found)


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
    """Remove ``thinking`` when the last tool loop has lost its thinking and has none left.

    With it goes the ``clear_thinking_*`` context edit, which requires thinking; other edits stay.
    """
    changes = _drop_continuation(body, parameters, scope)
    messages = body.array("messages")
    if messages is None or not _needed(parameters.when, scope):
        return changes
    if not _loop_lacks_thinking(messages) or not _thinks(body):
        return changes
    body.delete("thinking")
    return [*changes, "removed thinking", *_drop_clear_thinking(body)]


def _thinks(body: ObjectText) -> bool:
    thinking = body.object("thinking")
    return thinking is not None and thinking.text("type") != "disabled"


def _loop_lacks_thinking(messages: ArrayText) -> bool:
    """Return whether the history ends inside a tool loop that has lost all its thinking.

    Neighbours of one role are one turn, and a result counts only where its call is: providers
    see it so.
    """
    calls = {
        block.text("id")
        for _, message in messages.objects()
        for block in _blocks(message)
        if block.text("type") == "tool_use"
    }
    lost = answers = asked = False
    for index in range(len(messages) - 1, -1, -1):
        message = messages.object(index)
        role = message.text("role") if message is not None else None
        if message is None or role == "system":
            continue
        blocks = _blocks(message)
        if role != "assistant":
            answers = answers or any(
                block.text("type") == "tool_result" and block.text("tool_use_id") in calls
                for block in blocks
            )
            asked = True
            continue
        if asked and not answers:
            return lost
        asked = answers = False
        if any(block.text("type") in _THINKING for block in blocks):
            return False
        lost = lost or messages.tagged(index, STRIPPED)
    return lost


def _blocks(message: ObjectText) -> list[ObjectText]:
    content = message.array("content")
    return [block for _, block in content.objects()] if content is not None else []


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
