"""JSON schemas of a tool's arguments, as every provider takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from switchyard_core.jsonio.tree import JsonTextError, ObjectText, array_of, object_of
from switchyard_core.wire.neutral import Told
from switchyard_core.wire.shapes import type_of

__all__ = ["FREE_TEXT", "NO_ARGUMENTS", "arguments_schema"]

NO_ARGUMENTS = b'{"type":"object","properties":{}}'
#: Of a tool that takes free text, where the format has only functions.
FREE_TEXT = (
    b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],'
    b'"additionalProperties":false}'
)
#: What OpenAI and Anthropic refuse at the top: combined schemas, and what OpenAI alone refuses.
_COMBINED = ("allOf", "anyOf", "oneOf")
_REFUSED = ("enum", "not")
#: How deep combined schemas are followed.
_DEEPEST = 8


def arguments_schema(raw: bytes, name: str, told: Told) -> bytes:
    """Return the schema of an object that combines nothing at its top, in the caller's bytes."""
    node = _object(raw)
    if node is None and raw:
        told.changed.append(f"gave the tool `{name}` a schema, for its own is not an object")
    if node is None or not len(node):
        return NO_ARGUMENTS
    if node.text("type") != "object" and "$ref" in node:
        node = _resolved(node, node)
    if not _is_of_object(node):
        told.changed.append(f"put the arguments of the tool `{name}` under the key `input`")
        inner = object_of({"input": node.dump()})
        return object_of({"type": "object", "properties": inner, "required": ["input"]})
    for key in _REFUSED:
        if node.delete(key):
            told.left_out.append(f"`{key}` at the top of the schema of the tool `{name}`")
    if any(key in node for key in _COMBINED):
        told.changed.append(f"made one object of the schemas of the tool `{name}`")
        try:
            return _Flattener(node).flat(node, 0).dump()
        except JsonTextError:  # more members than anybody reads
            return NO_ARGUMENTS
    if node.text("type") != "object":
        node.set("type", b'"object"')
    if type_of(node.raw("properties") or b"null") != "object":
        node.set("properties", b"{}")
    if type_of(node.raw("required") or b"[]") != "array":
        node.delete("required")
    return node.dump()


@dataclass(slots=True)
class _Flat:
    """A schema of an object, with every form that each of its properties may have."""

    rest: dict[str, bytes] = field(default_factory=dict)
    properties: dict[str, dict[bytes, None]] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)

    def dump(self) -> bytes:
        """Return its JSON."""
        properties = {name: _either(list(forms)) for name, forms in self.properties.items()}
        made = {"type": "object", **self.rest, "properties": object_of(properties)}
        required = {"required": list(self.required)} if self.required else {}
        return object_of({**made, **required})


class _Flattener:
    """Puts the properties of combined schemas together; each reference is followed once."""

    def __init__(self, root: ObjectText) -> None:
        self._root = root
        self._known: dict[str, _Flat] = {}

    def flat(self, node: ObjectText, depth: int) -> _Flat:
        """Return one object for a schema and all that it combines."""
        gone = {*_COMBINED, *_REFUSED, "type", "properties", "required"}
        made = _Flat({key: raw for key, raw in _members(node) if key not in gone})
        inner = node.object("properties")
        for name, raw in _members(inner) if inner is not None else ():
            made.properties[name] = {raw: None}
        made.required.update(dict.fromkeys(_texts(node)))
        for key in _COMBINED if depth < _DEEPEST else ():
            branches = [self._branch(each, depth + 1) for each in _objects(node, key)]
            for branch in branches:
                for name, forms in branch.properties.items():
                    made.properties.setdefault(name, {}).update(forms)
            if key == "allOf":
                for branch in branches:
                    made.required.update(branch.required)
            elif branches:
                common = set(branches[0].required).intersection(*(b.required for b in branches))
                made.required.update({n: None for n in branches[0].required if n in common})
        return made

    def _branch(self, node: ObjectText, depth: int) -> _Flat:
        reference = node.text("$ref")
        if reference is None:
            return self.flat(node, depth)
        if len(node) > 1:
            return self.flat(_resolved(node, self._root), depth)
        if reference not in self._known:
            # One may refer to itself.
            self._known[reference] = _Flat()
            self._known[reference] = self.flat(_resolved(node, self._root), depth)
        return self._known[reference]


def _object(raw: bytes) -> ObjectText | None:
    try:
        return ObjectText(raw) if raw else None
    except JsonTextError:
        return None


def _is_of_object(node: ObjectText) -> bool:
    kind = node.raw("type") or b"null"
    kinds = node.value("type")
    return kind == b"null" or kinds == "object" or (kind[:1] == b"[" and "object" in kinds)


def _resolved(node: ObjectText, root: ObjectText) -> ObjectText:
    """Return a schema with the one of the same document that it refers to at its top."""
    reference = node.text("$ref")
    if reference is None or not reference.startswith("#/"):
        return node
    found: ObjectText | None = root
    for step in reference[2:].split("/"):
        found = found.object(step.replace("~1", "/").replace("~0", "~")) if found else None
    there = dict(_members(found)) if found is not None else {}
    own = {key: raw for key, raw in _members(node) if key != "$ref"}
    return ObjectText(object_of({**there, **own}))


def _members(node: ObjectText) -> Iterator[tuple[str, bytes]]:
    for key in dict.fromkeys(node.keys()):
        yield key, node.raw(key) or b"null"


def _objects(node: ObjectText, key: str) -> Iterator[ObjectText]:
    listed = node.array(key)
    for index in range(len(listed) if listed is not None else 0):
        found = listed.object(index) if listed is not None else None
        yield found if found is not None else ObjectText(b"{}")


def _texts(node: ObjectText) -> list[str]:
    value = node.value("required") if "required" in node else None
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _either(forms: list[bytes]) -> bytes:
    return forms[0] if len(forms) == 1 else object_of({"anyOf": array_of(forms)})
