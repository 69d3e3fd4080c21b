"""What a plugin declares: classes and option models, never instances.

A hook returns declarations; the engine instantiates them for a policy. Everything here is
plain data without behaviour, so that a plugin can be listed without being run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from switchyard_core.errors import Finding, Severity
from switchyard_core.jsonio.path import PathError, compile_path
from switchyard_core.patterns import PatternError, compile_pattern

if TYPE_CHECKING:
    from switchyard_core.decision import RewriteScope
    from switchyard_core.jsonio.tree import ObjectText

__all__ = [
    "COUNTING",
    "WIRE_FORMATS",
    "Endpoint",
    "JSONPathText",
    "LabelName",
    "LatchOptions",
    "LatchStoreName",
    "LatchStoreType",
    "LintRule",
    "ModelProfiles",
    "MutationPack",
    "OptionError",
    "Options",
    "PatternText",
    "PlanStoreName",
    "PlanStoreType",
    "Prompt",
    "Reference",
    "ReferenceKind",
    "RewriteFunction",
    "RewriteType",
    "RouteName",
    "RouteType",
    "RuleSetName",
    "TargetName",
    "Tool",
    "ToolName",
    "WireFormat",
]

WireFormat = Literal["openai_chat", "openai_responses", "anthropic_messages"]
#: ``create`` asks a model; the others are a client's side calls about a conversation.
Endpoint = Literal["create", "count_tokens", "input_tokens", "compact"]
#: Those that count the tokens of a request.
COUNTING: frozenset[Endpoint] = frozenset({"count_tokens", "input_tokens"})

#: The three wire formats, in the order in which documents list them.
WIRE_FORMATS: tuple[WireFormat, ...] = ("openai_chat", "openai_responses", "anthropic_messages")

#: What an option can name.
ReferenceKind = Literal[
    "target",
    "client",
    "route",
    "route_type",
    "rule_set",
    "latch_store",
    "label",
    "tool",
    "plan_store",
    "rewrite",
]


@dataclass(frozen=True, slots=True)
class Reference:
    """Marks an option whose value names something else of the policy.

    The policy check resolves it and reports an unknown name with the nearest known one.
    """

    kind: ReferenceKind

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Mark the place in a JSON Schema, for `switchyard schema` to put the known names in."""
        return {**handler(schema), "x-reference": self.kind}


class OptionError(ValueError):
    """A validator of an option raises it to say where its text is wrong and what to do.

    The policy check reports it with line and column. A plain ``ValueError`` is reported at the
    beginning of the value, without a fix.

    Args:
        message: What is wrong, one sentence, lower case, no final stop.
        column: 0-based character of the value, ``None`` for its beginning.
        fix: What to do, ``""`` for the usual advice.
        code: Code of the finding.
    """

    def __init__(
        self, message: str, *, column: int | None = None, fix: str = "", code: str = "SY107"
    ) -> None:
        self.message = message
        self.column = column
        self.fix = fix
        self.code = code
        super().__init__(message)


def _not_blank(text: str) -> str:
    if not text.strip():
        msg = "must not be blank"
        raise OptionError(msg, fix="write the text, or remove the key", code="SY108")
    return text


def _is_path(text: str) -> str:
    try:
        compile_path(text)
    except PathError as error:
        msg = f"bad JSONPath: {error.message}"
        fix = "correct the path"
        raise OptionError(msg, column=error.column, fix=fix, code="SY401") from None
    return text


def _is_pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except PatternError as error:
        fix = "RE2 syntax applies: no look-around, no back-references"
        msg = f"bad regular expression: {error.message}"
        raise OptionError(msg, column=error.column, fix=fix, code="SY402") from None
    return text


#: Name of a target of the policy.
TargetName = Annotated[str, Reference("target")]
#: Name of a route of the policy.
RouteName = Annotated[str, Reference("route")]
#: Name of a mutation rule set: a pack or one of the policy's own.
RuleSetName = Annotated[str, Reference("rule_set")]
#: Name of a latch store type.
LatchStoreName = Annotated[str, Reference("latch_store")]
#: One of the five mutation labels.
LabelName = Annotated[str, Reference("label")]
#: Name of a tool that an installed plugin gives.
ToolName = Annotated[str, Reference("tool")]
#: Name of a plan store type.
PlanStoreName = Annotated[str, Reference("plan_store")]
#: An instruction for a model; a blank one is a policy error.
Prompt = Annotated[str, AfterValidator(_not_blank), Field(json_schema_extra={"pattern": r"\S"})]
#: A JSONPath expression; what is wrong with it is reported with the column inside the string.
JSONPathText = Annotated[str, AfterValidator(_is_path)]
#: A regular expression (RE2); what is wrong with it is reported with the column.
PatternText = Annotated[str, AfterValidator(_is_pattern)]


