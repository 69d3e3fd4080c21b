"""Fixtures: every test of this folder runs for three calls, most for two kinds of client."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.sdk.apis import APIS, TURNS, Api, closed
from tests.sdk.stand import Stand, provider_of, standing
from tests.support.listening import Port, listening


@pytest.fixture(params=APIS, ids=lambda api: api.wire_format)
def api(request: pytest.FixtureRequest) -> Api:
    found: Api = request.param
    return found


@pytest.fixture(params=[True, False], ids=["blocking", "async"])
def blocking(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="session")
def ports() -> Iterator[tuple[Port, Port]]:
    """Listen on two ports, for switchyard and for the provider."""
    with listening() as front, listening() as back:
        yield front, back


@pytest.fixture
def stand(ports: tuple[Port, Port]) -> Iterator[Callable[..., Stand]]:
    """Serve switchyard with a provider behind it: by default one that reads, edits, finishes."""
    with contextlib.ExitStack() as stack:

        def start(
            *turns: dict[str, Any], faults: list[dict[str, Any]] | None = None, **settings: Any
        ) -> Stand:
            provider = provider_of(*(turns or TURNS), faults=faults or [])
            return stack.enter_context(standing(*ports, provider, **settings))

        yield start


@pytest.fixture
async def connect(api: Api, blocking: bool) -> AsyncIterator[Callable[..., Any]]:
    """Make a client of the SDK; all are closed at the end."""
    clients: list[Any] = []

    def make(to: Stand, **options: Any) -> Any:
        client = api.client(to, blocking=blocking, **options)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await closed(client)
