from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from switchyard_planner_executor import Plan, PlanStep, plan_digest, plan_schema
from switchyard_planner_executor.visible import is_blank

PLAN = Plan(
    goal="a gift under $200",
    steps=[
        PlanStep(step=1, action="find camera gear", query="camera"),
        PlanStep(step=2, action="choose one"),
    ],
)


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\u202e \x1b"])
def test_what_nobody_can_see_is_blank(text: str) -> None:
    with pytest.raises(ValidationError):
        PlanStep(step=1, action=text)
    assert PlanStep(step=1, action="look", query=text).query is None


BOUND = {
    "route_id": "switchyard/shop",
    "mode": "plan_then_execute",
    "tools": ["search_products", "convert"],
    "executor_target": "executor",
}

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: not is_blank(text)
)
plans = st.builds(
    Plan,
    goal=st.text(st.characters(exclude_categories=["Cs"])),
    steps=st.lists(
        st.builds(PlanStep, step=st.integers(), action=words, query=st.none() | words), max_size=8
    ),
)


def test_r01_query_is_null_unless_given() -> None:
    assert PlanStep(step=1, action="think").query is None


@pytest.mark.parametrize("left_out", ["step", "action"])
def test_r01_step_without_number_or_action_is_an_error(left_out: str) -> None:
    values = {"step": 1, "action": "think"}
    del values[left_out]

    with pytest.raises(ValidationError) as caught:
        PlanStep(**values)
    assert caught.value.errors()[0]["loc"] == (left_out,)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"action": " \n"}, id="blank action"),
        pytest.param({"step": "1"}, id="number as text"),
        pytest.param({"step": True}, id="boolean as number"),
        pytest.param({"step": 1.0}, id="fraction"),
        pytest.param({"action": 3}, id="number as action"),
        pytest.param({"query": ["camera"]}, id="list as query"),
        pytest.param({"tool": "search"}, id="unknown key"),
    ],
)
def test_r01_step_with_a_wrong_value_is_an_error(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PlanStep(**{"step": 1, "action": "think", **values})


@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_blank_query_is_null(query: str) -> None:
    assert PlanStep(step=1, action="think", query=query).query is None


def test_plan_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        PLAN.steps[0].action = "spend"
    assert isinstance(PLAN.steps, tuple)


def test_r02_schema_describes_all_five_fields_in_the_models_words() -> None:
    schema = plan_schema()
    step = schema["properties"]["steps"]["items"]["properties"]
    described = {**schema["properties"], **step}

    assert sorted(described) == ["action", "goal", "query", "step", "steps"]
    for name, field in {**Plan.model_fields, **PlanStep.model_fields}.items():
        assert described[name]["description"] == field.description
        assert len(described[name]["description"]) > 20


def test_r02_schema_keeps_to_what_every_provider_takes() -> None:
    schema = plan_schema()

    def walk(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item)
        if not isinstance(node, dict):
            return
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        for value in node.values():
            walk(value)

    walk(schema)
    text = json.dumps(schema)
    for word in ("default", "title", "maxItems", "minItems", "minimum", "maximum", "$ref", "$defs"):
        assert f'"{word}"' not in text
    step = schema["properties"]["steps"]["items"]["properties"]
    assert step["query"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def test_schema_is_a_new_one_each_time() -> None:
    plan_schema()["properties"].clear()

    assert plan_schema()["properties"]


@given(plans)
def test_r03_round_trip_through_json_keeps_a_plan_and_fits_its_schema(plan: Plan) -> None:
    text = plan.model_dump_json()

    assert Plan.model_validate_json(text) == plan
    jsonschema.validate(json.loads(text), plan_schema())


def test_digest_is_hexadecimal_and_the_same_for_an_equal_plan() -> None:
    again = Plan.model_validate_json(PLAN.model_dump_json())
    digest = plan_digest(PLAN, **BOUND)

    assert len(digest) == 64
    assert int(digest, 16) >= 0
    assert plan_digest(again, **BOUND) == digest
    assert plan_digest(PLAN, **BOUND | {"tools": ("convert", "search_products")}) == digest


@pytest.mark.parametrize(
    "change",
    [
        {"route_id": "switchyard/other"},
        {"mode": "replan"},
        {"tools": ["search_products"]},
        {"executor_target": "planner"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_digest_binds_what_a_plan_would_be_run_with(change: dict[str, object]) -> None:
    assert plan_digest(PLAN, **BOUND | change) != plan_digest(PLAN, **BOUND)


@pytest.mark.parametrize(
    "edited",
    [
        PLAN.model_copy(update={"goal": "another"}),
        PLAN.model_copy(update={"steps": PLAN.steps[:1]}),
        PLAN.model_copy(update={"steps": PLAN.steps[::-1]}),
        PLAN.model_copy(
            update={"steps": (PLAN.steps[0].model_copy(update={"query": None}), PLAN.steps[1])}
        ),
    ],
    ids=["goal", "fewer steps", "order", "query"],
)
def test_digest_of_an_edited_plan_is_another(edited: Plan) -> None:
    assert plan_digest(edited, **BOUND) != plan_digest(PLAN, **BOUND)
