"""Fixtures for the tests of this folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import uvicorn

from switchyard_core.scripted import Script, ScriptedProviderApp
from tests.upstream.loopback import Provider


@pytest.fixture
def provide() -> Iterator[Callable[[Script], Provider]]:
    """Start scripted providers on loopback; all are stopped at the end of the test."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(script: Script) -> Provider:
        app = ScriptedProviderApp(script)
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        return Provider(url=f"http://127.0.0.1:{port}", app=app)

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()
