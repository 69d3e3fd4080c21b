"""A recording pass-through: what the client really sent, and what it was answered."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from switchyard_core.wire import endpoint_of

_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request as it came over the wire."""

    method: str
    path: str
    raw: bytes
    headers: Mapping[str, str]

    @property
    def wire_format(self) -> str | None:
        """Of a call to a model, ``None`` for any other request."""
        found = endpoint_of(urlsplit(self.path).path) if self.method == "POST" else None
        return found[0] if found is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request of the client, the head of its answer, and what was announced before.

    Args:
        explained: What ``/v1/decision`` said just before the request, for a call to a model.
    """

    request: Recorded
    status: int
    headers: Mapping[str, str]
    explained: Mapping[str, Any]

    @property
    def is_side_call(self) -> bool:
        """A request of the client for itself, such as a title."""
        return self.headers.get("x-switchyard-reason") == "housekeeping"

    @property
    def rewrites(self) -> set[str]:
        """Names of the rewrites that were to change the body."""
        return {r["name"] for r in self.explained.get("rewrites", ()) if r["changes"]}


class Tap:
    """Forward everything to ``target`` while the context is open, and keep the exchanges.

    Args:
        target: Base URL of the server behind it, without a path.
        explains: Whether it is switchyard, and is asked before each call what it will do.
    """

    def __init__(self, target: str, *, explains: bool = False) -> None:
        self.target = target
        self.explains = explains
        self.exchanges: list[Exchange] = []
        self.calls = 0  # calls to models, answered or not
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self})
        )
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
    owner: Tap
    protocol_version = "HTTP/1.1"

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
        given = {name.lower(): value for name, value in self.headers.items()}
        sent = {name: value for name, value in given.items() if name not in _HOP_BY_HOP}
        request = Recorded(method=self.command, path=self.path, raw=raw, headers=sent)
        behind = http.client.HTTPConnection(urlsplit(self.owner.target).netloc, timeout=60)
        self.owner.calls += request.wire_format is not None
        try:
            explained = self._explain(request, behind) if self.owner.explains else {}
            behind.request(self.command, self.path, body=raw or None, headers=sent)
            answer = behind.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            exchange = Exchange(
                request=request, status=answer.status, headers=headers, explained=explained
            )
            self.owner.exchanges.append(exchange)
            self._send(answer)
        except (http.client.HTTPException, OSError):
            # What broke behind it breaks here too, without the end of an answer.
            self.close_connection = True
        finally:
            behind.close()

    def _explain(self, request: Recorded, behind: http.client.HTTPConnection) -> dict[str, Any]:
        if request.wire_format is None:
            return {}
        # The body is put in as it came, so that its numbers keep their spelling.
        asked = b'{"input_format": %s, "request": %s, "headers": %s}' % (
            json.dumps(request.wire_format).encode(),
            request.raw,
            json.dumps(dict(request.headers)).encode(),
        )
        keys = {n: v for n, v in request.headers.items() if n in {"authorization", "x-api-key"}}
        sent = {"content-type": "application/json", **keys}
        behind.request("POST", "/v1/decision", body=asked, headers=sent)
        answer = behind.getresponse()
        explained: dict[str, Any] = json.loads(answer.read())
        return explained

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
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        self.wfile.write(b"0\r\n\r\n")
