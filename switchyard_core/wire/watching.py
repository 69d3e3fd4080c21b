"""Whether a stream ended as it should, told without touching its bytes.

Only watched where it matters: when a slot is freed after a success, and when a stream is
recorded. A provider may open a stream with 200 and then send an error event, or stop; the
client retries such a request, and the retry must find its session as it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from switchyard_core.declarations import WireFormat

__all__ = ["StreamWatch"]

# Inside JSON strings line breaks and quotes are escaped, so these can only be the events'
# own. The name of an event stands in a line of its own or in its data.
_ENDED: Mapping[WireFormat, re.Pattern[bytes]] = MappingProxyType(
    {
        "openai_chat": re.compile(rb"\ndata:\s*\[DONE\]|\"finish_reason\":\s*\""),
        "openai_responses": re.compile(
            rb"\nevent:\s*response\.(?:completed|incomplete)"
            rb"|\"type\":\s*\"response\.(?:completed|incomplete)\""
        ),
        "anthropic_messages": re.compile(rb"\nevent:\s*message_stop|\"type\":\s*\"message_stop\""),
    }
)
_FAILED: Mapping[WireFormat, re.Pattern[bytes]] = MappingProxyType(
    {
        "openai_chat": re.compile(rb"\ndata:\s*\{\s*\"error\""),
        "openai_responses": re.compile(rb"\nevent:\s*(?:error|response\.failed)\b"),
        "anthropic_messages": re.compile(rb"\nevent:\s*error\b"),
    }
)
#: Longest mark that may be cut by the border between two chunks, in bytes.
_OVERLAP = 64


class StreamWatch:
    """Looks for the end mark and for an error event in a stream that passes by.

    Args:
        wire_format: Wire format of the stream.
    """

    def __init__(self, wire_format: WireFormat) -> None:
        self._format = wire_format
        self._carry = b"\n"
        self._ended = False
        self._failed = False

    def see(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        window = self._carry + chunk
        self._ended = self._ended or bool(_ENDED[self._format].search(window))
        self._failed = self._failed or bool(_FAILED[self._format].search(window))
        self._carry = window[-_OVERLAP:]

    @property
    def succeeded(self) -> bool:
        """Whether the stream reached its end without an error event."""
        return self._ended and not self._failed

    @property
    def failed(self) -> bool:
        """Whether an error event passed by."""
        return self._failed
