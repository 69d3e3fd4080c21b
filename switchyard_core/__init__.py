"""switchyard: a declarative policy framework that routes the LLM traffic of coding agents.

Everything a user, a host application or a plugin needs is here. Route plugins import nothing
but names of this module; the modules below are free to move.
"""

from switchyard_core.asking import (
    AskError,
    ModelCall,
    ModelReply,
    ModelUsage,
    RequestedCall,
    WouldAsk,
)
from switchyard_core.conversation import (
    Conversation,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from switchyard_core.decision import (
    Decision,
    DecisionWarning,
    Effect,
    Failure,
    Latch,
    LatchRecord,
    Reason,
    ReleaseAfterSuccess,
    Remember,
    UpdateRecord,
)
from switchyard_core.declarations import (
    WIRE_FORMATS,
    JSONPathText,
    LabelName,
    LatchStoreName,
    LatchStoreType,
    LintRule,
    MutationPack,
    OptionError,
    Options,
    PatternText,
    Prompt,
    Reference,
    Rewrite,
    RewriteFunction,
    RewriteScope,
    RewriteType,
    RouteName,
    RouteType,
    RuleSetName,
    TargetName,
    WireFormat,
)
from switchyard_core.engine import Outcome, Response
from switchyard_core.engine.explanation import Explanation
from switchyard_core.errors import (
    BodyError,
    BodyTooLargeError,
    Finding,
    LatchCapacityError,
    PluginError,
    PolicyError,
    RefusedError,
    RequestError,
    SwitchyardError,
    UnknownModelError,
    UpstreamError,
)
from switchyard_core.facade import Switchyard
from switchyard_core.handoff import handoff_rewrites
from switchyard_core.hookspecs import hookimpl
from switchyard_core.identity import Headers, Identity
from switchyard_core.jsonpath import Path as JSONPath
from switchyard_core.jsonpath import PathError, compile_path
from switchyard_core.jsontext import ArrayText, JsonTextError, ObjectText
from switchyard_core.latches import LatchStore, MemoryLatchStore
from switchyard_core.mutation import Verdict
from switchyard_core.plugins import PluginInfo, PluginRegistry
from switchyard_core.policy import Policy, check_policy, load_policy, load_policy_text
from switchyard_core.request import Request
from switchyard_core.rewrites import RewriteReport
from switchyard_core.router import (
    FirstMutation,
    Mutations,
    RouteContext,
    Router,
    SessionView,
    TargetView,
    estimate_tokens,
)
from switchyard_core.upstream import Outgoing, Upstream, UpstreamResponse
from switchyard_core.version import VERSION

__version__ = VERSION

__all__ = [
    "VERSION",
    "WIRE_FORMATS",
    "ArrayText",
    "AskError",
    "BodyError",
    "BodyTooLargeError",
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
    "JSONPath",
    "JSONPathText",
    "JsonTextError",
    "LabelName",
    "Latch",
    "LatchCapacityError",
    "LatchRecord",
    "LatchStore",
    "LatchStoreName",
    "LatchStoreType",
    "LintRule",
    "MemoryLatchStore",
    "Message",
    "ModelCall",
    "ModelReply",
    "ModelUsage",
    "MutationPack",
    "Mutations",
    "ObjectText",
    "Opaque",
    "OptionError",
    "Options",
    "Outcome",
    "Outgoing",
    "PathError",
    "PatternText",
    "PluginError",
    "PluginInfo",
    "PluginRegistry",
    "Policy",
    "PolicyError",
    "Prompt",
    "Reason",
    "Reasoning",
    "Reference",
    "RefusedError",
    "ReleaseAfterSuccess",
    "Remember",
    "Request",
    "RequestError",
    "RequestedCall",
    "Response",
    "Rewrite",
    "RewriteFunction",
    "RewriteReport",
    "RewriteScope",
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
    "Text",
    "ToolCall",
    "ToolResult",
    "UnknownModelError",
    "UpdateRecord",
    "Upstream",
    "UpstreamError",
    "UpstreamResponse",
    "Verdict",
    "WireFormat",
    "WouldAsk",
    "__version__",
    "check_policy",
    "compile_path",
    "estimate_tokens",
    "handoff_rewrites",
    "hookimpl",
    "load_policy",
    "load_policy_text",
]
