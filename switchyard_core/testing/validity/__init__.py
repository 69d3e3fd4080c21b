"""Whether a provider would accept a body: its documented rules, and the official SDK's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.testing.validity.chat import chat_problems
from switchyard_core.testing.validity.messages import messages_problems
from switchyard_core.testing.validity.responses import responses_problems
from switchyard_core.testing.validity.sdk import sdk_problems

__all__ = ["assert_valid_for", "validity_problems"]

_RULES: Mapping[WireFormat, Callable[[dict[str, Any]], list[str]]] = MappingProxyType(
    {
        "openai_chat": chat_problems,
        "openai_responses": responses_problems,
        "anthropic_messages": messages_problems,
    }
)


def assert_valid_for(
    wire_format: WireFormat, body: bytes | str | Mapping[str, Any], *, sdk: bool | None = None
) -> None:
    """Fail unless a provider of a wire format would accept a body.

    Args:
        wire_format: Wire format of the body.
        body: The body: bytes, text, or a tree.
        sdk: Whether the request types of the official SDK must accept it too; ``None`` asks
            them when the SDK (``openai``, ``anthropic``) is installed.

    Raises:
        AssertionError: Names every problem with its wire path.
        ImportError: ``sdk`` is true and the SDK is not installed.
        ValueError: The wire format is unknown.

    Example:
        >>> assert_valid_for("openai_chat", {"model": "m", "messages": []})
        Traceback (most recent call last):
            ...
        AssertionError: not a valid body of openai_chat:
          messages: must not be empty
    """
    problems = validity_problems(wire_format, body, sdk=sdk)
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise AssertionError(f"not a valid body of {wire_format}:{lines}")


def validity_problems(
    wire_format: WireFormat, body: bytes | str | Mapping[str, Any], *, sdk: bool | None = None
) -> list[str]:
    """Return what a provider would refuse in a body, one line each; see :func:`assert_valid_for`.

    The SDK's types are asked only when the rules find nothing: they say the same less clearly.
    """
    if wire_format not in WIRE_FORMATS:
        msg = f"unknown wire format `{wire_format}`; known: {', '.join(WIRE_FORMATS)}"
        raise ValueError(msg)
    try:
        raw = body.encode() if isinstance(body, str) else body
        tree = loads(raw if isinstance(raw, bytes) else encode(dict(raw)))
    except JsonTextError as error:
        return [f"the body is no JSON: {error.message}"]
    if not isinstance(tree, dict):
        return ["the body is no JSON object"]
    model = tree.get("model")
    problems = [] if isinstance(model, str) and model else ["model: must be a string"]
    problems += _RULES[wire_format](tree)
    return problems or sdk_problems(wire_format, tree, required=sdk)
