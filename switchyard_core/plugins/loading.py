"""Loads one plugin at a time: imports it, checks its hooks and everything that it declares.

Nothing here raises for a fault of a plugin; the fault is put on the record of the plugin.
"""

from __future__ import annotations

import inspect
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import Distribution, EntryPoint
from types import MappingProxyType
from typing import Any, Literal, get_args

import pluggy
import tomli
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from switchyard_core import hookspecs
from switchyard_core.decision import Latch, Remember, UpdateRecord
from switchyard_core.declarations import (
    WIRE_FORMATS,
    LatchStoreType,
    LintRule,
    ModelProfiles,
    MutationPack,
    PlanStoreType,
    RewriteType,
    RouteType,
    Tool,
)
from switchyard_core.errors import PluginError, in_one_line, nearest, with_place
from switchyard_core.models import Entry, read_profiles
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.plugins.requirements import CORE, is_leftover, unmet_needs
from switchyard_core.tools import spec_of

__all__ = [
    "KINDS",
    "Candidate",
    "Contribution",
    "Kind",
    "PluginInfo",
    "collect",
    "from_entry_points",
    "latching_effect",
    "load_all",
    "router_problem",
]


_LOG = logging.getLogger(__name__)

#: What a name belongs to.
Kind = Literal[
    "route_type",
    "mutation_pack",
    "model_profile",
    "latch_store",
    "plan_store",
    "tool",
    "rewrite",
    "lint_rule",
]

#: All kinds, in the order in which they are listed.
KINDS: tuple[Kind, ...] = get_args(Kind)

_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: Most characters of a tool's name, in the strictest of the wire formats.
_TOOL_NAME = 64
_LINT_CODE = re.compile(r"[A-Z]{2,8}[0-9]{2,4}")


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
        source = f" ({self.distribution} {self.version})" if self.distribution else ""
        return f"`{self.name}`{source}"


@dataclass(slots=True)
class Candidate:
    """A plugin while the registry is being built."""

    info: PluginInfo  # What is known of it
    load: Callable[[], object]  # Gives the plugin; may raise whatever an import raises
    dist: Distribution | None = None  # What installed it
    #: Names of its hooks with the implementations
    hooks: tuple[tuple[str, pluggy.HookImpl], ...] = ()
    gives: list[Contribution] = field(default_factory=list)  # What it declares

    def fail(self, code: str, reason: str) -> None:
        """Record that the plugin is broken; the reason continues a sentence about it."""
        error = f"plugin {self.info.label} {reason}"
        self.info = replace(self.info, state="broken", code=code, error=error)
        self.gives, self.hooks = [], ()

    def finished(self) -> PluginInfo:
        """Return the plugin's record."""
        gives: dict[Kind, list[str]] = {}
        for given in sorted(self.gives, key=lambda given: KINDS.index(given.kind)):
            gives.setdefault(given.kind, []).append(given.name)
        return replace(
            self.info,
            gives=MappingProxyType({kind: tuple(names) for kind, names in gives.items()}),
            hooks=tuple(name for name, _ in self.hooks),
        )


def from_entry_points(points: Iterable[EntryPoint]) -> list[Candidate]:
    """Return one candidate per distinct entry point; two metadata folders may name the same."""
    found: dict[tuple[str, str, str], Candidate] = {}
    # Read once: a distribution parses its metadata, with a whole readme, for each question.
    facts: dict[int, tuple[str, str]] = {id(None): ("", "")}
    for point in points:
        dist = point.dist
        if dist is not None and is_leftover(dist):
            _LOG.debug("plugin %s is ignored: pip left it behind", point.name)
            continue
        if dist is not None and id(dist) not in facts:
            metadata = dist.metadata
            facts[id(dist)] = (metadata["Name"], metadata["Version"])
        name, version = facts[id(dist)]
        info = PluginInfo(name=point.name, distribution=name, version=version)
        found.setdefault((point.name, point.value, name), Candidate(info, point.load, dist))
    return list(found.values())


def load_all(candidates: Sequence[Candidate]) -> None:
    """Load every candidate whose name is its own; the others are marked broken unimported."""
    _refuse_shared_names(candidates)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for candidate in candidates:
        if candidate.info.state == "ok":
            _register(manager, candidate)


