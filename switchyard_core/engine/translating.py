"""Requests and answers whose caller speaks another wire format than the target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from switchyard_core.decision import Rewrite
from switchyard_core.declarations import COUNTING, Endpoint, WireFormat
from switchyard_core.engine.opening import Opening
from switchyard_core.engine.response import succeeded
from switchyard_core.engine.routes import Routed
from switchyard_core.errors import RefusedError, UpstreamError
from switchyard_core.jsonio.tree import encode
from switchyard_core.policy.models import Target
from switchyard_core.request import Request
from switchyard_core.router import estimate_tokens
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.encoding import Decoder, EncodingError, content_encoding
from switchyard_core.wire import FORMATS
from switchyard_core.wire.format import Format
from switchyard_core.wire.neutral import SCHEMA_TOOL
from switchyard_core.wire.passing import AnswerTrace
from switchyard_core.wire.translation import AnswerTranslation
from switchyard_core.world import World

__all__ = [
    "ESTIMATED",
    "TranslatedAnswer",
    "across_formats",
    "counts_here",
    "endpoint_at",
    "estimated_count",
]

#: Header of an answer whose number of tokens is an estimate of ours.
ESTIMATED = ("x-switchyard-token-count", "estimated")
#: Maximum size in bytes of a whole answer that is translated, and of what a chunk decodes to.
WHOLE_BYTES = 64 * 1024 * 1024
#: Maximum size in bytes of an error that is translated.
_ERROR_BYTES = 1024 * 1024
#: What every translated request needs, whatever the router asks for.
_REPAIRS = tuple(
    Rewrite(name=name, parameters={"when": "always"})
    for name in ("repair_tool_pairs", "drop_empty_content", "limit_cache_marks")
)
_REPLACED = frozenset(repair.name for repair in _REPAIRS)
_REMAP = "remap_tool_ids"
_JSON = "application/json"
_EVENT_STREAM = "text/event-stream"
#: Headers of an answer that describe the provider's bytes.
_OF_THE_BODY = frozenset({"content-encoding", "content-length", "content-type"})


# --- the request ----------------------------------------------------------------------------------


def endpoint_at(target: WireFormat, endpoint: Endpoint) -> Endpoint | None:
    """Return what to call at a target for a caller's call, ``None`` where it has nothing alike."""
    paths = FORMATS[target].paths
    if endpoint in paths:
        return endpoint
    return (
        next((each for each in paths if each in COUNTING), None) if endpoint in COUNTING else None
    )


def across_formats(
    request: Request, own: Sequence[Rewrite], target: Target, needs: Sequence[Rewrite]
) -> tuple[Rewrite, ...]:
    """Return the rewrites of a request for a target of another wire format.

    ``own`` are the router's, ``needs`` those that the target needs in any format. A
    :class:`RefusedError` says that the target cannot serve the request.
    """
    if (
        request.endpoint not in COUNTING
        and endpoint_at(target.wire_format, request.endpoint) is None
    ):
        raise RefusedError(
            message=f"`{request.endpoint}` is served by targets that speak "
            f"`{request.wire_format}` only, and `{target.name}` speaks `{target.wire_format}`",
            code="endpoint_not_served",
        )
    _refuse_missing_history(request, own, target)
    style = target.tool_id_style
    own = [
        each for each in own if each.name not in _REPLACED and not (style and each.name == _REMAP)
    ]
    asked = {rewrite.name for rewrite in own}
    more = [each for each in needs if each.name not in asked and each.name != _REMAP]
    return (*own, *_REPAIRS, _translation(request, target), *more)


def _translation(request: Request, target: Target) -> Rewrite:
    reasoning = target.accepts.reasoning
    wanted = reasoning.echo in ("required", "optional")
    parameters = {
        "wire_format": target.wire_format,
        "on_untranslatable": target.on_untranslatable,
        "max_output": target.max_output,
        "reasoning_key": (reasoning.key or "") if wanted else "",
        "system_rows": target.accepts.system_rows,
        # One whose reasoning is off reasons when it is asked to.
        "thinks": reasoning.default is not None,
        "forced_schema": target.structured_output == "forced_tool",
        "cache_marks": target.cache_marks == "auto",
        "id_style": target.tool_id_style or "format",
        "counts": request.endpoint in COUNTING,
    }
    return Rewrite(name="translate", parameters=parameters)


def _refuse_missing_history(request: Request, own: Sequence[Rewrite], target: Target) -> None:
    """Refuse a request whose history only a provider of the caller's format has."""
    missing = request.missing_history
    if any(each.name == "drop_origin_bound" and each.parameters.get("context") for each in own):
        # The policy lets it go; what names a whole history cannot be left out.
        missing = tuple(place for place in missing if "[" not in place)
    if not missing:
        return
    places = " and ".join(f"`{place}`" for place in missing[:4])
    raise RefusedError(
        message=f"the history of this request is not in it: {places} leads to it at a provider "
        f"that speaks `{request.wire_format}`, and the target `{target.name}` speaks "
        f"`{target.wire_format}`: send the whole history in `{request.history_key}`",
        code="history_required",
        param=missing[0],
        details=FORMATS[request.wire_format].asks_for_history(missing),
    )


# --- the answer -----------------------------------------------------------------------------------


