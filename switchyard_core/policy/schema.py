"""The JSON Schema of a policy file, for editors and for other tools' checks.

The schema has what is installed: route types with their options, rule sets, stores, tools,
labels, rewrites. ``switchyard check`` refuses all that the schema refuses, and more.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from switchyard_core.declarations import WIRE_FORMATS, RouteType
from switchyard_core.mutation.check import DIALECTS, DOCUMENTS
from switchyard_core.mutation.labels import LABELS
from switchyard_core.mutation.readers import READERS
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.models import (
    Client,
    Housekeeping,
    Identity,
    Price,
    ReplaySettings,
    Route,
    Target,
    Top,
)
from switchyard_core.policy.shapes import TolerantSchema
from switchyard_core.policy.values import RESERVED_REWRITES

__all__ = ["DIALECT", "policy_schema"]

#: The dialect of the schema.
DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: Keys of a schema whose values are not schemas.
_VALUES = frozenset({"const", "default", "enum", "examples", "required"})
#: Keys of a schema that hold schemas by name.
_BY_NAME = frozenset({"properties", "patternProperties", "$defs"})
#: Each key at the top that holds tables: where its schema refers to their definition, the name of
#: the definition, the model.
_TABLES: tuple[tuple[str, str, str, type[BaseModel]], ...] = (
    ("llm_clients", "additionalProperties", "client", Client),
    ("targets", "additionalProperties", "target", Target),
    ("mutation_rules", "additionalProperties", "rule_set", RuleSetModel),
    ("prices", "additionalProperties", "price", Price),
    ("identity", "", "identity", Identity),
    ("replay", "", "replay", ReplaySettings),
    ("housekeeping", "items", "housekeeping", Housekeeping),
)
#: The arguments in a docstring: all of them, and the name and the text of each.
_ARGUMENTS = re.compile(r"^Args:\n((?: .*\n?|\n(?= ))*)", re.MULTILINE)
_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def policy_schema(registry: PluginRegistry) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a policy; equal for equal plugins."""
    schema = _Schema(names=_names(registry))
    root = schema.of("policy", Top)
    # The description is for readers of the source.
    del root["description"]
    keys = root["properties"]
    for key, place, name, model in _TABLES:
        schema.definitions[name] = schema.of(name, model)
        keys[key] |= {place: _to(name)} if place else _to(name)
    schema.definitions["route"] = _route(schema, registry)
    keys["routes"] |= {"additionalProperties": _to("route")}
    if registry.rule_sets:
        taken = {"not": {"enum": sorted(registry.rule_sets)}}
        keys["mutation_rules"]["propertyNames"] = taken
    _complete_client(schema.definitions["client"])
    _complete_target(schema.definitions["target"], registry)
    _complete_rules(schema)
    return {
        "$schema": DIALECT,
        "title": "A switchyard policy",
        **root,
        "$defs": dict(sorted(schema.definitions.items())),
    }


def _names(registry: PluginRegistry) -> Mapping[str, Mapping[str, Any]]:
    return {
        "label": {"enum": list(LABELS)},
        "latch_store": _one_of(registry.latch_stores),
        "plan_store": _one_of(registry.plan_stores),
        "tool": _one_of(registry.tools),
        # The policy's own rule sets have any name; an editor proposes the packs.
        "rule_set": {"anyOf": [_one_of(registry.rule_sets), {"type": "string"}]},
        "route": {},
        "target": {},
    }


def _one_of(names: Collection[str]) -> dict[str, Any]:
    return {"enum": sorted(names)} if names else {"not": {}}


