"""Talking to providers: one small interface, an HTTP client, and a scripted provider."""

from switchyard_core.scripted.app import RecordedRequest, ScriptedProviderApp
from switchyard_core.upstream.base import Outgoing, Upstream, UpstreamResponse
from switchyard_core.upstream.http import HttpUpstream
from switchyard_core.scripted import Script, ScriptedUpstream, check_script, load_script

__all__ = [
    "HttpUpstream",
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
