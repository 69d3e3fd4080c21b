"""Calling providers: their connections, headers and credentials, and the calls of routers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from switchyard_core.answering import Ask, AskError, ModelCall, ModelReply, WouldAsk
from switchyard_core.clients import forwarded
from switchyard_core.decision import Outgoing, Rewrite
from switchyard_core.declarations import Endpoint, RewriteType
from switchyard_core.engine.replies import not_answered, read_reply
from switchyard_core.engine.response import ends_task, succeeded
from switchyard_core.engine.routes import Routed
from switchyard_core.errors import (
    Finding,
    PluginError,
    PolicyError,
    ReplayError,
    RequestError,
    UpstreamError,
)
from switchyard_core.hookspecs import VERSION
from switchyard_core.identity import Headers
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.policy.models import Client, Policy, Target
from switchyard_core.policy.secrets import shown
from switchyard_core.replay import Replay
from switchyard_core.request import Request
from switchyard_core.scripted import ScriptedUpstream, load_script
from switchyard_core.scripted.strict import check_strict
from switchyard_core.upstream.address import path_below
from switchyard_core.upstream.base import Upstream, UpstreamResponse
from switchyard_core.wire import FORMATS
from switchyard_core.wire.patching import KeyMask
from switchyard_core.wire.rewrites import apply_rewrites
from switchyard_core.wire.rewrites.fit import Rules
from switchyard_core.world import World

__all__ = [
    "AskTarget",
    "RouterAsk",
    "Upstreams",
    "connect",
    "credential",
    "forwarded_headers",
    "headers_for",
    "model_fit",
    "request_path",
    "request_url",
    "script_findings",
    "target_settings",
]

#: Asks a target on a router's account: the routed request, the target, the call, the route's name.
AskTarget = Callable[[Request, str, ModelCall, str], Awaitable[ModelReply]]
#: Headers that carry a caller's credential.
CREDENTIAL_HEADERS = ("authorization", "x-api-key")

_ALWAYS = ("content-type", "accept", "openai-beta")
# A login's own headers make sense only together with its credential.
_WITH_CREDENTIAL = (
    "chatgpt-account-id",
    "originator",
    "openai-organization",
    "openai-project",
)
_SINGLE = frozenset({"content-type", "anthropic-version", *_WITH_CREDENTIAL})
_PRODUCT = f"switchyard/{VERSION}"


def connect(client: Client) -> Upstream:
    """Return a connection to a client's provider."""
    if client.scripted and client.script is not None:
        return ScriptedUpstream(
            load_script(client.script),
            client.format,
            max_retries=client.max_retries,
            strict=client.strict,
        )
    from switchyard_core.upstream.http import HttpUpstream  # noqa: PLC0415  # httpx, to call only

    return HttpUpstream(
        client.base_url or "",
        timeout_s=client.timeout_s,
        max_retries=client.max_retries,
        exact_paths=client.paths.values(),
    )


def request_path(client: Client, endpoint: Endpoint) -> str:
    """Return the path of a call, with its version unless the policy has a path of its own."""
    own = client.paths.get(endpoint)
    return own if own is not None else "/v1" + FORMATS[client.format].paths[endpoint]


def request_url(client: Client, endpoint: Endpoint) -> str:
    """Return the URL that a call goes to; of a scripted client the path."""
    path = request_path(client, endpoint)
    if client.scripted:
        return path
    parts = urlsplit(client.base_url or "")
    below = path_below(parts.path, path, client.format, client.paths.values())
    return f"{parts.scheme}://{parts.netloc}{below}"


def script_findings(policy: Policy) -> tuple[Finding, ...]:
    """Return every problem of the scripts that a policy's scripted clients play."""
    findings: list[Finding] = []
    for script in dict.fromkeys(client.script for client in policy.clients.values()):
        if script is not None:
            try:
                load_script(script)
            except PolicyError as error:
                findings.extend(error.findings)
    for name, client in policy.clients.items():
        if client.strict is not None and (fix := check_strict(client.strict)):
            message = f"unknown strict provider `{shown(client.strict)}`"
            location = ("llm_clients", name, "strict")
            findings.append(policy.finding("SY243", message, location, severity="error", fix=fix))
    return tuple(findings)