def _to(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


@dataclass(slots=True, kw_only=True)
class _Schema:
    names: Mapping[str, Mapping[str, Any]]
    definitions: dict[str, Any] = field(default_factory=dict)

    def of(self, name: str, model: type[BaseModel]) -> dict[str, Any]:
        """Return the schema of a model; its nested models become definitions ``name.Model``."""
        found = model.model_json_schema(
            ref_template=f"#/$defs/{name}.{{model}}", schema_generator=_Described
        )
        for nested, schema in found.pop("$defs", {}).items():
            self.definitions[f"{name}.{nested}"] = self._tidy(schema)
        result: dict[str, Any] = self._tidy(found)
        return result

    def _tidy(self, schema: Any) -> Any:
        """Return a schema without titles, with references replaced by known names."""
        if isinstance(schema, list):
            return [self._tidy(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        tidy: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "title" or (key == "default" and value is None):
                # TOML has no null: such a default only means that the key may be absent.
                continue
            if key == "x-reference":
                tidy |= self.names.get(value, {})
            elif key in _BY_NAME:
                tidy[key] = {name: self._tidy(item) for name, item in value.items()}
            elif key == "anyOf":
                tidy |= self._alternatives(value)
            else:
                tidy[key] = value if key in _VALUES else self._tidy(value)
        return tidy

    def _alternatives(self, schemas: list[Any]) -> dict[str, Any]:
        rest = [self._tidy(schema) for schema in schemas if schema != {"type": "null"}]
        return rest[0] if len(rest) == 1 else {"anyOf": rest}


class _Described(TolerantSchema):
    """Takes the descriptions of keys from the ``Args`` of their model's docstring."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        summary, arguments = _documented(model)
        found.pop("description", None)
        if summary:
            found["description"] = summary
        properties = found.get("properties", {})
        for name, info in model.model_fields.items():
            place = properties.get(info.alias or name)
            text = info.description or arguments.get(name)
            if isinstance(place, dict) and text:
                place["description"] = text
        return found


def _documented(model: type[BaseModel]) -> tuple[str, Mapping[str, str]]:
    """Return the first sentence of a model's docstring, and its description of each key."""
    text = inspect.cleandoc(model.__doc__ or "")
    summary = "" if text.startswith("Args:") else _plain(text.partition("\n\n")[0])
    keys = _ARGUMENT.findall("".join(_ARGUMENTS.findall(text)))
    return summary, {name: _plain(said) for name, said in keys}


def _plain(text: str) -> str:
    # Docstrings mark code as reStructuredText does, editors show Markdown.
    return " ".join(text.replace("``", "`").split())


def _route(schema: _Schema, registry: PluginRegistry) -> dict[str, Any]:
    common = schema.of("route", Route)
    for name, route_type in sorted(registry.route_types.items()):
        schema.definitions[f"route.{name}"] = _of_type(schema, route_type, common)
    types = sorted(registry.route_types)
    if not types:
        return {"not": {}, "description": "No route type is installed."}
    return {
        "type": "object",
        "description": common["description"],
        "properties": {
            # Editors that do not follow conditions propose at least these.
            **_options(schema, types),
            **common["properties"],
            "type": {**common["properties"]["type"], "enum": types},
        },
        "required": common["required"],
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": _to(f"route.{name}"),
            }
            for name in types
        ],
    }


def _options(schema: _Schema, types: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in types:
        for key, option in schema.definitions[f"route.{name}"]["properties"].items():
            text = option.get("description", "")
            found.setdefault(key, {"description": text} if text else {})
    return found


def _of_type(schema: _Schema, route_type: RouteType, common: dict[str, Any]) -> dict[str, Any]:
    name = route_type.name
    options = schema.of(f"route.{name}", route_type.options)
    return {
        "type": "object",
        "description": route_type.summary,
        "properties": {
            **common["properties"],
            **options.get("properties", {}),
            "type": {"const": name},
        },
        "required": [*common["required"], *options.get("required", [])],
        "additionalProperties": options.get("additionalProperties", True),
    }


def _complete_client(client: dict[str, Any]) -> None:
    # Some editors need to know that a condition does not name every key.
    client["if"] = {
        "properties": {"format": {"const": "scripted"}},
        "required": ["format"],
        "additionalProperties": True,
    }
    client["then"] = {
        "required": ["script", "speaks"],
        "properties": dict.fromkeys(("base_url", "api_key_env", "forward_auth"), False),
        "additionalProperties": True,
    }
    client["else"] = {
        "required": ["base_url"],
        "properties": dict.fromkeys(("script", "speaks", "strict"), False),
        "additionalProperties": True,
    }
    own = {"properties": {"forward_auth": {"const": True}}, "required": ["forward_auth"]}
    client["not"] = {"allOf": [own, {"required": ["api_key_env"]}]}


def _complete_target(target: dict[str, Any], registry: PluginRegistry) -> None:
    del target["properties"]["rewrites"]["propertyNames"]
    target["properties"]["rewrites"] |= {
        "properties": {
            name: {"type": "boolean", "description": rewrite.summary}
            for name, rewrite in sorted(registry.rewrites.items())
            if rewrite.switchable and name not in RESERVED_REWRITES
        },
        "additionalProperties": False,
    }


def _complete_rules(schema: _Schema) -> None:
    """Add the allowed words of rules, which their models leave to the check."""
    rule, rule_set = schema.definitions["rule_set.RuleModel"], schema.definitions["rule_set"]
    words: Mapping[str, tuple[str, ...]] = {
        "label": LABELS,
        "reader": tuple(READERS),
        "dialect": DIALECTS,
        "document": DOCUMENTS,
        "format": WIRE_FORMATS,
    }
    for key, allowed in words.items():
        rule["properties"][key]["enum"] = list(allowed)
    rule["anyOf"] = [{"required": [key]} for key in ("label", "target", "reader")]
    rule_set["properties"]["unmatched"]["enum"] = list(LABELS)
    rule_set["properties"]["extends"]["items"] = dict(schema.names["rule_set"])
