"""``fit_model``: the rules of a target's profile, carried out on a body and its headers.

A rule looks at the keys at the top first, so that a request with nothing to change costs a few
look-ups. A history is cut only where the bytes hold the words that the rule is about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, InstanceOf

from switchyard_core.decision import RewriteScope
from switchyard_core.errors import RefusedError
from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode, loads
from switchyard_core.models.schema import Rule, ValueTest, glob_test
from switchyard_core.wire import FORMATS
from switchyard_core.wire.rewrites.repairs import REPAIRS, thinking_switch

__all__ = ["FitParameters", "Rules", "fit_model"]

#: What an escaped letter looks like: then the bytes of a history do not tell its words.
_ESCAPED = b"\\u00"
#: Longest value that a report repeats.
_SHOWN = 40

#: The objects on the way to a place, by the path that leads to them.
_Trail = Mapping[str, ObjectText]


@dataclass(frozen=True, slots=True)
class _Step:
    """A rule, taken apart once for all requests."""

    who: str
    rule: Rule
    path: tuple[tuple[str, bool], ...]  # each key, and whether each item of its array is meant
    #: A history that lacks all words of one of these has nothing to change.
    words: tuple[tuple[bytes, ...], ...]
    keeps: Callable[[str], bool] | None  # the members that stay

    @property
    def creates(self) -> bool:
        """Whether there may be something to do where its first key is missing."""
        return self.rule.do in ("set", "default", "refuse")


class Rules(tuple[Mapping[str, Any], ...]):  # noqa: SLOT001 - a tuple has no room for `steps`
    """Rules as plain data, each with its giver (``by``); they are read once."""

    steps: tuple[_Step, ...]

    def __new__(cls, rules: Sequence[Mapping[str, Any]]) -> Self:
        """Read the rules."""
        made = super().__new__(cls, rules)
        made.steps = tuple(map(_step, rules))
        return made

    @classmethod
    def of(cls, rules: Sequence[tuple[str, Rule]]) -> Self:
        """Return the rules of a profile."""
        return cls(
            [
                {"by": who, **rule.model_dump(mode="json", by_alias=True, exclude_unset=True)}
                for who, rule in rules
            ]
        )


def _read(value: Any) -> Any:
    return value if isinstance(value, Rules) else Rules(value)


class FitParameters(BaseModel):
    """The rules, and what they need to know of the model.

    Args:
        rules: Rules with the keys of a profile's, and ``by``.
        max_output: The highest limit of an answer, in tokens.
        thinks: Whether the model thinks when a request does not say.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: Annotated[InstanceOf[Rules], BeforeValidator(_read)] = Field(
        default_factory=lambda: Rules(())
    )
    max_output: int | None = None
    thinks: bool = False


def fit_model(body: ObjectText, parameters: FitParameters, scope: RewriteScope) -> Sequence[str]:
    """Make a body one that the model accepts; return a line per change."""
    work = _Work(body, scope, parameters.thinks)
    changes = list(_capped(body, scope, parameters.max_output))
    for step in parameters.rules.steps:
        head = step.path[0][0] if step.path else ""
        if head and head not in body and not step.creates:
            continue
        changes += [f"{change} ({step.who})" for change in work.run(step)]
    return changes


def _capped(body: ObjectText, scope: RewriteScope, limit: int | None) -> Iterator[str]:
    for key in FORMATS[scope.wire_format].limit_keys if limit is not None else ():
        if key in body:
            change = _bounded(body, key, limit, min)
            if change:
                yield f"{change} (max_output)"


