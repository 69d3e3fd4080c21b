"""Every extension point of switchyard, on one page.

A plugin is a module (or any object) that an entry point of the group ``switchyard`` names. It
implements hooks by functions of these names, marked with :data:`hookimpl`; each may take fewer
arguments than its spec has, so that a hook can grow an argument without breaking anyone.

A hook that returns something returns *declarations* (classes, functions and option models) and
is called once, when a :class:`~switchyard_core.plugins.PluginRegistry` is built. An error there
makes that one plugin broken; all others load. A name that two plugins declare belongs to neither,
and a policy that uses it gets SY503.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from switchyard_core.declarations import (
        LatchStoreType,
        LintRule,
        MutationPack,
        PlanStoreType,
        RewriteType,
        RouteType,
        Tool,
    )

__all__ = [
    "PROJECT",
    "hookimpl",
    "hookspec",
    "switchyard_decision_made",
    "switchyard_latch_stores",
    "switchyard_lint_rules",
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

hookspec = pluggy.HookspecMarker(PROJECT)
#: Marks a function of a plugin as the implementation of the hook of the same name.
hookimpl = pluggy.HookimplMarker(PROJECT)


# --- declarations: called once, when the registry is built ------------------------------------


@hookspec
def switchyard_route_types() -> Iterable[RouteType]:  # type: ignore[empty-body]
    """Declare the kinds of routes that the plugin gives.

    Result: each becomes a value of ``type`` in ``[routes.<name>]``; its options model checks the
    route's other keys.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_mutation_packs() -> Iterable[MutationPack]:  # type: ignore[empty-body]
    """Declare mutation rule sets that a policy may use by name.

    Result: each is a name for ``mutation_rules`` and ``extends``.
    On error: the plugin is broken, also when the text of a pack is not a rule set.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_latch_stores() -> Iterable[LatchStoreType]:  # type: ignore[empty-body]
    """Declare kinds of latch stores.

    Result: each is a value of ``latch_store``; its factory is called once per route.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_plan_stores() -> Iterable[PlanStoreType]:  # type: ignore[empty-body]
    """Declare kinds of plan stores: where plans wait for approval.

    Result: each is a value of ``plan_store``; its factory is called once per route that names it.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_tools() -> Iterable[Tool]:  # type: ignore[empty-body]
    """Declare tools that answering routers may offer to their models.

    Result: each is a name for ``tools`` of a route; models get the tools that a policy lists.
    On error: a failed call becomes an error result for the model.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_rewrites() -> Iterable[RewriteType]:  # type: ignore[empty-body]
    """Declare named rewrites that a decision may list.

    Result: each is a name for ``Decision.rewrites`` and for ``rewrites`` of a target; it runs for
    each request whose decision lists it.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_lint_rules() -> Iterable[LintRule]:  # type: ignore[empty-body]
    """Declare checks of a whole policy.

    Result: ``check`` is called with each policy that has no error; its findings join the policy's.
    The prefix ``SY`` of codes belongs to switchyard.
    On error: a rule that raises while checking gives one finding, SY901.

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
    On error: the exception is logged and routing continues. Must not be async or block.

    .. versionadded:: 0.1.0
    """


@hookspec
def switchyard_request_finished(decision: Any, outcome: Any) -> None:
    """Observe the end of a request.

    When: after each response, complete or broken off.
    Args: ``decision`` as above; ``outcome`` has status, latency and usage as far as known.
    Result: ignored.
    On error: the exception is logged. Must not be async or block.

    .. versionadded:: 0.1.0
    """


# --- command line -----------------------------------------------------------------------------


@hookspec
def switchyard_register_commands(cli: Any) -> None:
    """Add commands to ``switchyard``.

    When: the command line lists its commands, or is asked for one that the core does not have.
    Args: ``cli`` is a :class:`click.Group` for the plugin's commands.
    Result: ignored. A command named like one of the core's, or like another plugin's, is left
    out with a warning that names both.
    On error: the plugin's commands are left out with a warning.

    .. versionadded:: 0.1.0
    """
