"""One recorded call: its file, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from switchyard_core.errors import ReplayError
from switchyard_core.jsonprint import pretty
from switchyard_core.jsontext import JsonTextError, ObjectText, encode
from switchyard_core.replay.bodies import (
    dumped_body,
    dumped_chunk,
    is_shown_as_object,
    loaded_body,
    loaded_chunk,
)
from switchyard_core.replay.keys import KEY_DIGITS, key_of, object_of

__all__ = ["VERSION", "Answer", "Recording"]

#: Version of the file's format.
VERSION = 1
#: Of whole answers; what is below is only said before one.
_STATUSES = range(200, 600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a provider.

    Args:
        status: HTTP status.
        headers: Those that are kept; lower-case names and values.
        chunks: The body without content encoding, in the pieces in which it is served.
        stream: Whether the pieces stand in the file one by one.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]
    stream: bool

    def dumped(self) -> bytes:
        """Return the answer as JSON text for a file."""
        head = encode({"status": self.status, "headers": dict(self.headers)})[:-1]
        if self.stream:
            return head + b',"chunks":[' + b",".join(map(dumped_chunk, self.chunks)) + b"]}"
        body, layout = dumped_body(b"".join(self.chunks))
        note = b"" if layout in ("", "compact") else b',"layout":' + encode(layout)
        return head + note + b',"body":' + body + b"}"

    @classmethod
    def loaded(cls, value: Any) -> Self:
        """Return an answer of a file.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: The value is none.
        """
        stream = "chunks" in value
        if not isinstance(value["status"], int) or stream == ("body" in value):
            msg = "an answer has a `status`, and either a `body` or `chunks`"
            raise ValueError(msg)
        if value["status"] not in _STATUSES or isinstance(value["status"], bool):
            msg = "the `status` of an answer is no HTTP status: it is from 200 to 599"
            raise ValueError(msg)
        body = loaded_body(value["body"], value.get("layout", "")) if not stream else b""
        chunks = tuple(map(loaded_chunk, value["chunks"])) if stream else (body,) if body else ()
        headers = tuple((str(name), str(text)) for name, text in value["headers"].items())
        return cls(status=value["status"], headers=headers, chunks=chunks, stream=stream)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A call and the answers to it, in the order in which they came.

    Args:
        file: Where it stands.
        key_fields: Fields of the body that its key is made of.
        method: HTTP method.
        path: Path without query.
        body: The body as sent.
        answers: One or more.
    """

    file: Path
    key_fields: tuple[str, ...]
    method: str
    path: str
    body: bytes
    answers: tuple[Answer, ...]

    @property
    def key(self) -> str:
        """The key of the call."""
        return key_of(self.method, self.path, self.body, self.key_fields)

    def with_answer(self, answer: Answer) -> Recording:
        """Return a recording with one more answer."""
        return replace(self, answers=(*self.answers, answer))

    def dumped(self) -> str:
        """Return the text of the file: indented, keys in their order, numbers as they were sent."""
        # The request is for people and for its key; unlike an answer it need not be byte-exact.
        is_object = is_shown_as_object(object_of(self.body))
        request = {"method": self.method, "path": self.path}
        parts = (
            b'{"version":' + encode(VERSION),
            b'"key_fields":' + encode(list(self.key_fields)),
            b'"request":'
            + encode(request)[:-1]
            + b',"body":'
            + (self.body if is_object else dumped_chunk(self.body))
            + b"}",
            b'"responses":[' + b",".join(answer.dumped() for answer in self.answers) + b"]}",
        )
        return pretty(b",".join(parts)) + "\n"

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a recording.

        Raises:
            ReplayError: The file is none, or its name does not fit what is in it.
        """
        try:
            recording = cls._loaded(file, file.read_bytes())
        except OSError as error:
            raise _unusable(file, f"cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise _unusable(file, f"is not a recording: {str(error)[:200]}") from error
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            # What these say is for programmers.
            raise _unusable(file, "is not a recording: its members are not as they were") from error
        if file.name[:KEY_DIGITS] != recording.key:
            raise _unusable(
                file,
                f"is named for another call: its request has the key `{recording.key}`, so it "
                "was renamed or edited. Record it again",
            )
        return recording

    @classmethod
    def _loaded(cls, file: Path, data: bytes) -> Self:
        try:
            text = ObjectText(data)
        except JsonTextError as error:
            msg = "it is not a JSON object"
            raise ValueError(msg) from error
        if text.value("version") != VERSION:
            msg = f"its `version` is not {VERSION}"
            raise ValueError(msg)
        request = text.object("request")
        if request is None:
            msg = "it has no `request`"
            raise ValueError(msg)
        body = request.value("body")
        responses: Sequence[Mapping[str, Any]] = text.value("responses")
        if not isinstance(responses, list) or not responses:
            msg = "`responses` is not a list with an answer in it"
            raise ValueError(msg)
        return cls(
            file=file,
            key_fields=tuple(map(str, text.value("key_fields"))),
            method=str(request.value("method")),
            path=str(request.value("path")),
            body=(request.raw("body") or b"") if is_shown_as_object(body) else loaded_chunk(body),
            answers=tuple(Answer.loaded(response) for response in responses),
        )


def _unusable(file: Path, what: str) -> ReplayError:
    return ReplayError(
        f"`{file}` {what}. The folder of recordings holds nothing else; remove or repair the file",
        path=str(file),
    )
