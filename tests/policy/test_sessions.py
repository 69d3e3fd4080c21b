"""Session sources and housekeeping conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from switchyard_core.policy import CheckResult, Policy

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]

HEAD = "schema_version = 1\n[targets]\n[routes]\n"


def loaded(result: CheckResult) -> Policy:
    assert result.policy is not None, [finding.render() for finding in result.findings]
    return result.policy


def test_identity_sources_are_kept_in_order_with_lower_case_headers(check: Check) -> None:
    text = HEAD + '[identity]\nsession = ["header:X-My-Session", "body:$.a.b"]\n'
    assert loaded(check(text)).identity_session == ("header:x-my-session", "body:$.a.b")


@pytest.mark.parametrize(
    ("source", "place"),
    [
        pytest.param("header:a b", "5:12 SY109", id="header_with_space"),
        pytest.param("x-session", "5:12 SY109", id="no_kind"),
        pytest.param("query:x", "5:12 SY109", id="unknown_kind"),
        pytest.param("body:$.a[", "5:22 SY401", id="jsonpath_column_inside_the_string"),
        pytest.param("header:authorization", "5:12 SY109", id="credential"),
        pytest.param("header:X-API-Key", "5:12 SY109", id="credential_in_another_case"),
        pytest.param("header:proxy-authorization", "5:12 SY109", id="credential_of_a_proxy"),
        pytest.param("header:x-goog-api-key", "5:12 SY109", id="credential_of_a_provider"),
        pytest.param("header:api-key", "5:12 SY109", id="credential_of_azure"),
        pytest.param("header:cookie", "5:12 SY109", id="cookie"),
        pytest.param("header:x-litellm-api-key", "5:12 SY109", id="credential_of_a_gateway"),
        pytest.param("header:x-auth-token", "5:12 SY109", id="token"),
        pytest.param("body:", "5:18 SY401", id="empty_jsonpath"),
    ],
)
def test_identity_source_that_cannot_be_read_is_reported(
    source: str, place: str, check: Check, places: Places
) -> None:
    result = check(f'{HEAD}[identity]\nsession = ["{source}"]\n')
    assert places(result) == [f"{place} identity.session[0]"]


@pytest.mark.parametrize(
    ("keys", "headers", "body", "holds"),
    [
        pytest.param('header = "X-A"', {"x-a": ""}, {}, True, id="header_there"),
        pytest.param('header = "X-A"', {}, {}, False, id="header_not_there"),
        pytest.param('header = "x-a"\nexists = false', {}, {}, True, id="header_must_not_be"),
        pytest.param('header = "x-a"\nmatches = "^t"', {"x-a": "title"}, {}, True, id="matches"),
        pytest.param('header = "x-a"\nmatches = "^t"', {"x-a": "a"}, {}, False, id="no_match"),
        pytest.param('path = "$.a"\nequals = 1', {}, {"a": 1}, True, id="equals"),
        pytest.param('path = "$.a"\nequals = 1', {}, {"a": True}, False, id="true_is_not_one"),
        pytest.param('path = "$.a"\nin = ["x", "y"]', {}, {"a": "y"}, True, id="in"),
        pytest.param('path = "$.a"\nin = ["x", "y"]', {}, {"a": "z"}, False, id="not_in"),
        pytest.param('path = "$.a[*].b"\nequals = 2', {}, {"a": [{}, {"b": 2}]}, True, id="any"),
        pytest.param('path = "$.a"\nmatches = "x"', {}, {"a": 3}, False, id="number_no_match"),
        pytest.param('path = "$.a"', {}, [1], False, id="body_of_another_shape"),
        pytest.param('path = "$.a"\nexists = true', {}, {"a": None}, True, id="null_exists"),
    ],
)
def test_housekeeping_condition_holds_as_written(
    keys: str, headers: dict[str, str], body: Any, holds: bool, check: Check
) -> None:
    (condition,) = loaded(check(f"{HEAD}[[housekeeping]]\n{keys}\n")).housekeeping
    assert condition.holds(headers, lambda: body) is holds


def test_housekeeping_on_a_header_never_reads_the_body(check: Check) -> None:
    (condition,) = loaded(check(f'{HEAD}[[housekeeping]]\nheader = "x-a"\n')).housekeeping

    def body() -> Any:
        raise AssertionError

    assert condition.holds({"x-a": "1"}, body)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param("equals = 1", ["4:3 SY109 housekeeping[0]"], id="neither"),
        pytest.param(
            'path = "$.a"\nheader = "x"', ["4:3 SY109 housekeeping[0]"], id="path_and_header"
        ),
        pytest.param(
            'path = "$.a"\nequals = 1\nexists = true',
            ["7:1 SY109 housekeeping[0].exists"],
            id="two_tests",
        ),
        pytest.param('path = "$.a"\nin = []', ["6:6 SY109 housekeeping[0].in"], id="empty_in"),
        pytest.param(
            'header = "a"\nequals = 3', ["6:10 SY109 housekeeping[0].equals"], id="header_number"
        ),
        pytest.param(
            'header = "a"\nin = [1, true]', ["6:6 SY109 housekeeping[0].in"], id="header_numbers"
        ),
        pytest.param('path = "$.["', ["5:12 SY401 housekeeping[0].path"], id="bad_jsonpath"),
        pytest.param('header = "a b"', ["5:10 SY109 housekeeping[0].header"], id="bad_header"),
        pytest.param(
            'header = "a"\nmatches = "("', ["6:12 SY402 housekeeping[0].matches"], id="bad_regex"
        ),
        pytest.param(
            'header = "a"\nexists = 1', ["6:10 SY106 housekeeping[0].exists"], id="wrong_type"
        ),
        pytest.param(
            'path = "$.a"\nkinds = ["title"]\ntarget = "t"',
            ["4:3 SY109 housekeeping[0]", "7:10 SY201 housekeeping[0].target"],
            id="path_and_kinds",
        ),
        pytest.param('kinds = ["title"]', ["4:3 SY109 housekeeping[0]"], id="kinds_alone"),
        pytest.param(
            'header = "a"\nkind = "A title"',
            ["6:8 SY109 housekeeping[0].kind"],
            id="kind_of_two_words",
        ),
        pytest.param(
            'header = "a"\nmaches = "x"', ["6:1 SY104 housekeeping[0].maches"], id="unknown_key"
        ),
    ],
)
def test_housekeeping_condition_that_cannot_be_used_is_reported(
    keys: str, expected: list[str], check: Check, places: Places
) -> None:
    assert places(check(f"{HEAD}[[housekeeping]]\n{keys}\n")) == expected


SERVED = """schema_version = 1
[llm_clients.c]
format = "openai_chat"
base_url = "https://a.com/v1"
[llm_clients.other]
format = "anthropic_messages"
base_url = "https://b.com"
[targets.t]
id = "m"
llm_client = "c"
[targets.small]
id = "s"
llm_client = "c"
[targets.foreign]
id = "f"
llm_client = "other"
[routes.r]
id = "r"
type = "plan_execute"
capable_target = "t"
efficient_target = "t"
"""


def test_condition_names_kinds_and_a_target_that_counts_as_used(check: Check) -> None:
    keys = 'kinds = ["title", "compaction", "small_model"]\ntarget = "small"\n'
    result = check(f"{SERVED}[[housekeeping]]\n{keys}")
    (condition,) = loaded(result).housekeeping

    assert (condition.kinds, condition.target) == (("title", "compaction", "small_model"), "small")
    assert [f.path for f in result.findings if f.code == "SY220"] == ["targets.foreign"]


def test_kind_that_another_condition_marks_is_known(check: Check) -> None:
    text = (
        '[[housekeeping]]\nheader = "x"\nkind = "lint"\n'
        '[[housekeeping]]\nkinds = ["lint"]\ntarget = "small"\n'
    )

    assert [condition.kind for condition in loaded(check(SERVED + text)).housekeeping] == [
        "lint",
        None,
    ]


@pytest.mark.parametrize(
    ("keys", "code", "path", "words"),
    [
        ('kinds = ["titel"]\ntarget = "small"', "SY109", "kinds[0]", "did you mean `title`?"),
        ('kinds = ["title"]\ntarget = "smal"', "SY201", "target", "did you mean `small`?"),
        ('kinds = []\ntarget = "small"', "SY109", "kinds", "name a kind"),
        ('kinds = ["title"]\ntarget = "small"\nexists = true', "SY109", "exists", "no meaning"),
    ],
)
def test_selection_of_side_calls_that_cannot_work_is_reported(
    keys: str, code: str, path: str, words: str, check: Check
) -> None:
    (finding,) = check(f"{SERVED}[[housekeeping]]\n{keys}\n").errors

    assert (finding.code, finding.path) == (code, f"housekeeping[0].{path}")
    assert words in finding.render()
