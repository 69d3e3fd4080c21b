"""Contracts as test classes: inherit one, name what is yours, and pytest runs its tests."""

from switchyard_core.testing.conformance.answering import AnsweringConformance
from switchyard_core.testing.conformance.pack import MutationPackConformance
from switchyard_core.testing.conformance.rewrite import RewriteConformance
from switchyard_core.testing.conformance.router import RouterConformance
from switchyard_core.testing.conformance.stores import LatchStoreConformance, PlanStoreConformance

__all__ = [
    "AnsweringConformance",
    "LatchStoreConformance",
    "MutationPackConformance",
    "PlanStoreConformance",
    "RewriteConformance",
    "RouterConformance",
]
