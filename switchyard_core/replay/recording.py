"""One recorded call: its key, its file, and its body, readable where it can be and exact always."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from switchyard_core.errors import Finding
from switchyard_core.jsonio.printing import pretty
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.upstream.played import (
    MAX_DEPTH,
    Problem,
    UnreadableError,
    answer_problems,
    findings_of,
    is_deeper,
    parsed,
    read_played,
)

__all__ = [
    "VERSION",
    "Answer",
    "Recording",
    "dumped_body",
    "dumped_chunk",
    "fields_of",
    "key_of",
    "loaded_body",
    "loaded_chunk",
    "object_of",
]

#: Hexadecimal digits of the key that name a file.
KEY_DIGITS = 16
#: Version of the file's format.
VERSION = 1
#: Of whole answers; what is below is only said before one.
_STATUSES = range(200, 600)
#: Levels of a file around the body of an answer.
_AROUND_BODY = 3
_Path = tuple[str | int, ...]
#: Ways to write JSON that providers use, by their name in a recording.
_LAYOUTS: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "spaced": {},
    "indented": {"indent": 2},
}
#: After the name of a layout: the body ends with a line break.
_LINE = ", line break"
_BASE64 = "base64"


def key_of(method: str, path: str, body: bytes, fields: Sequence[str]) -> str:
    """Return the key of a call, 16 hexadecimal digits.

    It is the beginning of the SHA-256 of method, path and the listed fields of the body as
    canonical JSON (``a.b`` is the key ``b`` of the object ``a``): neither the order of keys nor
    white space counts. A body that is not a JSON object counts byte by byte.
    """
    call: dict[str, Any] = {"method": method, "path": path}
    tree = object_of(body)
    if tree is None:
        call["bytes"] = hashlib.sha256(body).hexdigest()
    else:
        call["fields"] = dict(fields_of(tree, fields))
    text = json.dumps(call, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:KEY_DIGITS]


def fields_of(tree: dict[str, Any], fields: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of the listed fields that a body has, in the order of the list."""
    for name in fields:
        value: Any = tree
        for step in name.split("."):
            if not isinstance(value, dict) or step not in value:
                break
            value = value[step]
        else:
            yield name, value


def _refused(word: str) -> Any:
    raise ValueError(f"`{word}` is not JSON")


def object_of(body: bytes) -> dict[str, Any] | None:
    """Return a body as a tree, ``None`` if it is not a JSON object, or nested too deeply."""
    try:
        # As text: of bytes `json` guesses the encoding, which could be UTF-16.
        tree = json.loads(body.decode("utf-8"), parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) and not is_deeper(tree) else None


def is_shown_as_object(tree: Any) -> bool:
    """Return whether a file has a body as it is, and not as a string or as base64."""
    return isinstance(tree, dict) and set(tree) != {_BASE64}


def is_layout(word: Any) -> bool:
    """Return whether a word says how a body was spaced."""
    return isinstance(word, str) and (word.removesuffix(_LINE) or "compact") in _LAYOUTS


def dumped_body(body: bytes) -> tuple[bytes, str]:
    """Return a body as JSON text for a file, and its layout, ``""`` when it is not an object.

    A JSON object is kept as it is if its bytes can be restored from it; anything else is a
    string, and base64 in an object when it is not UTF-8.
    """
    tree = object_of(body)
    if is_shown_as_object(tree):
        text = body.decode("utf-8")
        end = _LINE if text.endswith("\n") else ""
        for layout, arguments in _LAYOUTS.items():
            if json.dumps(tree, ensure_ascii=False, **arguments) == text.removesuffix("\n"):
                return body, layout + end
    return dumped_chunk(body), ""


def loaded_body(value: Any, layout: str) -> bytes:
    """Return a body of a file; the inverse of :func:`dumped_body`."""
    if is_shown_as_object(value):
        arguments = _LAYOUTS[layout.removesuffix(_LINE) or "compact"]
        text = json.dumps(value, ensure_ascii=False, **arguments)
        return (text + "\n" * layout.endswith(_LINE)).encode("utf-8", "surrogatepass")
    return loaded_chunk(value)


