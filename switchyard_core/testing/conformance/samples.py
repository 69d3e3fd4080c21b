"""Requests that a router is tried with: what agents send, and what no agent should.

The functions ``require_…`` check what must be left of the odd ones in the outgoing body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.request import Request
from switchyard_core.testing.conversation import ConversationBuilder, conversation
from switchyard_core.testing.story import call
from switchyard_core.wire import format_of

__all__ = [
    "empty_requests",
    "huge_requests",
    "odd_request",
    "require_key_order",
    "require_unknown_fields",
    "sample_requests",
    "side_requests",
]

_EDIT: Mapping[str, Any] = {"path": "src/app.py", "old_string": "a", "new_string": "b"}
_SUBAGENT = {"x-switchyard-is-subagent": "true", "x-switchyard-agent-id": "worker"}
#: Text that a decoder would print differently, and a key that it would lose.
_ODD = b'{"b":1.10,"a":null,"n":1e400,"a":[1.0,12345678901234567890123],"t":"\\u00e9\\/"}'
_ODD_FIELDS = ("x-first", "x-middle", "x-last")
_HUGE_TURNS, _HUGE_CALLS, _HUGE_RESULT = 20, 50, 2000


def sample_requests(wire_format: WireFormat, model: str) -> dict[str, Request]:
    """Return new, valid requests of many kinds, by name."""
    start = conversation(wire_format).system("You are a coding agent.").user("fix the bug")
    looked = start.says("I will look.").reads("read_file", path="src/app.py")
    edited = looked.edits("edit_file", **_EDIT)
    told: dict[str, tuple[ConversationBuilder, dict[str, Any]]] = {
        "first turn": (start, {"session": "s-1"}),
        "first turn without a session": (start, {}),
        "only the user's words": (conversation(wire_format).user("hello"), {"session": "s-2"}),
        "streamed": (start, {"session": "s-3", "stream": True}),
        "read-only turns": (looked.runs("git diff | head"), {"session": "s-1"}),
        "first edit": (edited, {"session": "s-1"}),
        "first edit without a session": (edited, {}),
        "failed edit": (looked.edits("edit_file", fails=True, **_EDIT), {"session": "s-4"}),
        "parallel calls": (
            start.parallel(call("read_file", path="a.py"), call("edit_file", **_EDIT)),
            {"session": "s-5"},
        ),
        "after an edit": (edited.reads("read_file", path="b.py"), {"session": "s-1"}),
        "compacted": (start.user("Summary: the bug was fixed."), {"session": "s-1"}),
        "reasoning": (
            start.reasoning("Look first.", encrypted="b3BhcXVl").reads("read_file", path="a.py"),
            {"session": "s-6"},
        ),
        "sub-agent": (edited, {"session": "s-1", "headers": _SUBAGENT}),
        "last request": (edited.says("Done.").user("thanks"), {"session": "s-1", "final": True}),
        **{f"session {n}": (start, {"session": f"many-{n}"}) for n in range(12)},
    }
    return {name: story.request(model, **more) for name, (story, more) in told.items()}


def side_requests(wire_format: WireFormat, model: str) -> dict[str, Request]:
    """Return requests that clients make beside a conversation which edited a file, by name."""
    edited = conversation(wire_format).user("fix it").edits("edit_file", **_EDIT)
    body = edited.body(model)
    headers = {"x-switchyard-session-id": "side"}
    return {
        endpoint: Request(wire_format=wire_format, body=body, headers=headers, endpoint=endpoint)
        for endpoint in format_of(wire_format).paths
        if endpoint != "create"
    }


def empty_requests(wire_format: WireFormat, model: str) -> dict[str, Request]:
    """Return requests with next to nothing in them, by what they have as history."""
    key = format_of(wire_format).history_key
    histories: list[Any] = [
        [],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": []}],
        [{"role": "user"}],
        [{}],
        [None],
        [{"role": "assistant", "content": None}],
    ]
    if wire_format == "openai_responses":
        histories += ["", "hello"]
    found = {}
    for history in histories:
        body = {"model": model, key: history}
        name = f"a request with {key} = {encode(history).decode()}"
        found[name] = Request(wire_format=wire_format, body=body)
        headers = {"x-switchyard-session-id": "empty"}
        request = Request(wire_format=wire_format, body=body, headers=headers)
        found[f"{name} and a session"] = request
    return found


def huge_requests(wire_format: WireFormat, model: str) -> dict[str, Request]:
    """Return one valid request of a thousand tool calls, about two megabytes."""
    story = conversation(wire_format).system("You are a coding agent.").user("fix it")
    result = "x" * _HUGE_RESULT
    for turn in range(_HUGE_TURNS):
        calls = [call("read_file", path=f"src/{turn}/{number}.py") for number in range(_HUGE_CALLS)]
        story = story.parallel(*calls).user(result * _HUGE_CALLS)
    return {"a request with a thousand tool calls": story.request(model, session="huge")}


def odd_request(request: Request) -> Request:
    """Return a request with unknown fields ``x-…`` in its body and each item of its history."""
    fields = ObjectText(request.body)
    fields.insert(0, "x-first", _ODD)
    fields.insert(len(fields) // 2, "x-middle", _ODD)
    fields.insert(len(fields), "x-last", _ODD)
    for number, item in enumerate(_items(fields, request)):
        item.insert(1, "x-item", b'{"item":%d,"odd":%s}' % (number, _ODD))
    return Request(wire_format=request.wire_format, body=fields.dump(), headers=request.headers)


def require_unknown_fields(
    request: Request, body: bytes, who: str, removes: Collection[str] = ()
) -> None:
    """Fail unless a body has every field of an :func:`odd_request`, with the very same bytes."""
    before, after = ObjectText(request.body), ObjectText(body)
    places = [(f"`{key}` of the body", before.raw(key), after.raw(key)) for key in _ODD_FIELDS]
    found = {item.raw("x-item") for item in _items(after, request)}
    for number, item in enumerate(_items(before, request)):
        raw = item.raw("x-item")
        if item.text("type") not in removes:
            place = f"`x-item` of item {number} of the history"
            places.append((place, raw, raw if raw in found else None))
    for place, raw, now in places:
        if raw is not None and now != raw:
            told = "is lost" if now is None else f"became {now.decode(errors='replace')}"
            raise AssertionError(
                f"{who}: {place} {told}: change the caller's body by `set`, `insert` and "
                "`delete` of the `ObjectText` that a rewrite is given, and do not build a new one"
            )


def require_key_order(request: Request, body: bytes, who: str) -> None:
    """Fail unless the keys of an :func:`odd_request` that are left have the caller's order."""
    before, after = ObjectText(request.body), ObjectText(body)
    twins = {item.raw("x-item"): item for item in _items(after, request)}
    pairs: list[tuple[str, ObjectText, ObjectText | None]] = [("the body", before, after)]
    pairs += [
        (f"item {number} of the history", item, twins.get(item.raw("x-item")))
        for number, item in enumerate(_items(before, request))
    ]
    for place, one, other in pairs:
        kept = [key for key in one.keys() if other and key in other]  # noqa: SIM118  # no mapping
        found = [key for key in other.keys() if key in one] if other else []  # noqa: SIM118
        if kept != found:
            raise AssertionError(
                f"{who}: the keys of {place} are in another order: {found}, sent as "
                f"{kept}; change a member in its place (`set`), do not delete and add it"
            )


def _items(body: ObjectText, request: Request) -> Iterator[ObjectText]:
    history = body.array(format_of(request.wire_format).history_key)
    for _, item in history.objects() if history is not None else ():
        yield item
