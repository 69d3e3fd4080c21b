from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import ModelReply, SwitchyardError
from switchyard_planner_executor import Plan, PlanError, ReadPlan, read_plan, read_plan_value

FIRST = {"step": 1, "action": "find camera gear", "query": "camera"}
SECOND = {"step": 2, "action": "choose one", "query": None}
GOOD = {"goal": "a gift", "steps": [FIRST, SECOND]}


def text_of(*steps: dict[str, Any], **changes: Any) -> str:
    return json.dumps({"goal": "a gift", "steps": list(steps)} | changes)


def fault(reply: ModelReply | str, **settings: Any) -> PlanError:
    """Return the error that a reply gives."""
    reply = ModelReply(text=reply) if isinstance(reply, str) else reply
    with pytest.raises(PlanError) as caught:
        read_plan(reply, **{"max_steps": 12, **settings})
    return caught.value


def test_r04_structured_answer_is_a_plan_without_warnings() -> None:
    read = read_plan(ModelReply(text=json.dumps(GOOD), stop="stop"), max_steps=2)

    assert read.plan == Plan.model_validate(GOOD)
    assert read.warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "1. search for a camera\n2. choose one",
        "Here is the plan: " + json.dumps(GOOD),
        json.dumps(GOOD) + "\nTell me if that suits you.",
        json.dumps(GOOD) * 2,
    ],
    ids=["list in prose", "words before", "words behind", "two plans"],
)
@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_r04_plan_in_prose_is_an_error_and_never_guessed_at(text: str, lenient: bool) -> None:
    error = fault(text, lenient=lenient)

    assert error.reason == "not_json"
    assert error.raw_text == text


@pytest.mark.parametrize(
    ("reply", "reason", "said"),
    [
        pytest.param(ModelReply(text=" \n"), "empty", "no text", id="empty"),
        pytest.param(ModelReply(text="a plan"), "not_json", "line 1, column 1", id="not_json"),
        pytest.param(ModelReply(text='{"goal": "x"}'), "schema", "`steps` is missing", id="schema"),
        pytest.param(ModelReply(text=text_of(FIRST, FIRST)), "numbering", "1, 1", id="numbering"),
        pytest.param(
            ModelReply(text=json.dumps(GOOD)), "too_many_steps", "2 steps; at most 1", id="too_many"
        ),
        pytest.param(
            ModelReply(text='{"goal": "x', stop="length"), "truncated", "length", id="truncated"
        ),
        pytest.param(ModelReply(text="", refusal="I will not"), "refused", "refused", id="refused"),
    ],
)
def test_r19_each_fault_has_its_reason_and_carries_the_raw_text(
    reply: ModelReply, reason: str, said: str
) -> None:
    error = fault(reply, max_steps=1)

    assert isinstance(error, SwitchyardError)
    assert error.reason == reason
    assert error.raw_text == (reply.refusal or reply.text)
    assert said in error.detail
    assert reason in str(error)
    assert repr(error.raw_text)[1:-1] in str(error)


@pytest.mark.parametrize("stop", ["length", "incomplete", "max_tokens", "max_output_tokens"])
def test_r19_answer_cut_at_a_limit_is_truncated_even_if_it_reads_well(stop: str) -> None:
    assert fault(ModelReply(text=json.dumps(GOOD), stop=stop)).reason == "truncated"


