"""A recording pass-through: what the client really sent, and what it was answered."""

from __future__ import annotations

import http.client
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.clients.fake_answers import wire_format_of
from tests.clients.fake_provider import Recorded

_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request of the client and the head of its answer."""

    request: Recorded
    status: int
    headers: dict[str, str]


@dataclass(slots=True)
class Tap:
    """Forward everything to ``target`` while the context is open, and keep the exchanges.

    Args:
        target: Base URL of the server behind it, without a path.
    """

    target: str
    exchanges: list[Exchange] = field(default_factory=list)
    _server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        tap = self

        class Handler(_Handler):
            owner = tap

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Tap

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Say nothing: the record says it all."""

    def do_GET(self) -> None:
        self._forward(b"")

    def do_HEAD(self) -> None:
        self._forward(b"")

    def do_POST(self) -> None:
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            self._forward(self.rfile.read(int(self.headers.get("content-length") or 0)))
            return
        raw = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self._forward(raw)

    def _forward(self, raw: bytes) -> None:
        sent = {n: v for n, v in self.headers.items() if n.lower() not in _HOP_BY_HOP}
        behind = http.client.HTTPConnection(urlsplit(self.owner.target).netloc, timeout=60)
        try:
            behind.request(self.command, self.path, body=raw or None, headers=sent)
            answer = behind.getresponse()
            self._keep(raw, answer)
            self._send(answer)
        finally:
            behind.close()

    def _keep(self, raw: bytes, answer: http.client.HTTPResponse) -> None:
        path = urlsplit(self.path).path.rstrip("/")
        request = Recorded(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            raw=raw,
            wire_format=wire_format_of(path) if self.command == "POST" else None,
        )
        headers = {name.lower(): value for name, value in answer.getheaders()}
        self.owner.exchanges.append(
            Exchange(request=request, status=answer.status, headers=headers)
        )

    def _send(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        if self.command == "HEAD":
            self.end_headers()
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while piece := answer.read1():
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
