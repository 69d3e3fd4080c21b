"""A server on a free port of 127.0.0.1 that gives every request, whole, to its owner."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.clients.fake_answers import offered_tools, wire_format_of


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


class LocalHandler(BaseHTTPRequestHandler, ABC):
    """Reads a request's body, of either framing; a subclass says what becomes of it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Say nothing: the record says it all."""

    @abstractmethod
    def answer(self, raw: bytes) -> None:
        """Answer the request that has this body."""

    def recorded(self, raw: bytes) -> Recorded:
        """Return the request as it is kept."""
        path = urlsplit(self.path).path.rstrip("/")
        return Recorded(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            raw=raw,
            wire_format=wire_format_of(path) if self.command == "POST" else None,
        )

    def do_GET(self) -> None:
        self.answer(b"")

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            self.answer(self.rfile.read(int(self.headers.get("content-length") or 0)))
            return
        raw = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self.answer(raw)


class LocalServer:
    """Serves while its context is open.

    Args:
        handler: Its subclass that has this server as ``owner`` answers the requests.
    """

    def __init__(self, handler: type[LocalHandler]) -> None:
        owned = type("Handler", (handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), owned)
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
