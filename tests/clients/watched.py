"""A run of a client through switchyard, watched on both sides of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchyard_core.scripted import RecordedRequest
from tests.clients.agents import KEY, SERVER_KEY
from tests.clients.scenario import Providers
from tests.clients.serve import started
from tests.clients.shipped import PROVIDER_KEY, Shipped
from tests.clients.tap import Exchange, Tap
from tests.support.listening import listening


@contextmanager
def watched(
    provider: Providers, policy: Shipped, folder: Path, *, server_key: bool = False
) -> Iterator[Tap]:
    """Serve a policy in front of a provider; yield the tap that a client talks to."""
    key = ("--api-key-env", "SWITCHYARD_KEY") if server_key else ()
    with (
        listening(provider) as port,
        started(
            policy.at(port.url),
            folder,
            environment=policy.environment | {"SWITCHYARD_KEY": SERVER_KEY},
            arguments=("--port", "0", *key),
        ) as server,
        Tap(server.url, explains=True) as tap,
    ):
        yield tap


def tries(sent: list[Exchange], received: list[RecordedRequest]) -> list[list[RecordedRequest]]:
    """Return what the provider got for each call: all that it refused, up to the answer."""
    left = list(received)
    found = []
    for exchange in sent:
        last = next((i for i, r in enumerate(left) if r.status == exchange.status), None)
        assert last is not None, f"{exchange.status} was not the provider's"
        found.append(left[: last + 1])
        del left[: last + 1]
    assert not left, "more reached the provider than the client asked for"
    return found


def assert_only_the_right_key_arrived(request: RecordedRequest, policy: Shipped) -> None:
    """Fail if a provider got a key that is not meant for it."""
    values = " ".join(value for _, value in request.headers)
    assert SERVER_KEY not in values
    forwards = policy.sends_key_to(request.wire_format)
    assert (KEY in values, PROVIDER_KEY in values) == (forwards, not forwards)


def account(exchanges: list[Exchange], received: list[RecordedRequest]) -> str:
    """Return what was asked and answered, for the message of a failure."""
    lines = [
        f"client   {e.request.method} {e.request.path} -> {e.status} "
        f"{e.headers.get('x-switchyard-reason', '')} {sorted(e.rewrites)}"
        for e in exchanges
    ]
    lines += [
        f"provider {r.method} {r.path} {r.wire_format and r.model} -> {r.status}" for r in received
    ]
    return "\n".join(lines) + "\n"
