"""Recording the answer to one call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from switchyard_core.errors import RecordingError
from switchyard_core.replay.credentials import credential_in_body, credential_in_stream
from switchyard_core.replay.folder import Folder
from switchyard_core.replay.ledger import Ledger
from switchyard_core.replay.recording import Answer, Recording
from switchyard_core.replay.tables import tables
from switchyard_core.upstream.base import Outgoing
from switchyard_core.upstream.encoding import EncodingError, TooLongError, content_encoding, decoded
from switchyard_core.upstream.played import answer_problems

__all__ = ["ANSWER_BYTES", "Writer"]

_LOG = logging.getLogger("switchyard")
_SERVER_ERROR = 500
#: Most bytes of an answer that is recorded, with its content encoding and without.
ANSWER_BYTES = 16 * 1024 * 1024
_EVENT_STREAM = "text/event-stream"


class Writer:
    """Records the answer to one call.

    Args:
        folder: Where to.
        ledger: What happened in this run.
        place: File of a call that has none yet.
        outgoing: The call.
        key: Its key.
        fields: The fields that the key is made of.
    """

    def __init__(
        self,
        folder: Folder,
        ledger: Ledger,
        place: Path,
        outgoing: Outgoing,
        key: str,
        fields: tuple[str, ...],
    ) -> None:
        self._ledger = ledger
        self._folder = folder
        self._place = place
        self._outgoing = outgoing
        self._key = key
        self._fields = fields

    def check_request(self) -> None:
        """Refuse a request with a credential in it.

        Raises:
            RecordingError: It seems to hold one; the message names the field.
        """
        found = credential_in_body(self._outgoing.body)
        if found is not None:
            raise self._refused("request", found)

    def gave_up(self, why: str) -> None:
        """Note that this call is not recorded."""
        self._ledger.uncount(self._key)
        _LOG.warning("not recorded: %s, %s", self._place.name, why)

    def wants(self, status: int) -> bool:
        """Return whether an answer is recorded, or says something of the moment only."""
        if status >= _SERVER_ERROR or status in tables().not_kept:
            self.gave_up(f"the provider answered with status {status}")
            return False
        return True

    def keep(
        self, status: int, headers: Sequence[tuple[str, str]], chunks: Sequence[bytes]
    ) -> None:
        """Record an answer that was read to its end, unless it is too long.

        Raises:
            RecordingError: It seems to hold a credential, or cannot be written.
        """
        try:
            self._write(status, headers, chunks)
        except TooLongError as error:
            self.gave_up(f"the answer: {error}")
        except RecordingError:
            self.gave_up("see the error")
            raise

    def _write(
        self, status: int, headers: Sequence[tuple[str, str]], chunks: Sequence[bytes]
    ) -> None:
        by_name = {name.lower(): value for name, value in reversed(headers)}
        stream = by_name.get("content-type", "").lower().startswith(_EVENT_STREAM)
        plain = tuple(chunk for chunk in self._decoded(headers, chunks) if chunk)
        body = b"".join(plain)
        found = credential_in_stream(body) if stream else credential_in_body(body)
        if found is not None:
            raise self._refused("answer", found)
        answer = Answer(
            status=status,
            headers=tuple((name, by_name[name]) for name in tables().headers if name in by_name),
            chunks=plain if stream else (body,) if body else (),
            stream=stream,
        )
        for _, problem in answer_problems(status, dict(answer.headers), len(body)):
            self.gave_up(f"it could not be played: {problem}")
            return
        before = self._folder.get(self._key)
        if before is not None and not self._ledger.replaces(self._key):
            recording = before.with_answer(answer)
        else:
            recording = Recording(
                file=self._place,
                key_fields=self._fields,
                method=self._outgoing.method,
                path=self._outgoing.path,
                body=self._outgoing.body,
                answers=(answer,),
            )
        self._folder.write(recording)
        self._ledger.stored(self._key, recording.file)

    def _decoded(
        self, headers: Sequence[tuple[str, str]], chunks: Sequence[bytes]
    ) -> tuple[bytes, ...]:
        try:
            return decoded(content_encoding(headers), chunks, ANSWER_BYTES)
        except TooLongError:
            raise
        except EncodingError as error:
            msg = f"the provider's answer cannot be recorded: {error}"
            raise RecordingError(msg, path=str(self._place)) from error

    def _refused(self, part: str, where: str) -> RecordingError:
        return RecordingError(
            f"the {part} seems to hold a credential in `{where}`, and a recording is for others "
            "to read: nothing was recorded. Take it out, or do not record this call",
            path=str(self._place),
        )
