"""The pytest plugin of switchyard: fixtures of the test kit, without importing it.

pytest loads its plugins before coverage begins to count. So this is a separate package, and
imports the kit only inside the fixtures: the lines of a plugin under test, and of the kit, are
counted, and a test run that asks for none of the fixtures loads nothing of switchyard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from switchyard_pytest.recordings import (
    model_replay,
    pytest_addoption,  # noqa: F401  # pytest looks for its hooks here
    pytest_configure,  # noqa: F401  # as above
)

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from switchyard_core.testing import FakeUpstream, Harness

__all__ = ["body_snapshot", "fake_upstream", "model_replay", "switchyard_harness"]


@pytest.fixture
def body_snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compare a body with its snapshot, token by token: ``assert body == body_snapshot``."""
    from switchyard_core.testing import RequestBodySnapshot  # noqa: PLC0415  # see above

    return snapshot.use_extension(RequestBodySnapshot)


@pytest.fixture
def fake_upstream() -> FakeUpstream:
    """Return a provider that keeps what was sent and answers "ok"; see its own page."""
    from switchyard_core.testing import FakeUpstream  # noqa: PLC0415  # see above

    return FakeUpstream()


@pytest.fixture
def switchyard_harness() -> Iterator[Callable[..., Harness]]:
    """Make harnesses, with the arguments of ``Harness``; they are closed when the test ends."""
    from switchyard_core.testing import Harness  # noqa: PLC0415  # see above

    made: list[Harness] = []

    def make(*arguments: Any, **named: Any) -> Harness:
        made.append(Harness(*arguments, **named))
        return made[-1]

    yield make

    async def close() -> None:
        for harness in made:
            await harness.aclose()

    asyncio.run(close())
