"""A pretend provider on loopback: plays a script per model and records what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tests.clients.fake_answers import Event, Turn, assistant_turns, offered_tools
from tests.clients.local_server import LocalHandler, LocalServer, Recorded


class FakeProvider(LocalServer):
    """Serve scripted answers on 127.0.0.1 while the context is open.

    Args:
        scripts: Turns per model id; ``"*"`` serves every model that is not named. The turn is
            chosen by the number of assistant turns in the request, so a retry gets the same
            answer again; the last turn repeats.
        offset: Added to that number, -1 for a client that opens with a seeded answer.
    """

    def __init__(self, scripts: Mapping[str, Sequence[Turn]], offset: int = 0) -> None:
        super().__init__(_Handler)
        self.scripts = scripts
        self.offset = offset
        self.requests: list[Recorded] = []
        self._lock = threading.Lock()

    def keep(self, request: Recorded) -> int:
        """Record a request and return its number, from 1."""
        with self._lock:
            self.requests.append(request)
            return len(self.requests)

    def turn_for(self, body: dict[str, Any]) -> Turn:
        """Return the scripted turn that answers this body."""
        if not offered_tools(body):
            return Turn(text="Scratch title")
        model = str(body.get("model"))
        turns = self.scripts[model if model in self.scripts else "*"]
        at = max(0, assistant_turns(body) + self.offset)
        return turns[min(at, len(turns) - 1)]


class _Handler(LocalHandler):
    owner: FakeProvider

    def answer(self, raw: bytes) -> None:
        request = self.recorded(raw)
        number = self.owner.keep(request)
        if request.wire_format is None:
            message = f"no route for {request.method} {request.path}"
            self._send_json(404, {"error": {"message": message, "type": "invalid_request_error"}})
            return
        body = request.body
        answer = self.owner.turn_for(body).answer(body, number)
        if body.get("stream"):
            self._send_events(list(answer.events(request.wire_format)))
        else:
            self._send_json(200, answer.whole(request.wire_format))

    def _send_json(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send_events(self, events: list[Event]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            raw = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
