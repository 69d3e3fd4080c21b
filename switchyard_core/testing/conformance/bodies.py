"""Whether what a caller sent is in what is sent on: fields, their bytes, and their order."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.request import Request
from switchyard_core.testing.conformance.bench import require
from switchyard_core.wire import format_of

__all__ = ["require_key_order", "require_unknown_fields"]

_FIELDS = ("x-first", "x-middle", "x-last")


def require_unknown_fields(
    request: Request, outgoing: bytes, *, what: str, who: str, removes: Collection[str] = ()
) -> None:
    """Fail unless every field of :func:`.odd_request` is there, with the very same bytes.

    Args:
        request: What the caller sent.
        outgoing: The body that is sent on.
        what: Name of the request, for the message.
        who: Who changed the body, for the message.
        removes: Types of history items that may be gone.

    Raises:
        AssertionError: Names the field.
    """
    before, after = ObjectText(request.body), ObjectText(outgoing)
    for key in _FIELDS:
        _require_same(before.raw(key), after.raw(key), f"`{key}` of the body", what, who)
    found = {item.raw("x-item") for item in _items(after, request)}
    for number, item in enumerate(_items(before, request)):
        raw = item.raw("x-item")
        if raw is not None and item.text("type") not in removes:
            place = f"`x-item` of item {number} of the history"
            _require_same(raw, raw if raw in found else None, place, what, who)


def require_key_order(request: Request, outgoing: bytes, *, what: str, who: str) -> None:
    """Fail unless the caller's keys that are left stand in the caller's order.

    Raises:
        AssertionError: Names the object and both orders.
    """
    before, after = ObjectText(request.body), ObjectText(outgoing)
    _require_order(before, after, "the body", what, who)
    marked = {item.raw("x-item"): item for item in _items(after, request)}
    for number, item in enumerate(_items(before, request)):
        twin = marked.get(item.raw("x-item"))
        if twin is not None:
            _require_order(item, twin, f"item {number} of the history", what, who)


def _items(body: ObjectText, request: Request) -> Iterator[ObjectText]:
    history = body.array(format_of(request.wire_format).history_key)
    for _, item in history.objects() if history is not None else ():
        yield item


def _require_same(
    before: bytes | None, after: bytes | None, place: str, what: str, who: str
) -> None:
    if before is None:
        return
    told = "is lost" if after is None else f"became {after.decode(errors='replace')}"
    require(
        before == after,
        f"{who}: {place} {told} ({what}): change the caller's body by `set`, `insert` and "
        "`delete` of the `ObjectText` that a rewrite is given, and build no new one",
    )


def _require_order(before: ObjectText, after: ObjectText, place: str, what: str, who: str) -> None:
    kept = [key for key in before.keys() if key in after]  # noqa: SIM118  # no mapping
    found = [key for key in after.keys() if key in before]  # noqa: SIM118
    require(
        kept == found,
        f"{who}: the keys of {place} stand in another order ({what}): {found}, sent as {kept}; "
        "change a member where it stands (`set`), do not delete and add it",
    )
