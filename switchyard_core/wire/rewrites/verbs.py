"""What a rule does at one place of a body, or to a header; each returns the change, or ``""``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from switchyard_core.decision import RewriteScope
from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode, loads
from switchyard_core.models.schema import ValueTest
from switchyard_core.wire.rewrites.steps import Step

__all__ = ["VERBS", "bounded", "change_header", "passes"]

#: Longest value that a report repeats.
_SHOWN = 40


def passes(values: Sequence[Any], test: ValueTest) -> bool:
    """Return whether one of the values at a path passes a test."""
    found = [value for value in values if value is not None]
    if test.present is not None:
        return bool(found) is test.present
    if test.in_ is not None:
        return any(_among(value, test.in_) for value in found)
    if test.not_in is not None:
        return any(not _among(value, test.not_in) for value in found)
    if test.gt is not None:
        return any(_is_number(value) and value > test.gt for value in found)
    return any(_among(value, (test.equals,)) for value in found)


def _among(value: Any, wanted: Sequence[Any]) -> bool:
    # JSON tells `true` from 1.
    return any(value == one and isinstance(value, bool) is isinstance(one, bool) for one in wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _drop(holder: ObjectText, key: str, step: Step) -> str:
    return f"removed {step.rule.path}" if holder.delete(key) else ""


def _rename(holder: ObjectText, key: str, step: Step) -> str:
    raw, new = holder.raw(key), step.rule.to or ""
    if raw is None:
        return ""
    if new in holder:
        holder.delete(key)
        return f"removed {step.rule.path}, {new} is there"
    holder.insert(holder.index(key), new, raw)
    holder.delete(key)
    return f"renamed {step.rule.path} to {new}"


def _set(holder: ObjectText, key: str, step: Step) -> str:
    raw = holder.raw(key)
    if raw is not None and loads(raw) == step.rule.value:
        return ""
    return _written(holder, key, step.rule.value, step)


def _default(holder: ObjectText, key: str, step: Step) -> str:
    return "" if key in holder else _written(holder, key, step.rule.value, step)


def _map(holder: ObjectText, key: str, step: Step) -> str:
    values, last = step.rule.values or {}, step.rule.else_
    old = holder.value(key)
    if old is None:
        return ""
    new = values.get(old, old) if isinstance(old, str) else old
    known = (*values, *values.values())
    if last is not None and isinstance(old, str) and not _among(old, known):
        new = last
    return "" if new == old else _written(holder, key, new, step)


def _cap(holder: ObjectText, key: str, step: Step) -> str:
    return bounded(holder, key, step.rule.value, min, step.rule.path or key)


def _floor(holder: ObjectText, key: str, step: Step) -> str:
    return bounded(holder, key, step.rule.value, max, step.rule.path or key)


def bounded(
    holder: ObjectText, key: str, limit: Any, keep: Callable[[Any, Any], Any], name: str = ""
) -> str:
    """Keep a number at its limit, the smaller or larger of both."""
    old = holder.value(key)
    if not _is_number(old) or keep(old, limit) == old:
        return ""
    holder.set(key, encode(limit))
    done = "lowered" if old > limit else "raised"
    return f"{done} {name or key} from {old} to {limit}"


def _keep_only(holder: ObjectText, key: str, step: Step) -> str:
    array, keeps = holder.array(key), step.keeps
    if array is None or keeps is None:
        return ""
    # A path through the items names the key that tells them apart.
    by = step.path[-1][0] if len(step.path) > 1 and step.path[-2][1] else ""
    gone = []
    for index in range(len(array) - 1, -1, -1):
        text = _member(array, index, by)
        if text is not None and not keeps(text):
            array.delete(index)
            gone.append(text[:_SHOWN])
    if not gone:
        return ""
    if not len(array):
        holder.delete(key)
    return f"removed from {key}: {', '.join(reversed(gone))}"


def _member(array: ArrayText, index: int, by: str) -> str | None:
    if by:
        item = array.object(index)
        return item.text(by) if item is not None else None
    value = array.value(index)
    return value if isinstance(value, str) else None


VERBS: Mapping[str, Callable[[ObjectText, str, Step], str]] = {
    "drop": _drop,
    "rename": _rename,
    "set": _set,
    "default": _default,
    "map": _map,
    "cap": _cap,
    "floor": _floor,
    "keep_only": _keep_only,
}


def _written(holder: ObjectText, key: str, value: Any, step: Step) -> str:
    holder.set(key, encode(value))
    text = value if isinstance(value, str) else json.dumps(value)
    return f"set {step.rule.path} to {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


# --- headers ---------------------------------------------------------------------------------


def change_header(step: Step, scope: RewriteScope) -> Sequence[str]:
    """Carry out a rule about a header; return its changes."""
    name, headers = step.rule.header or "", scope.headers
    old = headers.get(name)
    if step.rule.do == "add_header":
        return _added(headers, name, old, str(step.rule.value))
    if old is None:
        return ()
    if step.keeps is None:
        del headers[name]
        return [f"removed the header {name}"]
    members = [member.strip() for member in old.split(",") if member.strip()]
    stays = step.rule.do == "keep_only"
    kept = [member for member in members if step.keeps(member) is stays]
    if len(kept) == len(members):
        return ()
    if kept:
        headers[name] = ",".join(kept)
    else:
        del headers[name]
    gone = [member for member in members if member not in kept]
    return [f"removed from the header {name}: {', '.join(gone)}"]


def _added(headers: dict[str, str], name: str, old: str | None, value: str) -> Sequence[str]:
    members = [member.strip() for member in (old or "").split(",")]
    if value in members:
        return ()
    headers[name] = f"{old},{value}" if old else value
    return [f"added to the header {name}: {value}"]