def counts_here(request: Request, target: Target) -> bool:
    """Return whether a token count is estimated, since the target has no call for it."""
    return endpoint_at(target.wire_format, request.endpoint) is None


def estimated_count(request: Request) -> UpstreamResponse:
    """Return the answer to a token count that no endpoint of the target gives."""
    body = encode(FORMATS[request.wire_format].token_count(estimate_tokens(request)))
    headers = (("content-type", _JSON), ("content-length", str(len(body))), ESTIMATED)
    return UpstreamResponse(200, headers, _once(body))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


class TranslatedAnswer:
    """Tells the answer to one request in the caller's wire format.

    ``trace`` sees the provider's own bytes, without their content encoding.
    """

    def __init__(self, routed: Routed, target: Target, world: World) -> None:
        self._request = request = routed.request
        self._source: Format = FORMATS[target.wire_format]
        self._caller: Format = FORMATS[request.wire_format]
        named = routed.runtime.route.answer_model or self._caller.answer_model
        self._translation = AnswerTranslation(
            source=self._source,
            caller=self._caller,
            request=request.fields,
            model=request.model,
            answer_model=named if request.model else "provider",
            new_id=world.new_id,
            created_s=int(world.clock()),
            forced_schema=SCHEMA_TOOL if target.structured_output == "forced_tool" else None,
            streams=request.stream and request.endpoint == "create",
        )
        self._answer: UpstreamResponse
        self._decoder: Decoder | None = None
        self.trace: AnswerTrace

    async def of(
        self, answer: UpstreamResponse, opening: Opening | None, *, certain: bool
    ) -> UpstreamResponse:
        """Return an answer in the caller's format; a whole one is read to its end.

        Raises:
            UpstreamError: The provider broke off, or nobody can read what it sent.
        """
        self._answer = answer
        streams = opening is not None and opening.is_stream
        kind = _EVENT_STREAM if streams else answer.header("content-type") or ""
        self.trace = AnswerTrace(self._source, kind, certain=certain)
        self.trace.apart = True
        if encoding := content_encoding(answer.headers):
            self._decoder = self._decoder_of(encoding)
        asked = self._request.stream and self._request.endpoint == "create"
        if streams and asked:
            return self._response(self._stream(), _EVENT_STREAM)
        try:
            told = await (self._collected() if streams else self._whole())
        except BaseException:
            await answer.aclose()
            raise
        ok = succeeded(answer.status)
        kind = _EVENT_STREAM if asked and ok else _JSON
        return self._response(_once(told), kind, None if kind == _EVENT_STREAM else len(told))

    def _decoder_of(self, encoding: str) -> Decoder:
        try:
            return Decoder(encoding, WHOLE_BYTES)
        except EncodingError as error:
            raise _unreadable(error) from error

    def _response(
        self, chunks: AsyncIterator[bytes], kind: str, length: int | None = None
    ) -> UpstreamResponse:
        answer, ours = self._answer, self._caller.request_id_header
        told = [("content-type", kind)]
        if length is not None:
            told.append(("content-length", str(length)))
        for name, value in answer.headers:
            if name == self._source.request_id_header:
                told.append((ours, value))
            elif name not in _OF_THE_BODY and name != ours:
                told.append((name, value))
        status = answer.status
        if status == self._source.overloaded:
            status = self._caller.overloaded
        return UpstreamResponse(status, tuple(told), chunks, answer.aclose)

    async def _plain(self) -> AsyncIterator[bytes]:
        """Yield the provider's bytes without their content encoding; they are noted."""
        async for chunk in self._answer.chunks:
            plain = chunk
            if self._decoder is not None:
                try:
                    plain = self._decoder.feed(chunk)
                except EncodingError as error:
                    raise _unreadable(error) from error
            self.trace.note(plain)
            yield plain

    async def _stream(self) -> AsyncIterator[bytes]:
        translation = self._translation
        async for plain in self._plain():
            told = translation.feed(plain)
            if told:
                yield told
                translation.check()
        told = translation.end()
        if told:
            yield told
            translation.check()

    async def _collected(self) -> bytes:
        """Return a stream as the whole answer that the caller asked for."""
        return b"".join([told async for told in self._stream()])

    async def _whole(self) -> bytes:
        answer, ok = self._answer, succeeded(self._answer.status)
        body = await self._body(WHOLE_BYTES if ok else _ERROR_BYTES)
        if not ok:
            number = answer.header(self._source.request_id_header) or ""
            return self._translation.error(answer.status, body[:_ERROR_BYTES], number)
        if len(body) > WHOLE_BYTES:
            msg = f"the provider's answer is longer than {WHOLE_BYTES} bytes"
            raise UpstreamError(msg, kind="protocol")
        counts = self._request.endpoint in COUNTING
        return self._translation.tokens(body) if counts else self._translation.whole(body)

    async def _body(self, limit: int) -> bytes:
        """Return a body, or a little more than its first ``limit`` bytes."""
        parts: list[bytes] = []
        async for plain in self._plain():
            parts.append(plain)
            limit -= len(plain)
            if limit < 0:
                break
        return b"".join(parts)


def _unreadable(error: EncodingError) -> UpstreamError:
    return UpstreamError(f"the provider's answer cannot be decoded: {error}", kind="protocol")
