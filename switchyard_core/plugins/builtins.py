"""The core's own declarations, registered through the same entry points as anybody's."""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core.declarations import (
    LatchStoreType,
    ModelProfiles,
    MutationPack,
    PlanStoreType,
    RewriteType,
)
from switchyard_core.hookspecs import hookimpl
from switchyard_core.models import core_profiles
from switchyard_core.mutation.tables import core_packs
from switchyard_core.stores import MemoryLatchStore, MemoryPlanStore
from switchyard_core.wire.rewrites import CORE_REWRITES

__all__ = [
    "switchyard_latch_stores",
    "switchyard_model_profiles",
    "switchyard_mutation_packs",
    "switchyard_plan_stores",
    "switchyard_rewrites",
]


@hookimpl
def switchyard_mutation_packs() -> Iterable[MutationPack]:
    """Return the shipped packs of tool names."""
    return core_packs()


@hookimpl
def switchyard_model_profiles() -> Iterable[ModelProfiles]:
    """Return the shipped profiles of models."""
    return core_profiles()


@hookimpl
def switchyard_latch_stores() -> Iterable[LatchStoreType]:
    """Return the store that lives in this process."""
    return (
        LatchStoreType(
            name="memory",
            factory=MemoryLatchStore,
            summary="a bounded table in this process; a restart empties it",
        ),
    )


@hookimpl
def switchyard_plan_stores() -> Iterable[PlanStoreType]:
    """Return the store that lives in this process."""
    return (
        PlanStoreType(
            name="memory",
            factory=MemoryPlanStore,
            summary="a bounded table in this process; a restart empties it",
        ),
    )


@hookimpl
def switchyard_rewrites() -> Iterable[RewriteType]:
    """Return the built-in rewrites."""
    return CORE_REWRITES