class _Work:
    """The rules at work on one request."""

    def __init__(self, body: ObjectText, scope: RewriteScope, thinks: bool) -> None:  # noqa: FBT001
        self.body = body
        self.scope = scope
        self.thinks = thinks

    def run(self, step: _Step) -> Sequence[str]:
        """Carry out one rule; return its changes."""
        rule = step.rule
        prefixes = _prefixes(step.path)
        # Tests about the same item of an array are made at each item.
        whole = {k: v for k, v in rule.when.items() if not k.startswith(prefixes)}
        inside = {k: v for k, v in rule.when.items() if k.startswith(prefixes)}
        if not all(self._holds(key, wanted, {"": self.body}) for key, wanted in whole.items()):
            return ()
        if rule.header is not None:
            return _on_headers(step, self.scope)
        if step.path and not self._may_hold(step):
            return ()
        if rule.do == "convert":
            return REPAIRS[rule.to or ""].run(self.body, rule.value, self.scope)
        if rule.do == "refuse":
            return self._refused(step, inside)
        return self._on_places(step, inside)

    def _may_hold(self, step: _Step) -> bool:
        """Return whether a history may have anything that the rule is about."""
        if not step.words or step.creates:
            return True
        raw = self.body.raw(step.path[0][0]) or b""
        if all(any(word in raw for word in some) for some in step.words):
            return True
        return _ESCAPED in raw

    def _on_places(self, step: _Step, inside: Mapping[str, Any]) -> Sequence[str]:
        changes: list[str] = []
        path = step.path
        if step.rule.do == "keep_only" and len(path) > 1 and path[-2][1]:
            # The members are the items themselves, told apart by one of their keys.
            path = (*path[:-2], (path[-2][0], False))
        create = step.creates and not any(many for _, many in path)
        places = list(_places(self.body, path, {"": self.body}, create=create))
        for holder, key, trail in places:
            if all(self._holds(name, wanted, trail) for name, wanted in inside.items()):
                change = _VERBS[step.rule.do](holder, key, step)
                if change:
                    changes.append(change)
        if changes and step.rule.do == "drop" and not any(many for _, many in path):
            _drop_emptied(self.body, [key for key, _ in path[:-1]])
        return _gathered(changes)

    def _refused(self, step: _Step, inside: Mapping[str, Any]) -> Sequence[str]:
        found = not step.path or any(
            (holder.raw(key) or b"null") != b"null"
            and all(self._holds(name, wanted, trail) for name, wanted in inside.items())
            for holder, key, trail in _places(self.body, step.path, {"": self.body})
        )
        if found:
            raise RefusedError(
                message=f"the model does not take this request: {step.rule.why} "
                f"(profile `{step.who}`); nothing was sent",
                code="model_refuses",
                param=step.rule.path,
                headers={"x-should-retry": "false"},
            )
        return ()

    def _holds(self, key: str, wanted: Any, trail: _Trail) -> bool:
        """Return whether a test of ``when`` holds, at the objects that led here."""
        if key == "has_tools":
            form = FORMATS[self.scope.wire_format]
            return any(self.body.array(name) for name in form.tool_keys) is bool(wanted)
        if key == "thinking_on":
            said = thinking_switch(self.body, self.scope.wire_format)
            return (self.thinks if said is None else said) is bool(wanted)
        prefix = max((p for p in trail if key.startswith(p)), key=len)
        path = _split(key[len(prefix) :].lstrip("."))
        node = trail[prefix]
        values = [holder.value(name) for holder, name, _ in _places(node, path, {})]
        return _passes(values, wanted)


def _step(rule: Mapping[str, Any]) -> _Step:
    told = dict(rule)
    who = str(told.pop("by", "fit"))
    read = Rule.model_validate_json(encode(told))
    path = _split(read.path) if read.path else ()
    words: tuple[tuple[bytes, ...], ...] = ()
    if read.do == "convert":
        words = tuple(filter(None, [REPAIRS[read.to or ""].words]))
    elif any(many for _, many in path):
        words = tuple((encode(key),) for key, _ in path[1:])
    keeps = glob_test(read.members) if read.members is not None else None
    return _Step(who=who, rule=read, path=path, words=words, keeps=keeps)


def _split(path: str) -> tuple[tuple[str, bool], ...]:
    return tuple((part.removesuffix("[]"), part.endswith("[]")) for part in path.split("."))


def _prefixes(path: Sequence[tuple[str, bool]]) -> tuple[str, ...]:
    """Return the paths to the items that a path leads through, with the dot behind each."""
    found, text = [], ""
    for key, many in path:
        text += f"{key}[]." if many else f"{key}."
        if many:
            found.append(text)
    return tuple(found)


