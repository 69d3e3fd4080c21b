"""A TOML date is never text: every key that is not a date refuses it, and only it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NewType

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from switchyard_core.declarations import Options
from switchyard_core.errors import Finding
from switchyard_core.policy import CheckResult
from switchyard_core.policy.document import parse_document
from switchyard_core.policy.validation import validate

Check = Callable[..., CheckResult]

Name = NewType("Name", str)


@dataclass
class Part:
    word: str
    day: dt.date


class Typed(TypedDict, total=False):
    word: str
    day: dt.date


class Everything(Options):
    word: str = ""
    maybe: str | None = None
    named: Name = Name("")
    number: int = 0
    flag: bool = False
    table: dict[str, str] = Field(default_factory=dict)
    words: tuple[str, ...] = ()
    pair: tuple[str, dt.date] | None = None
    either: str | dt.date = ""
    anything: Any = None
    unknown: dict[str, Any] = Field(default_factory=dict)
    day: dt.date | None = None
    moment: dt.datetime | None = None
    clock: dt.time | None = None
    part: Part | None = None
    typed: Typed | None = None


def checked(text: str) -> tuple[Everything | None, list[Finding]]:
    document = parse_document(f"[m]\n{text}\n", "p.toml")
    return validate(document, ("m",), Everything, document.values["m"])


@pytest.mark.parametrize(
    ("text", "path", "wanted"),
    [
        pytest.param("word = 1979-05-27", "m.word", "a string", id="string"),
        pytest.param("word = 07:32:00", "m.word", "a string", id="time"),
        pytest.param("word = 1979-05-27T07:32:00Z", "m.word", "a string", id="datetime"),
        pytest.param("maybe = 1979-05-27", "m.maybe", "a string", id="optional"),
        pytest.param("named = 1979-05-27", "m.named", "a string", id="new_type"),
        pytest.param("number = 1979-05-27", "m.number", "an integer", id="integer"),
        pytest.param("flag = 1979-05-27", "m.flag", "true or false", id="boolean"),
        pytest.param("table = 1979-05-27", "m.table", "a table", id="table"),
        pytest.param("table = { k = 1979-05-27 }", "m.table.k", "a string", id="in_table"),
        pytest.param("words = 1979-05-27", "m.words", "an array", id="array"),
        pytest.param('words = ["a", 1979-05-27]', "m.words[1]", "a string", id="in_array"),
        pytest.param("pair = [1979-05-27, 1979-05-27]", "m.pair[0]", "a string", id="in_tuple"),
        pytest.param("anything = 1979-05-27", "m.anything", "", id="any"),
        pytest.param("anything = [{ a = 1979-05-27 }]", "m.anything[0].a", "", id="inside_any"),
        pytest.param("unknown = { a = 1979-05-27 }", "m.unknown.a", "", id="any_in_table"),
        pytest.param(
            "part = { word = 1979-05-27, day = 1979-05-27 }", "m.part.word", "a string", id="part"
        ),
        pytest.param("typed = { word = 1979-05-27 }", "m.typed.word", "a string", id="typed"),
    ],
)
def test_date_where_none_is_wanted_is_a_wrong_type(text: str, path: str, wanted: str) -> None:
    instance, findings = checked(text)
    assert instance is None
    assert [(finding.code, finding.path) for finding in findings] == [("SY106", path)]
    what = f"be {wanted}, not" if wanted else "not be"
    assert findings[0].message == f"must {what} a date or time"


@pytest.mark.parametrize(
    "text",
    [
        "day = 1979-05-27",
        'day = "1979-05-27"',
        "moment = 1979-05-27T07:32:00Z",
        "clock = 07:32:00",
        "either = 1979-05-27",
        'pair = ["a", 1979-05-27]',
        'part = { word = "a", day = 1979-05-27 }',
        "typed = { day = 1979-05-27 }",
        'words = ["1979-05-27"]',
    ],
)
def test_date_where_one_is_wanted_is_taken(text: str) -> None:
    instance, findings = checked(text)
    assert findings == []
    assert instance is not None


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        pytest.param('day = "soon"', "SY107", "must be a date such as 2026-01-31", id="no_date"),
        pytest.param("day = 07:32:00", "SY107", "must be a date such as 2026-01-31", id="time"),
        pytest.param("clock = 1979-05-27", "SY107", "must be a time such as 07:30:00", id="date"),
        pytest.param("day = true", "SY106", "must be a date, not true or false", id="boolean"),
    ],
)
def test_value_that_is_no_date_is_told_what_a_date_looks_like(
    text: str, code: str, message: str
) -> None:
    _, findings = checked(text)
    assert [(finding.code, finding.message) for finding in findings] == [(code, message)]


def test_date_does_not_hide_the_other_problems_of_its_table() -> None:
    _, findings = checked("word = 1979-05-27\nnumber = 'x'\nnope = 1979-05-27")
    assert [(f.line, f.code) for f in sorted(findings, key=lambda f: f.line)] == [
        (2, "SY106"),
        (3, "SY106"),
        (4, "SY104"),
    ]


@pytest.mark.parametrize(
    ("old", "path"),
    [
        ('llm_client = "provider"', "targets.planner.llm_client"),
        ('"openai_responses"', "llm_clients.provider.format"),
        ('"https://example.com/v1"', "llm_clients.provider.base_url"),
        ('"OPENAI_API_KEY"', "llm_clients.provider.api_key_env"),
        ('"provider/capable-model"', "targets.planner.id"),
        ('"switchyard/plan-execute"', "routes.plan_execute.id"),
        ('"plan_execute"', "routes.plan_execute.type"),
        ('"planner"\n', "routes.plan_execute.capable_target"),
    ],
)
def test_policy_with_a_date_for_a_name_is_refused_without_a_crash(
    old: str, path: str, check: Check, spec: str
) -> None:
    assert old in spec
    key = old.partition(" = ")[0] + " = " if " = " in old else ""
    result = check(spec.replace(old, f"{key}1979-05-27\n", 1))
    assert result.policy is None
    assert ("SY106", path) in [(finding.code, finding.path) for finding in result.findings]
    assert "SY901" not in [finding.code for finding in result.findings]