def _refuse_shared_names(candidates: Sequence[Candidate]) -> None:
    for candidate in candidates:
        name = candidate.info.name
        rivals = [c.info for c in candidates if c.info.name == name and c is not candidate]
        if rivals:
            others = ", ".join(info.label for info in rivals)
            candidate.fail("SY502", f"is not used: its name is also claimed by {others}")


def _register(manager: pluggy.PluginManager, candidate: Candidate) -> None:
    """Import a plugin, check its hooks and collect what it declares."""
    own = candidate.info.distribution == CORE
    unmet = "" if own or candidate.dist is None else unmet_needs(candidate.dist)
    if unmet:
        candidate.fail("SY510", f"is not loaded: {unmet}")
        return
    try:
        plugin = candidate.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever an import of others raises
        candidate.fail("SY501", f"could not be imported: {in_one_line(error)}")
        return
    try:
        manager.register(plugin, name=candidate.info.name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError, TypeError, AttributeError) as error:
        if manager.get_plugin(candidate.info.name) is plugin:
            manager.unregister(name=candidate.info.name)
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
        candidate.gives = collect(candidate.hooks, own=own)
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
            near = nearest(name.removeprefix("switchyard_"), short)
            hint = f"hooks: {', '.join(_hook_names())}"
            if near:
                hint = f"did you mean `switchyard_{near}`?"
            return f"there is no hook `{name}`; {hint}"
    return in_one_line(error)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One declaration of a plugin."""

    kind: Kind
    name: str
    declaration: Any
    rule_set: RuleSetModel | None = None


def _entries(hook: str, impl: pluggy.HookImpl) -> list[Contribution]:
    """Return one contribution per entry of a plugin's profiles, in their order."""
    found: dict[str, Entry] = {}
    for declared in _returned(hook, impl):
        if not isinstance(declared, ModelProfiles):
            given = type(declared).__name__
            _refuse(f"returns `{given}` from `{hook}`, which wants `ModelProfiles`")
        try:
            entries = read_profiles(declared)
        except ValueError as error:
            raise PluginError(str(error)) from error
        for entry in entries:
            if entry.id in found:
                _refuse(f"gives the model profile `{entry.id}` twice")
            found[entry.id] = entry
    return [
        Contribution(kind="model_profile", name=name, declaration=entry)
        for name, entry in found.items()
    ]


def collect(hooks: Sequence[tuple[str, pluggy.HookImpl]], *, own: bool) -> list[Contribution]:
    """Call a plugin's declaring hooks; a PluginError's text continues "plugin `x` ..." here."""
    found: list[Contribution] = []
    for hook, impl in hooks:
        if hook == "switchyard_model_profiles":
            found += _entries(hook, impl)
        if hook not in _READERS:
            continue
        kind, wanted, check = _READERS[hook]
        for declaration in _returned(hook, impl):
            if not isinstance(declaration, wanted):
                given = type(declaration).__name__
                _refuse(f"returns `{given}` from `{hook}`, which wants `{wanted.__name__}`")
            name = declaration.code if isinstance(declaration, LintRule) else declaration.name
            word = kind.replace("_", " ")
            if kind != "lint_rule" and not (isinstance(name, str) and _NAME.fullmatch(name)):
                _refuse(f"gives a {word} a name that is not snake_case: {name!r}")
            if any((given.kind, given.name) == (kind, name) for given in found):
                _refuse(f"gives the {word} `{name}` twice")
            problem = check(declaration)
            if problem:
                _refuse(f"gives {word} `{name}` {problem}")
            rule_set = _rule_set(declaration) if isinstance(declaration, MutationPack) else None
            found.append(
                Contribution(kind=kind, name=name, declaration=declaration, rule_set=rule_set)
            )
    for each in found if not own else ():
        if each.kind == "lint_rule" and each.name.startswith("SY"):
            _refuse(f"gives lint rule `{each.name}`; the prefix SY belongs to switchyard")
    return found


def _refuse(reason: str) -> None:
    raise PluginError(reason)


def _returned(hook: str, impl: pluggy.HookImpl) -> list[Any]:
    function: Callable[[], Any] = impl.function
    try:
        return list(function())
    except (Exception, SystemExit) as error:
        raise PluginError(f"failed in `{hook}`: {with_place(error)}") from error


# Each check returns the end of a sentence "gives <kind> `<name>` ...", or "" when all is well.


