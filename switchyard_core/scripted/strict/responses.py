"""Structure of a Responses request: items that belong together, and what only OpenAI can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from switchyard_core.scripted.strict.places import Sent, found
from switchyard_core.scripted.strict.sealing import digest, seal, unseal

__all__ = ["CHECKS", "encrypted"]

Facts = Iterator[dict[str, Any]]

_MAKER = "openai"
#: Calls that the client runs, and the type of their results.
_RESULTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_CALLS = {result: call for call, result in _RESULTS.items()}
#: Headers that say whose account asks, the most telling first.
_ACCOUNT = ("chatgpt-account-id", "openai-organization", "authorization")


def encrypted(sent: Sent) -> str:
    """Return reasoning of the asked model that only this model and account can read."""
    asked = sent.asked
    key = digest(asked.raw.decode("latin-1"))
    return seal(_MAKER, {"m": sent.model, "a": _account(sent), "k": key})


def _unreadable(sent: Sent, _reading: object) -> Facts:
    for at, opaque in found(sent, "input[].encrypted_content"):
        item = sent.listed("input")[int(at[1])]
        facts = unseal(_MAKER, opaque)
        own = facts is not None and facts.get("a") == _account(sent)
        if own and item.get("type") == "reasoning":
            own = facts is not None and facts.get("m") == sent.model
        if not own:
            yield {"place": at, "value": str(opaque)[:4]}


def _lone_reasoning(sent: Sent, _reading: object) -> Facts:
    items = sent.listed("input")
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        following = items[index + 1] if index + 1 < len(items) else {}
        if not _is_output(following):
            yield {"place": ("input", index), "id": item.get("id") or f"input[{index}]"}


def _unanswered_calls(sent: Sent, _reading: object) -> Facts:
    items = sent.listed("input")
    for call, result in _RESULTS.items():
        answered = {i.get("call_id") for i in items if i.get("type") == result and _hashable(i)}
        for index, item in enumerate(items):
            if item.get("type") == call and _hashable(item) and item.get("call_id") not in answered:
                word = "function call" if call == "function_call" else "custom tool call"
                yield {"place": ("input", index), "id": item.get("call_id"), "kind": word}


def _unexpected_results(sent: Sent, _reading: object) -> Facts:
    body = sent.asked.body
    if body.get("previous_response_id") or body.get("conversation"):
        return
    items = sent.listed("input")
    for result, call in _CALLS.items():
        called = {i.get("call_id") for i in items if i.get("type") == call and _hashable(i)}
        for index, item in enumerate(items):
            if item.get("type") == result and _hashable(item) and item.get("call_id") not in called:
                word = "function call" if call == "function_call" else "custom tool call"
                yield {"place": ("input", index), "id": item.get("call_id"), "kind": word}


#: Each check by the name that a rule gives.
CHECKS = {
    "responses.lone_reasoning": _lone_reasoning,
    "responses.unanswered_calls": _unanswered_calls,
    "responses.unexpected_results": _unexpected_results,
    "responses.unreadable": _unreadable,
}


def _is_output(item: Mapping[str, Any]) -> bool:
    """Return whether an item is one that a model made."""
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and not kind.endswith("_output") and bool(item)


def _account(sent: Sent) -> str:
    headers = sent.asked.headers
    named = next((headers[name] for name in _ACCOUNT if headers.get(name)), "")
    return digest(named)


def _hashable(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("call_id"), str)
