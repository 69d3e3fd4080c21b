"""The embedded provider: plays a script instead of running a model, in all three wire formats."""

from switchyard_core.scripted.app import RecordedRequest, ScriptedProviderApp
from switchyard_core.scripted.loading import check_script, load_script
from switchyard_core.scripted.player import Player, Reply
from switchyard_core.scripted.provider import ScriptedUpstream
from switchyard_core.scripted.script import (
    Call,
    Fault,
    Script,
    Scripted,
    Turn,
    UsageCount,
    When,
)

__all__ = [
    "Call",
    "Fault",
    "Player",
    "RecordedRequest",
    "Reply",
    "Script",
    "Scripted",
    "ScriptedProviderApp",
    "ScriptedUpstream",
    "Turn",
    "UsageCount",
    "When",
    "check_script",
    "load_script",
]
