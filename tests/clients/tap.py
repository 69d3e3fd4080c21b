"""A recording pass-through: what the client really sent, and what it was answered."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.clients.local_server import LocalHandler, LocalServer, Recorded

_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request of the client and the head of its answer."""

    request: Recorded
    status: int
    headers: dict[str, str]


class Tap(LocalServer):
    """Forward everything to ``target`` while the context is open, and keep the exchanges.

    Args:
        target: Base URL of the server behind it, without a path.
    """

    def __init__(self, target: str) -> None:
        super().__init__(_Handler)
        self.target = target
        self.exchanges: list[Exchange] = []


class _Handler(LocalHandler):
    owner: Tap

    def answer(self, raw: bytes) -> None:
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
        headers = {name.lower(): value for name, value in answer.getheaders()}
        self.owner.exchanges.append(
            Exchange(request=self.recorded(raw), status=answer.status, headers=headers)
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
