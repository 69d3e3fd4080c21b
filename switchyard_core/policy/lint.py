"""Warnings about a policy that works but may not do what its author meant."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document
from switchyard_core.policy.model import Client, Policy
from switchyard_core.policy.positions import Location
from switchyard_core.policy.references import references
from switchyard_core.policy.secrets import looks_like_credential, one_line, shown

__all__ = ["credentials", "lint"]

_LOG = logging.getLogger(__name__)

Findings: TypeAlias = list[Finding]

_OURS = "report this to the authors of switchyard"
_THEIRS = "report this to the author of the plugin"
#: What the three wire formats append to a base URL.
_ENDPOINTS = ("/chat/completions", "/responses", "/messages")


def lint(policy: Policy, plugin_rules: tuple[Any, ...], problems: Collection[Finding]) -> Findings:
    """Return the warnings of the built-in checks and of the plugins' lint rules.

    A policy with errors has only its resolved parts; then the checks whose answer could depend
    on the other parts, and the rules of plugins, are left out.

    Args:
        policy: The policy, as far as it could be resolved.
        plugin_rules: :class:`~switchyard_core.declarations.LintRule` of the registry.
        problems: Errors of the policy.
    """
    codes = {problem.code for problem in problems}
    found: Findings = []
    for check, needs in _CHECKS:
        if codes.isdisjoint(needs):
            found += _guarded(check, policy, f"check `{check.__name__.lstrip('_')}`", _OURS)
    for rule in plugin_rules if not problems else ():
        found += _guarded(rule.check, policy, f"lint rule `{rule.code}`", _THEIRS)
    return found


def _guarded(
    check: Callable[[Policy], Iterable[Finding]], policy: Policy, name: str, fix: str
) -> Findings:
    """Run a check; what it raises is one finding and never stops the other checks."""
    try:
        found = list(check(policy))
    except Exception as error:  # noqa: BLE001 - a rule may raise anything
        _LOG.debug("%s failed", name, exc_info=True)
        message = f"{name} failed: {one_line(error)}"
        return [
            Finding(code="SY901", message=message, file=policy.name, severity="warning", fix=fix)
        ]
    return [finding for finding in found if isinstance(finding, Finding)]


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
    if policy.routes.keys() != _tables(policy, "routes").keys():
        # A route with errors may have been meant to use any of them.
        return
    used = {target for route in policy.routes.values() for target in route.targets}
    for name in policy.targets:
        if name not in used:
            yield policy.finding(
                "SY220",
                f"no route uses target `{shown(name)}`",
                ("targets", name),
                fix="remove it, or name it in a route",
            )


def _unused_clients(policy: Policy) -> Iterator[Finding]:
    if "targets" not in policy.document.values:
        return
    used = {_text(target, "llm_client") for target in _tables(policy, "targets").values()}
    used.add(policy.fallback_client)
    for name in policy.clients:
        if name not in used:
            yield policy.finding(
                "SY221",
                f"no target uses client `{shown(name)}`",
                ("llm_clients", name),
                fix="remove it, or name it in a target",
            )


def _tables(policy: Policy, name: str) -> Mapping[str, Any]:
    value = policy.document.values.get(name)
    return value if isinstance(value, dict) else {}


def _text(raw: object, key: str) -> str | None:
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else None


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
            # One of a list may well be named again, as its default.
            if named.kind != "target" or len(named.location) != 3:
                continue
            target = policy.targets.get(named.name)
            if target is None:
                continue
            key = str(named.location[-1])
            first = seen.setdefault((target.client.name, target.id), key)
            if first != key:
                yield policy.finding(
                    "SY320",
                    f"`{first}` and `{key}` are the same model",
                    named.location,
                    fix="name targets with different models, or use the `passthrough` route type",
                )


def _prices_of_unknown_targets(policy: Policy) -> Iterator[Finding]:
    targets = _tables(policy, "targets").values()
    ids = {text for target in targets if (text := _text(target, "id")) is not None}
    for model_id in policy.prices:
        if model_id not in ids:
            yield policy.finding(
                "SY223",
                "no target has the id that this price is for",
                ("prices", model_id),
                notes=(f"ids of targets: {', '.join(map(shown, sorted(ids))) or 'none'}",),
                fix="use the `id` of a target",
            )


def _overflow_without_window(policy: Policy) -> Iterator[Finding]:
    for name, target in policy.targets.items():
        if target.on_overflow != "send" and target.context_window is None:
            yield policy.finding(
                "SY224",
                f"`on_overflow` has no effect on target `{shown(name)}`, whose window is unknown",
                ("targets", name, "on_overflow"),
                fix="add `context_window`, in tokens",
            )


def _endpoints_in_urls(policy: Policy) -> Iterator[Finding]:
    for name, client in policy.clients.items():
        path = client.base_url.lower().rstrip("/")
        for endpoint in _ENDPOINTS:
            if path.endswith(endpoint):
                yield policy.finding(
                    "SY225",
                    f"the URL ends in `{endpoint}`, which is added to it for each request",
                    ("llm_clients", name, "base_url"),
                    fix=f"remove `{endpoint}` from its end",
                )
                break


def _rules_on_bodies_of_no_route(policy: Policy) -> Iterator[Finding]:
    spoken = {route.wire_format for route in policy.routes.values()} - {None}
    if not spoken:
        return
    for name in _tables(policy, "mutation_rules"):
        rules = policy.rule_sets[name].rules if name in policy.rule_sets else []
        for index, rule in enumerate(rules):
            if rule.document == "body" and rule.format not in spoken:
                yield policy.finding(
                    "SY420",
                    f"this rule is for bodies of {rule.format}, which no route speaks",
                    ("mutation_rules", name, "rules", index, "format"),
                    notes=(f"wire formats of routes: {', '.join(sorted(map(str, spoken)))}",),
                    fix="change `format`, or remove the rule",
                )


#: Each check, and the codes of errors after which its answer would mislead.
_CHECKS: tuple[tuple[Callable[[Policy], Iterator[Finding]], frozenset[str]], ...] = (
    (_unused_targets, frozenset()),
    # A misspelt name of a client leaves the right one unused.
    (_unused_clients, frozenset({"SY202"})),
    (_insecure_urls, frozenset()),
    (_endpoints_in_urls, frozenset()),
    (_same_model_on_both_sides, frozenset()),
    (_prices_of_unknown_targets, frozenset()),
    (_overflow_without_window, frozenset()),
    # Only when every route's format is known is it known which ones none speaks.
    (_rules_on_bodies_of_no_route, frozenset({"SY200", "SY201", "SY202", "SY301", "SY303"})),
)
