"""What models are told of a tool's arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

import pytest
from pydantic import BaseModel, Field, RootModel

from switchyard_core import Options, Tool, Toolbox
from switchyard_core.tools import spec_of


class Size(Options):
    """Width and height."""

    width: Annotated[int, Field(description="in millimetres", title="The width")]
    title: str = "none"


class Arguments(Options):
    size: Annotated[Size, Field(description="of the print")]
    sizes: Annotated[list[Size], Field(default_factory=list)]
    colour: str | None = None


class Tree(Options):
    left: Tree | None = None


class Lax(BaseModel):
    text: str = ""


class HoldsLax(Options):
    inner: Lax


class Listed(RootModel[list[int]]):
    pass


class NoSchema(Options):
    thing: Callable[[], int]


def tool(parameters):
    return Tool(name="t", description="does it", parameters=parameters, function=repr)


def test_schema_has_references_in_place_descriptions_kept_and_no_titles():
    size = {
        "type": "object",
        "properties": {
            "width": {"type": "integer", "description": "in millimetres"},
            "title": {"type": "string", "default": "none"},
        },
        "required": ["width"],
        "additionalProperties": False,
    }

    spec = spec_of(tool(Arguments))

    assert (spec.name, spec.description) == ("t", "does it")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "size": {**size, "description": "of the print"},
            "sizes": {
                "type": "array",
                "items": {**size, "description": "Width and height."},
            },
            "colour": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["size"],
        "additionalProperties": False,
    }


def test_specs_are_deterministic_and_in_the_order_of_the_policy():
    box = Toolbox({"b": tool(Arguments), "a": tool(Size)})

    first, second = box.specs, box.specs

    assert [spec.parameters for spec in first] == [
        spec_of(tool(m)).parameters for m in (Arguments, Size)
    ]
    assert json.dumps([s.parameters for s in first]) == json.dumps([s.parameters for s in second])


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (Lax, "accept unknown keys; inherit `switchyard_core.Options`"),
        (HoldsLax, "accept unknown keys in `Lax`; inherit `switchyard_core.Options`"),
        (Tree, "hold `Tree` within itself, which some providers cannot describe"),
        (Listed, "are not an object"),
        (NoSchema, "cannot be described as JSON Schema: PydanticInvalidForJsonSchema"),
    ],
)
def test_parameters_that_models_cannot_be_told_are_refused(parameters, reason):
    with pytest.raises(ValueError, match=r".+") as raised:
        spec_of(tool(parameters))

    assert str(raised.value) == reason