def _places(
    node: ObjectText,
    path: Sequence[tuple[str, bool]],
    trail: _Trail,
    *,
    create: bool = False,
    place: str = "",
) -> Iterator[tuple[ObjectText, str, _Trail]]:
    """Yield the object and the key of every place that a path leads to."""
    (key, many), rest = path[0], path[1:]
    if not rest:
        yield node, key, trail
        return
    place = f"{place}{key}[]." if many else f"{place}{key}."
    if many:
        array = node.array(key)
        for _, item in array.objects() if array is not None else ():
            yield from _places(item, rest, {**trail, place: item}, place=place)
        return
    if create and (node.raw(key) or b"null") == b"null":
        node.set(key, b"{}")
    inner = node.object(key)
    if inner is not None:
        yield from _places(inner, rest, trail, create=create, place=place)


def _passes(values: Sequence[Any], wanted: Any) -> bool:
    """Return whether one of the values at a path passes a test."""
    test = wanted if isinstance(wanted, ValueTest) else ValueTest(equals=wanted)
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


# --- verbs: each changes one place and returns the change, or "" ------------------------------


def _drop(holder: ObjectText, key: str, step: _Step) -> str:
    return f"removed {step.rule.path}" if holder.delete(key) else ""


def _rename(holder: ObjectText, key: str, step: _Step) -> str:
    raw, new = holder.raw(key), step.rule.to or ""
    if raw is None:
        return ""
    if new in holder:
        holder.delete(key)
        return f"removed {step.rule.path}, {new} is there"
    holder.insert(holder.index(key), new, raw)
    holder.delete(key)
    return f"renamed {step.rule.path} to {new}"


def _set(holder: ObjectText, key: str, step: _Step) -> str:
    raw = holder.raw(key)
    if raw is not None and loads(raw) == step.rule.value:
        return ""
    return _written(holder, key, step.rule.value, step)


def _default(holder: ObjectText, key: str, step: _Step) -> str:
    return "" if key in holder else _written(holder, key, step.rule.value, step)


def _map(holder: ObjectText, key: str, step: _Step) -> str:
    values, last = step.rule.values or {}, step.rule.else_
    old = holder.value(key)
    if old is None:
        return ""
    new = values.get(old, old) if isinstance(old, str) else old
    known = (*values, *values.values())
    if last is not None and not _among(old, known):
        new = last
    return "" if new == old else _written(holder, key, new, step)


def _cap(holder: ObjectText, key: str, step: _Step) -> str:
    return _bounded(holder, key, step.rule.value, min, step.rule.path or key)


def _floor(holder: ObjectText, key: str, step: _Step) -> str:
    return _bounded(holder, key, step.rule.value, max, step.rule.path or key)


def _bounded(
    holder: ObjectText, key: str, limit: Any, keep: Callable[[Any, Any], Any], name: str = ""
) -> str:
    old = holder.value(key)
    if not _is_number(old) or keep(old, limit) == old:
        return ""
    holder.set(key, encode(limit))
    done = "lowered" if old > limit else "raised"
    return f"{done} {name or key} from {old} to {limit}"


def _keep_only(holder: ObjectText, key: str, step: _Step) -> str:
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


_VERBS: Mapping[str, Callable[[ObjectText, str, _Step], str]] = {
    "drop": _drop,
    "rename": _rename,
    "set": _set,
    "default": _default,
    "map": _map,
    "cap": _cap,
    "floor": _floor,
    "keep_only": _keep_only,
}


def _written(holder: ObjectText, key: str, value: Any, step: _Step) -> str:
    holder.set(key, encode(value))
    text = value if isinstance(value, str) else json.dumps(value)
    return f"set {step.rule.path} to {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


def _drop_emptied(body: ObjectText, keys: Sequence[str]) -> None:
    """Remove an object that the removal of its last member has left empty."""
    nodes = [body]
    for key in keys:
        inner = nodes[-1].object(key)
        if inner is None:
            return
        nodes.append(inner)
    for holder, key, inner in reversed(list(zip(nodes, keys, nodes[1:], strict=False))):
        if len(inner):
            return
        holder.delete(key)


def _gathered(changes: Sequence[str]) -> list[str]:
    """Return each change once, with the number of its places."""
    counted: dict[str, int] = {}
    for change in changes:
        counted[change] = counted.get(change, 0) + 1
    return [f"{text} in {n} places" if n > 1 else text for text, n in counted.items()]


# --- headers ---------------------------------------------------------------------------------


def _on_headers(step: _Step, scope: RewriteScope) -> Sequence[str]:
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
