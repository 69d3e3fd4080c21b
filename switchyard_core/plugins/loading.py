"""Loads one plugin at a time: imports it, checks its hooks, collects what it declares.

Nothing here raises for a plugin's fault; the fault is put on the plugin's record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import Literal

import pluggy

from switchyard_core import hookspecs
from switchyard_core.errors import PluginError
from switchyard_core.plugins.contributions import KINDS, Contribution, Kind, collect

__all__ = ["Candidate", "PluginInfo", "from_entry_points", "load_all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """One plugin as the registry found it.

    Args:
        name: Entry-point name.
        distribution: Distribution that installed it, ``""`` for an object given directly.
        version: Version of that distribution.
        state: ``ok``, or ``broken`` when nothing of it is used.
        error: Why it is broken.
        code: SY5xx code of that error.
        gives: Names of what it declares, per kind (``route_type``, ``mutation_pack``, ...).
        hooks: Hooks that it implements.
    """

    name: str
    distribution: str = ""
    version: str = ""
    state: Literal["ok", "broken"] = "ok"
    error: str = ""
    code: str = ""
    gives: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
    hooks: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The plugin with its distribution and version, as messages name it."""
        return _label(self.name, self.distribution, self.version)


@dataclass(slots=True, kw_only=True)
class Candidate:
    """A plugin while the registry is being built.

    Args:
        name: Entry-point name.
        distribution: Distribution that installed it, ``""`` if unknown.
        version: Version of that distribution.
        load: Gives the plugin; may raise whatever an import raises.
        error: Why it is broken, ``""`` if it is not.
        code: SY5xx code of the error.
        hooks: Names of its hooks with the implementations.
        gives: What it declares.
    """

    name: str
    distribution: str = ""
    version: str = ""
    load: Callable[[], object]
    error: str = ""
    code: str = ""
    hooks: tuple[tuple[str, pluggy.HookImpl], ...] = ()
    gives: list[Contribution] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The plugin with its distribution and version, as messages name it."""
        return _label(self.name, self.distribution, self.version)

    def fail(self, code: str, reason: str) -> None:
        """Record that the plugin is broken; nothing of it is used.

        Args:
            code: SY5xx code.
            reason: Continues the sentence that begins with the plugin's name.
        """
        self.error, self.code = f"plugin {self.label} {reason}", code
        self.gives, self.hooks = [], ()

    def info(self) -> PluginInfo:
        """Return the plugin's record."""
        gives: dict[Kind, tuple[str, ...]] = {
            kind: tuple(g.name for g in self.gives if g.kind == kind) for kind in KINDS
        }
        return PluginInfo(
            name=self.name,
            distribution=self.distribution,
            version=self.version,
            state="broken" if self.error else "ok",
            error=self.error,
            code=self.code,
            gives=MappingProxyType({kind: names for kind, names in gives.items() if names}),
            hooks=tuple(name for name, _ in self.hooks),
        )


def _label(name: str, distribution: str, version: str) -> str:
    return f"`{name}` ({distribution} {version})" if distribution else f"`{name}`"


def from_entry_points(points: Iterable[EntryPoint]) -> list[Candidate]:
    """Return one candidate per distinct entry point."""
    return [_from_entry_point(point) for point in _distinct(points)]


def load_all(candidates: Sequence[Candidate]) -> None:
    """Load every candidate whose name is its own; the others are marked broken unimported."""
    _refuse_shared_names(candidates)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for candidate in candidates:
        if not candidate.error:
            _register(manager, candidate)


def _from_entry_point(point: EntryPoint) -> Candidate:
    distribution = point.dist
    return Candidate(
        name=point.name,
        distribution=distribution.name if distribution is not None else "",
        version=distribution.version if distribution is not None else "",
        load=point.load,
    )


def _distinct(points: Iterable[EntryPoint]) -> list[EntryPoint]:
    """Drop repeats of one entry point, as two metadata folders of one distribution give them."""
    seen: dict[tuple[str, str, str], EntryPoint] = {}
    for point in points:
        owner = point.dist.name if point.dist is not None else ""
        seen.setdefault((point.name, point.value, owner), point)
    return list(seen.values())


def _refuse_shared_names(candidates: Sequence[Candidate]) -> None:
    for candidate in candidates:
        rivals = [c for c in candidates if c.name == candidate.name and c is not candidate]
        if rivals:
            others = ", ".join(c.label for c in rivals)
            candidate.fail("SY502", f"is not used: its name is also claimed by {others}")


def _register(manager: pluggy.PluginManager, candidate: Candidate) -> None:
    """Import a plugin, check its hooks and collect what it declares."""
    try:
        plugin = candidate.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever an import of others raises
        candidate.fail("SY501", f"could not be imported: {_reason(error)}")
        return
    try:
        manager.register(plugin, name=candidate.name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError, TypeError, AttributeError) as error:
        if manager.get_plugin(candidate.name) is plugin:
            manager.unregister(name=candidate.name)
        candidate.fail("SY504", f"breaks the hook contract: {_hook_reason(plugin, error)}")
        return
    candidate.hooks = tuple(
        (caller.name, impl)
        for caller in manager.get_hookcallers(plugin) or []
        for impl in caller.get_hookimpls()
        if impl.plugin is plugin
    )
    problem = _hook_problem(plugin, candidate.hooks)
    if problem:
        candidate.fail("SY504", f"breaks the hook contract: {problem}")
        return
    try:
        candidate.gives = collect(candidate.hooks, own=candidate.distribution == "switchyard-core")
    except PluginError as error:
        candidate.fail("SY506", str(error))


def _hook_names() -> list[str]:
    return [name for name in hookspecs.__all__ if name.startswith("switchyard_")]


def _hook_reason(plugin: object, error: Exception) -> str:
    """Say which hook is wrong; a misspelt one gets the nearest name."""
    for name in dir(plugin):
        marked = getattr(getattr(plugin, name, None), "switchyard_impl", None)
        if marked is not None and name not in hookspecs.__all__:
            short = [hook.removeprefix("switchyard_") for hook in _hook_names()]
            near = get_close_matches(name.removeprefix("switchyard_"), short, n=1, cutoff=0.5)
            hint = f"hooks: {', '.join(_hook_names())}"
            if near:
                hint = f"did you mean `switchyard_{near[0]}`?"
            return f"there is no hook `{name}`; {hint}"
    return _reason(error).replace("\n", " ")


def _hook_problem(plugin: object, hooks: Sequence[tuple[str, pluggy.HookImpl]]) -> str:
    for name, impl in hooks:
        if impl.hookwrapper or impl.wrapper:
            return f"`{name}` is a wrapper; hooks of switchyard cannot be wrapped"
        if inspect.iscoroutinefunction(impl.function):
            return f"`{name}` must not be async"
    implemented = {name for name, _ in hooks}
    for name in _hook_names():
        function = getattr(plugin, name, None)
        if inspect.isroutine(function) and name not in implemented:
            return f"`{name}` is not marked with `@hookimpl`"
    return ""


def _reason(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
