"""The keys of a policy file: one strict model per table.

The models only say which keys there are, their types, ranges and defaults. What a value names
(a target, a rule set) is resolved in :mod:`switchyard_core.policy.resolve`.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from switchyard_core.declarations import LabelName, OptionError, Prompt, RouteName, WireFormat
from switchyard_core.policy.secrets import looks_like_credential, shown

__all__ = [
    "KEY_FIELD",
    "NOT_YET",
    "RESERVED_REWRITES",
    "ClientModel",
    "HousekeepingModel",
    "IdentityModel",
    "IncludedModel",
    "PriceModel",
    "ReplayModel",
    "RouteModel",
    "TargetModel",
    "TopModel",
]

#: Keys that the format has but this version cannot honour: pairs of table and key.
#: They are refused, because a key that is accepted and ignored misleads.
NOT_YET: frozenset[tuple[str, str]] = frozenset()

#: Names of rewrites that are always needed, whether this version has them or not.
RESERVED_REWRITES: frozenset[str] = frozenset({"translate", "set_model"})

#: A field of a body: a key, or the path to one.
KEY_FIELD = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")

_WORD = re.compile(r"[!-~]{1,256}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: How other tools refer to a variable: `$X`, `${X}`, `%X%`, `env:X`, with spaces around.
_REFERENCE = re.compile(
    r"\s*(?:\$\{?|%|\$?env:|\{env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:[}%])?\s*", re.ASCII
)


def _word(text: str) -> str:
    if not text.strip():
        msg = "must not be blank"
        raise OptionError(msg, fix="write the name", code="SY108")
    if not _WORD.fullmatch(text):
        msg = "must be 1 to 256 printable ASCII characters without spaces"
        raise ValueError(msg)
    return text


def _variable(text: str) -> str:
    if _VARIABLE.fullmatch(text):
        return text
    if not text.strip():
        msg = "must not be blank"
        fix = "write the name of an environment variable, or remove the key"
        raise OptionError(msg, fix=fix, code="SY108")
    reference = _REFERENCE.fullmatch(text)
    if reference is not None and not looks_like_credential(text):
        msg = "must be the name of an environment variable alone"
        raise OptionError(msg, fix=f"write `{shown(reference['name'])}`")
    msg = "must be the name of an environment variable, not the key itself"
    fix = "write a name of letters, digits and underscores that does not begin with a digit"
    if looks_like_credential(text):
        fix = "export the key as a variable and write its name; revoke this key"
    elif "=" in text:
        fix = "write only the name; the value belongs into the environment"
    raise OptionError(msg, fix=fix)


def _version(number: int) -> int:
    if number != 1:
        msg = "this version reads schema version 1 only"
        raise OptionError(msg, fix="write 1")
    return number


#: Ids go into headers and messages, so they hold no spaces or control characters.
Word = Annotated[
    str, AfterValidator(_word), Field(json_schema_extra={"pattern": f"^{_WORD.pattern}$"})
]
Variable = Annotated[
    str, AfterValidator(_variable), Field(json_schema_extra={"pattern": f"^{_VARIABLE.pattern}$"})
]
Tokens = Annotated[int, Field(ge=1)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TopModel(_Table):
    """A policy: the keys outside of any table; the tables themselves have models of their own.

    Args:
        schema_version: Version of the format: 1.
        include: Files with further rule sets, relative to this one's folder and below it.
        requires: Distributions that must be installed, by name alone.
        fallback_client: Name of the client that answers paths which switchyard does not serve.
        default_route: Name of the route for model ids that no route has; without it, 404.
        llm_clients: How providers are reached, by name.
        targets: The models, by name.
        routes: The model ids that callers may ask for, by a name of their own.
        mutation_rules: Rule sets of this policy, by name: which tool calls count as edits.
        identity: How the session of a request is known.
        housekeeping: Conditions that mark a request as a client's side call.
        prices: What models cost, by target id.
        replay: How recorded model calls are told apart.
    """

    schema_version: Annotated[int, AfterValidator(_version), Field(json_schema_extra={"const": 1})]
    include: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    fallback_client: str | None = None
    default_route: str | None = None
    llm_clients: dict[str, Any] = {}
    targets: dict[str, Any]
    routes: dict[str, Any]
    mutation_rules: dict[str, Any] = {}
    identity: dict[str, Any] = {}
    housekeeping: tuple[Any, ...] = ()
    prices: dict[str, Any] = {}
    replay: dict[str, Any] = {}


class IncludedModel(_Table):
    """The keys of a file that a policy includes.

    Args:
        include: Further files, relative to the folder of this one.
        mutation_rules: Rule sets by name.
    """

    include: tuple[str, ...] = ()
    mutation_rules: dict[str, Any] = {}


class ClientModel(_Table):
    """``[llm_clients.<name>]``: one way to reach a provider.

    Args:
        format: Wire format, or ``scripted`` for the embedded provider.
        base_url: Absolute http(s) URL; a final ``/v1`` may be there or not.
        api_key_env: Name of the environment variable that holds the key.
        forward_auth: Whether the caller's own credential is sent on; excludes ``api_key_env``.
        extra_headers: Headers added to each request.
        forward_headers: Names of caller's headers to send on.
        max_retries: 0 to 10; agents retry by themselves, so more multiplies.
        timeout_ms: Milliseconds without any byte, 1 to 86400000.
        script: Script file of a scripted client, relative to the policy's folder.
        speaks: Wire format of a scripted client.
    """

    format: Literal["openai_chat", "openai_responses", "anthropic_messages", "scripted"]
    base_url: str | None = None
    api_key_env: Variable | None = None
    forward_auth: bool = False
    extra_headers: dict[str, str] = {}
    forward_headers: tuple[str, ...] = ()
    max_retries: Annotated[int, Field(ge=0, le=10)] = 1
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 600_000
    script: Prompt | None = None
    speaks: WireFormat | None = None


class TargetModel(_Table):
    """``[targets.<name>]``: a model behind a client, with what to send along.

    Args:
        id: Model id of the provider.
        llm_client: Name of a client.
        extra_body: Top-level keys for the body that the request does not set.
        system_prompt: Instruction added to every request.
        reasoning_effort: Effort set on every request.
        context_window: Tokens, at least 1.
        on_overflow: What happens to a request over ``context_window``.
        accepts_prefill: Whether a request may end with an assistant message.
        tool_id_style: ``alphanumeric_9``: tool ids of exactly nine letters and digits.
        structured_output: How a router that asks this target makes it answer by a schema.
        rewrites: ``{ name = false }`` switches a rewrite off.
    """

    id: Word
    llm_client: str
    extra_body: dict[str, Any] = {}
    system_prompt: Prompt | None = None
    reasoning_effort: Word | None = None
    context_window: Tokens | None = None
    on_overflow: Literal["send", "stay", "reject"] = "send"
    accepts_prefill: bool = True
    tool_id_style: Literal["alphanumeric_9"] | None = None
    structured_output: Literal["json_schema", "forced_tool", "prompt"] = "json_schema"
    rewrites: dict[str, bool] = {}


class RouteModel(_Table):
    """The keys that every route has; the others are options of its type.

    Args:
        id: The model id that callers ask for, unique among all ids and aliases.
        type: Route type: what decides where a request goes.
        aliases: Further model ids.
        context_window: Tokens, for the model list.
        tool_calling: For the model list.
        reasoning: For the model list.
        workspace: Paths that are workspace though they look like scratch paths.
        unmatched: Label of a tool call that no rule matches.
        subagents: Name of the route that serves the sub-agents of this route's sessions.
    """

    id: Word
    type: str
    aliases: tuple[Word, ...] = ()
    context_window: Tokens | None = None
    tool_calling: bool | None = None
    reasoning: bool | None = None
    workspace: tuple[Prompt, ...] = ()
    unmatched: LabelName | None = None
    subagents: RouteName | None = None


class IdentityModel(_Table):
    """``[identity]``: further sources of the session id.

    Args:
        session: Tried in order after the built-in headers: ``header:<name>`` or
            ``body:<JSONPath>``.
    """

    session: tuple[str, ...] = ()


class HousekeepingModel(_Table):
    """``[[housekeeping]]``: a condition that marks a request as a client's side call.

    Exactly one of ``path`` (JSONPath on the body) and ``header`` says what is looked at, at
    most one of the others what it must be; without one it must exist.

    Args:
        path: JSONPath on the body.
        header: Name of a header.
        equals: The value is this one.
        in_: The value is one of these (key ``in``).
        matches: The regular expression (RE2) is found in the value, which is text.
        exists: Whether there must be a value at all.
    """

    path: str | None = None
    header: str | None = None
    equals: Any = None
    in_: tuple[Any, ...] | None = Field(default=None, alias="in")
    matches: str | None = None
    exists: bool | None = None


class PriceModel(_Table):
    """``[prices."<target id>"]``: US dollars per million tokens, dated by whoever wrote them.

    Args:
        as_of: Day of the prices.
        input: Fresh input.
        output: Output.
        cached_input: Input read from a cache.
        cache_write: Input written to a cache.
    """

    as_of: dt.date
    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    cache_write: Dollars | None = None


class ReplayModel(_Table):
    """``[replay]``: how recorded model calls are told apart.

    Args:
        key_fields: Fields of a body that tell one call from another, in place of the built-in
            list; ``a.b`` is the key ``b`` of the object ``a``.
    """

    key_fields: tuple[str, ...] | None = None