class Upstreams:
    """The connections to a policy's providers, one per client, made on first use."""

    def __init__(
        self,
        policy: Policy,
        rewrites: Mapping[str, RewriteType],  # every known rewrite, by name
        world: World,  # has the API keys
        *,
        connect: Callable[[Client], Upstream] = connect,
        #: Recorded calls that are served, or that calls are recorded to.
        replay: Replay | None = None,
    ) -> None:
        self.replay = replay
        self._policy = policy
        self._rewrites = rewrites
        self._world = world
        self._connect = connect
        self._open: dict[Client, Upstream] = {}
        # A script is read once per policy: the next one may play another text.
        self._scripted: dict[Client, Upstream] = {}
        #: Those of this policy, by name of the client.
        self._by_name: dict[str, Upstream] = {}

    def following(self, policy: Policy) -> Upstreams:
        """Return the connections for the next policy, which shares those of unchanged clients."""
        twin = Upstreams(
            policy, self._rewrites, self._world, connect=self._connect, replay=self.replay
        )
        twin._open = self._open
        return twin

    def of(self, client: Client) -> Upstream:
        """Return the connection of a client, always the same one."""
        upstream = self._by_name.get(client.name)
        if upstream is None:
            made = self._scripted if client.scripted else self._open
            upstream = made.get(client) or made.setdefault(client, self._connect(client))
            self._by_name[client.name] = upstream
        return upstream

    async def call(self, client: Client, outgoing: Outgoing, headers: Headers) -> UpstreamResponse:
        """Send a request through a client with its credential; a recording may answer instead."""
        keys = self.admit(client, lambda: outgoing, headers)
        if keys:
            outgoing = replace(outgoing, headers=(*outgoing.headers, *keys))
        upstream = self.of(client) if self.replay is None else self._recorded(client, self.replay)
        answer = await upstream.send(outgoing)
        if 300 <= answer.status < 400 and answer.status != 304:  # HTTP
            await answer.aclose()
            raise _redirected(client, answer.status)
        return self._without_key(client, answer)

    def _recorded(self, client: Client, replay: Replay) -> Upstream:
        return replay.upstream(client, self.of, self._policy.replay.key_fields)

    def _without_key(self, client: Client, answer: UpstreamResponse) -> UpstreamResponse:
        """Return an answer whose errors do not repeat the configured key."""
        key = self._world.environ.get(client.api_key_env or "", "").strip()
        if not key or not KeyMask.worth(key):
            return answer
        mask = KeyMask(key, from_start=not succeeded(answer.status))
        chunks = _masked(answer.chunks, mask)
        hidden = "*" * len(key)
        headers = tuple((name, value.replace(key, hidden)) for name, value in answer.headers)
        return UpstreamResponse(answer.status, headers, chunks, answer.aclose)

    def admit(
        self, client: Client, outgoing: Callable[[], Outgoing], headers: Headers
    ) -> tuple[tuple[str, str], ...]:
        """Return the credential headers of a call, none where a recording answers.

        Raises :class:`RequestError` when the credential is missing. ``outgoing`` builds the call;
        it is called only where recordings are in use.
        """
        replay = self.replay
        if replay is not None and replay.serves(outgoing(), self._policy.replay.key_fields):
            return ()
        return credential(client, headers, self._world.environ)

    async def ask(
        self, request: Request, name: str, call: ModelCall, route: str = ""
    ) -> ModelReply:
        """Return a target's reply to a router's call; an :class:`AskError` without one."""
        target = self._policy.targets[name]
        try:
            outgoing = self.question(request, name, call, route)
            answer = await self.call(target.client, outgoing, headers_for(request, target.client))
        except ReplayError:
            # For the person who records, not for the router: it must not be taken for an outage.
            raise
        except UpstreamError as error:
            raise not_answered(target, error) from error
        async with answer:
            return await read_reply(target, call, answer)

    def question(self, request: Request, name: str, call: ModelCall, route: str = "") -> Outgoing:
        """Return the request for a router's call, without a credential."""
        target = self._policy.targets[name]
        # The caller's headers name its own conversation; only its credential may be ours to use.
        client, wire_format = target.client, FORMATS[target.client.format]
        bare = Headers({"user-agent": request.headers.get("user-agent", "")})
        sent = dict(forwarded_headers(bare, client))
        body, _ = apply_rewrites(
            ObjectText(wire_format.compose(call, target.id, target.structured_output)),
            (*target_settings(target), *model_fit(target)),
            self._rewrites,
            client.format,
            target.rewrites,
            headers=sent,
        )
        return Outgoing(
            wire_format=client.format,
            path=request_path(client, "create"),
            headers=tuple(sent.items()),
            body=body,
            stream=False,
            target=target.name,
            model=target.id,
            route=route,
            role=call.role or target.name,
        )

    def connections(self) -> Iterator[tuple[str, str, int]]:
        """Yield client, state (``active`` or ``idle``) and the number of connections in it."""
        from switchyard_core.upstream.http import HttpUpstream  # noqa: PLC0415  # as above

        for name, client in self._policy.clients.items():
            upstream = self._open.get(client)
            if isinstance(upstream, HttpUpstream):
                for state, count in upstream.connections.items():
                    yield name, state, count

    async def retire(self, kept: Collection[Client]) -> None:
        """Close the connections that no client in ``kept`` uses, once the policy serves nothing."""
        gone = [client for client in self._policy.clients.values() if client not in kept]
        self._by_name.clear()
        await _close(self._open, gone)
        await _close(self._scripted, list(self._scripted))

    async def aclose(self) -> None:
        """Close all connections, shared ones too."""
        self._by_name.clear()
        await _close(self._open, list(self._open))
        await _close(self._scripted, list(self._scripted))


