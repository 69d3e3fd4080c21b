"""A recording server and a provider that never stops: its memory stays flat."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from tests.server.servers import policy

CHUNK = b"10000\r\n" + b"data: %065528d\n\n" % 1 + b"\r\n"
READ = 96 * 1024 * 1024


async def endless(_kind, reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: " + _kind + b"\r\n\r\n"
    )
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(CHUNK)
            await writer.drain()
    writer.close()


def resident(process):
    """Return how much memory a process has, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "kind", [b"text/event-stream", b"application/json"], ids=["stream", "whole"]
)
async def test_memory_stays_flat_while_an_endless_answer_is_recorded(tmp_path, kind):
    provider = await asyncio.start_server(
        lambda reader, writer: endless(kind, reader, writer), "127.0.0.1", 0
    )
    port = provider.sockets[0].getsockname()[1]
    config = tmp_path / "p.toml"
    config.write_text(policy("openai_chat", f"http://127.0.0.1:{port}"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from switchyard_core.cli import main; main()", "serve"),
        *(str(config), "--port", "0", "--record", str(tmp_path / "recordings")),
        env={**os.environ, "UPSTREAM_KEY": "k"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        url = re.search(rb"http://\S+", await process.stdout.readline())[0].decode()
        body = {"model": "coder", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        async with (
            httpx.AsyncClient(timeout=30) as client,
            client.stream("POST", url + "/v1/chat/completions", json=body) as answer,
        ):
            before, read = 0, 0
            async for chunk in answer.aiter_raw():
                before = before or resident(process)
                read += len(chunk)
                if read > READ:
                    break
            grown = resident(process) - before
    finally:
        process.terminate()
        _, log = await process.communicate()
        provider.close()

    assert grown < READ // 3
    assert log.count(b"not recorded") == 1
    assert not (tmp_path / "recordings").exists()
