"""A policy as the engine uses it: every name resolved, every value checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from switchyard_core.declarations import RouteType, Tool, WireFormat
from switchyard_core.errors import Finding, Severity
from switchyard_core.jsonio.path import Path as JSONPath
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.policy.document import Document
from switchyard_core.policy.positions import Location
from switchyard_core.pricing import Price

__all__ = [
    "CheckResult",
    "Client",
    "Housekeeping",
    "Origin",
    "Policy",
    "Price",
    "ReplaySettings",
    "Route",
    "Target",
]

#: Where requests go and whose key they carry; equal origins understand each other's ids and
#: opaque reasoning.
Origin = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One way to reach a provider.

    Args:
        name: Name of its table in ``[llm_clients]``.
        format: Wire format that it speaks; for a scripted client what it pretends to speak.
        scripted: Whether it is the embedded scripted provider.
        base_url: Absolute URL without a final slash, ``""`` for a scripted client.
        api_key_env: Name of the environment variable that holds the key.
        forward_auth: Whether the caller's own credential is sent on.
        extra_headers: Headers added to each request: pairs of name and value.
        forward_headers: Lower-case names of the caller's headers that are sent on.
        max_retries: 0 to 10.
        timeout_s: Seconds without any byte after which a request is given up.
        script: Script of a scripted client.
        origin: See :data:`Origin`.
    """

    name: str
    format: WireFormat
    scripted: bool
    base_url: str
    api_key_env: str | None
    forward_auth: bool
    extra_headers: tuple[tuple[str, str], ...]
    forward_headers: tuple[str, ...]
    max_retries: int
    timeout_s: float
    script: Path | None
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model behind a client, with what is sent along.

    Args:
        name: Name of its table in ``[targets]``.
        id: Model id as the provider knows it.
        client: Its client.
        extra_body: Top-level keys for the body that the request does not set itself; JSON values.
        system_prompt: Instruction added to every request, ``None`` for none.
        reasoning_effort: Effort set on every request, ``None`` to leave the caller's.
        context_window: Tokens, ``None`` when not declared.
        on_overflow: What happens to a request that does not fit the window.
        accepts_prefill: Whether a request may end with an assistant message.
        tool_id_style: A stricter form of tool ids that the provider wants.
        structured_output: How it is made to answer by a schema when a router asks it.
        rewrites: Rewrites switched off (``False``) by name.
    """

    name: str
    id: str
    client: Client
    extra_body: Mapping[str, Any]
    system_prompt: str | None
    reasoning_effort: str | None
    context_window: int | None
    on_overflow: Literal["send", "stay", "reject"]
    accepts_prefill: bool
    tool_id_style: Literal["alphanumeric_9"] | None
    structured_output: Literal["json_schema", "forced_tool", "prompt"]
    rewrites: Mapping[str, bool]

    @property
    def wire_format(self) -> WireFormat:
        """Wire format of its client."""
        return self.client.format


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a model id of the callers stands for.

    Args:
        name: Name of its table in ``[routes]``.
        id: Public model id.
        aliases: Further model ids of the same route.
        type: Its route type.
        options: Instance of the type's options model.
        targets: Names of all targets that its options name, in order of appearance.
        rule_sets: Names of all rule sets that its options name, in order of appearance.
        wire_format: The one wire format of all its targets, ``None`` when it names none and for
            a type that answers by itself: it serves callers of all formats.
        workspace: Paths that are workspace though they look like scratch paths.
        unmatched: Label of tool calls that no rule matches, ``None`` for the rule sets' own.
        subagents: Name of the route that serves the sub-agents of this one's sessions,
            ``None`` when it serves them itself.
        context_window: Tokens, for the model list.
        tool_calling: For the model list.
        reasoning: For the model list.
        tools: Names of all tools that its options name, in order of appearance.
    """

    name: str
    id: str
    aliases: tuple[str, ...]
    type: RouteType
    options: BaseModel
    targets: tuple[str, ...]
    rule_sets: tuple[str, ...]
    wire_format: WireFormat | None
    workspace: tuple[str, ...]
    unmatched: str | None
    subagents: str | None
    context_window: int | None
    tool_calling: bool | None
    reasoning: bool | None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekeeping:
    """A condition that marks a request as a client's side call.

    Args:
        header: Lower-case name of a header, or ``None``.
        path: JSONPath on the body, or ``None``.
        test: Whether one found value satisfies the condition.
        wanted: Whether anything must be found at all (``exists = false`` turns it round).
    """

    header: str | None
    path: JSONPath | None
    test: Callable[[Any], bool]
    wanted: bool

    def holds(self, headers: Mapping[str, str], body: Callable[[], Any]) -> bool:
        """Return whether a request satisfies the condition.

        Args:
            headers: Lower-case names to values.
            body: Gives the parsed body; called only when the condition reads it.
        """
        found: list[Any] = []
        if self.header is not None:
            found = [headers[self.header]] if self.header in headers else []
        if self.path is not None:
            found = self.path.values(body())
        return any(self.test(value) for value in found) is self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """How recorded model calls are told apart.

    Args:
        key_fields: Fields of a body that count, ``None`` for the built-in list.
    """

    key_fields: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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
    replay: ReplaySettings = field(default_factory=ReplaySettings)

    @property
    def text(self) -> str:
        """The policy's text with LF line ends."""
        return self.document.text

    @property
    def digest(self) -> str:
        """SHA-256 of the text and of what it includes, in hexadecimal."""
        digest = sha256()
        for index, document in enumerate((self.document, *self.document.included)):
            # TOML has no NUL, so no two policies give the same bytes.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check of a policy found.

    Args:
        policy: The policy, ``None`` when it has errors.
        findings: Errors and warnings, in order of position.
    """

    policy: Policy | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Only the errors."""
        return tuple(finding for finding in self.findings if finding.severity == "error")
