"""Structure of a Chat Completions request: the order of messages, calls and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchyard_core.scripted.strict.places import Sent
from switchyard_core.scripted.strict.sealing import digest, seal, unseal

__all__ = ["CHECKS", "thought_signature"]

Facts = Iterator[dict[str, Any]]

_SIGNER = "gemini"
#: What Google's documents give for calls that another model made.
_PLACEHOLDER = "skip_thought_signature_validator"


def thought_signature(sent: Sent) -> str:
    """Return the signature of the first call of an answer."""
    key = digest(sent.asked.raw.decode("latin-1"))
    return seal(_SIGNER, {"m": sent.model, "k": key})


def _unanswered_calls(sent: Sent, _reading: object) -> Facts:
    messages = sent.listed("messages")
    for index, message in enumerate(messages):
        answered = [str(each.get("tool_call_id")) for each in _results(messages, index)]
        missing = [each for each in _called(message) if each not in answered]
        if message.get("role") == "assistant" and missing:
            yield {"place": ("messages", index), "ids": ", ".join(missing)}


def _empty_messages(sent: Sent, _reading: object) -> Facts:
    for index, message in enumerate(sent.listed("messages")):
        said = any(message.get(key) for key in ("content", "tool_calls", "function_call"))
        if message.get("role") == "assistant" and not said:
            yield {"place": ("messages", index), "index": index}


def _unexpected_results(sent: Sent, _reading: object) -> Facts:
    messages = sent.listed("messages")
    for index, message in enumerate(messages):
        if message.get("role") != "tool":
            continue
        earlier = (m for m in reversed(messages[:index]) if m.get("role") != "tool")
        called: Mapping[str, Any] = next(earlier, {})
        if str(message.get("tool_call_id")) not in _called(called):
            yield {"place": ("messages", index), "id": message.get("tool_call_id")}


def _speaks_after_tool(sent: Sent, _reading: object) -> Facts:
    messages = sent.listed("messages")
    for index, message in enumerate(messages[1:], start=1):
        role = message.get("role")
        if messages[index - 1].get("role") == "tool" and role not in ("tool", "assistant"):
            yield {"place": ("messages", index), "role": role}


def _unsigned_calls(sent: Sent, _reading: object) -> Facts:
    messages = sent.listed("messages")
    asks = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    # Only the steps behind the user's last message are validated.
    start = asks[-1] if asks else 0
    for index, message in enumerate(messages[start:], start=start):
        calls = _calls(message)
        if calls and not _is_signed(calls[0]):
            function = calls[0].get("function")
            name = function.get("name") if isinstance(function, dict) else ""
            yield {"place": ("messages", index), "name": name, "position": index + 1}


#: Each check by the name that a rule gives.
CHECKS = {
    "chat.empty_messages": _empty_messages,
    "chat.speaks_after_tool": _speaks_after_tool,
    "chat.unanswered_calls": _unanswered_calls,
    "chat.unexpected_results": _unexpected_results,
    "chat.unsigned_calls": _unsigned_calls,
}


def _is_signed(call: Mapping[str, Any]) -> bool:
    extra = call.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    signed = google.get("thought_signature") if isinstance(google, dict) else None
    return signed == _PLACEHOLDER or unseal(_SIGNER, signed) is not None


def _results(messages: Sequence[Mapping[str, Any]], index: int) -> Iterator[Mapping[str, Any]]:
    """Yield the results directly behind a message."""
    for message in messages[index + 1 :]:
        if message.get("role") != "tool":
            return
        yield message


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    return [call for call in listed if isinstance(call, dict)]


def _called(message: Mapping[str, Any]) -> list[str]:
    return [str(call.get("id")) for call in _calls(message)]
