"""switchyard: a declarative policy framework that routes the LLM traffic of coding agents.

This module has what most plugins and hosts need. The modules ``answering``, ``conversation``,
``errors``, ``jsonio``, ``patterns``, ``plugins``, ``policy``, ``replay``, ``scripted``, ``server``,
``stores``, ``upstream`` and ``wire`` have the rest of what is public; everything else is free to
move. ``docs/reference.md`` lists all of it.
"""

from switchyard_core.conversation import Conversation
from switchyard_core.decision import (
    Decision,
    DecisionWarning,
    Effect,
    Failure,
    Latch,
    LatchRecord,
    Outgoing,
    Reason,
    ReleaseAfterSuccess,
    Remember,
    Rewrite,
    UpdateRecord,
)
from switchyard_core.declarations import (
    JSONPathText,
    LabelName,
    LatchOptions,
    LatchStoreName,
    LatchStoreType,
    LintRule,
    MutationPack,
    OptionError,
    Options,
    PatternText,
    PlanStoreName,
    PlanStoreType,
    Prompt,
    Reference,
    RewriteType,
    RouteName,
    RouteType,
    RuleSetName,
    TargetName,
    Tool,
    ToolName,
    WireFormat,
)
from switchyard_core.engine.response import Outcome, Response
from switchyard_core.errors import (
    Finding,
    PluginError,
    PolicyError,
    RefusedError,
    RequestError,
    SwitchyardError,
    UpstreamError,
)
from switchyard_core.explain.explanation import Explanation
from switchyard_core.hookspecs import VERSION, hookimpl
from switchyard_core.identity import Headers, Identity
from switchyard_core.mutation import Verdict
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Policy
from switchyard_core.replay import Replay
from switchyard_core.request import Request
from switchyard_core.router import (
    AnsweringRouter,
    FirstMutation,
    Mutations,
    Price,
    RouteContext,
    Router,
    SessionView,
    TargetView,
    estimate_tokens,
    handoff_rewrites,
)
from switchyard_core.switchyard import Switchyard
from switchyard_core.tools import Toolbox
from switchyard_core.wire.transcript import Transcript
from switchyard_core.world import World

__version__ = VERSION

__all__ = [
    "AnsweringRouter",
    "Conversation",
    "Decision",
    "DecisionWarning",
    "Effect",
    "Explanation",
    "Failure",
    "Finding",
    "FirstMutation",
    "Headers",
    "Identity",
    "JSONPathText",
    "LabelName",
    "Latch",
    "LatchOptions",
    "LatchRecord",
    "LatchStoreName",
    "LatchStoreType",
    "LintRule",
    "MutationPack",
    "Mutations",
    "OptionError",
    "Options",
    "Outcome",
    "Outgoing",
    "PatternText",
    "PlanStoreName",
    "PlanStoreType",
    "PluginError",
    "PluginRegistry",
    "Policy",
    "PolicyError",
    "Price",
    "Prompt",
    "Reason",
    "Reference",
    "RefusedError",
    "ReleaseAfterSuccess",
    "Remember",
    "Replay",
    "Request",
    "RequestError",
    "Response",
    "Rewrite",
    "RewriteType",
    "RouteContext",
    "RouteName",
    "RouteType",
    "Router",
    "RuleSetName",
    "SessionView",
    "Switchyard",
    "SwitchyardError",
    "TargetName",
    "TargetView",
    "Tool",
    "ToolName",
    "Toolbox",
    "Transcript",
    "UpdateRecord",
    "UpstreamError",
    "Verdict",
    "WireFormat",
    "World",
    "__version__",
    "estimate_tokens",
    "handoff_rewrites",
    "hookimpl",
]
