"""A TOML date is never text: every key that is not a date refuses it, and only it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NewType

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
    choice: Literal["a", "b"] = "a"
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


#: Keys with a date where none is wanted: the place of the finding, and what is wanted there.
MISPLACED = {
    "word = 1979-05-27": ("m.word", "a string"),
    "word = 07:32:00": ("m.word", "a string"),
    "word = 1979-05-27T07:32:00Z": ("m.word", "a string"),
    "maybe = 1979-05-27": ("m.maybe", "a string"),
    "named = 1979-05-27": ("m.named", "a string"),
    "number = 1979-05-27": ("m.number", "an integer"),
    "flag = 1979-05-27": ("m.flag", "true or false"),
    "choice = 1979-05-27": ("m.choice", "a string"),
    "table = 1979-05-27": ("m.table", "a table"),
    "table = { k = 1979-05-27 }": ("m.table.k", "a string"),
    "words = 1979-05-27": ("m.words", "an array"),
    'words = ["a", 1979-05-27]': ("m.words[1]", "a string"),
    "pair = [1979-05-27, 1979-05-27]": ("m.pair[0]", "a string"),
    "anything = 1979-05-27": ("m.anything", ""),
    "anything = [{ a = 1979-05-27 }]": ("m.anything[0].a", ""),
    "unknown = { a = 1979-05-27 }": ("m.unknown.a", ""),
    "part = { word = 1979-05-27, day = 1979-05-27 }": ("m.part.word", "a string"),
    "typed = { word = 1979-05-27 }": ("m.typed.word", "a string"),
}


def test_date_where_none_is_wanted_is_a_wrong_type() -> None:
    expected, found = {}, {}
    for text, (path, wanted) in MISPLACED.items():
        what = f"be {wanted}, not" if wanted else "not be"
        expected[text] = [("SY106", path, f"must {what} a date or time")]
        instance, findings = checked(text)
        assert instance is None, text
        found[text] = [(finding.code, finding.path, finding.message) for finding in findings]

    assert found == expected


def test_date_where_one_is_wanted_is_taken() -> None:
    texts = [
        "day = 1979-05-27",
        "moment = 1979-05-27T07:32:00Z",
        "clock = 07:32:00",
        "either = 1979-05-27",
        'pair = ["a", 1979-05-27]',
        'part = { word = "a", day = 1979-05-27 }',
        "typed = { day = 1979-05-27 }",
        'words = ["1979-05-27"]',
    ]

    assert {text: found for text in texts if (found := checked(text)[1])} == {}


@pytest.mark.parametrize(
    "text",
    ['day = "1979-05-27"', 'typed = { day = "1979-05-27" }', 'moment = "1979-05-27T07:32:00Z"'],
    ids=["date", "in_a_table", "with_time"],
)
def test_string_where_only_a_date_is_wanted_is_told_to_lose_its_quotes(text: str) -> None:
    (finding,) = checked(text)[1]
    assert "without quotes" in str(finding)


def test_value_that_is_not_a_date_is_told_what_a_date_looks_like() -> None:
    expected = {
        'day = "soon"': ("SY107", "must be a date such as 2026-01-31"),
        "day = 07:32:00": ("SY107", "must be a date such as 2026-01-31"),
        "clock = 1979-05-27": ("SY107", "must be a time such as 07:30:00"),
        "day = true": ("SY106", "must be a date, not true or false"),
    }

    found = {text: checked(text)[1][0] for text in expected}
    assert {text: (f.code, f.message) for text, f in found.items()} == expected


def test_date_does_not_hide_the_other_problems_of_its_table() -> None:
    _, findings = checked("word = 1979-05-27\nnumber = 'x'\nnope = 1979-05-27\nanything = 07:32:00")
    assert sorted((f.line, f.code) for f in findings) == [
        (2, "SY106"),
        (3, "SY106"),
        (4, "SY104"),
        (5, "SY106"),
    ]


def test_policy_with_a_date_for_a_name_is_refused_without_a_crash(check: Check, spec: str) -> None:
    places = {
        'llm_client = "provider"': "targets.planner.llm_client",
        '"openai_responses"': "llm_clients.provider.format",
        '"https://example.com/v1"': "llm_clients.provider.base_url",
        '"OPENAI_API_KEY"': "llm_clients.provider.api_key_env",
        '"provider/capable-model"': "targets.planner.id",
        '"switchyard/plan-execute"': "routes.plan_execute.id",
        '"plan_execute"': "routes.plan_execute.type",
        '"planner"\n': "routes.plan_execute.capable_target",
    }

    missed = {}
    for old, path in places.items():
        assert old in spec
        key = old.partition(" = ")[0] + " = " if " = " in old else ""
        result = check(spec.replace(old, f"{key}1979-05-27\n", 1))
        found = [(finding.code, finding.path) for finding in result.findings]
        if ("SY106", path) not in found or "SY901" in dict(found) or result.policy is not None:
            missed[path] = found

    assert missed == {}