class Options(BaseModel):
    """Base of a route type's options: unknown keys are refused, values are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LatchOptions(Options):
    """Base of the options of a route type whose router remembers sessions.

    A route with such options gets a latch store for the effects ``Latch``, ``UpdateRecord`` and
    ``Remember`` of its decisions; the record of a session comes back as ``context.session.record``.
    On any other route such an effect is dropped, with the warning ``no_latch_store``.
    """

    latch_store: LatchStoreName = Field(
        default="memory", description="Where the route's sessions are remembered."
    )
    latch_capacity: int = Field(
        default=4096, ge=1, description="Most sessions remembered at once, 1 or more."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteType:
    """A kind of route: what a policy calls by ``type = "<name>"``.

    Args:
        name: Unique among all installed plugins, ``[a-z][a-z0-9_]*``.
        options: Pydantic model of the route's own keys, with ``extra="forbid"``
            (inherit :class:`Options`).
        router: Called once per route as ``router(options)``, and once more when a policy is
            checked; the result has ``async def route(request, context) -> Decision``, and of
            kind ``answers`` also ``def answer(request, context)``, an asynchronous generator.
        kind: ``routes`` decides where a request goes; ``answers`` writes the answer itself.
    """

    name: str
    options: type[BaseModel]
    router: Callable[[Any], Any]
    summary: str
    kind: Literal["routes", "answers"] = "routes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatchStoreType:
    """A kind of latch store: what a policy calls by ``latch_store = "<name>"``.

    Args:
        name: Unique among all installed plugins.
        factory: Called once per route as ``factory(capacity)``.
        shared: Whether several worker processes may share its state.
    """

    name: str
    factory: Callable[[int], Any]
    summary: str
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStoreType:
    """A kind of plan store: what a policy calls by ``plan_store = "<name>"``.

    Args:
        name: Unique among all installed plugins.
        factory: Called once per route as ``factory(capacity, ttl_s, clock)``; the clock gives
            seconds since the epoch.
        shared: Whether several worker processes may share its state.
    """

    name: str
    factory: Callable[[int, float, Callable[[], float]], Any]
    summary: str
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that an answering router may offer to its models; only if a policy lists it.

    Args:
        name: Unique among all installed plugins, ``[a-z][a-z0-9_]*``, up to 64 characters.
        description: What it does, for the model.
        parameters: Pydantic model of its arguments, with ``extra="forbid"``; the descriptions
            of its fields reach the model.
        function: Called with an instance of that model; may be ``async``. A plain function
            runs in a thread. Its result is text, or is turned into JSON.
        side_effects: Whether a call changes anything outside of the answer.
        timeout_s: Seconds that a call may take, above 0.
    """

    name: str
    description: str
    parameters: type[BaseModel]
    function: Callable[[Any], Any]
    side_effects: bool = False
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationPack:
    """A named mutation rule set that a plugin ships as TOML text.

    Args:
        name: What a policy lists in ``mutation_rules``; unique among all plugins.
        text: TOML of one rule set: the keys of ``[mutation_rules.<name>]`` at top level.
        source: Where the text comes from, for error messages.
    """

    name: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfiles:
    """What some models accept, which a plugin ships as TOML text.

    Args:
        text: TOML of ``[[profile]]`` tables; their ids are unique among all plugins.
        source: Where the text comes from, for error messages.
    """

    text: str
    source: str = ""


class RewriteFunction(Protocol):
    """Changes one body in place and returns its changes.

    The body is a lossless tree over the caller's bytes: untouched parts keep their bytes. The
    function must be idempotent and must not read clock or randomness.
    """

    def __call__(self, body: ObjectText, parameters: Any, scope: RewriteScope, /) -> Sequence[str]:
        """Return one line per change, none when nothing had to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteType:
    """A named rewrite: what a decision may list and a target may switch off.

    Args:
        name: snake_case, unique among all installed plugins.
        order: Rewrites of one request run in ascending order; the built-in ones use
            multiples of 100 from 100 to 1300, so others fit between.
        function: Changes a body of any wire format that the rewrite understands.
        wire_formats: Those; ``None`` for every one. A body of another format is left alone.
        parameters: Pydantic model of its parameters, or ``None`` when it takes none.
        switchable: Whether ``rewrites = { name = false }`` of a target may switch it off.
    """

    name: str
    order: int
    function: RewriteFunction
    summary: str
    wire_formats: tuple[WireFormat, ...] | None = None
    parameters: type[BaseModel] | None = None
    switchable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRule:
    """A check of a whole policy that can be switched off per line.

    Args:
        code: ``SY`` and three digits for built-in rules, own prefix for a plugin's.
        name: Named for the bad pattern, kebab-case: ``unused-target``.
        check: Called with the resolved policy; yields findings.
    """

    code: str
    name: str
    check: Callable[[Any], Iterable[Finding]]
    summary: str
    severity: Severity = "warning"
