from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from switchyard_core.decision import Rewrite, RewriteReport
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.rewrites import CORE_REWRITES, apply_rewrites

TYPES = {rewrite.name: rewrite for rewrite in CORE_REWRITES}


@pytest.fixture
def rewrite() -> Callable[..., tuple[Any, tuple[RewriteReport, ...]]]:
    """Run rewrites on a body twice; the second time must change nothing."""

    def run(
        wire_format: WireFormat, body: Any, *rewrites: Rewrite | tuple[str, dict[str, Any]]
    ) -> tuple[Any, tuple[RewriteReport, ...]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = [
            entry if isinstance(entry, Rewrite) else Rewrite(name=entry[0], parameters=entry[1])
            for entry in rewrites
        ]
        first, reports = apply_rewrites(ObjectText(data), named, TYPES, wire_format)
        second, _ = apply_rewrites(ObjectText(first), named, TYPES, wire_format)
        assert second == first
        return (first if isinstance(body, bytes) else json.loads(first)), reports

    return run
