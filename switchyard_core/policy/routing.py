"""Resolves ``[routes]``: types, options, what they name, and unique model ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel

from switchyard_core.declarations import RouteType, WireFormat
from switchyard_core.mutation import LABELS
from switchyard_core.policy.building import check_router
from switchyard_core.policy.document import dotted
from switchyard_core.policy.draft import Draft, Space
from switchyard_core.policy.model import Route
from switchyard_core.policy.positions import Location
from switchyard_core.policy.references import Named, references
from switchyard_core.policy.schema import RouteModel
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.shapes import allowed_keys

__all__ = ["resolve_routes"]

_Kind = Literal["target", "route", "rule_set", "latch_store", "label", "tool", "plan_store"]


def resolve_routes(draft: Draft, formats: Mapping[str, WireFormat]) -> dict[str, Route]:
    """Return the routes that are in order; everything else is reported.

    Args:
        draft: The policy.
        formats: Wire format of each target by name, as far as it can be told.
    """
    spaces = _spaces(draft)
    routes: dict[str, Route] = {}
    _check_ids(draft)
    for name, raw in draft.tables("routes").items():
        route = _route(draft, name, raw, formats, spaces)
        if route is not None:
            routes[name] = route
    for route in routes.values():
        _check_delegate(draft, route, routes)
    return routes


def _check_delegate(draft: Draft, route: Route, routes: Mapping[str, Route]) -> None:
    """Report a ``subagents`` that cannot take over."""
    delegate = routes.get(route.subagents or "")
    if delegate is None:
        return
    where = ("routes", route.name, "subagents")
    if delegate.subagents is not None:
        draft.report(
            "SY307",
            f"route `{shown(delegate.name)}` passes sub-agents on itself",
            where,
            fix="name a route without `subagents`",
        )
    elif None not in (route.wire_format, delegate.wire_format) and (
        route.wire_format != delegate.wire_format
    ):
        draft.report(
            "SY303",
            f"route `{shown(delegate.name)}` speaks {delegate.wire_format}, "
            f"this one {route.wire_format}",
            where,
            fix="name a route of the same wire format; formats are not translated yet",
        )


def _spaces(draft: Draft) -> Mapping[_Kind, Space]:
    registry = draft.registry
    return {
        "target": Space(
            code="SY201",
            word="target",
            names=frozenset(draft.tables("targets")),
            listed_as="declared targets",
            otherwise="declare it under `[targets]`",
        ),
        "route": Space(
            code="SY306",
            word="route",
            names=frozenset(draft.tables("routes")),
            listed_as="declared routes",
            otherwise="declare it under `[routes]`",
        ),
        "rule_set": Space(
            code="SY404",
            word="rule set",
            names=frozenset({*registry.rule_sets, *draft.tables("mutation_rules")}),
            listed_as="known rule sets",
            otherwise="declare it under `[mutation_rules]`",
            kind="mutation_pack",
        ),
        "latch_store": Space(
            code="SY304",
            word="latch store",
            names=frozenset(registry.latch_stores),
            listed_as="installed latch stores",
            otherwise="install the plugin that gives it",
            kind="latch_store",
        ),
        "tool": Space(
            code="SY308",
            word="tool",
            names=frozenset(registry.tools),
            listed_as="tools of installed plugins",
            otherwise="install the plugin that gives it",
            kind="tool",
        ),
        "plan_store": Space(
            code="SY309",
            word="plan store",
            names=frozenset(registry.plan_stores),
            listed_as="installed plan stores",
            otherwise="install the plugin that gives it",
            kind="plan_store",
        ),
        "label": Space(
            code="SY305",
            word="label",
            names=frozenset(LABELS),
            listed_as="labels",
            otherwise="use one of these",
        ),
    }


def _route(
    draft: Draft,
    name: str,
    raw: Any,
    formats: Mapping[str, WireFormat],
    spaces: Mapping[_Kind, Space],
) -> Route | None:
    location: Location = ("routes", name)
    before = len(draft.findings)
    if not isinstance(raw, dict):
        draft.validated(location, RouteModel, raw)
        return None
    later = draft.refuse_future("routes", location, raw)
    common = set(allowed_keys(RouteModel))
    model = draft.validated(
        location, RouteModel, {key: value for key, value in raw.items() if key in common}
    )
    for named in references(RouteModel, raw, location):
        _check_name(draft, named, spaces[named.kind])
    route_type = _type(draft, location, raw)
    if route_type is None:
        return None
    option_keys = set(allowed_keys(route_type.options))
    # An option may share its name with a key of every route; then both see the value.
    given = {
        key: value
        for key, value in raw.items()
        if (key not in common or key in option_keys) and key not in later
    }
    options = _options(draft, location, route_type, given, common - option_keys)
    found = list(references(route_type.options, given, location))
    for named in found:
        _check_name(draft, named, spaces[named.kind])
    # What answers by itself composes each call in its target's format, its answer in the caller's.
    wire_format = None if route_type.kind == "answers" else _check_formats(draft, found, formats)
    if model is None or options is None or len(draft.findings) != before:
        return None
    route = Route(
        name=name,
        id=model.id,
        aliases=model.aliases,
        type=route_type,
        options=options,
        targets=_names(found, "target"),
        rule_sets=_names(found, "rule_set"),
        tools=_names(found, "tool"),
        wire_format=wire_format,
        workspace=model.workspace,
        unmatched=model.unmatched,
        subagents=model.subagents,
        context_window=model.context_window,
        tool_calling=model.tool_calling,
        reasoning=model.reasoning,
    )
    return route if check_router(draft, route) else None


def _type(draft: Draft, location: Location, raw: Mapping[str, Any]) -> RouteType | None:
    """Return the route's type, ``None`` after reporting why it cannot be used."""
    name = raw.get("type")
    if not isinstance(name, str):
        return None
    where = (*location, "type")
    route_type = draft.registry.route_types.get(name)
    if route_type is None:
        space = Space(
            code="SY301",
            word="route type",
            names=frozenset(draft.registry.route_types),
            listed_as="installed route types",
            otherwise=f"no installed plugin gives `{shown(name)}`; install the one that does",
            kind="route_type",
        )
        draft.unknown(space, name, where)
    return route_type