def test_r19_checks_come_in_the_order_of_the_spec() -> None:
    bad_numbers = text_of({"step": 0, "action": "a", "query": None}, FIRST)

    assert fault(ModelReply(refusal="no", stop="length")).reason == "refused"
    assert fault(ModelReply(text="", stop="length")).reason == "truncated"
    assert fault(ModelReply(text="no", stop="content_filter")).reason == "refused"
    assert fault(text_of({"step": 9, "action": " ", "query": None})).reason == "schema"
    assert fault(bad_numbers, max_steps=1).reason == "numbering"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param("[]", "must be an object", id="array"),
        pytest.param('"plan"', "must be an object", id="text"),
        pytest.param("null", "must be an object", id="null"),
        pytest.param('{"steps": []}', "`goal` is missing", id="no goal"),
        pytest.param(text_of(goal=3), "`goal` must be a string", id="goal"),
        pytest.param(text_of(steps={}), "`steps` must be an array", id="steps"),
        pytest.param(text_of(steps=None), "`steps` must be an array", id="no steps"),
        pytest.param(text_of(FIRST, 3), "`steps[1]` must be an object", id="step"),
        pytest.param(
            text_of(FIRST, {"step": 2, "query": None}), "`steps[1].action` is missing", id="action"
        ),
        pytest.param(
            text_of({**FIRST, "step": "1"}), "`steps[0].step` must be an integer", id="number"
        ),
        pytest.param(
            text_of({**FIRST, "step": True}), "`steps[0].step` must be an integer", id="boolean"
        ),
        pytest.param(
            text_of({**FIRST, "action": "\t"}), "`steps[0].action` must not be blank", id="blank"
        ),
        pytest.param(
            text_of({**FIRST, "query": 3}), "`steps[0].query` must be a string", id="query"
        ),
        pytest.param(
            text_of({**FIRST, "tool": "x"}), "`steps[0].tool` is not a key", id="unknown key"
        ),
        pytest.param(text_of(FIRST, why="x"), "`why` is not a key", id="unknown key on top"),
        pytest.param(
            '{"goal": "a", "goal": "b", "steps": []}', "`goal` stands twice", id="repeated key"
        ),
        pytest.param(
            '{"goal": "a", "steps": [{"step": 1, "action": "a", "action": "b", "query": null}]}',
            "`action` stands twice",
            id="repeated key in a step",
        ),
        pytest.param('{"goal": "\\ud800", "steps": []}', "`goal` must be text", id="surrogate"),
    ],
)
def test_r19_wrong_shape_names_the_path_of_the_first_fault(text: str, path: str) -> None:
    error = fault(text)

    assert error.reason == "schema"
    assert path in error.detail


@pytest.mark.parametrize(
    "text",
    [
        '{"goal": "x", "steps": NaN}',
        '{"goal": "x", "steps": [], "n": Infinity}',
        '{"goal": "x", "steps": [],}',
        "{'goal': 'x', 'steps': []}",
        '{"goal": "x", "steps": [], "n": ' + "9" * 5000 + "}",
        "[" * 200_000,
        '{"goal":' * 100_000 + "1" + "}" * 100_000,
    ],
    ids=["nan", "infinity", "comma", "quotes", "huge number", "deep array", "deep object"],
)
def test_r19_what_is_not_json_is_an_error_and_no_traceback(text: str) -> None:
    assert fault(text).reason == "not_json"


def test_r19_long_text_is_carried_whole_and_shown_cut() -> None:
    text = "prose " * 100_000
    error = fault(text)

    assert error.raw_text == text
    assert len(str(error)) < 1000


@pytest.mark.parametrize("numbers", [[0, 1], [1, 3], [2, 3], [1, 1], [5, 5], [-1, 1]])
def test_numbers_with_gaps_repeats_or_another_start_are_errors(numbers: list[int]) -> None:
    steps = [{"step": number, "action": "a", "query": None} for number in numbers]
    error = fault(text_of(*steps))

    assert error.reason == "numbering"
    assert "must be 1 to 2" in error.detail


def test_number_of_thousands_of_digits_is_a_fault_of_numbering() -> None:
    error = fault(f'{{"goal": "x", "steps": [{{"step": {"9" * 4000}, "action": "a"}}]}}')

    assert error.reason == "numbering"
    assert "a huge number" in error.detail


def test_permuted_steps_are_sorted_with_a_warning() -> None:
    third = {"step": 3, "action": "write", "query": None}
    read = read_plan(ModelReply(text=text_of(third, FIRST, SECOND)), max_steps=12)

    assert [step.step for step in read.plan.steps] == [1, 2, 3]
    assert [step.action for step in read.plan.steps][2] == "write"
    (warning,) = read.warnings
    assert warning.code == "plan_reordered"
    assert "3, 1, 2" in warning.detail


def test_plan_for_the_rest_is_numbered_on() -> None:
    rest = [{"step": n, "action": "a", "query": None} for n in (4, 3)]
    read = read_plan(ModelReply(text=text_of(*rest)), max_steps=12, first=3)

    assert [step.step for step in read.plan.steps] == [3, 4]
    assert [warning.code for warning in read.warnings] == ["plan_reordered"]
    assert "must be 3 to 4" in fault(text_of(FIRST, SECOND), first=3).detail


