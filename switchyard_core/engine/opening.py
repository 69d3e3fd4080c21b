"""The opening of an answer: looked at, and held back, until it tells whether it is a success.

While nothing of an answer has reached the client, a router may still send the request elsewhere.
What is held is bounded in bytes and in time; then the chunks pass as they come.
"""

from __future__ import annotations

from collections.abc import Callable

from switchyard_core.answering import ModelUsage
from switchyard_core.declarations import Endpoint
from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.encoding import Decoder, EncodingError, content_encoding
from switchyard_core.wire.format import Format
from switchyard_core.wire.passing import usage_of
from switchyard_core.wire.patching import ModelPatch
from switchyard_core.wire.success import SuccessCheck

__all__ = ["Opening"]

#: Longest time in seconds that an opening is held back: pings that it holds keep clients waiting.
HOLD_S = 30.0
#: Maximum size of an encoded answer that is looked at, once decoded.
DECODED_BYTES = 64 * 1024 * 1024

_EVENT_STREAM = "text/event-stream"
_ENCODED = frozenset({"content-encoding", "content-length"})


class Opening:
    """An answer of a provider that says by its status that it is a success.

    Args:
        answer: The provider's answer.
        wire_format: Its wire format.
        endpoint: What was called.
        model: The model id that the answer is to name, ``""`` for the provider's own.
    """

    def __init__(
        self, answer: UpstreamResponse, wire_format: Format, endpoint: Endpoint, *, model: str = ""
    ) -> None:
        self.streams = (answer.header("content-type") or "").startswith(_EVENT_STREAM)
        self.check = SuccessCheck(wire_format, endpoint, streams=self.streams)
        self._answer = answer
        self._chunks = answer.chunks
        self._format = wire_format
        self._model = model
        self._patch = ModelPatch(wire_format, model) if model and self.streams else None
        encoding = content_encoding(answer.headers)
        self._decoder = self._decoder_of(encoding) if encoding else None
        self._readable = bool(self._decoder) or not encoding
        #: Whether the client gets it without its content encoding, since it is patched.
        self._decodes = bool(self._model and encoding)
        headers = answer.headers
        if self._decodes:
            headers = tuple(pair for pair in headers if pair[0] not in _ENCODED)
        elif self._patch is not None:
            headers = tuple(pair for pair in headers if pair[0] != "content-length")
        self._ended = False
        #: The answer to pass on.
        self.response = UpstreamResponse(answer.status, headers, self, answer.aclose)

    def _decoder_of(self, encoding: str) -> Decoder | None:
        try:
            return Decoder(encoding, DECODED_BYTES)
        except EncodingError:
            # Nobody here can read it: it passes as it is.
            self.check.settled = True
            self._model, self._patch = "", None
            return None

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream, by what came of it, else by its headers."""
        found = self.check.streams
        return self.streams if found is None else found

    def __aiter__(self) -> Opening:
        """Return the chunks as they come from the provider."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk, looked at."""
        while not self._ended:
            try:
                chunk = await anext(self._chunks)
            except StopAsyncIteration:
                self._ended = True
                self.check.end()
                chunk = self._patch.end() if self._patch is not None else b""
            else:
                chunk = self._seen(chunk)
            if chunk:
                return chunk
        raise StopAsyncIteration

    def _seen(self, chunk: bytes) -> bytes:
        if self.check.settled and not self._decodes and self._patch is None:
            return chunk
        plain = self._plain(chunk)
        self.check.see(plain)
        if self._decodes:
            chunk = plain
        return chunk if self._patch is None else self._patch.feed(chunk)

    def _plain(self, chunk: bytes) -> bytes:
        if self._decoder is None:
            return chunk if self._readable else b""
        try:
            return self._decoder.feed(chunk)
        except EncodingError as error:
            if self._decodes:
                msg = f"the provider's answer cannot be decoded: {error}"
                raise UpstreamError(msg, kind="protocol") from error
            self.check.settled = True
            return b""

    def usage(self) -> ModelUsage | None:
        """Return the tokens in what is held back of the answer, ``None`` without any."""
        body = self.response.held
        try:
            if not self._decodes:
                body = Decoder(content_encoding(self._answer.headers), DECODED_BYTES).feed(body)
        except EncodingError:
            return None
        return usage_of(self._format, self._answer.header("content-type") or "", body)

    async def settle(self, clock: Callable[[], float]) -> None:
        """Hold the answer back until it tells what it is, or for as long as that is bearable.

        Raises:
            UpstreamError: The provider broke off before that.
        """
        began = clock()
        while not self.check.settled and clock() - began <= HOLD_S:
            if await self.response.ahead() is None:
                break
        if self._model and not self.streams and self._ended:
            self._name_model()

    def _name_model(self) -> None:
        """Put the model into a whole answer that is held back in full."""
        body = self.response.held
        patched = self._format.with_model(body, self._model)
        if patched is None:
            patched = body
        headers = tuple(pair for pair in self.response.headers if pair[0] != "content-length")
        self.response.replace_held(patched, (*headers, ("content-length", str(len(patched)))))
