"""The connections to a policy's providers, one per client, made when first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from switchyard_core.errors import Finding, PolicyError
from switchyard_core.policy.model import Client, Policy
from switchyard_core.upstream.base import Upstream
from switchyard_core.upstream.http import HttpxUpstream
from switchyard_core.upstream.scripted import ScriptedUpstream, load_script

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
    return HttpxUpstream(
        client.base_url, timeout_s=client.timeout_s, max_retries=client.max_retries
    )


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