async def _close(made: dict[Client, Upstream], clients: Collection[Client]) -> None:
    for client in clients:
        # Taken out first: nobody may get a connection that is being closed.
        upstream = made.pop(client, None)
        if upstream is not None:
            await upstream.aclose()


def _redirected(client: Client, status: int) -> UpstreamError:
    # Where it leads stays here: a caller that followed it would send its credential there.
    msg = (
        f"the provider of the client `{client.name}` answered with a redirect ({status}): set its "
        f"`base_url`, now `{client.base_url or client.script}`, to the address that it redirects to"
    )
    return UpstreamError(msg, kind="redirect", final=True)


async def _masked(chunks: AsyncIterator[bytes], mask: KeyMask) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        masked = mask.feed(chunk)
        if masked:
            yield masked
    rest = mask.end()
    if rest:
        yield rest


class RouterAsk:
    """``context.ask`` of one request."""

    def __init__(
        self,
        routed: Routed,
        ask: AskTarget,
        *,
        dry_run: bool = False,
        instead: Ask | None = None,  # answers instead of a model
    ) -> None:
        self._route = routed.runtime.route
        self._request = routed.request
        self._count = routed.count
        self._ask = ask
        self._dry_run = dry_run
        self._instead = instead
        self._failed: ReplayError | None = None

    async def __call__(self, name: str, call: ModelCall) -> ModelReply:
        """Return a target's reply; see :class:`~switchyard_core.router.RouteContext`."""
        if name not in self._route.targets:
            msg = f"asked the target `{name}`, which the route does not declare"
            raise PluginError(msg)
        if self._instead is not None:
            return await self._instead(name, call)
        if self._dry_run:
            raise WouldAsk(name, call)
        try:
            reply = await self._ask(self._request, name, call, self._route.name)
        except ReplayError as error:
            self._failed = error
            raise
        except AskError as error:
            self._count(name, error.usage)
            raise
        self._count(name, reply.usage)
        return reply

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Run a router; raise the :class:`ReplayError` of its calls though it swallows it."""
        try:
            yield
        except BaseException as error:
            if self._failed is None or ends_task(error):
                raise
            raise self._failed from None
        if self._failed is not None:
            raise self._failed


def target_settings(target: Target) -> tuple[Rewrite, ...]:
    """Return the rewrites for what the policy sets on every request to a target."""
    rewrites = []
    if target.extra_body:
        fill = {"extra_body": dict(target.extra_body)}
        rewrites.append(Rewrite(name="target_parameters", parameters=fill))
    if target.reasoning_effort is not None:
        effort = {"effort": target.reasoning_effort}
        rewrites.append(Rewrite(name="reasoning_effort", parameters=effort))
    return tuple(rewrites)


def model_fit(target: Target, *, side_call: bool = False) -> tuple[Rewrite, ...]:
    """Return the rewrite that makes bodies fit the model, if anything is known of it.

    A side call about a conversation gets nothing that only an answer needs.
    """
    accepts = target.accepts
    rules = [each for each in accepts.rules if not (side_call and each[1].do == "default")]
    limit = None if side_call else target.max_output
    if not rules and limit is None:
        return ()
    thinks = accepts.reasoning.default == "on"
    parameters = {"rules": Rules.of(rules), "max_output": limit, "thinks": thinks}
    return (Rewrite(name="fit_model", parameters=parameters),)


def forwarded_headers(headers: Headers, client: Client) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request to a provider, without any credential.

    Only listed headers pass: no session headers, cookies, hop-by-hop headers or credentials.
    """
    wire_format = FORMATS[client.format]
    names = [*_ALWAYS, *wire_format.headers, *forwarded(client.format), *client.forward_headers]
    if client.forward_auth:
        names += _WITH_CREDENTIAL
    values: dict[str, str] = {}
    for name in names:
        value = headers.by_name.get(name)
        if value is not None and name not in _SINGLE:
            value = headers.joined(name)  # A list may come in several headers.
        if value is not None and name not in CREDENTIAL_HEADERS:
            values[name] = value
    values.setdefault("content-type", "application/json")
    for name, value in wire_format.needed_headers.items():
        values.setdefault(name, value)
    agent = headers.by_name.get("user-agent", "")
    values["user-agent"] = f"{agent} {_PRODUCT}".strip()
    for name, value in client.extra_headers.items():
        values[name.lower()] = value
    return tuple(values.items())


