"""Making the calls that routers ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from switchyard_core.asking import Ask, AskError, ModelCall, ModelReply, WouldAsk
from switchyard_core.decision import Failure
from switchyard_core.declarations import Rewrite, RewriteType
from switchyard_core.engine.contract import ends_task
from switchyard_core.engine.outgoing import error_code, forwarded_headers
from switchyard_core.engine.response import succeeded
from switchyard_core.errors import PluginError, ReplayError, UpstreamError
from switchyard_core.identity import Headers
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.policy.model import Client, Route, Target
from switchyard_core.request import Request
from switchyard_core.rewrites import apply_rewrites
from switchyard_core.upstream.base import Outgoing, UpstreamResponse
from switchyard_core.upstream.encoding import EncodingError, content_encoding, decoded
from switchyard_core.wire import format_of

__all__ = ["AskTarget", "Asker", "RouterAsk"]

#: Most bytes of an answer that is read, with its content encoding and without.
ANSWER_BYTES = 16 * 1024 * 1024
#: Asks a target on a router's account: the routed request, the target, the call, the route's name.
AskTarget = Callable[[Request, str, ModelCall, str], Awaitable[ModelReply]]
_FAILURE_BYTES = 65536
#: Headers by which a provider says whether, and when, to try again.
_RETRY = frozenset({"retry-after", "retry-after-ms", "x-should-retry"})


class Asker:
    """Calls targets on a router's own account.

    Args:
        targets: The policy's targets, by name.
        rewrites: Every known rewrite, by name.
        send: Sends a request by a client on behalf of the routed request; adds its credential.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        rewrites: Mapping[str, RewriteType],
        send: Callable[[Request, Client, Outgoing], Awaitable[UpstreamResponse]],
    ) -> None:
        self._targets = targets
        self._rewrites = rewrites
        self._send = send

    async def ask(
        self, request: Request, name: str, call: ModelCall, route: str = ""
    ) -> ModelReply:
        """Return a target's reply.

        Args:
            request: The request that is being routed; with ``forward_auth`` its credential is
                used.
            name: Name of the target.
            call: What to ask.
            route: Name of the route whose router asks.

        Raises:
            AskError: There was no usable answer.
            ReplayError: Recordings are in use, and there is none for it or none can be made.
            KeyError: The policy has no such target.
        """
        target = self._targets[name]
        try:
            outgoing = self.outgoing(request, name, call, route)
            answer = await self._send(request, target.client, outgoing)
        except ReplayError:
            # For the person who records, not for the router: it must not be taken for an outage.
            raise
        except UpstreamError as error:
            failure = Failure(kind="transport", status=0, code=error.kind, body=b"")
            raise AskError(f"asking `{name}` failed: {error.message}", failure) from error
        async with answer:
            return await self._read(target, call, answer)

    def outgoing(self, request: Request, name: str, call: ModelCall, route: str = "") -> Outgoing:
        """Return what is sent for a call, without a credential; takes what :meth:`ask` takes.

        Raises:
            KeyError: The policy has no such target.
        """
        target = self._targets[name]
        # The caller's headers name its own conversation; only its credential may be ours to use.
        client, wire_format = target.client, format_of(target.client.format)
        bare = Headers({"user-agent": request.headers.get("user-agent", "")})
        body, _ = apply_rewrites(
            ObjectText(wire_format.compose(call, target.id, target.structured_output)),
            _settings(target),
            self._rewrites,
            client.format,
            target.rewrites,
        )
        return Outgoing(
            wire_format=client.format,
            path="/v1" + wire_format.paths["create"],
            headers=forwarded_headers(bare, client),
            body=body,
            stream=False,
            target=target.name,
            model=target.id,
            route=route,
            role=call.role or target.name,
        )

    async def _read(self, target: Target, call: ModelCall, answer: UpstreamResponse) -> ModelReply:
        try:
            body = await answer.read(ANSWER_BYTES)
        except ReplayError:
            raise
        except UpstreamError as error:
            failure = Failure(kind="transport", status=0, code=error.kind, body=b"")
            raise AskError(f"asking `{target.name}` failed: {error.message}", failure) from error
        unreadable: EncodingError | None = None
        try:
            body = b"".join(decoded(content_encoding(answer.headers), (body,), ANSWER_BYTES))
        except EncodingError as error:
            body, unreadable = b"", error
        failure = Failure(
            kind="status",
            status=answer.status,
            code=error_code(body),
            body=body[:_FAILURE_BYTES],
            retry={name: value for name, value in answer.headers if name in _RETRY},
        )
        if not succeeded(answer.status):
            raise AskError(f"asking `{target.name}` gave status {answer.status}", failure)
        if unreadable is not None:
            msg = f"asking `{target.name}`: its answer cannot be read: {unreadable}"
            raise AskError(msg, failure) from unreadable
        try:
            forced = call.schema is not None and target.structured_output == "forced_tool"
            structured = call.schema_name if forced else None
            return format_of(target.client.format).read_reply(body, structured)
        except ValueError as error:
            raise AskError(f"asking `{target.name}`: {error}", failure) from error


class RouterAsk:
    """``context.ask`` of one request.

    Args:
        route: The route whose router asks.
        request: The request that is being routed.
        ask: Asks a target.
        dry_run: Nothing may be sent.
        instead: Answers in place of a model.
    """

    def __init__(
        self,
        route: Route,
        request: Request,
        ask: AskTarget,
        *,
        dry_run: bool = False,
        instead: Ask | None = None,
    ) -> None:
        self._route = route
        self._request = request
        self._ask = ask
        self._dry_run = dry_run
        self._instead = instead
        self._failed: ReplayError | None = None

    async def __call__(self, name: str, call: ModelCall) -> ModelReply:
        """Return a target's reply; see :class:`~switchyard_core.router.RouteContext`.

        Raises:
            PluginError: The route does not declare the target.
            WouldAsk: Nothing may be sent, and nothing answers instead.
            AskError: There was no usable answer.
            ReplayError: There is no recording, or none can be made.
        """
        if name not in self._route.targets:
            msg = f"asked the target `{name}`, which the route does not declare"
            raise PluginError(msg)
        if self._instead is not None:
            return await self._instead(name, call)
        if self._dry_run:
            raise WouldAsk(name, call)
        try:
            return await self._ask(self._request, name, call, self._route.name)
        except ReplayError as error:
            self._failed = error
            raise

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Run a router; a call without a recording ends the block, whatever the router makes of it.

        Raises:
            ReplayError: There was no recording, or none could be made.
        """
        try:
            yield
        except BaseException as error:
            if self._failed is None or ends_task(error):
                raise
            raise self._failed from None
        if self._failed is not None:
            raise self._failed


def _settings(target: Target) -> tuple[Rewrite, ...]:
    """Return what the policy sets on every request to a target."""
    rewrites = []
    if target.extra_body:
        fill = {"extra_body": dict(target.extra_body)}
        rewrites.append(Rewrite(name="target_parameters", parameters=fill))
    if target.reasoning_effort is not None:
        effort = {"effort": target.reasoning_effort}
        rewrites.append(Rewrite(name="reasoning_effort", parameters=effort))
    return tuple(rewrites)
