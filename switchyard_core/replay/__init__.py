"""Model calls recorded in a folder and served from it, for every router.

It wraps the interface to providers, so it sees what is really sent: prompts,
rewritten histories and a router's own questions, in all wire formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from switchyard_core.replay.folder import holds_recordings, recording_files, recording_findings
from switchyard_core.replay.session import Mode, Replay, ReplayUpstream

if TYPE_CHECKING:
    from switchyard_core.replay.transport import ReplayTransport

__all__ = [
    "Mode",
    "Replay",
    "ReplayTransport",
    "ReplayUpstream",
    "holds_recordings",
    "recording_files",
    "recording_findings",
]


def __getattr__(name: str) -> object:
    """Import what needs httpx when it is asked for."""
    if name == "ReplayTransport":
        from switchyard_core.replay.transport import ReplayTransport  # noqa: PLC0415  # httpx

        return ReplayTransport
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