def test_r20_plan_without_steps_is_accepted() -> None:
    read = read_plan(ModelReply(text=text_of()), max_steps=12)

    assert read.plan.steps == ()
    assert read.warnings == ()


def test_plan_of_more_steps_than_allowed_is_refused_and_not_cut() -> None:
    steps = [{"step": n, "action": "a", "query": None} for n in range(1, 14)]

    assert fault(text_of(*steps)).reason == "too_many_steps"
    assert len(read_plan(ModelReply(text=text_of(*steps)), max_steps=13).plan.steps) == 13


FENCED = f"```json\n{json.dumps(GOOD, indent=2)}\n```"


def test_fenced_plan_is_an_error_that_names_the_setting() -> None:
    error = fault(FENCED)

    assert error.reason == "not_json"
    assert 'planner_output = "lenient"' in error.detail


@pytest.mark.parametrize(
    "text",
    [FENCED, f"\n{FENCED}\n", FENCED.replace("json", "", 1), json.dumps(GOOD)],
    ids=["fence", "space around", "no language", "no fence"],
)
def test_lenient_reader_takes_one_fence_off(text: str) -> None:
    read = read_plan(ModelReply(text=text), max_steps=12, lenient=True)

    assert read.plan == Plan.model_validate(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{FENCED}\n```",
        f"Here it is:\n{FENCED}",
        f"{FENCED}\nDone.",
        FENCED.removesuffix("```"),
        "```",
        "```\n```",
    ],
    ids=["two fences", "words before", "words behind", "not closed", "only a fence", "nothing in"],
)
def test_lenient_reader_takes_no_more_than_that(text: str) -> None:
    assert fault(text, lenient=True).reason == "not_json"


def outcome(read: Callable[[], ReadPlan]) -> ReadPlan | PlanError:
    try:
        return read()
    except PlanError as error:
        return error


@given(st.text() | st.text().map(lambda text: f"```\n{text}\n```"), st.booleans())
def test_any_text_gives_a_plan_or_the_error(text: str, lenient: bool) -> None:
    reply = ModelReply(text=text)
    found = outcome(lambda: read_plan(reply, max_steps=3, lenient=lenient))

    if isinstance(found, PlanError):
        assert found.raw_text == text
    else:
        assert len(found.plan.steps) <= 3


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["goal", "steps", "step", "action", "query", "x"]), inner, max_size=4
        )
    ),
)
nearly_plans = st.fixed_dictionaries(
    {"goal": st.text()},
    optional={
        "steps": st.lists(
            st.fixed_dictionaries(
                {"step": st.integers(0, 4)}, optional={"action": st.text(), "query": values}
            )
        )
    },
)


@given(values | nearly_plans)
def test_any_value_gives_a_plan_in_order_or_the_error(value: Any) -> None:
    found = outcome(lambda: read_plan_value(value, max_steps=3))

    if isinstance(found, PlanError):
        assert found.reason in {"schema", "numbering", "too_many_steps"}
    else:
        steps = found.plan.steps
        assert [step.step for step in steps] == list(range(1, len(steps) + 1))
        assert all(step.action.strip() for step in steps)


def test_callers_plan_is_checked_like_a_models() -> None:
    assert read_plan_value(GOOD, max_steps=2).plan == Plan.model_validate(GOOD)
    assert read_plan_value(Plan.model_validate(GOOD), max_steps=2).plan.goal == "a gift"
    with pytest.raises(PlanError) as caught:
        read_plan_value({"goal": "x", "steps": [{"step": 1}]}, max_steps=2)
    assert caught.value.reason == "schema"
    assert caught.value.raw_text == '{"goal": "x", "steps": [{"step": 1}]}'
    with pytest.raises(PlanError, match="too_many_steps"):
        read_plan_value(GOOD, max_steps=1)


def test_value_that_is_no_json_is_an_error_too() -> None:
    with pytest.raises(PlanError, match="schema"):
        read_plan_value({"goal": object(), "steps": []}, max_steps=1)
