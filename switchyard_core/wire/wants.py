"""What a reply asks for that none of our tools can be: no step is done while it waits for it.

A call that the provider answers itself, such as a web search of its own, asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["chat_wants", "is_function", "messages_wants", "responses_wants"]

#: Items of Responses that wait for somebody outside, whatever else they hold.
_ASKING = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)
#: Calls of Responses that the provider answers, or that our tools do.
_ANSWERED = frozenset(
    {
        "code_interpreter_call",
        "file_search_call",
        "function_call",
        "image_generation_call",
        "mcp_call",
        "web_search_call",
    }
)
_CALL = "_call"
_OUTPUT = "_output"
#: Of Messages: the provider wants to be asked to go on with its own tools.
_PAUSED = "pause_turn"
_MOST_CHARS = 64


def chat_wants(message: Mapping[str, Any], calls: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what a Chat message asks for.

    Args:
        message: The message.
        calls: Its ``tool_calls``.
    """
    legacy = ["function_call"] if message.get("function_call") else []
    kinds = [call.get("type") for call in calls if not is_function(call)]
    return _words([*legacy, *kinds])


def is_function(call: Mapping[str, Any]) -> bool:
    """Return whether a tool call of Chat is one of a function; some providers leave it unsaid."""
    kind = call.get("type")
    return kind == "function" or not kind


def responses_wants(items: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what the output of a Responses answer asks for.

    A kind of call that is not known yet asks for something if it has an id to answer to, which
    calls that the provider answers itself have not.
    """
    found = list(items)
    done = {_call_id(item) for item in found if _kind(item).endswith(_OUTPUT)}
    return _words(
        _kind(item)
        for item in found
        if _asks(item) and (_call_id(item) is None or _call_id(item) not in done)
    )


def messages_wants(stop: str) -> tuple[str, ...]:
    """Return what a Messages answer asks for.

    Args:
        stop: Its ``stop_reason``.
    """
    return (stop,) if stop == _PAUSED else ()


def _asks(item: Mapping[str, Any]) -> bool:
    kind = _kind(item)
    unknown = kind.endswith(_CALL) and kind not in _ANSWERED and _call_id(item) is not None
    return kind in _ASKING or unknown


def _kind(item: Mapping[str, Any]) -> str:
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


def _call_id(item: Mapping[str, Any]) -> str | None:
    call_id = item.get("call_id")
    return call_id if isinstance(call_id, str) else None


def _words(kinds: Iterable[Any]) -> tuple[str, ...]:
    """Return each kind once, as a word that can be shown."""
    shown = (
        kind[:_MOST_CHARS] if isinstance(kind, str) and kind.isprintable() else "an unknown call"
        for kind in kinds
    )
    return tuple(dict.fromkeys(shown))
