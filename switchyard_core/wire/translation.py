"""An answer told in another wire format: from the provider's bytes to the caller's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import msgspec

from switchyard_core.answering import ModelUsage
from switchyard_core.errors import UpstreamError
from switchyard_core.jsonio.tree import ObjectText, encode, loads
from switchyard_core.models.phrases import meaning_of
from switchyard_core.wire.events import EventCutter
from switchyard_core.wire.replies import ReportedError, ShapeError, table, told_error
from switchyard_core.wire.teller import Asked, Teller

if TYPE_CHECKING:
    from switchyard_core.wire.format import AnswerModel, Format

__all__ = ["AnswerTranslation"]

#: What readers fail with over bytes that are no answer.
_UNREADABLE = (ValueError, msgspec.MsgspecError, RecursionError)
#: Longest reason that is told.
_MOST_CHARS = 300


class AnswerTranslation:
    """One answer of a provider, told in the caller's wire format.

    Args:
        source: The format that the provider speaks.
        caller: The format that the caller reads.
        request: The caller's own body.
        model: The model id that the caller asked for.
        answer_model: Whether the answer names that one, or the provider's.
        new_id: Returns a new id with a prefix, for what came without one.
        created_s: Seconds since the epoch, for an answer without a time.
        forced_schema: Name of the tool whose arguments are the text of the answer.
        streams: Whether the caller asked for a stream, which it gets whatever the provider sent;
            ``None`` for what the provider sends.
    """

    def __init__(  # noqa: PLR0913  # all that the bytes of an answer depend on
        self,
        *,
        source: Format,
        caller: Format,
        request: ObjectText,
        model: str,
        answer_model: AnswerModel,
        new_id: Callable[[str], str],
        created_s: int,
        forced_schema: str | None = None,
        streams: bool | None = None,
    ) -> None:
        self._source, self._caller = source, caller
        self._streams = streams
        self._cutter = EventCutter()
        asked = Asked(
            source=source,
            caller=caller,
            request=request,
            model=model,
            answer_model=answer_model,
            new_id=new_id,
            created_s=created_s,
            forced_schema=forced_schema,
        )
        self._teller = Teller(asked)
        self._teller.streams = streams is not False
        self._reader = source.reader(self._teller)
        self._failure: UpstreamError | None = None
        self._ended = False

    @property
    def usage(self) -> ModelUsage | None:
        """What the provider told so far of its tokens, ``None`` for nothing."""
        return self._teller.usage

    def feed(self, chunk: bytes) -> bytes:
        """Return the caller's bytes for a chunk of a stream, ``b""`` for none yet.

        What was said before an error is returned first, and the next call raises, whatever the
        borders of chunks are: :meth:`check`.

        Raises:
            UpstreamError: The provider reports an error (``failed``), or what it sends is not an
                answer (``protocol``). Nothing may follow.
        """
        self.check()
        reader, teller = self._reader, self._teller
        try:
            for event in self._cutter.feed(chunk):
                if event.data:
                    reader.event(event.name, event.data)
                elif event.is_comment:
                    teller.ping()
        except _UNREADABLE as error:
            return self._left(self._failed(error))
        out = teller.out
        return out.pop() if len(out) == 1 else teller.taken()

    def end(self) -> bytes:
        """Return the last bytes of a stream; all of them where the caller asked for none.

        Raises:
            UpstreamError: As in :meth:`feed`, or the provider's stream had no end (``cut``).
        """
        self.check()
        if self._ended:
            return b""
        reader, self._ended = self._reader, True
        try:
            for event in self._cutter.end():
                if event.data:
                    reader.event(event.name, event.data)
            reader.finish()
        except _UNREADABLE as error:
            # Half an event is the sign of a stream that was cut.
            return self._left(self._failed(error, "cut"))
        return self._told()

    def check(self) -> None:
        """Raise the error that the last call kept back until its bytes were taken."""
        if self._failure is not None:
            raise self._failure from None

    def whole(self, body: bytes) -> bytes:
        """Return a whole answer.

        Raises:
            UpstreamError: It is none (``protocol``), or reports an error (``failed``).
        """
        self._teller.streams = self._streams is True
        try:
            self._reader.whole(body)
        except _UNREADABLE as error:
            self._fail(error)
        return self._told()

    def error(self, status: int, body: bytes, request_id: str) -> bytes:
        """Return an error answer; its code and type stay where the caller's format has them."""
        told = told_error(body)
        if status == self._source.overloaded:
            status = self._caller.overloaded
        if meaning_of(body, status) == "overflow":
            told = self._caller.overflow(told)
        return encode(self._caller.translated_error(status, told, request_id))

    def tokens(self, body: bytes) -> bytes:
        """Return an answer to a request for a count of tokens.

        Raises:
            UpstreamError: It tells no count (``protocol``).
        """
        try:
            tokens = table(loads(body)).get("input_tokens")
        except _UNREADABLE as error:
            self._fail(error)
        if not isinstance(tokens, int):
            self._fail(ShapeError("`input_tokens` is not a number"))
        return encode(self._caller.token_count(tokens))

    def _told(self) -> bytes:
        return self._teller.taken() if self._teller.streams else self._teller.whole()

    def _left(self, failure: UpstreamError) -> bytes:
        """Return what was said before a failure, which is raised if that is nothing."""
        self._failure = failure
        # A whole answer would look like a complete one.
        told = self._teller.taken() if self._teller.streams else b""
        if not told:
            raise failure from None
        return told

    def _fail(self, error: Exception) -> NoReturn:
        raise self._failed(error) from None

    def _failed(self, error: Exception, kind: str = "protocol") -> UpstreamError:
        if isinstance(error, ReportedError):
            said = f": {error.said[:_MOST_CHARS]}" if error.said else ""
            return UpstreamError(f"{error}{said}", kind="failed")
        msg = f"not an answer of {self._source.name}: {str(error)[:_MOST_CHARS]}"
        return UpstreamError(msg, kind=kind)
