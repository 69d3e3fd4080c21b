"""The requests that one request grew from: its history, cut before each turn of the assistant."""

from __future__ import annotations

from switchyard_core.errors import BodyError
from switchyard_core.request import Request

__all__ = ["turns_of"]


def turns_of(request: Request) -> list[Request]:
    """Return the requests of a conversation, the given one last.

    Each holds the history that stood before a turn of the assistant; everything else, headers
    too, is as in the last one, which alone may be its session's final one. A request without
    such turns, or one that cannot be read, is returned alone.
    """
    key = request.history_key
    try:
        messages = request.conversation.messages
        history = request.fields.copy().array(key)
    except BodyError:
        return [request]
    if history is None or request.endpoint != "create":
        return [request]
    asked = False
    ends = []
    for message in messages:
        if message.role == "assistant" and asked:
            ends.append(message.first)
        asked = asked or message.role in ("user", "tool")
    return [*(_until(request, end) for end in ends), request]


def _until(request: Request, end: int) -> Request:
    """Return a request whose history has the first ``end`` items of the given one."""
    fields = request.fields.copy()
    history = fields.array(request.history_key)
    if history is not None:
        for index in range(len(history) - 1, end - 1, -1):
            history.delete(index)
    return Request(
        wire_format=request.wire_format,
        body=fields.dump(),
        headers=request.headers,
        query=request.query,
        session_final=False,
    )