def credential(
    client: Client, headers: Headers, environ: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the headers that authenticate a call to a provider.

    Raises :class:`RequestError`: 500 for an unset ``api_key_env``, 401 where the caller's own
    credential is to be forwarded and the request has none.
    """
    if client.forward_auth:
        found = tuple(
            (name, value)
            for name in CREDENTIAL_HEADERS
            if (value := headers.get(name, "")).strip().lower() not in ("", "bearer", "basic")
        )
        if not found:
            raise RequestError(
                message="this route sends the caller's own credential on: send it as "
                "`authorization` or `x-api-key`",
                code="missing_credential",
                status=401,
            )
        return found
    if client.api_key_env is None:
        return ()
    key = environ.get(client.api_key_env, "").strip()
    if not key:
        raise RequestError(
            message=f"the environment variable `{client.api_key_env}` of the client "
            f"`{client.name}` is not set (SY204): set it where switchyard runs",
            code="missing_api_key",
            status=500,
            headers={"x-should-retry": "false"},
        )
    return (FORMATS[client.format].credential(key),)


def headers_for(request: Request, client: Client) -> Headers:
    """Return a caller's headers as a client of another wire format may take them.

    Those of any format are gone unless the policy names them, and so is whatever belongs to a
    login; the credential is in the header that the client's format uses.
    """
    if client.format == request.wire_format:
        return request.headers
    given = request.headers
    gone = {*CREDENTIAL_HEADERS, *_WITH_CREDENTIAL, "openai-beta"}
    for name, wire_format in FORMATS.items():
        gone.update(wire_format.headers, wire_format.needed_headers, forwarded(name))
    gone.difference_update(client.forward_headers)
    kept = [pair for pair in given.items_ if pair[0] not in gone]
    key = _key_in(given)
    return Headers([*kept, FORMATS[client.format].credential(key)] if key else kept)


def _key_in(headers: Headers) -> str:
    """Return the key by which a caller authenticates itself, ``""`` for none."""
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return headers.get("x-api-key", "").strip() or bearer
