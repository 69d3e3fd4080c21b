"""A plan as data, and how it is read: either it is a plan, or an error that carries the text."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from switchyard_core import SwitchyardError
from switchyard_core.answering import ModelReply
from switchyard_planner_executor import Plan, PlanError, PlanStep, read_plan_value
from switchyard_planner_executor.json_text import NotJsonError, RepeatedKeyError, strict_json
from switchyard_planner_executor.plan import (
    ReadPlan,
    plan_schema,
    read_plan,
)
from switchyard_planner_executor.text import is_blank

FIRST = {"step": 1, "action": "find camera gear", "query": "camera"}
SECOND = {"step": 2, "action": "choose one", "query": None}
GOOD = {"goal": "a gift", "steps": [FIRST, SECOND]}
PLAN = Plan.model_validate(GOOD)
TEXT = json.dumps(GOOD)


def text_of(*steps: dict[str, Any], **changes: Any) -> str:
    return json.dumps({"goal": "a gift", "steps": list(steps)} | changes)


def numbered(*numbers: int) -> str:
    return text_of(*({"step": n, "action": "a", "query": None} for n in numbers))


# --- the model -------------------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: not is_blank(text)
)
plans = st.builds(
    Plan,
    goal=words,
    steps=st.lists(
        st.builds(PlanStep, step=st.integers(), action=words, query=st.none() | words), max_size=8
    ),
)


def test_blank_query_is_none_and_a_blank_action_an_error() -> None:
    assert PlanStep(step=1, action="think").query is None
    for text in ("", " \n", "\u200b", "\u202e \x1b"):
        assert PlanStep(step=1, action="look", query=text).query is None
        with pytest.raises(ValidationError):
            PlanStep(step=1, action=text)


@given(st.text())
def test_blank_is_what_shows_nothing(text: str) -> None:
    if is_blank(text):
        assert not any(char.isalnum() for char in text)


def test_plan_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        PLAN.steps[0].action = "spend"
    assert isinstance(PLAN.steps, tuple)


def test_schema_describes_all_five_fields_in_the_models_words() -> None:
    schema = plan_schema()
    step = schema["properties"]["steps"]["items"]["properties"]
    described = {**schema["properties"], **step}

    assert sorted(described) == ["action", "goal", "query", "step", "steps"]
    for name, field in {**Plan.model_fields, **PlanStep.model_fields}.items():
        assert described[name]["description"] == field.description
        assert len(described[name]["description"]) > 20


def test_schema_keeps_to_what_every_provider_accepts() -> None:
    schema = plan_schema()
    step = schema["properties"]["steps"]["items"]

    for model in (schema, step):
        assert model["additionalProperties"] is False
        assert model["required"] == list(model["properties"])
    for word in ("default", "title", "maxItems", "minItems", "minimum", "maximum", "$ref", "$defs"):
        assert f'"{word}"' not in json.dumps(schema)
    assert step["properties"]["query"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    schema["properties"].clear()
    assert plan_schema()["properties"]


@given(plans)
def test_round_trip_through_json_keeps_a_plan_and_fits_its_schema(plan: Plan) -> None:
    text = plan.model_dump_json()

    assert Plan.model_validate_json(text) == plan
    jsonschema.validate(json.loads(text), plan_schema())


def test_digest_binds_the_plan_and_what_would_run_it() -> None:
    bound = {"route": "shop", "mode": "replan", "tools": ["a", "b"], "executor_target": "executor"}
    digest = PLAN.digest(**bound)

    assert len(digest) == 64
    assert int(digest, 16) >= 0
    assert Plan.model_validate_json(PLAN.model_dump_json()).digest(**bound) == digest
    for change in ({"route": "x"}, {"mode": "x"}, {"tools": ["a"]}, {"executor_target": "x"}):
        assert PLAN.digest(**bound | change) != digest
    first, second = PLAN.steps
    for edited in (
        {"goal": "another"},
        {"steps": (first,)},
        {"steps": (second, first)},
        {"steps": (first.model_copy(update={"query": None}), second)},
    ):
        assert PLAN.model_copy(update=edited).digest(**bound) != digest


# --- reading ---------------------------------------------------------------------------------


def fault(reply: ModelReply | str, **settings: Any) -> PlanError:
    """Return the error that a reply gives."""
    reply = ModelReply(text=reply) if isinstance(reply, str) else reply
    with pytest.raises(PlanError) as caught:
        read_plan(reply, **{"max_steps": 12, **settings})
    return caught.value


def test_structured_answer_is_a_plan_without_warnings() -> None:
    read = read_plan(ModelReply(text=TEXT, stop="stop"), max_steps=2)

    assert (read.plan, read.warnings) == (PLAN, ())
    assert read_plan(ModelReply(text=text_of()), max_steps=12).plan.steps == ()


@pytest.mark.parametrize(
    ("reply", "reason", "detail"),
    [
        (ModelReply(text="", refusal="I will not"), "refused", "refused"),
        (ModelReply(text=TEXT, stop="content_filter"), "refused", "refused"),
        (ModelReply(text='{"goal": "x', stop="length"), "truncated", "length"),
        (ModelReply(text=TEXT, stop="incomplete"), "truncated", "incomplete"),
        (ModelReply(text=TEXT, stop="max_tokens"), "truncated", "max_tokens"),
        (ModelReply(text=TEXT, stop="max_output_tokens"), "truncated", "max_output_tokens"),
        (ModelReply(text=" \n"), "empty", "no text"),
        (ModelReply(text="a plan"), "not_json", "line 1, column 1"),
        (ModelReply(text='{"goal": "x"}'), "schema", "`steps` is missing"),
        (ModelReply(text=numbered(1, 1)), "numbering", "1, 1"),
        (ModelReply(text=TEXT), "too_many_steps", "2 steps; at most 1"),
    ],
    ids=[
        "refused",
        "filtered",
        "length",
        "incomplete",
        "max_tokens",
        "max_output_tokens",
        "empty",
        "not_json",
        "schema",
        "numbering",
        "too_many_steps",
    ],
)
def test_each_fault_has_its_reason_and_carries_the_raw_text(
    reply: ModelReply, reason: str, detail: str
) -> None:
    error = fault(reply, max_steps=1)

    assert isinstance(error, SwitchyardError)
    assert error.reason == reason
    assert error.raw_text == (reply.refusal or reply.text)
    assert detail in error.detail
    assert reason in str(error)
    assert error.raw_text.strip() in str(error)


def test_first_check_that_fails_is_told() -> None:
    assert fault(ModelReply(refusal="no", stop="length")).reason == "refused"
    assert fault(ModelReply(text="", stop="length")).reason == "truncated"
    assert fault(text_of({"step": 9, "action": " ", "query": None})).reason == "schema"
    assert fault(numbered(0, 1), max_steps=1).reason == "numbering"


#: What a plan must not be, and the path of the first fault.
SHAPES = (
    ("[]", "must be an object"),
    ('"plan"', "must be an object"),
    ("null", "must be an object"),
    ('{"steps": []}', "`goal` is missing"),
    (text_of(goal=3), "`goal` must be a string"),
    (text_of(goal=""), "`goal` must not be blank"),
    (text_of(goal=" \n\u200b"), "`goal` must not be blank"),
    (text_of(steps={}), "`steps` must be an array"),
    (text_of(steps=None), "`steps` must be an array"),
    (text_of(FIRST, 3), "`steps[1]` must be an object"),
    (text_of(FIRST, {"step": 2, "query": None}), "`steps[1].action` is missing"),
    (text_of({**FIRST, "step": "1"}), "`steps[0].step` must be an integer"),
    (text_of({**FIRST, "step": True}), "`steps[0].step` must be an integer"),
    (text_of({**FIRST, "step": 1.0}), "`steps[0].step` must be an integer"),
    (text_of({**FIRST, "action": None}), "`steps[0].action` must be a string"),
    (text_of({**FIRST, "action": "\t"}), "`steps[0].action` must not be blank"),
    (text_of({**FIRST, "query": 3}), "`steps[0].query` must be a string"),
    (text_of({**FIRST, "tool": "x"}), "`steps[0].tool` is not a key"),
    (text_of(FIRST, why="x"), "`why` is not a key"),
    ('{"goal": "a", "goal": "b", "steps": []}', "has the key `goal` twice"),
    (
        '{"goal": "a", "steps": [{"step": 1, "action": "a", "action": "b", "query": null}]}',
        "has the key `action` twice",
    ),
    ('{"goal": "\\ud800", "steps": []}', "`goal` must be text"),
)


def test_wrong_shape_names_the_path_of_the_first_fault() -> None:
    for text, path in SHAPES:
        error = fault(text)

        assert (error.reason, path in error.detail) == ("schema", True), (text, error.detail)


#: Plans with more than one fault, and all that must be told of each.
MANY = (
    (
        '{"stp": 1, "steps": [{"step": "1", "action": " "}]}',
        ("`goal` is missing", "`steps[0].step` must", "`steps[0].action` must", "`stp` is not"),
    ),
    (
        text_of({"step": 3, "action": "", "query": None}, {"step": 3, "action": "a"}, goal=""),
        ("`goal` must not be blank", "`steps[0].action` must", "numbered 3, 3", "at most 1"),
    ),
    (numbered(0, 1), ("numbered 0, 1", "2 steps; at most 1")),
    (
        '{"goal": "a", "goal": "b", "steps": [{"step": 1, "step": 1, "action": 5}]}',
        ("the key `goal` twice", "the key `step` twice", "`steps[0].action` must be a string"),
    ),
    (text_of({**SECOND, "query": "x"}), ("step 2 has a `query`", "numbered 2; they must be 1")),
    (text_of(**{f"k{n}": n for n in range(30)}), ("`k0` is", "`k19` is", "and 10 more")),
)


def test_all_faults_of_a_plan_are_told_at_once() -> None:
    for text, told in MANY:
        error = fault(text, max_steps=1, searchable=False)

        assert [part for part in told if part not in error.detail] == [], (text, error.detail)
        assert len(error.faults) >= len(told)
        assert error.detail.count(";") + 1 >= len(told)
        assert "\n" not in str(error)


#: Texts that a strict reader refuses, what it says, and how many of them a lenient one reads.
MARKED = (
    ("\ufeff" + TEXT, "after a byte order mark"),
    ("\n\ufeff" + TEXT, "after a byte order mark"),
    (f"\ufeff```json\n{TEXT}\n```", "after a byte order mark and in a code fence"),
    (f"```json\n{TEXT}\n```", "in a code fence"),
)


def test_lenient_reader_takes_a_byte_order_mark_away() -> None:
    for text, told in MARKED:
        assert fault(text).detail == (
            f'the answer is {told}; `planner_output = "lenient"` reads it'
        ), text
        assert read_plan(ModelReply(text=text), max_steps=12, lenient=True).plan == PLAN, text


def test_text_of_a_bad_plan_is_shown_in_one_line_and_without_words_of_python() -> None:
    for text, shown in (
        ("\xa0a\nplan", "it is “a plan”"),
        ("it's “so”\t\x1b[2J", "it is “it's “so” \\u001b[2J”"),
        ("x" * 300, f"it is “{'x' * 200}…”"),
    ):
        assert str(fault(text)).endswith(shown), text


#: What is not JSON, strictly or at all; a plan in prose is never guessed at.
NOT_JSON = (
    "1. search for a camera\n2. choose one",
    f"Here is the plan: {TEXT}",
    f"{TEXT}\nTell me if that suits you.",
    TEXT * 2,
    TEXT[:-1],
    '{"goal": "x", "steps": NaN}',
    '{"goal": "x", "steps": [], "n": Infinity}',
    '{"goal": "x", "steps": [],}',
    "{'goal': 'x', 'steps': []}",
    '{"goal": "x", "steps": [], "n": ' + "9" * 5000 + "}",
    "[" * 200_000,
    '{"goal":' * 100_000 + "1" + "}" * 100_000,
)


def test_what_is_not_json_is_an_error_and_never_guessed_at() -> None:
    for text in NOT_JSON:
        for lenient in (False, True):
            error = fault(text, lenient=lenient)

            assert (error.reason, error.raw_text) == ("not_json", text), text[:40]


def test_long_text_is_carried_whole_and_shown_cut() -> None:
    text = "prose " * 100_000
    error = fault(text)

    assert error.raw_text == text
    assert len(str(error)) < 1000


def test_numbers_with_gaps_repeats_or_another_start_are_errors() -> None:
    for numbers in ([0, 1], [1, 3], [2, 3], [1, 1], [5, 5], [-1, 1]):
        error = fault(numbered(*numbers))

        assert error.reason == "numbering"
        assert "must be 1 to 2" in error.detail
    huge = fault(f'{{"goal": "x", "steps": [{{"step": {"9" * 4000}, "action": "a"}}]}}')
    assert (huge.reason, "a huge number" in huge.detail) == ("numbering", True)


def test_permuted_steps_are_sorted_with_a_warning() -> None:
    third = {"step": 3, "action": "write", "query": None}
    read = read_plan(ModelReply(text=text_of(third, FIRST, SECOND)), max_steps=12)

    assert [step.step for step in read.plan.steps] == [1, 2, 3]
    assert [step.action for step in read.plan.steps][2] == "write"
    (warning,) = read.warnings
    assert warning.code == "plan_reordered"
    assert "3, 1, 2" in warning.detail


def test_plan_for_the_rest_has_the_next_numbers() -> None:
    read = read_plan(ModelReply(text=numbered(4, 3)), max_steps=12, first=3)

    assert [step.step for step in read.plan.steps] == [3, 4]
    assert [warning.code for warning in read.warnings] == ["plan_reordered"]
    assert "must be 3 to 4" in fault(TEXT, first=3).detail


def test_plan_of_more_steps_than_allowed_is_refused_and_not_cut() -> None:
    text = numbered(*range(1, 14))

    assert fault(text).reason == "too_many_steps"
    assert len(read_plan(ModelReply(text=text), max_steps=13).plan.steps) == 13


def test_query_is_an_error_where_there_is_no_tool_for_it() -> None:
    error = fault(TEXT, searchable=False)

    assert error.reason == "schema"
    assert "step 1 has a `query`" in error.detail


FENCED = f"```json\n{json.dumps(GOOD, indent=2)}\n```"


def test_fenced_plan_is_an_error_that_names_the_setting() -> None:
    error = fault(FENCED)

    assert error.reason == "not_json"
    assert 'planner_output = "lenient"' in error.detail


def test_lenient_reader_removes_one_fence_and_no_more() -> None:
    body = json.dumps(GOOD, indent=2)
    for text in (
        *(FENCED, f"\n{FENCED}\n", FENCED.replace("json", "", 1), TEXT),
        *(f"```{word}\n{body}\n```" for word in (" json", "JSON", "  JSON  ", "json5 ", "\tjson")),
        *(f"{mark}json\n{body}\n{mark}" for mark in ("````", "``````", "~~~", "~~~~~")),
        f"```json\n{body}\n`````",
        "\n".join(f"    {line}" for line in FENCED.split("\n")),
        FENCED.replace("\n", "\r\n"),
        f"```json\n{body}\n```  ",
        f"Here it is:\n{FENCED}",
        f"{FENCED}\nDone.",
        f"Here it is:\n\n  ```json\n{body}\n  ```\n\nSay `yes` if that suits you.",
    ):
        assert read_plan(ModelReply(text=text), max_steps=12, lenient=True).plan == PLAN, text
    for text in (
        f"```\n{FENCED}\n```",
        f"{FENCED}\nOr this:\n{FENCED}",
        f"````json\n{body}\n```",
        f"~~~json\n{body}\n```",
        f"``json\n{body}\n``",
        f"```a plan\n{body}\n```",
        FENCED.removesuffix("```"),
        "```",
        "```\n```",
    ):
        assert fault(text, lenient=True).reason == "not_json", text


#: What other readers take for the end of a line.
LINE_ENDS = "\u2028\u2029\x85\x0b\x0c\x1c\x1e"


def test_fence_of_a_plan_with_odd_line_ends_in_its_strings_is_removed() -> None:
    for char in LINE_ENDS:
        value = {"goal": f"a{char}gift", "steps": [{**FIRST, "query": f"b{char}c"}]}
        body = json.dumps(value, ensure_ascii=char < " ")
        read = read_plan(ModelReply(text=f"```json\n{body}\n```"), max_steps=12, lenient=True)

        assert read.plan.goal == f"a{char}gift", hex(ord(char))
        assert read.plan.steps[0].query == f"b{char}c", hex(ord(char))


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
    assert read_plan_value(GOOD, max_steps=2).plan == PLAN
    assert read_plan_value(PLAN, max_steps=2).plan == PLAN
    bad = {"goal": "x", "steps": [{"step": 1}]}
    with pytest.raises(PlanError) as caught:
        read_plan_value(bad, max_steps=2)
    assert (caught.value.reason, caught.value.raw_text) == ("schema", json.dumps(bad))
    with pytest.raises(PlanError, match="too_many_steps"):
        read_plan_value(GOOD, max_steps=1)
    with pytest.raises(PlanError, match="schema"):
        read_plan_value({"goal": object(), "steps": []}, max_steps=1)


# --- JSON as its standard has it -------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_strict_reader_gives_the_value_of_text_and_bytes(value: object) -> None:
    text = json.dumps(value)

    assert strict_json(text) == value
    assert strict_json(text.encode()) == value


@given(st.text() | st.binary())
def test_no_text_brings_the_strict_reader_down(text: str | bytes) -> None:
    with contextlib.suppress(NotJsonError):
        json.dumps(strict_json(text), allow_nan=False)


def test_strict_reader_names_a_key_that_is_there_twice() -> None:
    for text in ('{"a": 1, "a": 1}', '[{"b": {"a": 1, "c": 2, "a": 3}}]'):
        with pytest.raises(RepeatedKeyError, match="one object has the key `a` twice"):
            strict_json(text)


def test_strict_reader_tells_a_fault_in_plain_words() -> None:
    for text, told in (
        ("1" * 5000, "an integer of 5000 digits is too long"),
        ('{"a": [-' + "1" * 5000 + "]}", "an integer of 5000 digits is too long"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (b"\xff", "not UTF-8"),
        ("NaN", "NaN is not a number in JSON"),
        ("[-Infinity]", "-Infinity is not a number in JSON"),
        ("1e999", "1e999 is out of range"),
        ("{", "a key in double quotes must stand in line 1, column 2, not the end of the text"),
        ("", "a value must stand in line 1, column 1, not the end of the text"),
        (
            "1. look\n2. choose",
            "nothing may follow the JSON value, and in line 1, column 2 `. look` follows",
        ),
        (
            "Here is the plan: it",
            "a value must stand in line 1, column 1, not `Here is the plan: it`",
        ),
        ("```json\n1", "a value must stand in line 1, column 1, not a code fence"),
        ("\xa0{}", "not the invisible character U+00A0 (no-break space)"),
        (
            "[1,\u200b2]",
            "in line 1, column 4, not the invisible character U+200B (zero width space)",
        ),
        ("{'a': 1}", "must stand in line 1, column 2, not `'a': 1}`"),
        ('{"a" 1}', "a `:` must stand in line 1, column 6, not `1}`"),
        (
            '{"a": 1\n"b": 2}',
            'a `,` or a closing bracket must stand in line 2, column 1, not `"b": 2}`',
        ),
        ('["a', 'the string that begins in line 1, column 2 has no closing `"`'),
        ('["a\nb"]', "in line 1, column 4; write it as an escape such as `\\n`"),
        ('["a\\x"]', "that begins no escape; write it as `\\\\`"),
        ('["\\u12"]', "that begins no escape; write it as `\\\\`"),
        ("\ufeff{}", "remove the first character, or save it without one"),
        (b"\xef\xbb\xbf{}", "remove the first character, or save it without one"),
    ):
        with pytest.raises(NotJsonError) as caught:
            strict_json(text)

        assert str(caught.value).endswith(told), text[:20]
