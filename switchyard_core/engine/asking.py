"""Making the calls that routers ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from switchyard_core.asking import AskError, ModelCall, ModelReply
from switchyard_core.decision import Failure
from switchyard_core.declarations import Rewrite, RewriteType
from switchyard_core.engine.outgoing import credential, error_code, forwarded_headers
from switchyard_core.errors import UpstreamError
from switchyard_core.formats import format_of
from switchyard_core.formats.compose import compose, read_reply
from switchyard_core.identity import Headers
from switchyard_core.jsontext import ObjectText
from switchyard_core.policy.model import Client, Target
from switchyard_core.request import Request
from switchyard_core.rewrites import apply_rewrites
from switchyard_core.upstream.base import Outgoing, UpstreamResponse

__all__ = ["Asker"]

#: Most bytes of an answer that is read.
ANSWER_BYTES = 16 * 1024 * 1024
_FAILURE_BYTES = 65536
_ERROR = 400


class Asker:
    """Calls targets on a router's own account.

    Args:
        targets: The policy's targets, by name.
        rewrites: Every known rewrite, by name.
        send: Sends a request by a client; adds nothing to it.
        environ: Where API keys stand.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        rewrites: Mapping[str, RewriteType],
        send: Callable[[Client, Outgoing], Awaitable[UpstreamResponse]],
        environ: Mapping[str, str],
    ) -> None:
        self._targets = targets
        self._rewrites = rewrites
        self._send = send
        self._environ = environ

    async def ask(self, request: Request, name: str, call: ModelCall) -> ModelReply:
        """Return a target's reply.

        Args:
            request: The request that is being routed; with ``forward_auth`` its credential is
                used.
            name: Name of the target.
            call: What to ask.

        Raises:
            AskError: There was no usable answer.
            KeyError: The policy has no such target.
        """
        target = self._targets[name]
        try:
            answer = await self._send(target.client, self._outgoing(request, target, call))
        except UpstreamError as error:
            failure = Failure(kind="transport", status=0, code=error.kind, body=b"")
            raise AskError(f"asking `{name}` failed: {error.message}", failure) from error
        async with answer:
            return await self._read(target, call, answer)

    def _outgoing(self, request: Request, target: Target, call: ModelCall) -> Outgoing:
        # The caller's headers name its own conversation; only its credential may be ours to use.
        client = target.client
        bare = Headers({"user-agent": request.headers.get("user-agent", "")})
        body, _ = apply_rewrites(
            ObjectText(compose(client.format, call, target.id, target.structured_output)),
            _settings(target),
            self._rewrites,
            client.format,
            target.rewrites,
        )
        return Outgoing(
            wire_format=client.format,
            path="/v1" + format_of(client.format).paths["create"],
            headers=(
                *forwarded_headers(bare, client),
                *credential(client, request.headers, self._environ),
            ),
            body=body,
            stream=False,
            target=target.name,
            model=target.id,
        )

    async def _read(self, target: Target, call: ModelCall, answer: UpstreamResponse) -> ModelReply:
        try:
            body = await answer.read(ANSWER_BYTES)
        except UpstreamError as error:
            failure = Failure(kind="transport", status=0, code=error.kind, body=b"")
            raise AskError(f"asking `{target.name}` failed: {error.message}", failure) from error
        failure = Failure(
            kind="status",
            status=answer.status,
            code=error_code(body),
            body=body[:_FAILURE_BYTES],
        )
        if answer.status >= _ERROR:
            raise AskError(f"asking `{target.name}` gave status {answer.status}", failure)
        try:
            forced = call.schema is not None and target.structured_output == "forced_tool"
            structured = call.schema_name if forced else None
            return read_reply(target.client.format, body, structured)
        except ValueError as error:
            raise AskError(f"asking `{target.name}`: {error}", failure) from error


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
