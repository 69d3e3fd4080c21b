"""Lint rules about clients, targets, prices and routes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from switchyard_core.errors import Finding
from switchyard_core.policy.document import leaves
from switchyard_core.policy.draft import misread
from switchyard_core.policy.lint.base import Rule
from switchyard_core.policy.models import Policy
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import can_be_seen, looks_like_credential, shown
from switchyard_core.policy.shapes import references

__all__ = ["RULES"]

#: Words that other tools replace: `${X}`, `$X`, `{x}`, `<x>`, `%X%`.
_PLACEHOLDER = re.compile(
    r"\$\{[^{}]*\}|\$[A-Za-z_]\w*|\{\{?\s*[A-Za-z_][\w. -]*\}?\}|<[A-Za-z_][\w. -]*>"
    r"|%[A-Za-z_][A-Za-z0-9_]{2,}%"
)
#: Days after which a fact about a model is old.
_YEAR = 366
#: What the three wire formats append to a base URL.
_ENDPOINTS = ("/chat/completions", "/responses", "/messages")


def _credential_in_policy(policy: Policy) -> Iterator[Finding]:
    for location, text in leaves(policy.document.values):
        if isinstance(text, str) and looks_like_credential(text):
            message = "this value looks like a credential"
            fix = "name an environment variable with `api_key_env`, and revoke the key"
            yield policy.finding("SY190", message, location, fix=fix)


def _unused_target(policy: Policy) -> Iterator[Finding]:
    if misread(policy.document, "routes", "housekeeping"):
        return
    if policy.routes.keys() != policy.document.tables("routes").keys():
        # A route with errors may be meant to use any of them.
        return
    used = {target for route in policy.routes.values() for target in route.targets}
    used |= {condition.target or "" for condition in policy.housekeeping}
    for name in policy.targets:
        if name not in used and can_be_seen(name):
            message = f"no route uses target `{shown(name)}`"
            fix = "remove it, or name it in a route or in `[[housekeeping]]`"
            yield policy.finding("SY220", message, ("targets", name), fix=fix)


def _unused_client(policy: Policy) -> Iterator[Finding]:
    if "targets" not in policy.document.values or misread(policy.document, "targets"):
        return
    used = {*_texts(policy, "llm_client"), policy.fallback_client}
    for name in policy.clients:
        if name not in used and can_be_seen(name):
            message = f"no target uses client `{shown(name)}`"
            fix = "remove it, or name it in a target"
            yield policy.finding("SY221", message, ("llm_clients", name), fix=fix)


def _texts(policy: Policy, key: str) -> set[str]:
    """Return the targets' texts under a key, also of targets with errors."""
    targets = policy.document.tables("targets").values()
    values = [target.get(key) for target in targets if isinstance(target, dict)]
    return {value for value in values if isinstance(value, str)}


def _key_over_plain_http(policy: Policy) -> Iterator[Finding]:
    for name, client in policy.clients.items():
        if (client.api_key_env or client.forward_auth) and _is_insecure(client.base_url or ""):
            message, fix = "a key is sent over plain http to another host", "use https"
            yield policy.finding("SY222", message, ("llm_clients", name, "base_url"), fix=fix)


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
            message, fix = "no target has the id that this price is for", "use the `id` of a target"
            notes = (f"ids of targets: {', '.join(map(shown, sorted(ids))) or 'none'}",)
            yield policy.finding("SY223", message, ("prices", model_id), notes=notes, fix=fix)


def _overflow_without_window(policy: Policy) -> Iterator[Finding]:
    for name, target in policy.targets.items():
        # `stay` also answers a provider that finds a request too long itself.
        if target.on_overflow == "reject" and target.context_window is None:
            message = (
                f"`on_overflow` has no effect on target `{shown(name)}`, whose window is unknown"
            )
            fix = "add `context_window`, in tokens"
            yield policy.finding("SY224", message, ("targets", name, "on_overflow"), fix=fix)


def _endpoint_in_url(policy: Policy) -> Iterator[Finding]:
    for name, client in policy.clients.items():
        path = (client.base_url or "").lower().rstrip("/")
        endpoint = next((end for end in _ENDPOINTS if path.endswith(end)), None)
        if endpoint is not None:
            message = f"the URL ends in `{endpoint}`, which is added to it for each request"
            fix = f"remove `{endpoint}` from its end"
            yield policy.finding("SY225", message, ("llm_clients", name, "base_url"), fix=fix)


