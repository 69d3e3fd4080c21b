"""Reading a whole answer; errors name the place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from switchyard_core.answering import RequestedCall
from switchyard_core.jsonio.tree import JsonTextError, encode, loads

__all__ = [
    "FILTERED",
    "ReportedError",
    "ShapeError",
    "ToldError",
    "an_array",
    "an_object",
    "count",
    "error_code",
    "objects",
    "refuse_error",
    "requested_call",
    "shown",
    "status_word",
    "table",
    "text_in",
    "texts_of",
    "told_error",
]

#: Refusals that come without a word.
FILTERED = "the provider's content filter stopped the reply"
_CODE = re.compile(r"[\w.-]{1,64}")
_MOST_CHARS = 64
#: Longest message of an error that is told on, and the one for an error without any.
_MOST_MESSAGE = 8192
_SAYS_NOTHING = "the provider reports an error without a message"


class ShapeError(ValueError):
    """An answer has the wrong shape; the message says what is wrong and where."""


class ReportedError(ShapeError):
    """An answer is the report of an error.

    Args:
        message: That it is, with the code.
        said: What the provider says, bounded, ``""`` for nothing; may quote the request.
    """

    def __init__(self, message: str, said: str) -> None:
        self.said = said
        super().__init__(message)


def an_object(tree: Mapping[str, Any], key: str, place: str = "") -> Mapping[str, Any]:
    """Return a member that must be an object; ``place`` is the path of ``tree``."""
    value: Mapping[str, Any] = _member(tree, key, place, dict, "not an object")
    return value


def an_array(tree: Mapping[str, Any], key: str, place: str = "") -> Sequence[Any]:
    """Return a member that must be an array."""
    value: Sequence[Any] = _member(tree, key, place, list, "not an array")
    return value


def text_in(tree: Mapping[str, Any], key: str, place: str = "") -> str:
    """Return a member that must be a string."""
    value: str = _member(tree, key, place, str, "not a string")
    return value


def objects(values: Any, place: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return the items of an array with their places; ``None`` has none."""
    if values is None:
        return ()
    if not isinstance(values, list):
        msg = f"`{place}` is not an array"
        raise ShapeError(msg)
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            msg = f"`{place}[{index}]` is not an object"
            raise ShapeError(msg)
    return tuple((f"{place}[{index}]", value) for index, value in enumerate(values))


def texts_of(parts: Iterable[tuple[str, Mapping[str, Any]]], kind: str, key: str) -> str:
    """Return the texts of the parts of one type, joined."""
    return "".join(text_in(part, key, at) for at, part in parts if part.get("type") == kind)


def requested_call(call_id: str, name: str, arguments: Any, place: str) -> RequestedCall:
    """Return a tool call that a reply asks for."""
    if isinstance(arguments, dict):  # some providers forget to write the JSON as text
        arguments = encode(arguments).decode()
    if arguments is not None and not isinstance(arguments, str):
        msg = f"`{place}.arguments` is not a string"
        raise ShapeError(msg)
    return RequestedCall(id=call_id, name=name, arguments=arguments or "{}")


def refuse_error(tree: Mapping[str, Any]) -> None:
    """Refuse a report of an error, which may come with status 200 and half an answer."""
    if tree.get("error") or tree.get("type") == "error":
        # Only a code: the rest may quote the request or a credential.
        code = _told_code(tree)
        msg = f"the provider reports an error ({code if _CODE.fullmatch(code) else 'no code'})"
        raise ReportedError(msg, _said(tree))


def error_code(body: bytes) -> str:
    """Return the code or type in a provider's error, ``""`` when it cannot be read."""
    try:
        tree = loads(body)
    except JsonTextError:
        return ""
    return _told_code(table(tree)) or _told_code(table(table(tree).get("response")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldError:
    """What a provider says in an error answer, ``""`` for what it leaves out."""

    message: str
    kind: str = ""
    code: str = ""
    param: str = ""


def told_error(body: bytes) -> ToldError:
    """Return what an error answer says, whatever its shape."""
    try:
        tree = loads(body)
    except JsonTextError:
        text = body.decode("utf-8", "replace").strip()
        # A page of some proxy says nothing to a person who reads a client's screen.
        return ToldError(message=_bounded("" if text.startswith("<") else text))
    if isinstance(tree, list) and tree:
        tree = tree[0]
    outer = table(tree)
    error = table(outer.get("error")) or outer
    return ToldError(
        message=_bounded(_said(outer)),
        kind=_coded(error.get("type")),
        code=_coded(error.get("code")),
        param=_coded(error.get("param")),
    )


def _said(tree: Mapping[str, Any]) -> str:
    """Return the words in an error, wherever they stand."""
    error = tree.get("error")
    places = (table(error).get("message"), tree.get("message"), tree.get("detail"), error)
    return next((each for each in places if isinstance(each, str)), "")[:_MOST_MESSAGE]


def _bounded(text: str) -> str:
    return text[:_MOST_MESSAGE] or _SAYS_NOTHING


def _coded(value: Any) -> str:
    return value if isinstance(value, str) and _CODE.fullmatch(value) else ""


def _told_code(tree: Mapping[str, Any]) -> str:
    error = table(tree.get("error"))
    beside = tree.get("code") if tree.get("error") or tree.get("type") == "error" else None
    told = [code for code in (error.get("code"), error.get("type"), beside) if code]
    # A number is the status once more; a word says more.
    word = next((code for code in told if isinstance(code, str)), None)
    return str(word or next(iter(told), ""))


def shown(kinds: Iterable[Any]) -> tuple[str, ...]:
    """Return each kind of call once, as a printable word."""
    words = (
        kind[:_MOST_CHARS] if isinstance(kind, str) and kind.isprintable() else "an unknown call"
        for kind in kinds
    )
    return tuple(dict.fromkeys(words))


def table(value: Any) -> Mapping[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def count(usage: Any, *keys: str) -> int:
    """Return the first count above 0 among some members of an object, 0 without one."""
    for key in keys:
        value = usage.get(key) if isinstance(usage, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0


def status_word(status: str) -> str:
    """Return the words for a status that a provider reports."""
    return f"the status is {status}" if _CODE.fullmatch(status) else "the status is unknown"


def _member(tree: Mapping[str, Any], key: str, place: str, kind: type, otherwise: str) -> Any:
    at = f"{place}.{key}" if place else key
    if key not in tree:
        otherwise = "missing"
    elif isinstance(tree[key], kind):
        return tree[key]
    msg = f"`{at}` is {otherwise}"
    raise ShapeError(msg)
