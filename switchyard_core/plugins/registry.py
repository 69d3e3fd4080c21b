"""The plugin registry: what is installed, who gives it, and what is broken.

pluggy's own loader lets a second distribution silently replace a plugin of the same name, and
one failing import stops everything. :class:`PluginRegistry` reads entry points itself: no name
has a silent winner, and a broken plugin is reported where a policy needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from importlib.metadata import entry_points as installed_entry_points
from types import MappingProxyType
from typing import Any

from switchyard_core import hookspecs
from switchyard_core.declarations import (
    LatchStoreType,
    LintRule,
    MutationPack,
    PlanStoreType,
    RewriteType,
    RouteType,
    Tool,
)
from switchyard_core.errors import PluginError
from switchyard_core.models import Entry
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.plugins.loading import (
    Candidate,
    Contribution,
    Kind,
    PluginInfo,
    from_entry_points,
    load_all,
)
from switchyard_core.plugins.requirements import CORE

__all__ = ["Conflict", "PluginRegistry"]

_LOG = logging.getLogger(__name__)

_EVENTS: Mapping[str, tuple[str, ...]] = {
    "switchyard_decision_made": ("decision", "request"),
    "switchyard_request_finished": ("decision", "outcome"),
    "switchyard_register_commands": ("cli",),
}

#: What people call a kind where its name would not do.
_NOUNS: Mapping[str, str] = {
    "route_type": "router",
    "latch_store": "latch store",
    "plan_store": "plan store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A name that two plugins give; neither is used.

    Args:
        kind: What it names.
        name: The name.
        message: One sentence naming both plugins.
    """

    kind: Kind
    name: str
    message: str


class PluginRegistry:
    """Everything that plugins declare, with conflicts and broken plugins on record.

    Building it never raises for a plugin's fault: see :attr:`broken` and :attr:`conflicts`.
    The registry is immutable and safe to share between threads; none is global.

    Args:
        plugins: Pairs of name and plugin (a module or any object with marked hooks).
    """

    def __init__(
        self, plugins: Iterable[tuple[str, object]] = (), *, _candidates: Sequence[Candidate] = ()
    ) -> None:
        given = [Candidate(PluginInfo(name=name), _giver(plugin)) for name, plugin in plugins]
        self._build([*given, *_candidates])

    @classmethod
    def from_entry_points(
        cls,
        group: str = hookspecs.PROJECT,
        entry_points: Iterable[EntryPoint] | None = None,
        plugins: Iterable[tuple[str, object]] = (),
    ) -> PluginRegistry:
        """Build a registry from installed entry points.

        Args:
            group: Entry-point group.
            entry_points: Use these and not the installed ones.
            plugins: Plugins that are not installed, as pairs of name and plugin.

        Returns:
            A registry; each plugin module was imported once.
        """
        found = installed_entry_points(group=group) if entry_points is None else entry_points
        return cls(plugins, _candidates=from_entry_points(found))

    #: Route types by name.
    route_types: Mapping[str, RouteType]
    #: Latch store types by name.
    latch_stores: Mapping[str, LatchStoreType]
    #: Plan store types by name.
    plan_stores: Mapping[str, PlanStoreType]
    #: Tools by name.
    tools: Mapping[str, Tool]
    #: Mutation packs by name.
    packs: Mapping[str, MutationPack]
    #: The parsed rule sets of :attr:`packs`.
    rule_sets: Mapping[str, RuleSetModel]
    #: Profile entries of models, in the order in which they apply: switchyard's own first.
    profiles: tuple[Entry, ...]
    #: Rewrites by name.
    rewrites: Mapping[str, RewriteType]
    #: Lint rules, in order of their codes.
    lint_rules: tuple[LintRule, ...]
    #: All plugins, in order of their names.
    plugins: tuple[PluginInfo, ...]
    #: Names that two plugins give.
    conflicts: tuple[Conflict, ...]
    #: Implementations of ``switchyard_register_commands``: plugin label and function of the group.
    command_hooks: tuple[tuple[str, Callable[[Any], object]], ...]
    #: Calls ``switchyard_decision_made`` with decision and request; never raises. ``None`` when no
    #: plugin observes decisions.
    notify_decision: Callable[[Any, Any], None] | None
    #: Calls ``switchyard_request_finished`` with decision and outcome; never raises.
    notify_finished: Callable[[Any, Any], None] | None

    @property
    def broken(self) -> tuple[PluginInfo, ...]:
        """The plugins of which nothing is used."""
        return tuple(plugin for plugin in self.plugins if plugin.state == "broken")

    def broken_of(self, distribution: str) -> tuple[PluginInfo, ...]:
        """Return the broken plugins of a distribution, whichever way its name is spelt."""
        from packaging.utils import canonicalize_name  # noqa: PLC0415  # for such policies only

        name = canonicalize_name(distribution)
        return tuple(p for p in self.broken if canonicalize_name(p.distribution) == name)

    def raise_broken(self, names: Collection[str] | None = None) -> None:
        """Raise for the first broken plugin or conflict, for hosts that want all or nothing.

        Args:
            names: Only these plugins matter, and no conflict; ``None`` for all of them.

        Raises:
            PluginError: Names plugin, distribution and version.
        """
        for plugin in self.broken:
            if names is None or plugin.name in names:
                raise PluginError(
                    plugin.error,
                    plugin=plugin.name,
                    distribution=plugin.distribution,
                    version=plugin.version,
                )
        for conflict in self.conflicts if names is None else ():
            raise PluginError(conflict.message)

    def conflict(self, kind: Kind, name: str) -> Conflict | None:
        """Return the conflict over a name, if there is one."""
        return next((c for c in self.conflicts if (c.kind, c.name) == (kind, name)), None)

    def giver(self, kind: Kind, name: str) -> PluginInfo | None:
        """Return the plugin that gives a name, ``None`` when nobody does."""
        return next((p for p in self.plugins if name in p.gives.get(kind, ())), None)

    def fault(self, kind: Kind, name: str, what: str) -> PluginError:
        """Return the error for something that a plugin gives and that broke its contract.

        Args:
            kind: What broke it.
            name: Its name.
            what: The end of a sentence that begins with it; may hold a plugin's own words.
        """
        info = self.giver(kind, name)
        giver = f" (plugin `{info.name}`{_from(info)})" if info is not None else ""
        return PluginError(
            f"the {_NOUNS.get(kind, kind)} `{name}`{giver} {what}",
            plugin=info.name if info else "",
            distribution=info.distribution if info else "",
            version=info.version if info else "",
        )

    def _build(self, candidates: list[Candidate]) -> None:
        candidates.sort(key=lambda candidate: (candidate.info.name, candidate.info.distribution))
        load_all(candidates)
        given, self.conflicts = _settle(candidates)
        self.plugins = tuple(candidate.finished() for candidate in candidates)
        self.route_types = _by_name(given, "route_type")
        self.latch_stores = _by_name(given, "latch_store")
        self.plan_stores = _by_name(given, "plan_store")
        self.tools = _by_name(given, "tool")
        self.packs = _by_name(given, "mutation_pack")
        self.rule_sets = MappingProxyType(
            {g.name: g.rule_set for g in given if g.rule_set is not None}
        )
        own = [c for c in candidates if c.info.distribution == CORE]
        ordered = [*own, *(c for c in candidates if c not in own)]
        kept = {g.name for g in given if g.kind == "model_profile"}
        self.profiles = tuple(
            g.declaration
            for c in ordered
            for g in c.gives
            if g.kind == "model_profile" and g.name in kept
        )
        self.rewrites = _by_name(given, "rewrite")
        lint_rules: Mapping[str, LintRule] = _by_name(given, "lint_rule")
        self.lint_rules = tuple(lint_rules[code] for code in sorted(lint_rules))
        self.notify_decision = _notifier(candidates, "switchyard_decision_made")
        self.notify_finished = _notifier(candidates, "switchyard_request_finished")
        self.command_hooks = tuple(
            (c.info.label, impl.function)
            for c in candidates
            for hook, impl in c.hooks
            if hook == "switchyard_register_commands"
        )


