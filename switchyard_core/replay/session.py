"""Recording and replaying in one process run, at the two places where calls go out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

from switchyard_core.decision import Outgoing
from switchyard_core.errors import ReplayError, ReplayMiss
from switchyard_core.errors import nearest as nearest_name
from switchyard_core.policy.models import Client
from switchyard_core.policy.recordings import default_key_fields
from switchyard_core.replay.folder import Folder, file_name
from switchyard_core.replay.nearest import difference, nearest
from switchyard_core.replay.recording import Answer, Recording, key_of
from switchyard_core.replay.writing import Ledger, Tee, Writer, is_stream, whole
from switchyard_core.upstream.base import Upstream, UpstreamResponse

__all__ = ["Mode", "Replay", "ReplayUpstream"]

#: What is done with calls: ``off`` sends them, ``replay`` answers from recordings and nothing
#: else, ``record`` sends and records those that have none, ``refresh`` sends and records all.
Mode = Literal["off", "replay", "record", "refresh"]

_ADVICE = 'record it with `Replay(..., mode="record")`'


class Replay:
    """A folder of recorded model calls, and what is done with it.

    One object is for one run: equal calls are answered in the order in which they were
    recorded, and then with the last answer.

    Args:
        directory: The folder.
        mode: See :data:`Mode`.
        key_fields: Fields of a body that tell one call from another, in place of the built-in
            list; a policy's own list comes first.
        advice: How to record what is missing, for the message of a miss.

    Raises:
        ReplayError: The folder cannot be used: a file in it is not a recording, or in the mode
            ``replay`` it is empty.
        ValueError: The mode is unknown.

    Example:
        >>> replay = Replay("recordings", "replay")                        # doctest: +SKIP
        >>> yard = Switchyard.from_policy("policy.toml", replay=replay)    # doctest: +SKIP
    """

    def __init__(
        self,
        directory: str | PathLike[str],
        mode: Mode = "replay",
        *,
        key_fields: Sequence[str] | None = None,
        advice: str = _ADVICE,
    ) -> None:
        modes = get_args(Mode)
        if mode not in modes:
            near = nearest_name(str(mode), modes)
            hint = f"; did you mean `{near}`?" if near else ""
            raise ValueError(f"there is no replay mode `{mode}` (modes: {', '.join(modes)}){hint}")
        self.mode: Mode = mode
        self.directory = Path(directory)
        self._key_fields = tuple(key_fields) if key_fields else default_key_fields()
        self._advice = advice
        # Switched off, it does not even look.
        self._folder = Folder(self.directory) if mode != "off" else None
        self._known = frozenset(each.file for each in self._folder or ())
        self._ledger = Ledger(refresh=mode == "refresh")
        if mode == "replay" and not self._known:
            state = "contains no recordings" if self.directory.is_dir() else "does not exist"
            raise ReplayError(
                f"the folder of recordings `{self.directory}` {state}; {advice}",
                path=str(self.directory),
            )

    def upstream(
        self,
        client: Client,
        connect: Callable[[Client], Upstream],
        key_fields: Sequence[str] | None = None,
    ) -> ReplayUpstream:
        """Return a connection that serves or records, around one that sends.

        Args:
            client: Whose connection.
            connect: Makes the inner one, when the first call is sent; in the mode ``replay``
                never.
            key_fields: The policy's own list, ``None`` for this object's.
        """
        return ReplayUpstream(self, lambda: connect(client), key_fields)

    def serves(self, outgoing: Outgoing, key_fields: Sequence[str] | None = None) -> bool:
        """Return whether a call that comes now sends nothing, and so needs no credential.

        Args:
            outgoing: The call.
            key_fields: As for :meth:`upstream`.
        """
        if self.mode == "replay":
            return True
        if self.mode != "record" or self._folder is None:
            return False
        key = key_of(outgoing.method, outgoing.path, outgoing.body, self._fields(key_fields))
        recording = self._folder.get(key)
        return recording is not None and self._ledger.calls[key] < len(recording.answers)

    async def send(
        self,
        outgoing: Outgoing,
        call: Callable[[], Awaitable[UpstreamResponse]],
        key_fields: Sequence[str] | None = None,
    ) -> UpstreamResponse:
        """Answer a call from its recording, or send and record it.

        Args:
            outgoing: The call.
            call: Sends it.
            key_fields: As for :meth:`upstream`.

        Raises:
            ReplayMiss: Nothing is recorded for it, in the mode ``replay``.
            RecordingError: It cannot be recorded; nothing was written. For a field of the
                request nothing was sent either; for one of an answer that is a stream, it is
                raised at the stream's end.
            UpstreamError: The provider gave no answer, which is not recorded.
        """
        if self._folder is None:
            return await call()
        fields = self._fields(key_fields)
        key = key_of(outgoing.method, outgoing.path, outgoing.body, fields)
        self._ledger.calls[key] += 1
        number = self._ledger.calls[key]
        recording = self._folder.get(key)
        if recording is not None and (
            self.mode == "replay" or (self.mode == "record" and number <= len(recording.answers))
        ):
            self._ledger.used.add(recording.file)
            return _played(recording.answers[min(number, len(recording.answers)) - 1])
        if self.mode == "replay":
            raise self._miss(key, outgoing, fields)
        unanswered = Recording(
            file=self._file(key, outgoing),
            key_fields=fields,
            method=outgoing.method,
            path=outgoing.path,
            body=outgoing.body,
            answers=(),
        )
        writer = Writer(self._folder, self._ledger, unanswered, key)
        try:
            writer.check_request()
            answer = await call()
        except BaseException as error:
            writer.gave_up(type(error).__name__)
            raise
        if not writer.accepts(answer.status):
            return answer
        if is_stream(answer):
            tee = Tee(answer, writer)
            return UpstreamResponse(answer.status, answer.headers, tee, tee.aclose)
        return await whole(answer, writer)

    def unused(self) -> tuple[Path, ...]:
        """Return the files that no call of this run was answered from or recorded to, sorted."""
        return tuple(sorted(self._known - self._ledger.used))

    def used(self) -> tuple[Path, ...]:
        """Return the files that calls of this run were answered from or recorded to, sorted."""
        return tuple(sorted(self._ledger.used))

    def _fields(self, key_fields: Sequence[str] | None) -> tuple[str, ...]:
        return tuple(key_fields or self._key_fields)

    def _file(self, key: str, outgoing: Outgoing) -> Path:
        return self.directory / file_name(key, outgoing.route, outgoing.role or outgoing.target)

    def _miss(self, key: str, outgoing: Outgoing, fields: tuple[str, ...]) -> ReplayMiss:
        file = self._file(key, outgoing)
        recordings = list(self._folder or ())
        near = nearest(recordings, outgoing.method, outgoing.path, outgoing.body, fields)
        lines = [f"nothing is recorded for this call: key {key}, wanted file `{file}`"]
        if near is None:
            paths = ", ".join(sorted({f"`{each.path}`" for each in recordings}))
            lines.append(f"no call to `{outgoing.path}` is recorded (recorded: {paths})")
        elif near.key_fields != fields:
            lines.append(
                f"`{near.file.name}` was recorded with other key fields "
                f"({', '.join(near.key_fields)}): record it again"
            )
        else:
            lines.append(f"the nearest is `{near.file.name}` (-), which differs from the call (+):")
            lines += difference(near, outgoing.body, fields)
        lines.append(self._advice)
        return ReplayMiss("\n".join(lines), key=key, path=str(file))


def _played(answer: Answer) -> UpstreamResponse:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in answer.chunks:
            yield chunk

    return UpstreamResponse(answer.status, answer.headers, chunks())


class ReplayUpstream:
    """A connection that serves or records, around one that sends."""

    def __init__(
        self,
        replay: Replay,
        connect: Callable[[], Upstream],
        key_fields: Sequence[str] | None = None,
    ) -> None:
        self._replay = replay
        self._connect = connect
        self._key_fields = key_fields
        self._inner: Upstream | None = None

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Answer a call from its recording, or send and record it."""
        return await self._replay.send(outgoing, lambda: self._send(outgoing), self._key_fields)

    async def _send(self, outgoing: Outgoing) -> UpstreamResponse:
        if self._inner is None:
            self._inner = self._connect()
        return await self._inner.send(outgoing)

    async def aclose(self) -> None:
        """Close the inner connection, if there is one."""
        if self._inner is not None:
            await self._inner.aclose()
