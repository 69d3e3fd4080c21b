"""Pairs of tool calls and results that the next provider accepts.

Providers pair by place: a result has to stand in the turn right behind its call, where
neighbours of one role count as one turn. A result anywhere else is as good as none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.openai_responses import (
    CALL_TYPES,
    HOSTED_TYPES,
    OUTPUT_TYPES,
    OpenAIResponses,
)
from switchyard_core.formats.rewrites.companions import When, needed
from switchyard_core.formats.rewrites.texts import text
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = ["RepairParameters", "repair_chat", "repair_messages", "repair_responses"]

# An MCP call holds its own output.
_ANSWERABLE = frozenset(CALL_TYPES) - {"mcp_call"}


class RepairParameters(BaseModel):
    """When to run: ``always`` at another origin, ``dropped`` at the same one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: When = "always"


def _role(messages: ArrayText, index: int) -> str:
    message = messages.object(index)
    return (message.text("role") or "") if message is not None else ""


# --- Responses ---------------------------------------------------------------------------


def repair_responses(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove outputs without a call and give calls without an output a fixed one.

    Outputs are found by their call id, wherever they stand; the calls at the very end of the
    history may still be open.
    """
    items = body.array("input")
    if items is None or not needed(parameters.when, scope):
        return ()
    nodes = [items.object(index) for index in range(len(items))]
    kinds = ["" if node is None else node.text("type") or "" for node in nodes]
    ids = ["" if node is None else _call_id(node) for node in nodes]
    made = frozenset(CALL_TYPES) | HOSTED_TYPES
    calls = {ids[n] for n, kind in enumerate(kinds) if kind in made}
    # A local shell's output may name the call's item instead.
    calls |= {
        node.text("id") or ""
        for node, kind in zip(nodes, kinds, strict=True)
        if node is not None and kind == "local_shell_call"
    }
    outputs = {ids[n] for n, kind in enumerate(kinds) if kind in OUTPUT_TYPES}
    # With a continuation the calls may be at the provider.
    stored = bool(OpenAIResponses().continuation(body))
    open_from = _last_turn(kinds, nodes)
    changes = []
    for index in range(len(items) - 1, -1, -1):
        node, kind = nodes[index], kinds[index]
        if kind in OUTPUT_TYPES and ids[index] not in calls and not stored:
            items.delete(index)
            changes.append(f"removed input[{index}], its call is missing")
        elif kind in _ANSWERABLE and index < open_from and node is not None:
            names = {ids[index], node.text("id") or ids[index]}
            if not names & outputs:
                items.insert(index + 1, encode(_output(kind, ids[index])))
                changes.append(f"added an output for input[{index}]")
    return changes[::-1]


def _call_id(item: ObjectText) -> str:
    return item.text("call_id") or item.text("id") or ""


def _output(kind: str, call_id: str) -> Mapping[str, Any]:
    """Return the output of a call whose own is lost, in the shape of its kind."""
    lost = text("lost_result")
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        output: Any = [{"stdout": "", "stderr": lost, "outcome": outcome}]
        return {"type": "shell_call_output", "call_id": call_id, "output": output}
    if kind == "apply_patch_call":
        kind_of = "apply_patch_call_output"
        return {"type": kind_of, "call_id": call_id, "status": "failed", "output": lost}
    if kind == "local_shell_call":
        return {"type": "local_shell_call_output", "id": call_id, "output": lost}
    return {"type": f"{kind}_output", "call_id": call_id, "output": lost}


def _last_turn(kinds: Sequence[str], nodes: Sequence[ObjectText | None]) -> int:
    """Return where the assistant items at the very end begin: those may still be open."""
    place = len(kinds)
    while place:
        node, kind = nodes[place - 1], kinds[place - 1]
        made = kind in CALL_TYPES or kind in HOSTED_TYPES or kind == "reasoning"
        if not made and not (node is not None and node.text("role") == "assistant"):
            break
        place -= 1
    return place


# --- Chat --------------------------------------------------------------------------------

_RESULT_ROLES = ("tool", "function")


def repair_chat(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove results that do not stand behind their call; answer calls that have none."""
    messages = body.array("messages")
    if messages is None or not needed(parameters.when, scope):
        return ()
    changes: list[str] = []
    index = 0
    while index < len(messages):
        message = messages.object(index)
        wanted = list(_wanted(message)) if message is not None else []
        caller = index
        index += _role(messages, index) not in _RESULT_ROLES
        seen: set[str] = set()
        while index < len(messages) and _role(messages, index) in _RESULT_ROLES:
            answered = _answers(messages.object(index))
            if answered in {call_id for call_id, _ in wanted} - seen:
                seen.add(answered)
                index += 1
            else:
                messages.delete(index)
                changes.append(f"removed messages[{index}], its call is missing")
        if not seen and index == len(messages):
            break  # the calls of the last turn may still be open
        for call_id, result in wanted:
            if call_id not in seen:
                messages.insert(index, encode(result))
                changes.append(f"added a result for a call of messages[{caller}]")
                index += 1
    return changes


def _wanted(message: ObjectText) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the calls of an assistant message: what their result names, and a fixed result."""
    if message.text("role") != "assistant":
        return
    calls = message.array("tool_calls")
    for _, call in calls.objects() if calls is not None else ():
        call_id = call.text("id")
        if call_id:
            lost = text("lost_result")
            yield call_id, {"role": "tool", "tool_call_id": call_id, "content": lost}
    legacy = message.object("function_call")
    name = legacy.text("name") if legacy is not None else None
    if name:
        yield name, {"role": "function", "name": name, "content": text("lost_result")}


def _answers(message: ObjectText | None) -> str:
    if message is None:
        return ""
    return message.text("tool_call_id") or message.text("name") or ""


# --- Messages ----------------------------------------------------------------------------


def repair_messages(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove results that do not stand behind their call; answer calls that have none."""
    messages = body.array("messages")
    if messages is None or not needed(parameters.when, scope):
        return ()
    changes: list[str] = []
    index = 0
    while index < len(messages):
        calls: list[str] = []
        while index < len(messages) and _role(messages, index) == "assistant":
            calls += _blocks(messages, index, "tool_use", "id")
            index += 1
        first = index
        while index < len(messages) and _role(messages, index) != "assistant":
            index += 1
        users = [n for n in range(first, index) if _role(messages, n) == "user"]
        seen = _drop_strays(messages, users, calls, changes)
        missing = [call_id for call_id in calls if call_id not in seen]
        if missing and first < len(messages):
            index += _put_results(messages, first, users, missing)
            changes += [f"added a result for a call before messages[{first}]" for _ in missing]
    return changes


def _blocks(messages: ArrayText, index: int, kind: str, key: str) -> list[str]:
    message = messages.object(index)
    blocks = message.array("content") if message is not None else None
    if blocks is None:
        return []
    return [block.text(key) or "" for _, block in blocks.objects() if block.text("type") == kind]


def _drop_strays(
    messages: ArrayText, users: Sequence[int], calls: Sequence[str], changes: list[str]
) -> set[str]:
    """Remove the results of a user's turn that answer none of its calls, or one twice."""
    seen: set[str] = set()
    for index in users:
        message = messages.object(index)
        blocks = message.array("content") if message is not None else None
        strays = []
        for place, block in blocks.objects() if blocks is not None else ():
            if block.text("type") == "tool_result":
                call_id = block.text("tool_use_id") or ""
                if call_id in calls and call_id not in seen:
                    seen.add(call_id)
                else:
                    strays.append(place)
        for place in reversed(strays):
            if blocks is not None:
                blocks.delete(place)
            changes.append(f"removed messages[{index}].content[{place}], its call is missing")
    return seen


def _put_results(
    messages: ArrayText, first: int, users: Sequence[int], missing: Sequence[str]
) -> int:
    """Put fixed results first into a user's turn; return how many messages were added."""
    lost = text("lost_result")
    added = [
        encode({"type": "tool_result", "tool_use_id": call_id, "content": lost})
        for call_id in missing
    ]
    message = messages.object(users[0]) if users else None
    blocks = message.array("content") if message is not None else None
    raw = (message.raw("content") or b"") if message is not None else b""
    if blocks is not None:
        for number, block in enumerate(added):
            blocks.insert(number, block)
        return 0
    joined = b",".join(added)
    if message is not None and raw[:1] == b'"':
        theirs = b"" if raw == b'""' else b',{"type":"text","text":' + raw + b"}"
        message.set("content", b"[" + joined + theirs + b"]")
        return 0
    messages.insert(first, b'{"role":"user","content":[' + joined + b"]}")
    return 1
