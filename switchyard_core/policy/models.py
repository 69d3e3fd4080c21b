"""The tables of a policy: one frozen model each, and the policy that holds them.

A model has the keys of its table, with types, ranges, defaults and documentation. The engine uses
it: names and paths are replaced by what they refer to. :mod:`switchyard_core.policy.check` has the
rules about several keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticOmit

from switchyard_core.declarations import (
    Endpoint,
    LabelName,
    Options,
    Prompt,
    Reference,
    RouteName,
    RouteType,
    TargetName,
    Tool,
    WireFormat,
)
from switchyard_core.errors import Finding, Severity
from switchyard_core.models import Profile
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.policy.aliases import ModelIds
from switchyard_core.policy.document import Document
from switchyard_core.policy.places import Location
from switchyard_core.policy.values import (
    BaseURL,
    CallPath,
    ConditionHeader,
    ConditionPath,
    ConditionPattern,
    Distribution,
    FitRules,
    HeaderName,
    HeaderValue,
    LowerHeaderName,
    ProfileName,
    RewriteName,
    SchemaVersion,
    ScriptPath,
    SessionSource,
    SideCallKind,
    Tokens,
    Variable,
    Word,
    WorkspaceRoot,
    bearer,
    same_json,
)
from switchyard_core.request import Request
from switchyard_core.router import Price, estimate_tokens

__all__ = [
    "Client",
    "Housekeeping",
    "Identity",
    "IncludedFile",
    "Origin",
    "Policy",
    "Price",
    "ReplaySettings",
    "Route",
    "Table",
    "Target",
    "Top",
]

#: Where requests go and whose key they carry; equal origins understand each other's ids and
#: opaque reasoning.
Origin = tuple[str, ...]


class _Given:
    """Marks a field that the check fills in; a file cannot set it."""

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> NoReturn:
        raise PydanticOmit


_GIVEN = _Given()


class Table(BaseModel):
    """Base of the tables: unknown keys are refused, values are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def given(cls) -> frozenset[str]:
        """Return the names of the fields that are not keys of the table."""
        fields = cls.model_fields.items()
        return frozenset(name for name, info in fields if _GIVEN in info.metadata)


class Top(Table):
    """A policy: the keys outside of tables; each table has its own model.

    Args:
        schema_version: Version of the format: 1.
        include: Files with further rule sets, relative to this one's folder and below it.
        requires: Distributions that must be installed, by name alone.
        fallback_client: Name of the client for paths that switchyard does not serve.
        default_route: Name of the route for model ids that no route has; without it, 404.
        llm_clients: How providers are reached, by name.
        targets: The models, by name.
        routes: The model ids that callers may ask for, by name.
        mutation_rules: Rule sets of this policy, by name: which tool calls count as edits.
        identity: Where the session of a request comes from.
        housekeeping: Conditions that mark a request as a client's side call.
        prices: What models cost, by target id.
        replay: How recorded model calls are told apart.
    """

    schema_version: SchemaVersion
    include: tuple[str, ...] = ()
    requires: tuple[Distribution, ...] = ()
    fallback_client: Annotated[str, Reference("client")] | None = None
    default_route: RouteName | None = None
    llm_clients: dict[str, Any] = {}
    targets: dict[str, Any]
    routes: dict[str, Any]
    mutation_rules: dict[str, Any] = {}
    identity: dict[str, Any] = {}
    housekeeping: tuple[Any, ...] = ()
    prices: dict[str, Any] = {}
    replay: dict[str, Any] = {}


class IncludedFile(Table):
    """The keys of a file that a policy includes.

    Args:
        include: Further files, relative to the folder of this one.
        mutation_rules: Rule sets by name.
    """

    include: tuple[str, ...] = ()
    mutation_rules: dict[str, Any] = {}


