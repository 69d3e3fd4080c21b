"""The connections to a policy's providers, one per client, made when first used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Self

from switchyard_core.errors import Finding, PolicyError
from switchyard_core.policy.models import Client, Policy
from switchyard_core.replay import Replay
from switchyard_core.scripted import ScriptedUpstream, load_script
from switchyard_core.upstream.base import Outgoing, Upstream, UpstreamResponse
from switchyard_core.upstream.http import HttpUpstream

__all__ = ["Upstreams", "connect", "script_findings"]


def connect(client: Client) -> Upstream:
    """Return a connection to a client's provider.

    Raises:
        PolicyError: The script of a scripted client has errors.
    """
    if client.scripted and client.script is not None:
        return ScriptedUpstream(
            load_script(client.script), client.format, max_retries=client.max_retries
        )
    url = client.base_url or ""
    return HttpUpstream(url, timeout_s=client.timeout_s, max_retries=client.max_retries)


def script_findings(policy: Policy) -> tuple[Finding, ...]:
    """Return every problem of the scripts that a policy's scripted clients play."""
    findings: list[Finding] = []
    for script in dict.fromkeys(client.script for client in policy.clients.values()):
        if script is not None:
            try:
                load_script(script)
            except PolicyError as error:
                findings.extend(error.findings)
    return tuple(findings)


class Upstreams:
    """The connections of a policy.

    Args:
        clients: The policy's clients, by name.
        connect: Makes a connection; tests give another.
        replay: Recorded calls that are served, or that calls are recorded to.
    """

    def __init__(
        self,
        clients: Mapping[str, Client],
        connect: Callable[[Client], Upstream] = connect,
        *,
        replay: Replay | None = None,
    ) -> None:
        self.replay = replay
        self._clients = clients
        self._connect = connect
        self._open: dict[Client, Upstream] = {}
        # A script is read once per policy: the next one may play another text.
        self._scripted: dict[Client, Upstream] = {}

    def following(self, clients: Mapping[str, Client]) -> Self:
        """Return the connections of the next policy, which share those of equal clients."""
        twin = type(self)(clients, self._connect, replay=self.replay)
        twin._open = self._open  # noqa: SLF001  # its own kind
        return twin

    def of(self, client: Client) -> Upstream:
        """Return the connection of a client, always the same one."""
        made = self._scripted if client.scripted else self._open
        upstream = made.get(client)
        if upstream is None:
            upstream = made[client] = self._connect(client)
        return upstream

    async def send(
        self, client: Client, outgoing: Outgoing, key_fields: Sequence[str] | None = None
    ) -> UpstreamResponse:
        """Send a request by a client, or answer it from a recording.

        Args:
            client: Who sends.
            outgoing: What is sent.
            key_fields: Fields that tell recorded calls apart, ``None`` for the built-in list.

        Raises:
            ReplayError: There is no recording, or none can be made.
            UpstreamError: There is no answer.
        """
        if self.replay is None:
            return await self.of(client).send(outgoing)
        return await self.replay.upstream(client, self.of, key_fields).send(outgoing)

    def connections(self) -> Iterator[tuple[str, str, int]]:
        """Yield client, state (``active`` or ``idle``) and how many connections are in it."""
        for name, client in self._clients.items():
            upstream = self._open.get(client)
            if isinstance(upstream, HttpUpstream):
                for state, count in upstream.connections.items():
                    yield name, state, count

    def sends(self, outgoing: Outgoing, key_fields: Sequence[str] | None = None) -> bool:
        """Return whether a request that comes now reaches a provider, and so needs its key."""
        return self.replay is None or not self.replay.serves(outgoing, key_fields)

    async def retire(self, kept: Collection[Client]) -> None:
        """Close what no other policy needs, once nothing runs on this one any more.

        Args:
            kept: The clients of every policy that still serves.
        """
        gone = [client for client in self._clients.values() if client not in kept]
        await _close(self._open, gone)
        await _close(self._scripted, list(self._scripted))

    async def aclose(self) -> None:
        """Close all connections that were made, those that other policies share too."""
        await _close(self._open, list(self._open))
        await _close(self._scripted, list(self._scripted))


async def _close(made: dict[Client, Upstream], clients: Collection[Client]) -> None:
    for client in clients:
        # Taken out first: nobody may get a connection that is being closed.
        upstream = made.pop(client, None)
        if upstream is not None:
            await upstream.aclose()
