"""A pretend provider on loopback: plays a script per model and records what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.clients.fake_answers import Event, Turn, assistant_turns, offered_tools, wire_format_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    wire_format: str | None

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def is_housekeeping(self) -> bool:
        """A request of the client's own, such as a title: it offers no tools."""
        return not offered_tools(self.body)


@dataclass(slots=True)
class FakeProvider:
    """Serve scripted answers on 127.0.0.1 while the context is open.

    Args:
        scripts: Turns per model id; ``"*"`` serves every model that is not named. The turn is
            chosen by the number of assistant turns in the request, so a retry gets the same
            answer again; the last turn repeats.
        offset: Added to that number, -1 for a client that opens with a seeded answer.
    """

    scripts: Mapping[str, Sequence[Turn]]
    offset: int = 0
    requests: list[Recorded] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        provider = self

        class Handler(_Handler):
            owner = provider

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FakeProvider

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Say nothing: the record says it all."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            self._answer(self.rfile.read(int(self.headers.get("content-length") or 0)))
            return
        raw = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self._answer(raw)

    def _answer(self, raw: bytes) -> None:
        path = urlsplit(self.path).path.rstrip("/")
        wire_format = wire_format_of(path) if self.command == "POST" else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        number = self.owner.keep(
            Recorded(
                method=self.command,
                path=self.path,
                headers=headers,
                raw=raw,
                wire_format=wire_format,
            )
        )
        if wire_format is None:
            message = f"no route for {self.command} {path}"
            self._send_json(404, {"error": {"message": message, "type": "invalid_request_error"}})
            return
        body = json.loads(raw)
        answer = self.owner.turn_for(body).answer(body, number)
        if body.get("stream"):
            self._send_events(list(answer.events(wire_format)))
        else:
            self._send_json(200, answer.whole(wire_format))

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
