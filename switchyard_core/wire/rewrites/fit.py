"""``fit_model``: the rules of a target's profile, carried out on a body and its headers.

A rule looks at the keys at the top first, so that a request with nothing to change costs a few
look-ups. A history is cut only where the bytes hold the words that the rule is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, InstanceOf

from switchyard_core.decision import RewriteScope
from switchyard_core.errors import RefusedError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.history import is_odd
from switchyard_core.wire.rewrites.repairs import REPAIRS, thinking_switch
from switchyard_core.wire.rewrites.steps import Rules, Step, Test
from switchyard_core.wire.rewrites.verbs import VERBS, bounded, change_header, passes
from switchyard_core.wire.shapes import JsonType, untouched

__all__ = ["FitParameters", "Rules", "fit_model"]

#: What an escaped letter looks like: then the bytes of a history do not tell its words.
_ESCAPED = b"\\u00"

#: The objects on the way to a place, by the path that leads to them.
_Trail = Mapping[str, ObjectText]


def _read(value: Any) -> Any:
    return value if isinstance(value, Rules) else Rules(value)


#: The type of what some verbs change.
_CHANGES: Mapping[str, JsonType] = {"cap": "number", "floor": "number", "map": "string"}
#: Most rounds of the rules; none of those that ship needs a third.
_ROUNDS = 4


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
    for _ in range(_ROUNDS):
        found = _round(body, parameters.rules.steps, work)
        changes += found
        # A change may be what an earlier rule waits for, such as an effort that was raised.
        if not found:
            break
    return changes


def _round(body: ObjectText, steps: Sequence[Step], work: _Work) -> list[str]:
    """Carry out each rule once; return the changes."""
    changes: list[str] = []
    there = set(body.keys())
    for step in steps:
        if step.needs <= there:
            found = work.run(step)
            if found:
                changes += [f"{change} ({step.who})" for change in found]
                there = set(body.keys())
    return changes


def _capped(body: ObjectText, scope: RewriteScope, limit: int | None) -> Iterator[str]:
    for key in FORMATS[scope.wire_format].limit_keys if limit is not None else ():
        if key in body:
            change = bounded(body, key, limit, min)
            if change:
                yield f"{change} (max_output)"
            elif is_odd(body, key, "number", "null"):
                scope.untouched.append(untouched(key, body.raw(key) or b"", "number"))


class _Work:
    """The rules at work on one request."""

    def __init__(self, body: ObjectText, scope: RewriteScope, thinks: bool) -> None:  # noqa: FBT001
        self.body = body
        self.scope = scope
        self.thinks = thinks

    def run(self, step: Step) -> Sequence[str]:
        """Carry out one rule; return its changes."""
        rule = step.rule
        for test in step.whole:
            if not self._holds(test, None):
                return ()
        if rule.header is not None:
            return change_header(step, self.scope)
        if step.path and not self._may_hold(step):
            return ()
        if rule.do == "convert":
            return REPAIRS[rule.to or ""].run(self.body, rule.value, self.scope)
        if rule.do == "refuse":
            return self._refused(step)
        return self._on_places(step)

    def _may_hold(self, step: Step) -> bool:
        """Return whether a history may have anything that the rule is about."""
        if not step.words or step.creates:
            return True
        raw = self.body.raw(step.path[0][0]) or b""
        if all(any(word in raw for word in some) for some in step.words):
            return True
        return _ESCAPED in raw

    def _on_places(self, step: Step) -> Sequence[str]:
        changes: list[str] = []
        path = step.path
        if step.rule.do == "keep_only" and len(path) > 1 and path[-2][1]:
            # The members are the items themselves, told apart by one of their keys.
            path = (*path[:-2], (path[-2][0], False))
        create = step.creates and not any(many for _, many in path)
        places = list(_places(self.body, path, {"": self.body}, create=create))
        for holder, key, trail in places:
            if all(self._holds(test, trail) for test in step.inside):
                change = VERBS[step.rule.do](holder, key, step)
                if change:
                    changes.append(change)
                else:
                    self._leave(holder, key, step)
        if changes and step.rule.do == "keep_only":
            changes += self._without_tools(step)
        if changes and step.rule.do == "drop" and not any(many for _, many in path):
            _drop_emptied(self.body, [key for key, _ in path[:-1]])
        return _gathered(changes)

    def _leave(self, holder: ObjectText, key: str, step: Step) -> None:
        """Tell of a value that a verb could not change because of its type."""
        kind = _CHANGES.get(step.rule.do)
        if kind is None or not is_odd(holder, key, kind, "null"):
            return
        if holder.value(key) not in (step.rule.values or {}).values():
            told = untouched(step.rule.path or key, holder.raw(key) or b"", kind)
            self.scope.untouched.append(told)

    def _without_tools(self, step: Step) -> Sequence[str]:
        """Remove the choice of a tool where the last tool went."""
        keys = FORMATS[self.scope.wire_format].tool_keys
        gone = step.path[0][0] in keys and not any(key in self.body for key in keys)
        return ["removed tool_choice"] if gone and self.body.delete("tool_choice") else []

    def _refused(self, step: Step) -> Sequence[str]:
        found = not step.path or any(
            (holder.raw(key) or b"null") != b"null"
            and all(self._holds(test, trail) for test in step.inside)
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

    def _holds(self, test: Test, trail: _Trail | None) -> bool:
        """Return whether a test of ``when`` holds, at the objects that led to an item."""
        if test.key == "has_tools":
            form = FORMATS[self.scope.wire_format]
            return any(_has_items(self.body.raw(n)) for n in form.tool_keys) is test.test.equals
        if test.key == "thinking_on":
            said = thinking_switch(self.body, self.scope.wire_format)
            return (self.thinks if said is None else said) is test.test.equals
        node, path = self.body, test.path
        if trail:
            prefix = max((p for p in trail if test.key.startswith(p)), key=len, default="")
            node = trail[prefix] if prefix else node
            path = path[prefix.count(".") :]
        if len(path) == 1:
            return passes((node.value(path[0][0]),), test.test)
        values = [holder.value(name) for holder, name, _ in _places(node, path, {})]
        return passes(values, test.test)


def _has_items(raw: bytes | None) -> bool:
    """Return whether some JSON is an array with anything in it."""
    if raw is None or raw[:1] != b"[":
        return False
    return (raw[1:64].strip() or raw[1:].strip())[:1] != b"]"


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
