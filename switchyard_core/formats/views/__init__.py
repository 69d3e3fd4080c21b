"""The patchable view of each wire format's bodies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from switchyard_core.declarations import WireFormat
from switchyard_core.formats.view import BodyView
from switchyard_core.formats.views.chat import ChatView
from switchyard_core.formats.views.messages import MessagesView
from switchyard_core.formats.views.responses import ResponsesView
from switchyard_core.jsontext import ObjectText

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
