"""An application on a port of loopback, served from a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import uvicorn


class Port:
    """A port on loopback whose application the tests exchange; starting one each is slow."""

    def __init__(self, app: Any = None) -> None:
        self.url = ""
        self.app = app
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            self._loop = asyncio.get_running_loop()
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        await self.app(scope, receive, send)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the server's loop and wait for it."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)


@contextlib.contextmanager
def listening(app: Any = None) -> Iterator[Port]:
    """Serve a port from a thread that ends with the block."""
    port = Port(app)
    config = uvicorn.Config(port, host="127.0.0.1", port=0, log_config=None, ws="none")
    config.timeout_graceful_shutdown = 3
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.005)
        port.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        yield port
    finally:
        server.should_exit = True
        thread.join(10)
    assert not thread.is_alive()
