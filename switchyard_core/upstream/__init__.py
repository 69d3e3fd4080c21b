"""Talking to providers: one small interface, a client on httpx, and a scripted provider."""

from switchyard_core.upstream.app import RecordedRequest, ScriptedProviderApp
from switchyard_core.upstream.base import Outgoing, Upstream, UpstreamResponse
from switchyard_core.upstream.http import HttpxUpstream
from switchyard_core.upstream.scripted import Script, ScriptedUpstream, check_script, load_script

__all__ = [
    "HttpxUpstream",
    "Outgoing",
    "RecordedRequest",
    "Script",
    "ScriptedProviderApp",
    "ScriptedUpstream",
    "Upstream",
    "UpstreamResponse",
    "check_script",
    "load_script",
]
