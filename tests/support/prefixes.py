"""A strict provider of Claude models that thinks in each answer, and a client of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from switchyard_core import Outgoing, Request
from switchyard_core.scripted import Player, Script, Scripted, Turn
from switchyard_core.scripted.script import Call
from switchyard_core.testing import FakeReply, Harness, Served

BOUND = {"error": {"type": "invalid_request_error", "message": "The block is bound to a different "
                   "conversation than the one it is sent in."}}  # fmt: skip
TOO_LONG = FakeReply(status=400, body={"error": {"message": "prompt is too long: 300000 tokens"}})


@dataclass
class StrictClaude:
    """Answers each request with thinking, as strict as the real API."""

    replies: list[FakeReply] = field(default_factory=list)  # played first
    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seals: list[tuple[str, str]] = field(default_factory=list)  # target and signature
    refused: list[str] = field(default_factory=list)
    does: str = ""  # the tool that the next answer calls

    async def __call__(self, outgoing: Outgoing) -> FakeReply:
        self.bodies.append((outgoing.target, json.loads(outgoing.body)))
        if self.replies:
            return self.replies.pop(0)
        number = len(self.bodies)
        calls = (Call(name=self.does, arguments={"path": f"{number}.py"}),) if self.does else ()
        turn = Turn(reasoning=f"thought {number}", text="hi", calls=calls)
        script = Script(version=1, scripts=(Scripted(turns=(turn,)),))
        reply = Player(script, lambda: 0.0, "anthropic").play(
            "POST", outgoing.path, list(outgoing.headers), outgoing.body
        )
        answer = json.loads(b"".join(reply.chunks))
        if reply.status != 200:
            self.refused.append(answer["error"]["message"])
            return FakeReply(status=reply.status, body=answer)
        for block in answer["content"]:
            if block["type"] == "thinking":
                self.seals.append((outgoing.target, block["signature"]))
            if block["type"] == "tool_use":
                block["id"] = f"toolu_{number:04}"
        return FakeReply(body=answer)


@dataclass
class Client:
    """A client with a history, which sends back all that it got."""

    harness: Harness
    provider: StrictClaude
    history: list[Any] = field(default_factory=list)
    system: str = "house rules"

    async def user(self, text: str, **more: Any) -> Served:
        """Say something."""
        self.history.append({"role": "user", "content": text})
        return await self.turn(**more)

    async def turn(self, tool: str = "", **fields: Any) -> Served:
        """Send the history; the answer calls a tool, whose result is in the history then."""
        self.provider.does = {"edit": "edit_file", "read": "read_file"}.get(tool, tool)
        served = await self.harness.ask(self.request(**fields))
        if served.status != 200:
            return served
        content = json.loads(served.answer)["content"]
        self.history.append({"role": "assistant", "content": content})
        if tool:
            done = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "ok"}
            self.history.append({"role": "user", "content": [done]})
        return served

    async def aside(self, text: str, *, whole: bool) -> Served:
        """Make a side call, with the history in front of its text or without."""
        history = list(self.history) if whole else []
        # The API takes one message of the user at a time.
        words = [{"type": "text", "text": text}]
        if history and history[-1]["role"] == "user":
            words = [*history.pop()["content"], *words]
        self.provider.does = ""
        said = [*history, {"role": "user", "content": words}]
        return await self.harness.ask(self.request(said, headers={"x-purpose": "side"}))

    def request(
        self,
        history: Sequence[Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Request:
        """Return a history as a request of the session."""
        tools = ("edit_file", "read_file")
        body = {
            "model": "switchyard/plan-execute",
            "max_tokens": 2000,
            "system": [{"type": "text", "text": self.system}],
            "tools": [{"name": name, "input_schema": {"type": "object"}} for name in tools],
            "messages": self.history if history is None else history,
            "thinking": {"type": "adaptive"},
            **fields,
        }
        names = {"x-switchyard-session-id": "s", **(headers or {})}
        return Request(wire_format="anthropic_messages", body=body, headers=names)
