"""A provider of Messages models that check the prefix of their thinking, and a client of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from switchyard_core import Outgoing, Request
from switchyard_core.testing import FakeReply, Harness, Served

BOUND = {"error": {"type": "invalid_request_error", "message": "The block is bound to a different "
                   "conversation than the one it is sent in."}}  # fmt: skip
TOO_LONG = FakeReply(status=400, body={"error": {"message": "prompt is too long: 300000 tokens"}})


def prefix(body: Mapping[str, Any], messages: int, blocks: Sequence[Any] = ()) -> str:
    """Return a digest of all that is in front of a block."""
    before = [body.get("system"), body.get("tools"), body["messages"][:messages], list(blocks)]
    return sha256(json.dumps(_unmarked(before)).encode()).hexdigest()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


@dataclass
class PrefixProvider:
    """Thinks in each answer, and refuses thinking that it reads behind another prefix.

    Its models read their own thinking and that of those in `reads`.
    """

    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)
    replies: list[FakeReply] = field(default_factory=list)  # played first
    made: dict[str, tuple[str, str]] = field(default_factory=dict)  # model and prefix
    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    does: dict[str, Any] | None = None  # the tool call of the next answer

    async def __call__(self, outgoing: Outgoing) -> FakeReply:
        body = json.loads(outgoing.body)
        self.bodies.append((outgoing.target, body))
        faults = self.faults(outgoing.model, body)
        if self.replies:
            return self.replies.pop(0)
        if faults:
            self.broken += faults
            return FakeReply(status=400, body=BOUND)
        signature = f"sealed-{len(self.bodies)}"
        self.made[signature] = outgoing.model, prefix(body, len(body["messages"]))
        content = [{"type": "thinking", "thinking": "", "signature": signature}]
        if self.does is not None:
            call_id = f"toolu_{len(self.bodies)}"
            content.append({"type": "tool_use", "id": call_id, **self.does})
        else:
            content.append({"type": "text", "text": f"answer {len(self.bodies)}"})
        return FakeReply(body={"type": "message", "role": "assistant", "content": content})

    def faults(self, model: str, body: Mapping[str, Any]) -> list[str]:
        """Return the thinking of a body that the model reads behind another prefix."""
        found = []
        for index, message in enumerate(body["messages"]):
            blocks = message["content"] if isinstance(message["content"], list) else []
            for number, block in enumerate(blocks):
                maker, made = self.made.get(block.get("signature", ""), ("", ""))
                reads = maker == model or maker in self.reads.get(model, ())
                if reads and made != prefix(body, index, blocks[:number]):
                    found.append(f"{model} messages[{index}].content[{number}] of {maker}")
        return found


@dataclass
class Client:
    """A client with a history, which sends back all that it got."""

    harness: Harness
    provider: PrefixProvider
    history: list[Any] = field(default_factory=list)
    session: str = "s"

    async def user(self, text: str, **more: Any) -> Served:
        """Say something."""
        self.history.append({"role": "user", "content": text})
        return await self.turn(**more)

    async def turn(self, tool: str | None = None, result: str = "ok", **fields: Any) -> Served:
        """Send the history; the answer calls a tool, whose result is in the history then."""
        name = {"edit": "edit_file", "read": "read_file"}.get(tool or "", tool)
        self.provider.does = {"name": name, "input": {"path": "a.py"}} if name else None
        served = await self.harness.ask(self.request(**fields))
        if served.status != 200:
            return served
        content = json.loads(served.answer)["content"]
        self.history.append({"role": "assistant", "content": content})
        if name:
            done = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": result}
            self.history.append({"role": "user", "content": [done]})
        return served

    async def aside(self, text: str, *, whole: bool) -> Served:
        """Make a side call, with the history in front of its text or without."""
        history = [*(self.history if whole else ()), {"role": "user", "content": text}]
        self.provider.does = None
        return await self.harness.ask(self.request(history, headers={"x-purpose": "side"}))

    def request(
        self,
        history: Sequence[Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Request:
        body = {
            "model": "switchyard/plan-execute",
            "max_tokens": 1000,
            "system": [{"type": "text", "text": "house rules"}],
            "tools": [{"name": n, "input_schema": {}} for n in ("edit_file", "read_file")],
            "messages": self.history if history is None else history,
            "thinking": {"type": "adaptive"},
            **fields,
        }
        names = {"x-switchyard-session-id": self.session, **(headers or {})}
        return Request(wire_format="anthropic_messages", body=body, headers=names)
