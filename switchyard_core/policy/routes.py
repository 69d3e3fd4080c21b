"""Resolves ``[routes]``: types, options, what they name, and unique model ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from pydantic import BaseModel

from switchyard_core.declarations import LatchOptions, ReferenceKind, WireFormat
from switchyard_core.plugins.loading import latching_effect, router_problem
from switchyard_core.policy.aliases import clash
from switchyard_core.policy.draft import Draft
from switchyard_core.policy.models import Route, Target
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import one_line, shown
from switchyard_core.policy.shapes import Named, allowed_keys, references

__all__ = ["resolve_routes"]


def resolve_routes(draft: Draft, targets: Mapping[str, Target]) -> dict[str, Route]:
    """Return the routes that are in order; everything else is reported."""
    routes: dict[str, Route] = {}
    _check_ids(draft)
    for name, raw in draft.tables("routes").items():
        route = _route(draft, name, raw, targets)
        if route is not None:
            routes[name] = route
    for route in routes.values():
        _check_delegate(draft, route, routes)
    return routes


def _route(draft: Draft, name: str, raw: Any, known: Mapping[str, Target]) -> Route | None:
    location, before = ("routes", name), len(draft.findings)
    if not isinstance(raw, dict):
        draft.validated(location, Route, raw)
        return None
    if draft.is_pointed(location, raw, Route):
        return None
    common = set(allowed_keys(Route))
    shared = {key: value for key, value in raw.items() if key in common}
    route = draft.validated(location, Route, shared)
    kind = raw.get("type")
    route_type = draft.registry.route_types.get(kind) if isinstance(kind, str) else None
    if route_type is None:
        return None
    own = set(allowed_keys(route_type.options))
    # An option may share its name with a key of every route; then both see the value.
    given = {key: value for key, value in raw.items() if key not in common or key in own}
    options = draft.validated(
        location,
        route_type.options,
        given,
        also=tuple(common - own),
        note=lambda key: _owners(draft, key) if key not in common else "",
    )
    found = list(references(route_type.options, given, location))
    if route is None or options is None or len(draft.findings) != before:
        return None
    targets = _names(found, "target")
    route = route.model_copy(
        update={
            "name": name,
            "options": options,
            "targets": targets,
            "rule_sets": _names(found, "rule_set"),
            "tools": _names(found, "tool"),
            "wire_formats": _formats(known[name] for name in targets if name in known),
        }
    )
    return route if _routes(draft, route, options) else None


def _routes(draft: Draft, route: Route, options: BaseModel) -> bool:
    """Return whether a route's router can be built and keeps its contract; report it if not.

    Latch stores are not built: one may connect to a server.
    """
    name = route.type.name
    try:
        router = route.type.router(options)
        what = router_problem(router, route.type.kind)
        effect = "" if isinstance(options, LatchOptions) else latching_effect(router)
        if effect:
            draft.report(
                "SY509",
                f"the router of `{name}` makes the effect `{effect}`, and its routes have no latch "
                "store: the effect is dropped",
                ("routes", route.name, "type"),
                fix="let the options of the route type inherit `switchyard_core.LatchOptions`",
                severity="warning",
            )
    except Exception as error:  # noqa: BLE001 - a plugin's router may raise anything
        what = f"cannot be built: {one_line(error)}"
    if what:
        draft.report(
            "SY505",
            str(draft.registry.fault("route_type", name, what)),
            ("routes", route.name, "type"),
            fix="report this to the author of the plugin",
        )
    return not what


def _owners(draft: Draft, key: str) -> str:
    """Return which route types have a key, and which plugins they are from."""
    types = draft.registry.route_types.values()
    owners = sorted(each.name for each in types if key in allowed_keys(each.options))
    if not owners:
        return ""
    givers = [(name, draft.registry.giver("route_type", name)) for name in owners]
    said = [f"`{name}` of plugin {info.label}" if info else f"`{name}`" for name, info in givers]
    word = "type" if len(owners) == 1 else "types"
    return f"`{shown(key)}` is a key of route {word} {', '.join(said)}"


def _formats(targets: Iterable[Target]) -> tuple[WireFormat, ...]:
    return tuple(dict.fromkeys(target.wire_format for target in targets))


def _text(raw: object, key: str) -> str:
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else ""


def _names(found: list[Named], kind: ReferenceKind) -> tuple[str, ...]:
    return tuple(dict.fromkeys(named.name for named in found if named.kind == kind))


def _check_delegate(draft: Draft, route: Route, routes: Mapping[str, Route]) -> None:
    delegate = routes.get(route.subagents or "")
    if delegate is None:
        return
    name, where = f"route `{shown(delegate.name)}`", ("routes", route.name, "subagents")
    if delegate.subagents is not None:
        fix = "name a route without `subagents`"
        draft.report("SY307", f"{name} delegates sub-agents itself", where, fix=fix)


def _check_ids(draft: Draft) -> None:
    owners: dict[str, Location] = {}
    for name, raw in draft.tables("routes").items():
        for location, model_id in _ids(("routes", name), raw):
            first = owners.setdefault(model_id, location)
            if first != location:
                draft.report(
                    "SY302",
                    f"route id `{shown(model_id)}` is used twice",
                    location,
                    notes=(f"first used at {draft.document.where(first)}",),
                    fix="give each route its own ids and aliases",
                )
    _check_globs(draft, owners)


def _check_globs(draft: Draft, owners: Mapping[str, Location]) -> None:
    """Report globs of two routes that match the same ids while neither is more exact."""
    globs = [(glob, where) for glob, where in owners.items() if "*" in glob and len(where) > 3]
    for (first, place), (second, where) in combinations(globs, 2):
        if place[1] != where[1] and clash(first, second):
            draft.report(
                "SY302",
                f"`{shown(second)}` and `{shown(first)}` match some of the same ids, and neither "
                "is more exact",
                where,
                notes=(f"`{shown(first)}` is at {draft.document.where(place)}",),
                fix="write more of the ids into one of them",
            )


def _ids(location: Location, raw: Any) -> Iterator[tuple[Location, str]]:
    # A blank id has another finding.
    if _text(raw, "id").strip():
        yield (*location, "id"), raw["id"]
    aliases = raw.get("aliases") if isinstance(raw, dict) else None
    for index, alias in enumerate(aliases if isinstance(aliases, list) else ()):
        if isinstance(alias, str) and alias.strip():
            yield (*location, "aliases", index), alias
