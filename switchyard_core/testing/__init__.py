"""The test kit for policies and route plugins: ``pip install switchyard-core[testing]``.

It needs pytest only where a name says so: :class:`RequestBodySnapshot` is imported from syrupy
when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from switchyard_core.testing.answers import Answered, AskedCall
from switchyard_core.testing.conformance.answering import AnsweringConformance
from switchyard_core.testing.conformance.pack import MutationPackConformance
from switchyard_core.testing.conformance.rewrite import RewriteConformance
from switchyard_core.testing.conformance.router import RouterConformance
from switchyard_core.testing.conformance.stores import LatchStoreConformance, PlanStoreConformance
from switchyard_core.testing.conversation import ConversationBuilder, conversation
from switchyard_core.testing.harness import Harness, Routed, Served, registry_of
from switchyard_core.testing.provider import FakeReply, FakeUpstream
from switchyard_core.testing.story import Call, call
from switchyard_core.testing.validity import assert_valid_for, validity_problems

if TYPE_CHECKING:
    from switchyard_core.testing.snapshots import RequestBodySnapshot

__all__ = [
    "Answered",
    "AnsweringConformance",
    "AskedCall",
    "Call",
    "ConversationBuilder",
    "FakeReply",
    "FakeUpstream",
    "Harness",
    "LatchStoreConformance",
    "MutationPackConformance",
    "PlanStoreConformance",
    "RequestBodySnapshot",
    "RewriteConformance",
    "Routed",
    "RouterConformance",
    "Served",
    "assert_valid_for",
    "call",
    "conversation",
    "registry_of",
    "validity_problems",
]


def __getattr__(name: str) -> object:
    """Import what needs syrupy when it is asked for."""
    if name == "RequestBodySnapshot":
        from switchyard_core.testing.snapshots import RequestBodySnapshot  # noqa: PLC0415  # syrupy

        return RequestBodySnapshot
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
