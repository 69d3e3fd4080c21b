"""What one plugin declares, checked before anyone uses it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import pluggy
import tomli
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from switchyard_core.declarations import (
    WIRE_FORMATS,
    LatchStoreType,
    LintRule,
    MutationPack,
    PlanStoreType,
    RewriteType,
    RouteType,
    Tool,
)
from switchyard_core.errors import PluginError
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.plugins.routers import router_problem
from switchyard_core.tools import spec_of

__all__ = ["KINDS", "Contribution", "Kind", "collect"]

#: What a name belongs to.
Kind = Literal[
    "route_type", "mutation_pack", "latch_store", "plan_store", "tool", "rewrite", "lint_rule"
]

#: All kinds, in the order in which they are listed.
KINDS: tuple[Kind, ...] = (
    "route_type",
    "mutation_pack",
    "latch_store",
    "plan_store",
    "tool",
    "rewrite",
    "lint_rule",
)

_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: Most characters of a tool's name, in the strictest of the wire formats.
_TOOL_NAME = 64
_LINT_CODE = re.compile(r"[A-Z]{2,8}[0-9]{2,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One declaration of a plugin.

    Args:
        kind: What it is.
        name: Its name; the code for a lint rule.
        declaration: The declaration itself.
        rule_set: The parsed text of a mutation pack.
    """

    kind: Kind
    name: str
    declaration: Any
    rule_set: RuleSetModel | None = None


def collect(hooks: Sequence[tuple[str, pluggy.HookImpl]], *, own: bool) -> list[Contribution]:
    """Call a plugin's declaring hooks and check what they return.

    Args:
        hooks: Hook names with the plugin's implementations.
        own: Whether the plugin belongs to switchyard itself and may use ``SY`` codes.

    Raises:
        PluginError: The plugin broke its contract; the text continues "plugin `x` ...".
    """
    found: list[Contribution] = []
    for hook, impl in hooks:
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
            check(declaration)
            rule_set = _rule_set(declaration) if isinstance(declaration, MutationPack) else None
            found.append(
                Contribution(kind=kind, name=name, declaration=declaration, rule_set=rule_set)
            )
    if not own:
        _refuse_own_codes(found)
    return found


def _refuse(reason: str) -> None:
    raise PluginError(reason)


def _returned(hook: str, impl: pluggy.HookImpl) -> list[Any]:
    function: Callable[[], Any] = impl.function
    try:
        return list(function())
    except Exception as error:
        msg = f"failed in `{hook}`: {type(error).__name__}: {error}"
        raise PluginError(msg) from error


def _check_route_type(declared: RouteType) -> None:
    options = declared.options
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        _refuse(f"gives route type `{declared.name}` options that are no pydantic model")
    if options.model_config.get("extra") != "forbid":
        _refuse(
            f"gives route type `{declared.name}` options that accept unknown keys; "
            "inherit `switchyard_core.declarations.Options`"
        )
    if not callable(declared.router):
        _refuse(f"gives route type `{declared.name}` a router that cannot be called")
    if isinstance(declared.router, type):
        # What a factory returns is seen only when a policy uses the type.
        problem = router_problem(declared.router, declared.kind)
        if problem:
            router = declared.router.__name__
            _refuse(
                f"gives route type `{declared.name}` the router class `{router}`, which {problem}"
            )


def _check_latch_store(declared: LatchStoreType) -> None:
    if not callable(declared.factory):
        _refuse(f"gives latch store `{declared.name}` a factory that cannot be called")


def _check_plan_store(declared: PlanStoreType) -> None:
    if not callable(declared.factory):
        _refuse(f"gives plan store `{declared.name}` a factory that cannot be called")


def _check_tool(declared: Tool) -> None:
    tool = f"gives tool `{declared.name}`"
    if len(declared.name) > _TOOL_NAME:
        _refuse(f"{tool} a name of more than {_TOOL_NAME} characters")
    if not (isinstance(declared.description, str) and declared.description.strip()):
        _refuse(f"{tool} a description that is no text or blank; models choose by it")
    parameters = declared.parameters
    if not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
        _refuse(f"{tool} parameters that are no pydantic model")
    try:
        spec_of(declared)
    except ValueError as error:
        msg = f"{tool} parameters that {error}"
        raise PluginError(msg) from error
    if not callable(declared.function):
        _refuse(f"{tool} a function that cannot be called")
    timeout = declared.timeout_s
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        _refuse(f"{tool} a `timeout_s` that is no number")
    if not (math.isfinite(timeout) and timeout > 0):
        _refuse(f"{tool} the `timeout_s` {timeout!r}, which is not above 0 and finite")
    if not isinstance(declared.side_effects, bool):
        _refuse(f"{tool} `side_effects` that are neither true nor false")


def _check_rewrite(declared: RewriteType) -> None:
    unknown = sorted(set(declared.wire_formats or ()) - set(WIRE_FORMATS))
    if unknown:
        _refuse(f"gives rewrite `{declared.name}` for unknown wire formats: {', '.join(unknown)}")
    if not callable(declared.function):
        _refuse(f"gives rewrite `{declared.name}` a function that cannot be called")


def _check_lint_rule(declared: LintRule) -> None:
    if not _LINT_CODE.fullmatch(declared.code):
        _refuse(f"gives a lint rule the code {declared.code!r}, which is not like `ABC123`")
    if not callable(declared.check):
        _refuse(f"gives lint rule `{declared.code}` a check that cannot be called")


def _check_pack(declared: MutationPack) -> None:
    if not isinstance(declared.text, str):
        _refuse(f"gives mutation pack `{declared.name}` something else than text")


def _rule_set(pack: MutationPack) -> RuleSetModel:
    place = f" ({pack.source})" if pack.source else ""
    try:
        return RuleSetModel.model_validate_json(to_json(tomli.loads(pack.text)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"gives mutation pack `{pack.name}`{place} that is no rule set: {where}: "
        raise PluginError(msg + first["msg"]) from error
    except (ValueError, RecursionError) as error:
        msg = f"gives mutation pack `{pack.name}`{place} that is not TOML: {error}"
        raise PluginError(msg) from error


def _refuse_own_codes(found: Sequence[Contribution]) -> None:
    for given in found:
        if given.kind == "lint_rule" and given.name.startswith("SY"):
            _refuse(f"gives lint rule `{given.name}`; the prefix SY belongs to switchyard")


_READERS: Mapping[str, tuple[Kind, type, Callable[[Any], None]]] = MappingProxyType(
    {
        "switchyard_route_types": ("route_type", RouteType, _check_route_type),
        "switchyard_mutation_packs": ("mutation_pack", MutationPack, _check_pack),
        "switchyard_latch_stores": ("latch_store", LatchStoreType, _check_latch_store),
        "switchyard_plan_stores": ("plan_store", PlanStoreType, _check_plan_store),
        "switchyard_tools": ("tool", Tool, _check_tool),
        "switchyard_rewrites": ("rewrite", RewriteType, _check_rewrite),
        "switchyard_lint_rules": ("lint_rule", LintRule, _check_lint_rule),
    }
)
