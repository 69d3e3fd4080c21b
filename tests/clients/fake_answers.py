"""Scripted answers of a pretend provider, written in the three wire formats.

Independent of switchyard on purpose: what it says about a wire format is a second opinion.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Event name (``None`` in Chat Completions) and data of one server-sent event.
Event = tuple[str | None, Any]

ASSISTANT_ITEMS = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call"})


def wire_format_of(path: str) -> str | None:
    """Return the wire format that a request path belongs to."""
    endings = {
        "/chat/completions": "openai_chat",
        "/responses": "openai_responses",
        "/messages": "anthropic_messages",
    }
    return next((name for ending, name in endings.items() if path.endswith(ending)), None)


def offered_tools(body: dict[str, Any]) -> list[str]:
    """Return the names of the tools that a request offers, in any wire format."""
    names = []
    for tool in body.get("tools") or []:
        function = tool.get("function")
        names.append(function["name"] if isinstance(function, dict) else tool.get("name"))
    return [name for name in names if name]


def assistant_turns(body: dict[str, Any]) -> int:
    """Count the runs of assistant-made items: one run is one earlier answer."""
    items = body["input"] if "input" in body else body.get("messages", [])
    count, inside = 0, False
    for item in items if isinstance(items, list) else []:
        ours = item.get("role") == "assistant" or item.get("type") in ASSISTANT_ITEMS
        count += ours and not inside
        inside = ours
    return count


def pieces(text: str, size: int = 24) -> list[str]:
    """Cut a text into the deltas of a stream."""
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call: ``arguments`` for a function, or ``text`` for a freeform tool."""

    name: str
    arguments: dict[str, Any] | None = None
    text: str | None = None

    @property
    def json(self) -> str:
        return json.dumps({"input": self.text} if self.arguments is None else self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer: reasoning, text, and one call chosen by what the request offers.

    Args:
        calls: The first whose name is offered is made; if none is offered, the last.
    """

    reasoning: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()

    def answer(self, body: dict[str, Any], number: int) -> Answer:
        offered = offered_tools(body)
        chosen = next((call for call in self.calls if call.name in offered), None)
        if chosen is None and self.calls:
            chosen = self.calls[-1]
        return Answer(turn=self, call=chosen, model=str(body.get("model")), number=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A turn made ready for one request: whole, or as the events of a stream."""

    turn: Turn
    call: Call | None
    model: str
    number: int

    @property
    def call_id(self) -> str:
        return f"call_{self.number:04d}"

    def whole(self, wire_format: str) -> dict[str, Any]:
        """Return the answer as one JSON object."""
        if wire_format == "openai_chat":
            return self._chat()
        if wire_format == "openai_responses":
            return self._response("completed")
        return self._message(self._blocks(), "tool_use" if self.call else "end_turn")

    def events(self, wire_format: str) -> Iterator[Event]:
        """Yield the answer as a stream."""
        if wire_format == "openai_chat":
            return self._chat_events()
        if wire_format == "openai_responses":
            return self._response_events()
        return self._message_events()

    # -- Chat Completions
    def _chat(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.turn.text or None}
        if self.turn.reasoning:
            message["reasoning_content"] = self.turn.reasoning
        if self.call:
            function = {"name": self.call.name, "arguments": self.call.json}
            message["tool_calls"] = [{"id": self.call_id, "type": "function", "function": function}]
        finish = "tool_calls" if self.call else "stop"
        return {
            "id": f"chatcmpl-{self.number:04d}",
            "object": "chat.completion",
            "created": 0,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }

    def _chat_events(self) -> Iterator[Event]:
        whole = self._chat()
        base = {**whole, "object": "chat.completion.chunk"}
        del base["usage"]

        def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
            return None, {
                **base,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(self.turn.reasoning) if self.turn.reasoning else ():
            yield chunk({"reasoning_content": piece})
        for piece in pieces(self.turn.text) if self.turn.text else ():
            yield chunk({"content": piece})
        if self.call:
            start = {"name": self.call.name, "arguments": ""}
            call = {"index": 0, "id": self.call_id, "type": "function", "function": start}
            yield chunk({"tool_calls": [call]})
            for piece in pieces(self.call.json):
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield chunk({}, whole["choices"][0]["finish_reason"])
        yield None, {**base, "choices": [], "usage": whole["usage"]}
        yield None, "[DONE]"

    # -- Responses
    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if self.turn.reasoning:
            summary = [{"type": "summary_text", "text": self.turn.reasoning}]
            items.append({"type": "reasoning", "id": f"rs_{self.number:04d}", "summary": summary})
            items[-1]["encrypted_content"] = f"opaque-{self.model}-{self.number}"
        if self.turn.text:
            content = [{"type": "output_text", "text": self.turn.text, "annotations": []}]
            items.append({"type": "message", "id": f"msg_{self.number:04d}", "role": "assistant"})
            items[-1] |= {"status": "completed", "content": content}
        if self.call and self.call.text is not None:
            items.append({"type": "custom_tool_call", "id": f"ctc_{self.number:04d}"})
            items[-1] |= {"call_id": self.call_id, "name": self.call.name}
            items[-1] |= {"input": self.call.text, "status": "completed"}
        elif self.call:
            items.append({"type": "function_call", "id": f"fc_{self.number:04d}"})
            items[-1] |= {"call_id": self.call_id, "name": self.call.name}
            items[-1] |= {"arguments": self.call.json, "status": "completed"}
        return items

    def _response(self, status: str) -> dict[str, Any]:
        done = status == "completed"
        usage = {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 110,
        }
        return {
            "id": f"resp_{self.number:04d}",
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": self.model,
            "output": self._items() if done else [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if done else None,
        }

    def _response_events(self) -> Iterator[Event]:
        kinds: list[tuple[str, dict[str, Any]]] = [
            (name, {"response": self._response("in_progress")})
            for name in ("response.created", "response.in_progress")
        ]
        for index, item in enumerate(self._items()):
            kinds += self._item_events(index, item)
        kinds.append(("response.completed", {"response": self._response("completed")}))
        for number, (kind, fields) in enumerate(kinds):
            yield kind, {"type": kind, "sequence_number": number, **fields}

    @staticmethod
    def _item_events(index: int, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"reasoning": "summary", "message": "content", "custom_tool_call": "input"}
        key = empty.get(item["type"], "arguments")
        start = {**item, key: [] if isinstance(item[key], list) else ""}
        yield "response.output_item.added", {"output_index": index, "item": start}
        if item["type"] == "reasoning":
            part, at = item["summary"][0], {**at, "summary_index": 0}
            blank = {**part, "text": ""}
            yield "response.reasoning_summary_part.added", {**at, "part": blank}
            for piece in pieces(part["text"]):
                yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
            yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**at, "part": part}
        elif item["type"] == "message":
            part, at = item["content"][0], {**at, "content_index": 0}
            yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
            for piece in pieces(part["text"]):
                yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
            yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**at, "part": part}
        else:
            custom = item["type"] == "custom_tool_call"
            stem = "custom_tool_call_input" if custom else "function_call_arguments"
            for piece in pieces(item[key]):
                yield f"response.{stem}.delta", {**at, "delta": piece}
            yield f"response.{stem}.done", {**at, key: item[key]}
        yield "response.output_item.done", {"output_index": index, "item": item}

    # -- Messages
    def _blocks(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if self.turn.reasoning:
            signature = base64.b64encode(f"opaque-{self.model}".encode()).decode()
            blocks.append({"type": "thinking", "thinking": self.turn.reasoning})
            blocks[-1]["signature"] = signature
        if self.turn.text:
            blocks.append({"type": "text", "text": self.turn.text})
        if self.call:
            arguments = json.loads(self.call.json)
            blocks.append({"type": "tool_use", "id": f"toolu_{self.number:04d}"})
            blocks[-1] |= {"name": self.call.name, "input": arguments}
        return blocks

    def _message(self, blocks: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
        return {
            "id": f"msg_{self.number:04d}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": blocks,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }

    def _message_events(self) -> Iterator[Event]:
        stop = "tool_use" if self.call else "end_turn"
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": self._message([], None)},
            {"type": "ping"},
        ]
        for index, block in enumerate(self._blocks()):
            keys = {"thinking": "thinking", "text": "text", "tool_use": "input"}
            key = keys[block["type"]]
            start = {**block, key: "" if isinstance(block[key], str) else {}}
            if block["type"] == "thinking":
                start["signature"] = ""
            at = {"index": index}
            events.append({"type": "content_block_start", **at, "content_block": start})
            text = block[key] if isinstance(block[key], str) else json.dumps(block[key])
            delta_key = "partial_json" if key == "input" else key
            delta_type = {"thinking": "thinking_delta", "text": "text_delta"}
            deltas = [
                {"type": delta_type.get(key, "input_json_delta"), delta_key: piece}
                for piece in pieces(text)
            ]
            if block["type"] == "thinking":
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            events += [{"type": "content_block_delta", **at, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", **at})
        delta = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}})
        events.append({"type": "message_stop"})
        for event in events:
            yield event["type"], event
