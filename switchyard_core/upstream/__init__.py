"""Talking to providers: one small interface, and an HTTP client."""

from switchyard_core.decision import Outgoing
from switchyard_core.upstream.base import Upstream, UpstreamResponse
from switchyard_core.upstream.http import HttpUpstream

__all__ = ["HttpUpstream", "Outgoing", "Upstream", "UpstreamResponse"]
