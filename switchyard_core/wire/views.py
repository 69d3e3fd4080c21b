"""The patchable view of each wire format's bodies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.chat.view import ChatView
from switchyard_core.wire.messages.view import MessagesView
from switchyard_core.wire.responses.view import ResponsesView
from switchyard_core.wire.view import BodyView

__all__ = ["view_of"]

_VIEWS: Mapping[WireFormat, type[BodyView]] = MappingProxyType(
    {
        "openai_chat": ChatView,
        "openai_responses": ResponsesView,
        "anthropic_messages": MessagesView,
    }
)


def view_of(body: ObjectText, wire_format: WireFormat) -> BodyView:
    """Return the patchable view of a body; what it is used for changes the body."""
    return _VIEWS[wire_format](body)
