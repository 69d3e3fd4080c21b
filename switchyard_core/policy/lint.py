"""Warnings about a policy that works but may not do what its author meant."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document
from switchyard_core.policy.model import Client, Policy
from switchyard_core.policy.positions import Location
from switchyard_core.policy.references import references
from switchyard_core.policy.secrets import looks_like_credential

__all__ = ["credentials", "lint"]

_LOG = logging.getLogger(__name__)


def lint(policy: Policy, plugin_rules: tuple[Any, ...] = ()) -> list[Finding]:
    """Return the warnings of the built-in checks and of the plugins' lint rules.

    Args:
        policy: A policy without errors.
        plugin_rules: :class:`~switchyard_core.declarations.LintRule` of the registry.
    """
    checks: tuple[Callable[[Policy], Iterator[Finding]], ...] = (
        _unused_targets,
        _unused_clients,
        _insecure_urls,
        _same_model_on_both_sides,
        _prices_of_unknown_targets,
    )
    found = [finding for check in checks for finding in check(policy)]
    for rule in plugin_rules:
        found += _run(rule, policy)
    return found


def credentials(document: Document) -> list[Finding]:
    """Return a warning per value that looks like a credential; the value is never repeated."""
    return [
        document.finding(
            "SY190",
            "this value looks like a credential",
            location,
            severity="warning",
            fix="name an environment variable with `api_key_env`, and revoke the key",
        )
        for location, text in _strings(document.values, ())
        if looks_like_credential(text)
    ]


def _run(rule: Any, policy: Policy) -> list[Finding]:
    """Run a plugin's rule; what it raises is one finding and never stops the check."""
    try:
        found = list(rule.check(policy))
    except Exception as error:  # noqa: BLE001 - a plugin's rule may raise anything
        _LOG.debug("lint rule %s failed", rule.code, exc_info=True)
        message = f"lint rule `{rule.code}` failed: {type(error).__name__}: {error}"
        fix = "report this to the author of the plugin"
        return [
            Finding(code="SY901", message=message, file=policy.name, severity="warning", fix=fix)
        ]
    return [finding for finding in found if isinstance(finding, Finding)]


def _strings(value: Any, location: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*location, index))


def _unused_targets(policy: Policy) -> Iterator[Finding]:
    used = {target for route in policy.routes.values() for target in route.targets}
    for name in policy.targets:
        if name not in used:
            yield policy.finding(
                "SY220",
                f"no route uses target `{name}`",
                ("targets", name),
                fix="remove it, or name it in a route",
            )


def _unused_clients(policy: Policy) -> Iterator[Finding]:
    used = {target.client.name for target in policy.targets.values()} | {policy.fallback_client}
    for name in policy.clients:
        if name not in used:
            yield policy.finding(
                "SY221",
                f"no target uses client `{name}`",
                ("llm_clients", name),
                fix="remove it, or name it in a target",
            )


def _insecure_urls(policy: Policy) -> Iterator[Finding]:
    for name, client in policy.clients.items():
        if (client.api_key_env or client.forward_auth) and _is_insecure(client):
            yield policy.finding(
                "SY222",
                "a key is sent over plain http to another host",
                ("llm_clients", name, "base_url"),
                fix="use https",
            )


def _is_insecure(client: Client) -> bool:
    parts = urlsplit(client.base_url)
    if parts.scheme.lower() != "http":
        return False
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _same_model_on_both_sides(policy: Policy) -> Iterator[Finding]:
    for name, route in policy.routes.items():
        seen: dict[tuple[str, str], str] = {}
        raw = policy.document.values["routes"][name]
        for named in references(route.type.options, raw, ("routes", name)):
            if named.kind != "target":
                continue
            target = policy.targets[named.name]
            key = str(named.location[-1])
            first = seen.setdefault((target.client.name, target.id), key)
            if first != key and len(named.location) == 3:
                yield policy.finding(
                    "SY320",
                    f"`{first}` and `{key}` are the same model",
                    named.location,
                    fix="name targets with different models, or use the `passthrough` route type",
                )


def _prices_of_unknown_targets(policy: Policy) -> Iterator[Finding]:
    ids = {target.id for target in policy.targets.values()}
    for model_id in policy.prices:
        if model_id not in ids:
            yield policy.finding(
                "SY223",
                "no target has the id that this price is for",
                ("prices", model_id),
                notes=(f"ids of targets: {', '.join(sorted(ids)) or 'none'}",),
                fix="use the `id` of a target",
            )