def _from(info: PluginInfo) -> str:
    return f" of {info.distribution} {info.version}".rstrip() if info.distribution else ""


def _giver(plugin: object) -> Callable[[], object]:
    return lambda: plugin


def _settle(candidates: Sequence[Candidate]) -> tuple[list[Contribution], tuple[Conflict, ...]]:
    """Take out every name that more than one plugin gives."""
    owners: dict[tuple[Kind, str], list[Candidate]] = {}
    for candidate in candidates:
        for given in candidate.gives:
            owners.setdefault((given.kind, given.name), []).append(candidate)
    conflicts = tuple(
        Conflict(
            kind=kind,
            name=name,
            message=f"{kind.replace('_', ' ')} `{name}` is given by "
            + " and by ".join(c.info.label for c in rivals),
        )
        for (kind, name), rivals in owners.items()
        if len(rivals) > 1
    )
    undisputed = [g for c in candidates for g in c.gives if len(owners[g.kind, g.name]) == 1]
    return undisputed, conflicts


def _by_name(given: Iterable[Contribution], kind: Kind) -> Mapping[str, Any]:
    return MappingProxyType({g.name: g.declaration for g in given if g.kind == kind})


def _notifier(candidates: Sequence[Candidate], hook: str) -> Callable[[Any, Any], None] | None:
    """Resolve an event to plain calls, ``None`` when no plugin observes it."""
    calls = tuple(
        (candidate.info.name, impl.function, tuple(_EVENTS[hook].index(a) for a in impl.argnames))
        for candidate in candidates
        for name, impl in candidate.hooks
        if name == hook
    )
    if not calls:
        return None

    def notify(first: Any, second: Any) -> None:
        pair = (first, second)
        for name, function, wanted in calls:
            try:
                function(*[pair[index] for index in wanted])
            except Exception:  # noqa: BLE001 - observers never change routing
                _LOG.exception("plugin %s failed in %s", name, hook)

    return notify
