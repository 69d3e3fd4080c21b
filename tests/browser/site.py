"""The site of an attacker: a page that tries everything, and a name that leads elsewhere later."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).with_name("attack.html")


class Site:
    """Serves the page, and takes its report; every other request goes to another server.

    The last is what DNS rebinding comes to: the browser still believes to speak with the site,
    and sends its name in ``Host``.

    Args:
        target: URL that the page attacks, ``""`` for the site itself.
        behind: Port of the server that gets all other requests, ``None`` for nobody.
    """

    def __init__(self, target: str = "", behind: int | None = None) -> None:
        self.target = target
        self._behind = behind
        self.report: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self.port = 0

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[Site]:
        """Serve the site while the block runs."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            line = head.partition(b"\r\n")[0]
            if line.startswith(b"GET /attack "):
                page = _PAGE.read_text().replace("TARGET", self.target)
                writer.write(_answer(page.encode()))
            elif line.startswith(b"POST /report "):
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                found: Any = json.loads(await reader.readexactly(int(length)))
                if not self.report.done():
                    self.report.set_result(found)
                writer.write(_answer(b""))
            elif self._behind is not None:
                await _through(head, reader, writer, self._behind)
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
        writer.close()


def _answer(body: bytes) -> bytes:
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _through(
    head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
) -> None:
    """Hand a connection on, byte for byte."""
    there, back = await asyncio.open_connection("127.0.0.1", port)
    # The next request of the browser may be for the site again.
    back.write(re.sub(rb"(?i)\r\nconnection: [^\r]*", b"\r\nconnection: close", head))

    async def copy(source: asyncio.StreamReader, goal: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while part := await source.read(65536):
                goal.write(part)
                await goal.drain()
            goal.close()

    await asyncio.gather(copy(reader, back), copy(there, writer))
