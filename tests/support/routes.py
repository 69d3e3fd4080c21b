"""A whole answer of a wire format that says something.

For the providers of tests/planner_executor; `FakeReply(text=...)` of the kit says the same.
"""

from __future__ import annotations

from switchyard_core import WireFormat
from switchyard_core.testing import FakeReply


def said(wire_format: WireFormat, text: str) -> FakeReply:
    if wire_format == "openai_chat":
        message = {"role": "assistant", "content": text}
        body: dict[str, object] = {"choices": [{"message": message, "finish_reason": "stop"}]}
    elif wire_format == "openai_responses":
        part = {"type": "output_text", "text": text}
        body = {"status": "completed", "output": [{"type": "message", "content": [part]}]}
    else:
        body = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    return FakeReply(body=body)