class Client(Table):
    """``[llm_clients.<name>]``: one way to reach a provider.

    Args:
        kind: Wire format, or ``scripted`` for the embedded provider.
        base_url: Absolute http(s) URL; without a path, ``/v1`` is added.
        paths: Path of each call below ``base_url``, in place of that of the wire format.
        api_key_env: Name of the environment variable that holds the key.
        forward_auth: Whether the caller's own credential is sent on; excludes ``api_key_env``.
        extra_headers: Headers added to each request.
        forward_headers: Names of caller's headers to send on.
        max_retries: 0 to 10; agents retry, too, which multiplies.
        timeout_ms: Milliseconds without any byte, 1 to 86400000.
        script: Script file of a scripted client, relative to the policy's folder.
        speaks: Wire format of a scripted client.
        strict: Provider whose refusals a scripted client plays, such as ``anthropic``.
        name: Name of its table.
    """

    kind: Literal["openai_chat", "openai_responses", "anthropic_messages", "scripted"] = Field(
        alias="format"
    )
    base_url: BaseURL | None = None
    paths: dict[Endpoint, CallPath] = {}
    api_key_env: Variable | None = None
    forward_auth: bool = False
    extra_headers: dict[HeaderName, HeaderValue] = {}
    forward_headers: tuple[LowerHeaderName, ...] = ()
    max_retries: Annotated[int, Field(ge=0, le=10)] = 1
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 600_000
    script: ScriptPath | None = None
    speaks: WireFormat | None = None
    strict: Word | None = None
    name: Annotated[str, _GIVEN] = ""

    def __hash__(self) -> int:
        """Clients are keys of open connections; headers alone would make them unhashable."""
        return hash((self.name, self.base_url, self.script, self.strict))

    @property
    def scripted(self) -> bool:
        """Whether it is the embedded scripted provider."""
        return self.kind == "scripted"

    @cached_property
    def format(self) -> WireFormat:
        """Wire format that it speaks; for a scripted client what it pretends to speak."""
        if self.kind == "scripted":
            # A scripted client without `speaks` has a finding.
            return self.speaks or "openai_chat"
        return self.kind

    @property
    def timeout_s(self) -> float:
        """Seconds without any byte after which a request is given up."""
        return self.timeout_ms / 1000

    @cached_property
    def origin(self) -> Origin:
        """See :data:`Origin`."""
        if self.scripted:
            played = ("scripted", str(self.script))
            return (*played, self.strict) if self.strict else played
        parts = urlsplit(self.base_url or "")
        place = f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.removesuffix('/v1')}"
        key = f"env:{self.api_key_env}" if self.api_key_env else ""
        return (place, "caller" if self.forward_auth else key)


class Target(Table):
    """``[targets.<name>]``: a model behind a client, with what to send along.

    Args:
        id: Model id of the provider.
        client: Name of a client.
        extra_body: Top-level keys for the body that the request does not set.
        system_prompt: Instruction added to every request.
        reasoning_effort: Effort set on every request.
        context_window: Tokens, at least 1.
        max_output: Tokens, at least 1; a higher limit in a request is lowered to it.
        on_overflow: What happens to a request over ``context_window``.
        accepts_prefill: Whether a request may end with an assistant message.
        tool_id_style: ``alphanumeric_9``: tool ids of exactly nine letters and digits.
        structured_output: How a router that asks this target makes it answer by a schema.
        on_untranslatable: What happens to a request of another wire format that holds what only
            the caller's provider can serve: that is left out, or the request is refused.
        cache_marks: Whether a request of another wire format gets cache marks: ``keep`` leaves
            those that it has, ``auto`` adds some where it has none.
        rewrites: ``{ name = false }`` switches a rewrite off.
        profile: Which profile says what the model accepts: the id of one, or a model id to match
            in place of ``id``; false for none. Without it, those that match ``id``.
        fit: Further rules, which apply after those of the profile.
        name: Name of its table.
        accepts: What the model accepts, from profiles and ``fit``.
        price: What it costs, ``None`` when the policy does not say.
    """

    id: Word
    client: Annotated[Client, bearer("client"), Reference("client")] = Field(alias="llm_client")
    extra_body: dict[str, Any] = {}
    system_prompt: Prompt | None = None
    reasoning_effort: Word | None = None
    context_window: Tokens | None = None
    max_output: Tokens | None = None
    on_overflow: Literal["send", "stay", "reject"] = "send"
    accepts_prefill: bool = True
    tool_id_style: Literal["alphanumeric_9"] | None = None
    structured_output: Literal["json_schema", "forced_tool", "prompt"] = "json_schema"
    on_untranslatable: Literal["drop", "refuse"] = "drop"
    cache_marks: Literal["keep", "auto"] = "keep"
    rewrites: dict[RewriteName, bool] = {}
    profile: ProfileName | None = None
    fit: FitRules = ()
    name: Annotated[str, _GIVEN] = ""
    accepts: Annotated[Profile, _GIVEN] = Profile()
    price: Annotated[Price | None, _GIVEN] = None

    @cached_property
    def wire_format(self) -> WireFormat:
        """Wire format of its client."""
        return self.client.format

    @property
    def host(self) -> str:
        """Host of its client, ``""`` for the embedded provider."""
        return urlsplit(self.client.base_url or "").hostname or ""

    @property
    def origin(self) -> Origin:
        """Origin of its client."""
        return self.client.origin

    def fits(self, request: Request) -> bool:
        """Return whether a request's estimated size is within the declared window."""
        return self.context_window is None or estimate_tokens(request) <= self.context_window


