"""Calls of the three wire formats, and connections to record them from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from switchyard_core import Outgoing, WireFormat
from switchyard_core.scripted import Script, ScriptedUpstream, check_script
from switchyard_core.testing import conversation
from switchyard_core.upstream import Upstream, UpstreamResponse
from switchyard_core.wire import format_of


def call(
    wire_format: WireFormat, text: str = "hi", *, stream: bool = False, **more: Any
) -> Outgoing:
    """Return a call with one user message; ``more`` are further fields of the body."""
    body = conversation(wire_format).user(text).body("provider/model", stream=stream, **more)
    return outgoing(wire_format, body)


def outgoing(wire_format: WireFormat, body: bytes, **changes: Any) -> Outgoing:
    """Return a call with a body."""
    values: dict[str, Any] = {
        "wire_format": wire_format,
        "path": "/v1" + format_of(wire_format).paths["create"],
        "headers": (("content-type", "application/json"), ("authorization", "Bearer top-secret")),
        "body": body,
        "stream": b'"stream":true' in body,
        "target": "planner",
        "model": "provider/model",
        "route": "main",
        "role": "planning",
    }
    return Outgoing(**{**values, **changes})


def script(*texts: str, **entry: Any) -> Script:
    """Return a script whose turns say these texts."""
    turns = [{"text": text} for text in texts] or [{"text": "héllo, wörld — ok"}]
    found, findings = check_script(
        json.dumps({"version": 1, "scripts": [{"turns": turns, **entry}]})
    )
    assert found is not None, [finding.render() for finding in findings]
    return found


class Counting:
    """A connection that counts what passes."""

    def __init__(self, inner: Upstream) -> None:
        self.inner = inner
        self.sent: list[Outgoing] = []

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        self.sent.append(outgoing)
        return await self.inner.send(outgoing)

    async def aclose(self) -> None:
        await self.inner.aclose()


def scripted(wire_format: WireFormat, played: Script | None = None) -> Counting:
    """Return the embedded provider."""
    return Counting(ScriptedUpstream(played or script(), wire_format, now=lambda: 0.0))


def never() -> Any:
    """Fail: in the mode ``replay`` nothing is connected."""
    msg = "an inner connection was made"
    raise AssertionError(msg)


async def chunks(answer: UpstreamResponse) -> list[bytes]:
    """Return the body of an answer in its chunks."""
    async with answer:
        return [chunk async for chunk in answer.chunks]


def files(folder: Path) -> list[str]:
    """Return what stands in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def tree(folder: Path, index: int = 0) -> dict[str, Any]:
    """Return a recording as it stands in its file."""
    found: dict[str, Any] = json.loads(sorted(folder.glob("*.json"))[index].read_text("utf-8"))
    return found


Connect = Callable[[], Upstream]