def dumped_chunk(chunk: bytes) -> bytes:
    """Return a piece of a body as JSON text: a string, or base64 when it is not UTF-8."""
    try:
        value: Any = chunk.decode("utf-8")
    except UnicodeDecodeError:
        value = {_BASE64: base64.b64encode(chunk).decode("ascii")}
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def loaded_chunk(value: Any) -> bytes:
    """Return a piece of a body; the inverse of :func:`dumped_chunk`."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and set(value) == {_BASE64} and isinstance(value[_BASE64], str):
        try:
            return base64.b64decode(value[_BASE64], validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
    raise ValueError("a body is an object, a string, or base64 in an object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a provider."""

    status: int
    headers: tuple[tuple[str, str], ...]  # Those that are kept; lower-case names and values
    #: The body without content encoding, in the pieces in which it is served
    chunks: tuple[bytes, ...]
    stream: bool  # Whether the file has the pieces one by one

    def dumped(self) -> bytes:
        """Return the answer as JSON text for a file."""
        head = encode({"status": self.status, "headers": dict(self.headers)})[:-1]
        if self.stream:
            return head + b',"chunks":[' + b",".join(map(dumped_chunk, self.chunks)) + b"]}"
        body, layout = dumped_body(b"".join(self.chunks))
        note = b"" if layout in ("", "compact") else b',"layout":' + encode(layout)
        return head + note + b',"body":' + body + b"}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A call and the answers to it, in the order in which they came."""

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
    def read(cls, file: Path) -> tuple[Self | None, tuple[Finding, ...]]:
        """Return the recording in a file, ``None`` with all that is wrong with it."""
        try:
            text = read_played(file)
            tree = parsed(text, MAX_DEPTH + _AROUND_BODY)
        except UnreadableError as error:
            return None, (
                Finding(
                    code="SY250",
                    message=f"the recording {error.message}",
                    file=str(file),
                    line=error.line,
                    column=error.column,
                    fix="repair or remove the file: the folder must contain recordings only",
                ),
            )
        reader = _Reader()
        answers = reader.answers(tree)
        request = reader.request(tree, text)
        if reader.problems or request is None:
            return None, findings_of(text, str(file), reader.problems)
        method, path, body = request
        fields = tuple(tree["key_fields"])
        found = cls(
            file=file, key_fields=fields, method=method, path=path, body=body, answers=answers
        )
        if file.name[:KEY_DIGITS] == found.key:
            return found, ()
        return None, (
            Finding(
                code="SY252",
                message=f"this file is named for another call: its request has the key "
                f"`{found.key}`, so it was renamed or edited",
                file=str(file),
                fix="record the call again",
            ),
        )


class _Reader:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def request(self, tree: Any, text: str) -> tuple[str, str, bytes] | None:
        """Return method, path and body of the call, ``None`` when something is wrong."""
        if not isinstance(tree, dict):
            self._wrong((), "this is not a recording: it must be an object")
            return None
        if isinstance(tree.get("version"), bool) or tree.get("version") != VERSION:
            self._wrong(("version",), f"its `version` is not {VERSION}")
        fields = tree.get("key_fields")
        if not isinstance(fields, list) or not all(isinstance(each, str) for each in fields):
            self._wrong(("key_fields",), "`key_fields` must be a list of strings")
        request = tree.get("request")
        if not isinstance(request, dict):
            self._wrong(("request",), "it has no `request`, which must be an object")
            return None
        for name in ("method", "path"):
            if not isinstance(request.get(name), str):
                self._wrong(("request", name), f"the `{name}` of the request must be a string")
        body = request.get("body")
        try:
            data = b"" if is_shown_as_object(body) else loaded_chunk(body)
        except ValueError as error:
            self._wrong(("request", "body"), str(error))
            return None
        if is_shown_as_object(body) and not self.problems:
            # As it was sent, to the byte: its key hangs on it.
            data = _raw_body(text)
        return str(request.get("method")), str(request.get("path")), data

    def answers(self, tree: Any) -> tuple[Answer, ...]:
        """Return the answers; of those that are wrong nothing."""
        responses = tree.get("responses") if isinstance(tree, dict) else ()
        if not isinstance(responses, list) or not responses:
            if isinstance(tree, dict):
                self._wrong(("responses",), "`responses` must be a list with an answer in it")
            return ()
        found = (self._answer(each, ("responses", at)) for at, each in enumerate(responses))
        return tuple(answer for answer in found if answer is not None)

    def _answer(self, value: Any, path: _Path) -> Answer | None:
        if not isinstance(value, dict):
            self._wrong(path, "an answer must be an object")
            return None
        status, headers = value.get("status"), value.get("headers")
        if isinstance(status, bool) or not isinstance(status, int) or status not in _STATUSES:
            self._wrong((*path, "status"), "the `status` of an answer must be from 200 to 599")
            status = _STATUSES[0]
        if not isinstance(headers, dict):
            self._wrong((*path, "headers"), "the `headers` of an answer must be an object")
            headers = {}
        chunks = self._chunks(value, path)
        if chunks is None:
            return None
        for place, message in answer_problems(status, headers, sum(map(len, chunks))):
            self._wrong((*path, *place), message)
        return Answer(
            status=status, headers=tuple(headers.items()), chunks=chunks, stream="chunks" in value
        )

    def _chunks(self, value: dict[str, Any], path: _Path) -> tuple[bytes, ...] | None:
        if ("chunks" in value) == ("body" in value):
            self._wrong(path, "an answer has either a `body` or `chunks`")
            return None
        if "chunks" in value:
            pieces = value["chunks"]
            if not isinstance(pieces, list):
                self._wrong((*path, "chunks"), "`chunks` must be a list")
                return None
            places = [(*path, "chunks", at) for at in range(len(pieces))]
            return tuple(map(self._chunk, pieces, places))
        layout = value.get("layout", "")
        if not is_layout(layout):
            self._wrong((*path, "layout"), "the `layout` of a body is not one that is known")
            return None
        if is_shown_as_object(value["body"]):
            return (loaded_body(value["body"], layout),)
        body = self._chunk(value["body"], (*path, "body"))
        return (body,) if body else ()

    def _chunk(self, value: Any, path: _Path) -> bytes:
        try:
            return loaded_chunk(value)
        except ValueError as error:
            self._wrong(path, str(error))
            return b""

    def _wrong(self, path: _Path, message: str) -> None:
        fix = "change it as docs/replay.md says, or record the call again"
        self.problems.append(Problem(path, message, fix, "SY251"))


def _raw_body(text: str) -> bytes:
    request = ObjectText(text.encode("utf-8"), unique=False).object("request")
    return (request.raw("body") if request is not None else None) or b""