def _unfilled_placeholder(policy: Policy) -> Iterator[Finding]:
    for location, text in _addresses(policy):
        found = _PLACEHOLDER.search(text)
        if found is not None:
            message = f"`{shown(found[0])}` was never filled in: policies have no placeholders"
            fix = "write the value itself; a key is named with `api_key_env`"
            yield policy.finding("SY228", message, location, fix=fix)


def _addresses(policy: Policy) -> Iterator[tuple[Location, str]]:
    """Yield the texts that reach a provider or name a model as they are, with their places."""
    for name, client in policy.clients.items():
        yield ("llm_clients", name, "base_url"), client.base_url or ""
        for header, value in client.extra_headers.items():
            yield ("llm_clients", name, "extra_headers", header), value
        for call, path in client.paths.items():
            yield ("llm_clients", name, "paths", call), path
    for name, target in policy.targets.items():
        yield ("targets", name, "id"), target.id
    for name, route in policy.routes.items():
        yield ("routes", name, "id"), route.id
        for number, alias in enumerate(route.aliases):
            yield ("routes", name, "aliases", number), alias


def _same_model_on_both_sides(policy: Policy) -> Iterator[Finding]:
    for name, route in policy.routes.items():
        if route.type.kind == "answers":
            continue
        seen: dict[tuple[str, str], str] = {}
        raw = policy.document.tables("routes")[name]
        for named in references(route.type.options, raw, ("routes", name)):
            target = policy.targets.get(named.name) if named.kind == "target" else None
            # A target of a list may also be its default.
            if target is None or len(named.location) != 3:
                continue
            key = str(named.location[-1])
            first = seen.setdefault((target.client.name, target.id), key)
            if first != key:
                message = f"`{first}` and `{key}` are the same model"
                fix = "name targets with different models, or use the `passthrough` route type"
                yield policy.finding("SY320", message, named.location, fix=fix)


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


def _model_without_profile(policy: Policy) -> Iterator[Finding]:
    for name, route in policy.routes.items():
        targets = [policy.targets[target] for target in route.targets if target in policy.targets]
        known = [target for target in targets if target.accepts.rules]
        for target in targets if known else ():
            if target.accepts.entries or target.fit or target.profile is False:
                continue
            other = known[0]
            if (target.id, target.client) == (other.id, other.client):
                continue
            yield policy.finding(
                "SY226",
                f"nothing is known of the model of target `{shown(target.name)}`, and requests of "
                f"route `{shown(name)}` may be made for that of `{shown(other.name)}`",
                ("targets", target.name, "id"),
                notes=(f"`{shown(other.id)}` has the profile `{other.accepts.entries[-1]}`",)
                if other.accepts.entries
                else (),
                fix="name a profile of the same model with `profile`, add `[[targets."
                f"{shown(target.name)}.fit]]`, or write `profile = false`",
            )


def _old_profile(policy: Policy) -> Iterator[Finding]:
    for name, target in policy.targets.items():
        old = [e for e in target.accepts.facts if (policy.checked_on - e.as_of).days > _YEAR]
        if old:
            first = min(old, key=lambda entry: entry.as_of)
            message = (
                f"what is known of the model of target `{shown(name)}` was read on {first.as_of}, "
                "over a year ago"
            )
            notes = (f"profiles: {', '.join(entry.id for entry in old)}",)
            fix = f"run `switchyard probe {shown(policy.name)} {shown(name)}` and update switchyard"
            yield policy.finding("SY227", message, ("targets", name), notes=notes, fix=fix)


RULES = (
    Rule(code="SY190", name="credential-in-policy", check=_credential_in_policy),
    Rule(code="SY220", name="unused-target", check=_unused_target),
    Rule(code="SY221", name="unused-client", check=_unused_client, needs=frozenset({"SY202"})),
    Rule(code="SY222", name="key-over-plain-http", check=_key_over_plain_http),
    Rule(code="SY223", name="price-of-no-target", check=_price_of_no_target),
    Rule(code="SY224", name="overflow-without-window", check=_overflow_without_window),
    Rule(code="SY225", name="endpoint-in-url", check=_endpoint_in_url),
    Rule(code="SY226", name="model-without-profile", check=_model_without_profile),
    Rule(code="SY227", name="old-profile", check=_old_profile),
    Rule(code="SY228", name="unfilled-placeholder", check=_unfilled_placeholder),
    Rule(code="SY320", name="same-model-on-both-sides", check=_same_model_on_both_sides),
    Rule(code="SY321", name="route-named-like-a-model", check=_route_named_like_a_model),
)