def _check_route_type(declared: RouteType) -> str:
    options = declared.options
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        return "options that are not a pydantic model"
    if options.model_config.get("extra") != "forbid":
        return "options that accept unknown keys; inherit `switchyard_core.Options`"
    if not callable(declared.router):
        return "a router that cannot be called"
    # What a factory returns is seen only when a policy uses the type.
    is_class = isinstance(declared.router, type)
    problem = router_problem(declared.router, declared.kind) if is_class else ""
    return problem and f"the router class `{declared.router.__name__}`, which {problem}"


def _check_store(declared: LatchStoreType | PlanStoreType) -> str:
    return "" if callable(declared.factory) else "a factory that cannot be called"


def _check_tool(declared: Tool) -> str:
    if len(declared.name) > _TOOL_NAME:
        return f"a name of more than {_TOOL_NAME} characters"
    if not (isinstance(declared.description, str) and declared.description.strip()):
        return "a description that is blank or not text; models choose by it"
    parameters = declared.parameters
    if not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
        return "parameters that are not a pydantic model"
    try:
        spec_of(declared)
    except ValueError as error:
        return f"parameters that {error}"
    if not callable(declared.function):
        return "a function that cannot be called"
    timeout = declared.timeout_s
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        return "a `timeout_s` that is not a number"
    if not (math.isfinite(timeout) and timeout > 0):
        return f"the `timeout_s` {timeout!r}, which is not above 0 and finite"
    is_bool = isinstance(declared.side_effects, bool)
    return "" if is_bool else "`side_effects` that are neither true nor false"


def _check_rewrite(declared: RewriteType) -> str:
    unknown = sorted(set(declared.wire_formats or ()) - set(WIRE_FORMATS))
    if unknown:
        return f"for unknown wire formats: {', '.join(unknown)}"
    return "" if callable(declared.function) else "a function that cannot be called"


def _check_lint_rule(declared: LintRule) -> str:
    if not _LINT_CODE.fullmatch(declared.code):
        _refuse(f"gives a lint rule the code {declared.code!r}, which is not like `ABC123`")
    return "" if callable(declared.check) else "a check that cannot be called"


def _check_pack(declared: MutationPack) -> str:
    return "" if isinstance(declared.text, str) else "a text that is not a string"


def _rule_set(pack: MutationPack) -> RuleSetModel:
    place = f" ({pack.source})" if pack.source else ""
    try:
        return RuleSetModel.model_validate_json(to_json(tomli.loads(pack.text)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"gives mutation pack `{pack.name}`{place} that is not a rule set: {where}: "
        raise PluginError(msg + first["msg"]) from error
    except (ValueError, RecursionError) as error:
        msg = f"gives mutation pack `{pack.name}`{place} that is not TOML: {error}"
        raise PluginError(msg) from error


_READERS: Mapping[str, tuple[Kind, type, Callable[[Any], str]]] = {
    "switchyard_route_types": ("route_type", RouteType, _check_route_type),
    "switchyard_mutation_packs": ("mutation_pack", MutationPack, _check_pack),
    "switchyard_latch_stores": ("latch_store", LatchStoreType, _check_store),
    "switchyard_plan_stores": ("plan_store", PlanStoreType, _check_store),
    "switchyard_tools": ("tool", Tool, _check_tool),
    "switchyard_rewrites": ("rewrite", RewriteType, _check_rewrite),
    "switchyard_lint_rules": ("lint_rule", LintRule, _check_lint_rule),
}


def router_problem(router: object, kind: Literal["routes", "answers"]) -> str:
    """Return the end of a sentence about what a router's methods lack, ``""`` when nothing."""
    method = getattr(router, "route", None)
    if not callable(method):
        return "has no method `route`"
    if inspect.isroutine(method) and not inspect.iscoroutinefunction(inspect.unwrap(method)):
        return "has a method `route` that is not `async def`"
    if kind == "routes":
        return ""
    method = getattr(router, "answer", None)
    if not callable(method):
        return "writes its own answers but has no method `answer`"
    if inspect.isroutine(method) and not inspect.isasyncgenfunction(inspect.unwrap(method)):
        return (
            "has a method `answer` that is not an asynchronous generator: `async def` with `yield`"
        )
    return ""


def latching_effect(router: object) -> str:
    """Return an effect that a router's own methods make and that needs a latch store, or ``""``."""
    for kind in type(router).__mro__:
        for method in filter(inspect.isfunction, vars(kind).values()):
            for name in method.__code__.co_names:
                if method.__globals__.get(name) in (Latch, UpdateRecord, Remember):
                    return name
    return ""