def _options(
    draft: Draft,
    location: Location,
    route_type: RouteType,
    given: Mapping[str, Any],
    also: AbstractSet[str],
) -> BaseModel | None:
    """Return a route's options; a key of another route type is said to be one."""
    before = len(draft.findings)
    options = draft.validated(location, route_type.options, given, also=tuple(also))
    allowed = {*allowed_keys(route_type.options), *also}
    notes = {
        dotted((*location, key)): note
        for key in given
        if key not in allowed and (note := _owners(draft, key))
    }
    draft.findings[before:] = [
        replace(finding, notes=(*finding.notes, notes[finding.path]))
        if finding.code == "SY104" and finding.path in notes
        else finding
        for finding in draft.findings[before:]
    ]
    return options


def _owners(draft: Draft, key: str) -> str:
    """Return which route types have a key, ``""`` when none has."""
    types = draft.registry.route_types.values()
    owners = sorted(each.name for each in types if key in allowed_keys(each.options))
    if not owners:
        return ""
    word = "type" if len(owners) == 1 else "types"
    return f"`{shown(key)}` is a key of route {word} " + ", ".join(f"`{name}`" for name in owners)


def _check_name(draft: Draft, named: Named, space: Space) -> None:
    if named.name not in space.names:
        draft.unknown(space, named.name, named.location, at_key=named.is_key)


def _check_formats(
    draft: Draft, found: list[Named], formats: Mapping[str, WireFormat]
) -> WireFormat | None:
    """Return the one wire format of a route's targets, ``None`` when there is not just one."""
    targets = [n for n in found if n.kind == "target" and n.name in formats]
    spoken = {formats[named.name] for named in targets}
    if len(spoken) == 1:
        return spoken.pop()
    if spoken:
        first = formats[targets[0].name]
        other = next(named for named in targets if formats[named.name] != first)
        draft.report(
            "SY303",
            "the targets of one route speak different wire formats",
            other.location,
            at_key=other.is_key,
            notes=tuple(
                f"target `{shown(target)}` speaks {formats[target]}"
                for target in _names(targets, "target")
            ),
            fix=f"use targets that speak {first}; formats are not translated yet",
        )
    return None


def _names(found: list[Named], kind: _Kind) -> tuple[str, ...]:
    return tuple(dict.fromkeys(named.name for named in found if named.kind == kind))


def _check_ids(draft: Draft) -> None:
    """Report every model id that two routes, or one route twice, want to serve."""
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
                    fix="give each route ids and aliases of its own",
                )


def _ids(location: Location, raw: Any) -> Iterator[tuple[Location, str]]:
    if not isinstance(raw, dict):
        return
    # A blank id is a finding of its own.
    if isinstance(raw.get("id"), str) and raw["id"].strip():
        yield (*location, "id"), raw["id"]
    aliases = raw.get("aliases")
    for index, alias in enumerate(aliases if isinstance(aliases, list) else ()):
        if isinstance(alias, str) and alias.strip():
            yield (*location, "aliases", index), alias