class Route(Table):
    """The keys that every route has; the others are options of its type.

    Args:
        id: The model id that callers ask for, unique among all ids and aliases.
        type: Route type: what decides where a request goes.
        aliases: Further model ids; ``*`` matches any text, and the most exact one counts.
        context_window: Tokens, for the model list.
        tool_calling: For the model list.
        reasoning: For the model list.
        workspace: Roots of the workspace, besides those that the client's prompt names.
        unmatched: Label of a tool call that no rule matches.
        subagents: Name of the route that serves the sub-agents of this route's sessions.
        answer_model: Which model id answers name: the ``requested`` one or the ``provider``'s;
            ``None`` is ``requested`` for Anthropic Messages, ``provider`` for the others.
        name: Name of its table.
        options: Instance of the type's options model.
        targets: Names of all targets that its options name, in order of appearance.
        rule_sets: Names of all rule sets that its options name, in order of appearance.
        tools: Names of all tools that its options name, in order of appearance.
        wire_formats: The wire formats of its targets; callers of any format are served.
    """

    id: Word
    type: Annotated[RouteType, bearer("route_type"), Reference("route_type")]
    aliases: tuple[Word, ...] = ()
    context_window: Tokens | None = None
    tool_calling: bool | None = None
    reasoning: bool | None = None
    workspace: tuple[WorkspaceRoot, ...] = ()
    unmatched: LabelName | None = None
    subagents: RouteName | None = None
    answer_model: Literal["requested", "provider"] | None = None
    name: Annotated[str, _GIVEN] = ""
    options: Annotated[BaseModel, _GIVEN] = Options()
    targets: Annotated[tuple[str, ...], _GIVEN] = ()
    rule_sets: Annotated[tuple[str, ...], _GIVEN] = ()
    tools: Annotated[tuple[str, ...], _GIVEN] = ()
    wire_formats: Annotated[tuple[WireFormat, ...], _GIVEN] = ()


class Identity(Table):
    """``[identity]``: further sources of the session id.

    Args:
        session: Tried in order after the built-in headers: ``header:<name>`` or
            ``body:<JSONPath>``.
    """

    session: tuple[SessionSource, ...] = ()


class Housekeeping(Table):
    """``[[housekeeping]]``: a condition that marks a request as a client's side call.

    Exactly one of ``path`` and ``header`` selects a value, at most one of the tests is made on it;
    without a test it must exist. Or ``kinds`` selects side calls that are known already.

    Args:
        path: JSONPath on the body.
        header: Name of a header.
        kinds: Kinds of side calls, in place of a value, such as ``title``.
        equals: The value is this one.
        in_: The value is one of these (key ``in``).
        matches: The regular expression (RE2) is found in the value, which is text.
        exists: Whether there must be a value at all.
        kind: What kind of side call the condition marks, such as ``compaction``.
        target: Where such side calls go; without it they go where the session is.
    """

    path: ConditionPath | None = None
    header: ConditionHeader | None = None
    kinds: tuple[SideCallKind, ...] = ()
    equals: Any = None
    in_: tuple[Any, ...] | None = Field(default=None, alias="in")
    matches: ConditionPattern | None = None
    exists: bool | None = None
    kind: SideCallKind | None = None
    target: TargetName | None = None

    def holds(self, headers: Mapping[str, str], body: Callable[[], Any]) -> bool:
        """Return whether a request with these headers, by lower-case name, satisfies it.

        ``body`` gives the parsed body; it is called only when the condition reads it.
        """
        found: list[Any] = []
        if self.header is not None:
            found = [headers[self.header]] if self.header in headers else []
        if self.path is not None:
            found = self.path.values(body())
        return any(self._passes(value) for value in found) is (self.exists is not False)

    def _passes(self, value: Any) -> bool:
        if self.matches is not None:
            return isinstance(value, str) and self.matches(value)
        wanted = self.in_ if self.equals is None else (self.equals,)
        return wanted is None or any(same_json(value, item) for item in wanted)


