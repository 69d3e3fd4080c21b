"""The connections to a policy's providers, one per client, made when first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from switchyard_core.policy.model import Client
from switchyard_core.upstream.base import Upstream
from switchyard_core.upstream.http import HttpxUpstream
from switchyard_core.upstream.scripted import ScriptedUpstream, load_script

__all__ = ["Upstreams", "connect"]


def connect(client: Client) -> Upstream:
    """Return a connection to a client's provider.

    Raises:
        PolicyError: The script of a scripted client has errors.
    """
    if client.scripted and client.script is not None:
        return ScriptedUpstream(
            load_script(client.script), client.format, max_retries=client.max_retries
        )
    return HttpxUpstream(
        client.base_url, timeout_s=client.timeout_s, max_retries=client.max_retries
    )


class Upstreams:
    """The connections of a policy.

    Args:
        clients: The policy's clients, by name.
        connect: Makes a connection; tests and recorders give another.
    """

    def __init__(
        self, clients: Mapping[str, Client], connect: Callable[[Client], Upstream] = connect
    ) -> None:
        self._clients = clients
        self._connect = connect
        self._open: dict[str, Upstream] = {}

    def of(self, client: Client) -> Upstream:
        """Return the connection of a client, always the same one."""
        upstream = self._open.get(client.name)
        if upstream is None:
            upstream = self._open[client.name] = self._connect(client)
        return upstream

    async def aclose(self) -> None:
        """Close all connections that were made."""
        for upstream in self._open.values():
            await upstream.aclose()
        self._open.clear()
