"""The wire formats by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from switchyard_core.declarations import WireFormat
from switchyard_core.wire.chat.reading import OpenAIChat
from switchyard_core.wire.format import Format
from switchyard_core.wire.messages.reading import AnthropicMessages
from switchyard_core.wire.responses.reading import OpenAIResponses

__all__ = ["FORMATS", "format_of"]

#: Every wire format, by name.
FORMATS: Mapping[WireFormat, Format] = MappingProxyType(
    {
        "openai_chat": OpenAIChat(),
        "openai_responses": OpenAIResponses(),
        "anthropic_messages": AnthropicMessages(),
    }
)


def format_of(name: WireFormat) -> Format:
    """Return a wire format."""
    return FORMATS[name]