class ReplaySettings(Table):
    """``[replay]``: how recorded model calls are told apart.

    Args:
        key_fields: Fields of a body that tell one call from another, in place of the built-in
            list; ``a.b`` is the key ``b`` of the object ``a``.
    """

    key_fields: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy without errors.

    Args:
        name: The file as the user gave it, or the name given with a text.
        path: Path of the file, ``None`` for a text.
        clients: By name.
        targets: By name.
        routes: By name.
        rule_sets: By name: all packs that plugins give, and the policy's own.
        identity_session: Further session sources, ``header:<name>`` or ``body:<JSONPath>``.
        housekeeping: Conditions for side calls.
        default_route: Name of the route for unknown model ids.
        fallback_client: Name of the client for unknown paths.
        prices: By target id.
        findings: Warnings.
        document: The text it was made from.
        tools: The tools that routes list, by name.
        replay: How recorded model calls are told apart.
        checked_on: The day on which it was checked.
    """

    name: str
    path: Path | None
    clients: Mapping[str, Client]
    targets: Mapping[str, Target]
    routes: Mapping[str, Route]
    rule_sets: Mapping[str, RuleSetModel]
    identity_session: tuple[str, ...]
    housekeeping: tuple[Housekeeping, ...]
    default_route: str | None
    fallback_client: str | None
    prices: Mapping[str, Price]
    findings: tuple[Finding, ...]
    document: Document
    tools: Mapping[str, Tool] = field(default_factory=dict)
    checked_on: date = date.max
    replay: ReplaySettings = field(default_factory=ReplaySettings)

    @cached_property
    def model_ids(self) -> ModelIds:
        """Which route has a model id."""
        return ModelIds((route.name, route.id, route.aliases) for route in self.routes.values())

    def route_for(self, model: str) -> Route | None:
        """Return the route that serves a model id, ``None`` without one."""
        name = self.model_ids.find(model) or self.default_route
        return None if name is None else self.routes[name]

    def names_route(self, model: str) -> bool:
        """Return whether a route has a model id, and not only the default route takes it."""
        return self.model_ids.find(model) is not None

    @property
    def text(self) -> str:
        """The policy's text with LF line ends."""
        return self.document.text

    @property
    def digest(self) -> str:
        """SHA-256 of the text and of what it includes, in hexadecimal."""
        digest = sha256()
        for index, document in enumerate((self.document, *self.document.included)):
            # TOML has no NUL, so different policies have different bytes.
            digest.update(b"\0" * bool(index) + document.text.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it was read from: its own, if it has one, and the included ones."""
        own = () if self.path is None else (self.path,)
        return (*own, *(Path(document.name) for document in self.document.included))

    def finding(
        self,
        code: str,
        message: str,
        location: Location,
        *,
        severity: Severity = "warning",
        notes: tuple[str, ...] = (),
        fix: str = "",
    ) -> Finding:
        """Return a finding at a place of this policy; what lint rules yield.

        Args:
            code: Code of the lint rule.
            message: What is wrong.
            location: Path in the document, such as ``("targets", "spare")``.
            severity: ``warning`` or ``error``.
            notes: Further lines.
            fix: What to do.
        """
        return self.document.finding(
            code, message, location, severity=severity, notes=notes, fix=fix
        )
