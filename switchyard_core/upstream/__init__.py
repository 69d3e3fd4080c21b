"""Talking to providers: one small interface, and an HTTP client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switchyard_core.decision import Outgoing
from switchyard_core.upstream.base import Upstream, UpstreamResponse

if TYPE_CHECKING:
    from switchyard_core.upstream.http import HttpUpstream

__all__ = ["HttpUpstream", "Outgoing", "Upstream", "UpstreamResponse"]


def __getattr__(name: str) -> object:
    """Import httpx when it is asked for: commands that call nobody start without it."""
    if name == "HttpUpstream":
        from switchyard_core.upstream.http import HttpUpstream  # noqa: PLC0415  # httpx

        return HttpUpstream
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
