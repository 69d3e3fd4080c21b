"""Every extension point of switchyard, on one page.

A plugin is a module (or any object) that an entry point of the group ``switchyard`` names. It
implements hooks by functions of these names, marked with :data:`hookimpl`; each may take fewer
arguments than its spec has, so that a hook can grow an argument without breaking anyone.

A hook that returns something returns *declarations* (classes, functions and option models) and
is called once, when a :class:`~switchyard_core.plugins.PluginRegistry` is built. An error there
makes that one plugin broken; all others load.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from switchyard_core.declarations import (
        LatchStoreType,
        LintRule,
        ModelProfiles,
        MutationPack,
        PlanStoreType,
        RewriteType,
        RouteType,
        Tool,
    )

__all__ = [
    "PROJECT",
    "VERSION",
    "hookimpl",
    "hookspec",
    "switchyard_decision_made",
    "switchyard_latch_stores",
    "switchyard_lint_rules",
    "switchyard_model_profiles",
    "switchyard_mutation_packs",
    "switchyard_plan_stores",
    "switchyard_register_commands",
    "switchyard_request_finished",
    "switchyard_rewrites",
    "switchyard_route_types",
    "switchyard_tools",
]

#: The pluggy project name, and the entry-point group.
PROJECT = "switchyard"
#: The version of switchyard and of this contract; the build reads it from here.
VERSION = "0.1.0"

hookspec = pluggy.HookspecMarker(PROJECT)
#: Marks a function of a plugin as the implementation of the hook of the same name.
hookimpl = pluggy.HookimplMarker(PROJECT)


# --- declarations: called once, when the registry is built ------------------------------------


@hookspec
def switchyard_route_types() -> Iterable[RouteType]:  # type: ignore[empty-body]
    """Declare the kinds of routes that the plugin gives.

    When: once, at registry build.
    Result: each becomes a value of ``type`` in ``[routes.<name>]``; its options model checks the
    route's other keys.
    On error: the plugin is broken. A name that two plugins give belongs to neither, and a policy
    that uses it gets SY503.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_mutation_packs() -> Iterable[MutationPack]:  # type: ignore[empty-body]
    """Declare mutation rule sets that a policy may use by name.

    When: once, at registry build.
    Result: each is a name for ``mutation_rules`` and ``extends``.
    On error: the plugin is broken, also when the text of a pack is no rule set. A name that two
    plugins give belongs to neither (SY503).

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_model_profiles() -> Iterable[ModelProfiles]:  # type: ignore[empty-body]
    """Declare what models accept: facts about them, and rules that fit a body to them.

    When: once, at registry build.
    Result: the entries that match a target's model are applied to it, after switchyard's own.
    On error: the plugin is broken, also when a text is not profiles. An id that two plugins give
    belongs to neither (SY503).

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_latch_stores() -> Iterable[LatchStoreType]:  # type: ignore[empty-body]
    """Declare kinds of latch stores.

    When: once, at registry build; a store's factory is called once per route.
    Result: each is a value of ``latch_store``.
    On error: the plugin is broken. A name that two plugins give belongs to neither (SY503).

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_plan_stores() -> Iterable[PlanStoreType]:  # type: ignore[empty-body]
    """Declare kinds of plan stores: where plans wait for approval.

    When: once, at registry build; a store's factory is called once per route that names it.
    Result: each is a value of ``plan_store``.
    On error: the plugin is broken. A name that two plugins give belongs to neither (SY503).

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_tools() -> Iterable[Tool]:  # type: ignore[empty-body]
    """Declare tools that answering routers may offer to their models.

    When: once, at registry build; a tool's function is called when a model asks for it.
    Result: each is a name for ``tools`` of a route. Nothing is offered unless a policy lists it.
    On error: the plugin is broken. A name that two plugins give belongs to neither (SY503). What
    goes wrong in a call becomes an error result for the model.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_rewrites() -> Iterable[RewriteType]:  # type: ignore[empty-body]
    """Declare named rewrites that a decision may list.

    When: once, at registry build; a rewrite runs for each request whose decision lists it.
    Result: each is a name for ``Decision.rewrites`` and for ``rewrites`` of a target.
    On error: the plugin is broken. A name that two plugins give belongs to neither (SY503).

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_lint_rules() -> Iterable[LintRule]:  # type: ignore[empty-body]
    """Declare checks of a whole policy.

    When: once, at registry build; a rule's ``check`` is called with each policy that has no error.
    Result: the findings are reported with the policy's own. Codes need a prefix of the
    plugin's own; ``SY`` belongs to switchyard.
    On error: the plugin is broken. A rule that raises while checking gives one finding, SY901.

    .. versionadded:: 0.1.0
    """


# --- events: read-only, called while requests are served --------------------------------------


@hookspec
def switchyard_decision_made(decision: Any, request: Any) -> None:
    """Observe a decision.

    When: after each decision, before the request is rewritten or sent.
    Args: ``decision`` is the :class:`~switchyard_core.decision.Decision`, ``request`` the
    :class:`~switchyard_core.request.Request`. Both are read-only.
    Result: ignored.
    On error: the exception is logged and routing goes on. Must not be async and must not block.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_request_finished(decision: Any, outcome: Any) -> None:
    """Observe the end of a request.

    When: after each response, complete or broken off.
    Args: ``decision`` as above; ``outcome`` is the
    :class:`~switchyard_core.engine.response.Outcome`: status, seconds, and the tokens that
    providers reported.
    Result: ignored.
    On error: the exception is logged. Must not be async and must not block.

    .. versionadded:: 0.1.0
    """


# --- command line -----------------------------------------------------------------------------


@hookspec
def switchyard_register_commands(cli: Any) -> None:
    """Add commands to ``switchyard``.

    When: the command line lists its commands, or is asked for one that the core does not have.
    Args: ``cli`` is a :class:`click.Group` of the plugin's own; add commands to it.
    Result: ignored. A command named like one of the core's, or like another plugin's, is left
    out with a warning that names both.
    On error: the plugin's commands are left out with a warning.

    .. versionadded:: 0.1.0
    """
