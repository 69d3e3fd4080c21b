"""What a model at an endpoint accepts: data, and how it is matched to a target."""

from switchyard_core.declarations import ModelProfiles
from switchyard_core.models.profile import DEFAULTS, Profile, is_known, profile_of
from switchyard_core.models.schema import (
    Entry,
    Reasoning,
    Rule,
    ValueTest,
    core_profiles,
    read_profiles,
)
from switchyard_core.models.suggest import suggest_rule

__all__ = [
    "DEFAULTS",
    "Entry",
    "ModelProfiles",
    "Profile",
    "Reasoning",
    "Rule",
    "ValueTest",
    "core_profiles",
    "is_known",
    "profile_of",
    "read_profiles",
    "suggest_rule",
]
