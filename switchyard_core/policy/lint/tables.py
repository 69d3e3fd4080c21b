"""Lint rules about clients, targets, prices and routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from switchyard_core.errors import Finding
from switchyard_core.policy.document import leaves
from switchyard_core.policy.lint.base import Rule
from switchyard_core.policy.models import Policy
from switchyard_core.policy.secrets import looks_like_credential, shown
from switchyard_core.policy.shapes import references

__all__ = ["RULES"]

#: What the three wire formats append to a base URL.
_ENDPOINTS = ("/chat/completions", "/responses", "/messages")


def _credential_in_policy(policy: Policy) -> Iterator[Finding]:
    for location, text in leaves(policy.document.values):
        if isinstance(text, str) and looks_like_credential(text):
            yield policy.finding(
                "SY190",
                "this value looks like a credential",
                location,
                fix="name an environment variable with `api_key_env`, and revoke the key",
            )


def _unused_target(policy: Policy) -> Iterator[Finding]:
    if policy.routes.keys() != policy.document.tables("routes").keys():
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


def _unused_client(policy: Policy) -> Iterator[Finding]:
    if "targets" not in policy.document.values:
        return
    used = {*_texts(policy, "llm_client"), policy.fallback_client}
    for name in policy.clients:
        if name not in used:
            yield policy.finding(
                "SY221",
                f"no target uses client `{shown(name)}`",
                ("llm_clients", name),
                fix="remove it, or name it in a target",
            )


def _texts(policy: Policy, key: str) -> set[str]:
    """Return the targets' texts under a key, also of targets with errors."""
    targets = policy.document.tables("targets").values()
    values = [target.get(key) for target in targets if isinstance(target, dict)]
    return {value for value in values if isinstance(value, str)}


def _key_over_plain_http(policy: Policy) -> Iterator[Finding]:
    for name, client in policy.clients.items():
        if (client.api_key_env or client.forward_auth) and _is_insecure(client.base_url or ""):
            yield policy.finding(
                "SY222",
                "a key is sent over plain http to another host",
                ("llm_clients", name, "base_url"),
                fix="use https",
            )


def _is_insecure(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme.lower() != "http" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _price_of_no_target(policy: Policy) -> Iterator[Finding]:
    ids = _texts(policy, "id")
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


def _endpoint_in_url(policy: Policy) -> Iterator[Finding]:
    for name, client in policy.clients.items():
        path = (client.base_url or "").lower().rstrip("/")
        endpoint = next((end for end in _ENDPOINTS if path.endswith(end)), None)
        if endpoint is not None:
            yield policy.finding(
                "SY225",
                f"the URL ends in `{endpoint}`, which is added to it for each request",
                ("llm_clients", name, "base_url"),
                fix=f"remove `{endpoint}` from its end",
            )


def _same_model_on_both_sides(policy: Policy) -> Iterator[Finding]:
    for name, route in policy.routes.items():
        if route.type.kind == "answers":
            continue
        seen: dict[tuple[str, str], str] = {}
        raw = policy.document.tables("routes")[name]
        for named in references(route.type.options, raw, ("routes", name)):
            target = policy.targets.get(named.name) if named.kind == "target" else None
            # One of a list may well be named again, as its default.
            if target is None or len(named.location) != 3:
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


def _route_named_like_a_model(policy: Policy) -> Iterator[Finding]:
    targets = {target.id: name for name, target in policy.targets.items()}
    for name, route in policy.routes.items():
        target = targets.get(route.id)
        if target is not None and set(route.targets) != {target}:
            yield policy.finding(
                "SY321",
                f"the route's id is also the model id of target `{shown(target)}`",
                ("routes", name, "id"),
                fix="give the route its own id; "
                "keep the model's name in `aliases` if an agent needs it",
            )


RULES = (
    Rule(code="SY190", name="credential-in-policy", check=_credential_in_policy),
    Rule(code="SY220", name="unused-target", check=_unused_target),
    Rule(code="SY221", name="unused-client", check=_unused_client, needs=frozenset({"SY202"})),
    Rule(code="SY222", name="key-over-plain-http", check=_key_over_plain_http),
    Rule(code="SY223", name="price-of-no-target", check=_price_of_no_target),
    Rule(code="SY224", name="overflow-without-window", check=_overflow_without_window),
    Rule(code="SY225", name="endpoint-in-url", check=_endpoint_in_url),
    Rule(code="SY320", name="same-model-on-both-sides", check=_same_model_on_both_sides),
    Rule(code="SY321", name="route-named-like-a-model", check=_route_named_like_a_model),
)
