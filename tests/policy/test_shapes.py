"""Names inside the options of a route."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from switchyard_core.declarations import Options, Reference, TargetName
from switchyard_core.policy.shapes import references


class Part(Options):
    target: TargetName = "part_default"


class Model(Options):
    plain: TargetName = "default"
    aliased: TargetName | None = Field(default=None, alias="as-written")
    parts: tuple[Part, ...] = (Part(),)
    pair: tuple[TargetName, int] | None = None
    marked: Annotated[Annotated[str, "note"], Reference("target")] = "marked_default"
    computed: Annotated[
        str, Reference("target"), Field(default_factory=lambda data: str(data["plain"]))
    ]
    table: Annotated[dict[str, TargetName], "note"] = Field(default_factory=dict)
    several: int | list[TargetName] | Annotated[dict[str, TargetName], "note"] | None = None
    mixed: TargetName | int | str = 3
    required: TargetName


def found(model: type[BaseModel], raw: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (named.name, ".".join(map(str, named.location[1:])))
        for named in references(model, raw, ("r",))
    ]


def test_defaults_are_names_too_where_the_table_does_not_say() -> None:
    assert found(Model, {}) == [
        ("default", "plain"),
        ("part_default", "parts.0.target"),
        ("marked_default", "marked"),
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param({"as-written": "a"}, ("a", "as-written"), id="alias"),
        pytest.param({"parts": [{"target": "a"}]}, ("a", "parts.0.target"), id="nested"),
        pytest.param({"pair": ["a", 1]}, ("a", "pair.0"), id="tuple"),
        pytest.param({"computed": "a"}, ("a", "computed"), id="computed"),
        pytest.param({"table": {"k": "a"}}, ("a", "table.k"), id="table"),
        pytest.param({"several": ["a"]}, ("a", "several.0"), id="list_in_a_union"),
        pytest.param({"several": {"k": "a"}}, ("a", "several.k"), id="table_in_a_union"),
        pytest.param({"required": "a"}, ("a", "required"), id="required"),
    ],
)
def test_name_is_found_where_it_stands(raw: dict[str, Any], expected: tuple[str, str]) -> None:
    assert expected in found(Model, raw)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"plain": 3, "parts": 4, "marked": [], "pair": [1, 2, 3]}, id="types"),
        pytest.param({"plain": [], "parts": ["x"], "marked": {}, "pair": {"a": 1}}, id="shapes"),
        pytest.param({"plain": 1.5, "parts": {}, "marked": True, "several": 3}, id="scalars"),
    ],
)
def test_values_of_a_wrong_type_hold_no_names(raw: dict[str, Any]) -> None:
    assert found(Model, raw) == []
