"""Model calls recorded in a folder and served from it, for every router.

It wraps the interface to providers, so it sees what is really sent: prompts,
rewritten histories and a router's own questions, in all wire formats.
"""

from switchyard_core.replay.folder import holds_recordings, recording_files, recording_findings
from switchyard_core.replay.session import Mode, Replay, ReplayTransport, ReplayUpstream

__all__ = [
    "Mode",
    "Replay",
    "ReplayTransport",
    "ReplayUpstream",
    "holds_recordings",
    "recording_files",
    "recording_findings",
]
