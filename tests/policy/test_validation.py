"""Every kind of problem that a model can have, in the user's words."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from switchyard_core.declarations import JSONPathText, OptionError, PatternText
from switchyard_core.errors import Finding
from switchyard_core.policy.document import parse_document
from switchyard_core.policy.validation import validate
from switchyard_core.policy.wording import nearest


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(Strict):
    size: int = 0


class Other(Strict):
    weight: int = 0


class Model(Strict):
    word: str = ""
    ratio: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    count: Annotated[int, Field(ge=2, le=4)] = 2
    short: Annotated[str, Field(min_length=2, max_length=3)] = "ab"
    shape: Annotated[str, Field(pattern="^[a-z]*$")] = ""
    few: Annotated[tuple[int, ...], Field(min_length=1, max_length=2)] = (1,)
    colour: Colour = Colour.RED
    tags: frozenset[str] = frozenset()
    inner: Inner | None = None
    several: Inner | Other | None = None
    by_name: dict[str, Inner] = Field(default_factory=dict)
    listed: Annotated[list[Annotated[Inner, Field()]], Field()] = Field(default_factory=list)
    pair: tuple[int, Inner] | None = None
    even: int = 0

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            message = "Must be even."
            raise ValueError(message)
        return value


def problems(text: str) -> list[Finding]:
    document = parse_document(f"[m]\n{text}\n", "p.toml")
    instance, findings = validate(document, ("m",), Model, document.values["m"])
    assert (instance is None) == bool(findings)
    return findings


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        pytest.param("word = 1979-05-27T07:32:00 ", "SY106", "must be a string", id="date"),
        pytest.param("word = true", "SY106", "must be a string, not true or false", id="boolean"),
        pytest.param("word = {}", "SY106", "must be a string, not a table", id="table"),
        pytest.param("word = []", "SY106", "must be a string, not an array", id="array"),
        pytest.param("count = 2.0", "SY106", "not a number with a decimal point", id="float"),
        pytest.param('count = "2"', "SY106", "must be an integer, not a string", id="string"),
        pytest.param("count = 1", "SY107", "must be from 2 to 4, not 1", id="at_least"),
        pytest.param("count = 5", "SY107", "must be from 2 to 4, not 5", id="at_most"),
        pytest.param("ratio = 0.0", "SY107", "must be more than 0", id="more_than"),
        pytest.param(
            "ratio = 1.0", "SY107", "more than 0 and less than 1, not 1.0", id="less_than"
        ),
        pytest.param("ratio = nan", "SY107", "must be a finite number", id="nan"),
        pytest.param("ratio = inf", "SY107", "must be", id="infinity"),
        pytest.param('short = "a"', "SY107", "must have at least 2 characters", id="too_short"),
        pytest.param('short = "abcd"', "SY107", "must have at most 3 characters", id="too_long"),
        pytest.param('shape = "A"', "SY107", "must match `^[a-z]*$`", id="pattern"),
        pytest.param("few = []", "SY107", "must have at least 1 entry", id="too_few"),
        pytest.param("few = [1, 2, 3]", "SY107", "must have at most 2 entries", id="too_many"),
        pytest.param('colour = "rd"', "SY107", "`rd` is not a value of this key", id="enum"),
        pytest.param('tags = ["a", 1]', "SY106", "must be a string, not an integer", id="set"),
        pytest.param("even = 3", "SY107", "must be even", id="validator"),
        pytest.param("inner = 3", "SY106", "must be a table, not an integer", id="model"),
        pytest.param("pair = [1]", "SY105", "missing key `1`", id="short_tuple"),
    ],
)
def test_wrong_value_gives_one_finding_in_plain_words(text: str, code: str, message: str) -> None:
    found = problems(text)
    assert [finding.code for finding in found] == [code]
    for finding in found:
        assert message in finding.message
        assert finding.line == 2
        assert finding.fix


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        pytest.param("inner = { sise = 1 }", "m.inner.sise", "size", id="optional"),
        pytest.param("by_name = { a = { sise = 1 } }", "m.by_name.a.sise", "size", id="table"),
        pytest.param("listed = [{}, { sise = 1 }]", "m.listed[1].sise", "size", id="list"),
        pytest.param("pair = [1, { sise = 1 }]", "m.pair[1].sise", "size", id="tuple"),
        pytest.param("several = { sise = 1 }", "m.several.sise", "size, weight", id="union"),
    ],
)
def test_unknown_key_of_a_nested_table_offers_the_keys_of_that_table(
    text: str, path: str, allowed: str
) -> None:
    (finding,) = problems(text)
    assert (finding.code, finding.path) == ("SY104", path)
    assert finding.notes == (f"allowed keys: {allowed}",)


class Whole(Strict):
    low: int
    high: int

    @model_validator(mode="after")
    def _ordered(self) -> Whole:
        if self.low > self.high:
            message = "low must not exceed high"
            raise ValueError(message)
        return self


def test_rule_over_several_keys_is_reported_at_the_table() -> None:
    document = parse_document("[m]\nlow = 2\nhigh = 1\n", "p.toml")
    instance, (finding,) = validate(document, ("m",), Whole, document.values["m"])
    assert instance is None
    assert (finding.line, finding.path, finding.message) == (1, "m", "low must not exceed high")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("planer", "planner", id="one_letter"),
        pytest.param("PLANNER", "planner", id="case"),
        pytest.param("zzz", None, id="nothing_near"),
        pytest.param("", None, id="empty"),
    ],
)
def test_nearest_name_is_offered_only_when_it_is_near(name: str, found: str | None) -> None:
    assert nearest(name, ["planner", "executor"]) == found


def _no_x(text: str) -> str:
    if "x" in text:
        message = f"there is an x in {text}"
        raise OptionError(message, column=text.index("x"), fix="leave it out")
    return text


class Texts(Strict):
    path: JSONPathText | None = None
    paths: tuple[JSONPathText, ...] = ()
    pattern: PatternText | None = None
    by_name: dict[str, PatternText] = Field(default_factory=dict)
    own: Annotated[str, AfterValidator(_no_x)] = ""


@pytest.mark.parametrize(
    ("text", "code", "column", "message"),
    [
        pytest.param('path = "$.a["', "SY401", 13, "the path ends too early", id="path"),
        pytest.param('path = "\\u0024.a["', "SY401", 18, "ends too early", id="escaped"),
        pytest.param('paths = ["$.a", "$.["]', "SY401", 21, "ends too early", id="in_array"),
        pytest.param('path = ""', "SY401", 9, "the path is empty", id="empty_path"),
        pytest.param("pattern = 'a(?=b)'", "SY402", 13, "invalid perl operator: (?=", id="pattern"),
        pytest.param("by_name = { k = 'ab(' }", "SY402", 18, "missing ): ab(", id="in_table"),
        pytest.param("own = 'abx'", "SY107", 10, "an x", id="own"),
    ],
)
def test_text_that_cannot_be_compiled_is_pointed_at_inside_of_its_string(
    text: str, code: str, column: int, message: str
) -> None:
    document = parse_document(f"[m]\n{text}\n", "p.toml")
    instance, (finding,) = validate(document, ("m",), Texts, document.values["m"])
    assert instance is None
    assert (finding.code, finding.line, finding.column) == (code, 2, column)
    assert message in finding.message
    assert finding.fix not in {"", "change the value"}


def test_texts_that_compile_are_taken_as_they_are() -> None:
    document = parse_document("[m]\npath = '$.a[0]'\npattern = '^a+$'\n", "p.toml")
    instance, findings = validate(document, ("m",), Texts, document.values["m"])
    assert findings == []
    assert instance is not None
    assert (instance.path, instance.pattern) == ("$.a[0]", "^a+$")


def test_validator_that_repeats_a_credential_is_not_quoted() -> None:
    document = parse_document("[m]\nown = 'sk-proj-abcdefghijkl1234x'\n", "p.toml")
    _, (finding,) = validate(document, ("m",), Texts, document.values["m"])
    assert "sk-proj" not in finding.render()
    assert finding.message == "the value is not allowed"


def test_missing_table_is_told_how_a_table_is_written() -> None:
    class Needs(Strict):
        table: dict[str, int]
        word: str

    document = parse_document("[m]\n", "p.toml")
    _, findings = validate(document, ("m",), Needs, document.values["m"])
    assert [finding.fix for finding in findings] == [
        "add a table `[m.table]`",
        'add `word = "..."` to this table',
    ]
