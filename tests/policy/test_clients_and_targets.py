"""Clients and targets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from switchyard_core.policy import CheckResult, Client, Policy

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]

HEAD = "schema_version = 1\n[routes]\n[targets]\n"


def loaded(result: CheckResult) -> Policy:
    assert result.policy is not None, [finding.render() for finding in result.findings]
    return result.policy


def client(check: Check, keys: str, **more: Path) -> Client:
    return loaded(check(f"{HEAD}[llm_clients.c]\n{keys}", **more)).clients["c"]


def test_client_without_optional_keys_takes_the_documented_defaults(check: Check) -> None:
    made = client(check, 'format = "openai_chat"\nbase_url = "https://example.com/v1/"\n')
    assert made == Client(name="c", format="openai_chat", base_url="https://example.com/v1")
    assert (made.max_retries, made.timeout_s, made.format) == (1, 600.0, "openai_chat")
    assert made.origin == ("https://example.com", "")


def test_client_with_all_keys_keeps_them(check: Check) -> None:
    made = client(
        check,
        'format = "anthropic_messages"\nbase_url = "http://127.0.0.1:8080/proxy"\n'
        'forward_auth = true\nextra_headers = { X-Team = "a b" }\nforward_headers = ["X-Trace"]\n'
        "max_retries = 0\ntimeout_ms = 1500\n",
    )
    assert made.extra_headers == {"X-Team": "a b"}
    assert made.forward_headers == ("x-trace",)
    assert (made.max_retries, made.timeout_s, made.forward_auth) == (0, 1.5, True)
    assert made.origin == ("http://127.0.0.1:8080/proxy", "caller")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param("https://a.com/v1", "https://A.com", True, id="case_and_v1"),
        pytest.param("https://a.com/v1", "https://b.com/v1", False, id="host"),
        pytest.param("https://a.com/x", "https://a.com/y", False, id="path"),
        pytest.param("https://a.com", "http://a.com", False, id="scheme"),
    ],
)
def test_origin_is_equal_for_one_place_and_key(
    first: str, second: str, same: bool, check: Check
) -> None:
    made = [
        client(check, f'format = "openai_chat"\napi_key_env = "K"\nbase_url = "{url}"\n')
        for url in (first, second)
    ]
    assert (made[0].origin == made[1].origin) is same


def test_origin_differs_by_key_source(check: Check) -> None:
    base = 'format = "openai_chat"\nbase_url = "https://a.com"\n'
    keys = ('api_key_env = "A"\n', 'api_key_env = "B"\n', "forward_auth = true\n", "")
    assert len({client(check, base + key).origin for key in keys}) == 4


def test_scripted_client_takes_the_script_from_the_folder_of_the_policy(
    check: Check, tmp_path: Path
) -> None:
    (tmp_path / "s.json").write_text("{}")
    made = client(
        check,
        'format = "scripted"\nscript = "s.json"\nspeaks = "openai_responses"\n',
        base_dir=tmp_path,
    )
    assert (made.scripted, made.format, made.script) == (
        True,
        "openai_responses",
        tmp_path / "s.json",
    )


def test_strict_providers_of_one_script_are_different_origins(check: Check, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    base = 'format = "scripted"\nscript = "s.json"\nspeaks = "openai_chat"\n'
    keys = ("", 'strict = "openai"\n', 'strict = "deepseek"\n')
    assert len({client(check, base + key, base_dir=tmp_path).origin for key in keys}) == 3


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param('format = "openai_chat"', ["4:14 SY206 llm_clients.c"], id="no_base_url"),
        pytest.param(
            'format = "scripted"',
            ["4:14 SY206 llm_clients.c", "4:14 SY206 llm_clients.c"],
            id="no_script",
        ),
        pytest.param(
            'format = "scripted"\nscript = "none.json"\nspeaks = "openai_chat"\nbase_url = "x"',
            ["6:10 SY209 llm_clients.c.script", "8:1 SY206 llm_clients.c.base_url"],
            id="script_missing_and_url_given",
        ),
        pytest.param(
            'format = "scripted"\nscript = "a\\u0000b"\nspeaks = "openai_chat"',
            ["6:10 SY209 llm_clients.c.script"],
            id="script_no_path",
        ),
        pytest.param(
            f'format = "scripted"\nscript = "{"a" * 5000}"\nspeaks = "openai_chat"',
            ["6:10 SY209 llm_clients.c.script"],
            id="script_with_a_name_too_long",
        ),
        pytest.param(
            'format = "openai_chat"\nbase_url = "https://a.com"\nspeaks = "openai_chat"',
            ["7:1 SY206 llm_clients.c.speaks"],
            id="speaks_of_a_real_provider",
        ),
        pytest.param(
            'format = "openai_chat"\nbase_url = "https://a.com"\nstrict = "openai"',
            ["7:1 SY206 llm_clients.c.strict"],
            id="strict_of_a_real_provider",
        ),
        pytest.param(
            'format = "openai"\nbase_url = "https://a.com"',
            ["5:10 SY107 llm_clients.c.format"],
            id="unknown_format",
        ),
        pytest.param(
            'format = "openai_chat"\nbase_url = "https://a.com"\nmax_retries = 1.0',
            ["7:15 SY106 llm_clients.c.max_retries"],
            id="float_for_integer",
        ),
        pytest.param(
            'format = "openai_chat"\nbase_url = "https://a.com"\napi_key_env = "a b"',
            ["7:15 SY107 llm_clients.c.api_key_env"],
            id="no_variable_name",
        ),
        pytest.param(
            'format = "openai_chat"\nbase_url = "https://a.com"\n'
            'extra_headers = { "Authorization" = "x", "b d" = "y", ok = "\\u00e9" }\n'
            'forward_headers = ["cookie", "x-ok"]',
            [
                "7:19 SY210 llm_clients.c.extra_headers.Authorization",
                '7:42 SY210 llm_clients.c.extra_headers."b d"',
                "7:60 SY210 llm_clients.c.extra_headers.ok",
                "8:20 SY210 llm_clients.c.forward_headers[0]",
            ],
            id="headers",
        ),
    ],
)
def test_client_with_wrong_keys_is_reported(
    keys: str, expected: list[str], check: Check, places: Places
) -> None:
    assert places(check(f"{HEAD}[llm_clients.c]\n{keys}\n")) == expected


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("example.com", "must be absolute and begin with", id="relative"),
        pytest.param("ftp://example.com", "must be absolute and begin with", id="scheme"),
        pytest.param("https:///v2", "must be absolute and begin with", id="no_host"),
        pytest.param("https://u@example.com", "must not hold a user or password", id="user"),
        pytest.param("https://example.com/?a=b", "must have no query", id="query"),
        pytest.param("https://example.com/#a", "must have no query", id="fragment"),
        pytest.param("https://example.com:99999", "cannot be read", id="port"),
        pytest.param("https://[1", "cannot be read", id="bracket"),
        pytest.param("https://exa mple.com", "must be printable ASCII", id="space"),
    ],
)
def test_base_url_that_cannot_be_called_is_reported_without_repeating_it(
    url: str, message: str, check: Check
) -> None:
    text = f'{HEAD}[llm_clients.c]\nformat = "openai_chat"\nbase_url = "{url}"\n'
    (finding,) = check(text).findings
    assert finding.code == "SY203"
    assert message in finding.message
    assert url not in finding.render().replace("https://api.example.com/v1", "")


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        pytest.param({}, "environment variable `KEY` is not set", id="unset"),
        pytest.param({"KEY": " "}, "environment variable `KEY` is empty", id="empty"),
        pytest.param({"KEY": "a\nb"}, "`KEY` holds characters that a header", id="line_break"),
        pytest.param({"KEY": "abc"}, None, id="set"),
        pytest.param(None, None, id="environment_not_read"),
    ],
)
def test_key_variable_is_checked_only_with_an_environment(
    environ: dict[str, str] | None, problem: str | None, check: Check
) -> None:
    text = (
        f'{HEAD}[llm_clients.c]\nformat = "openai_chat"\nbase_url = "https://a.com"\n'
        'api_key_env = "KEY"\n'
    )
    errors = check(text, environ).errors
    assert [finding.code for finding in errors] == (["SY204"] if problem else [])
    assert not problem or problem in errors[0].message


def test_target_keeps_every_key(check: Check, spec: str) -> None:
    text = spec.replace(
        'id = "provider/capable-model"\n',
        'id = "provider/capable-model"\nextra_body = { a = { b = [1, 2.5, true] } }\n'
        'system_prompt = "be brief"\nreasoning_effort = "high"\ncontext_window = 1000\n'
        'on_overflow = "stay"\naccepts_prefill = false\ntool_id_style = "alphanumeric_9"\n'
        'structured_output = "forced_tool"\n'
        "rewrites = { remap_tool_ids = false }\n",
    )
    policy = loaded(check(text))
    target = policy.targets["planner"]
    assert target.extra_body == {"a": {"b": [1, 2.5, True]}}
    assert (target.system_prompt, target.reasoning_effort) == ("be brief", "high")
    assert (target.context_window, target.on_overflow) == (1000, "stay")
    assert (target.accepts_prefill, target.tool_id_style) == (False, "alphanumeric_9")
    assert target.structured_output == "forced_tool"
    assert target.rewrites == {"remap_tool_ids": False}
    assert target.client is policy.clients["provider"]
    assert target.wire_format == "openai_responses"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param('id = "a b"', "8:6 SY107 targets.t.id", id="id_with_space"),
        pytest.param('id = ""', "8:6 SY108 targets.t.id", id="empty_id"),
        pytest.param(
            'id = "a"\nextra_body = { x = [1979-05-27] }',
            "9:21 SY211 targets.t.extra_body.x[0]",
            id="date_in_body",
        ),
        pytest.param(
            'id = "a"\nextra_body.x = nan', "9:16 SY211 targets.t.extra_body.x", id="nan_in_body"
        ),
        pytest.param(
            'id = "a"\nsystem_prompt = " "', "9:17 SY108 targets.t.system_prompt", id="blank"
        ),
        pytest.param(
            'id = "a"\ncontext_window = 0', "9:18 SY107 targets.t.context_window", id="range"
        ),
        pytest.param(
            'id = "a"\nrewrites = { remap_tool_ids = "no" }',
            "9:31 SY106 targets.t.rewrites.remap_tool_ids",
            id="rewrite_no_boolean",
        ),
    ],
)
def test_target_with_a_wrong_value_is_reported(
    keys: str, expected: str, check: Check, places: Places
) -> None:
    text = (
        "schema_version = 1\n[routes]\n[llm_clients.c]\n"
        'format = "openai_chat"\nbase_url = "https://a.com"\n[targets.t]\n'
        f'llm_client = "c"\n{keys}\n'
    )
    assert places(check(text)) == [expected]


@pytest.mark.parametrize(
    ("value", "code", "fix"),
    [
        pytest.param("$OPENAI_API_KEY", "SY107", "write `OPENAI_API_KEY`", id="dollar"),
        pytest.param("${OPENAI_API_KEY}", "SY107", "write `OPENAI_API_KEY`", id="braces"),
        pytest.param("%OPENAI_API_KEY%", "SY107", "write `OPENAI_API_KEY`", id="windows"),
        pytest.param("env:OPENAI_API_KEY", "SY107", "write `OPENAI_API_KEY`", id="prefix"),
        pytest.param(" OPENAI_API_KEY ", "SY107", "write `OPENAI_API_KEY`", id="spaces"),
        pytest.param("A=b", "SY107", "write only the name", id="assignment"),
        pytest.param("OPENAI-API-KEY", "SY107", "letters, digits and underscores", id="hyphens"),
        pytest.param("1ABC", "SY107", "does not begin with a digit", id="digit"),
        pytest.param("", "SY108", "or remove the key", id="blank"),
        pytest.param("sk-proj-abcdefghijkl1234", "SY107", "revoke this key", id="key"),
    ],
)
def test_variable_name_of_a_known_wrong_shape_gets_a_fix_of_its_own(
    value: str, code: str, fix: str, check: Check, spec: str
) -> None:
    result = check(spec.replace("OPENAI_API_KEY", value))
    finding = result.errors[0]
    assert (finding.code, finding.path) == (code, "llm_clients.provider.api_key_env")
    assert fix in finding.fix
    assert "sk-proj" not in finding.render()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(
            'extra_headers = { X-Foo = "1", x-foo = "2" }',
            "8:32 SY210 llm_clients.provider.extra_headers.x-foo",
            id="twice",
        ),
        pytest.param(
            'extra_headers = { X-Switchyard-Anything = "1" }',
            "8:19 SY210 llm_clients.provider.extra_headers.X-Switchyard-Anything",
            id="own_prefix",
        ),
        pytest.param(
            'extra_headers = { "session_id" = "1" }',
            "8:19 SY210 llm_clients.provider.extra_headers.session_id",
            id="session",
        ),
        pytest.param(
            'forward_headers = ["x-ok", "X-Claude-Code-Session-Id"]',
            "8:28 SY210 llm_clients.provider.forward_headers[1]",
            id="forwarded",
        ),
    ],
)
def test_header_that_is_repeated_or_names_a_session_is_refused(
    keys: str, expected: str, check: Check, places: Places, spec: str
) -> None:
    text = spec.replace("[targets.planner]", keys + "\n[targets.planner]", 1)
    assert places(check(text)) == [expected]


def test_reserved_rewrite_cannot_be_switched_off_though_nobody_gives_it(
    check: Check, places: Places, spec: str
) -> None:
    text = spec.replace(
        "[targets.executor]", "rewrites = { translate = false }\n[targets.executor]", 1
    )
    assert places(check(text)) == ["12:14 SY208 targets.planner.rewrites.translate"]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ('create = "/chat"', []),
        ('create = "/v2/chat/completions"', []),
        ('create = "chat"', ["SY203 llm_clients.c.paths.create"]),
        ('create = "/chat?x=1"', ["SY203 llm_clients.c.paths.create"]),
        ('create = ""', ["SY203 llm_clients.c.paths.create"]),
        ('compact = "/compact"', ["SY206 llm_clients.c.paths.compact"]),
        ('creat = "/chat"', ["SY107 llm_clients.c.paths.creat"]),
    ],
)
def test_paths_of_calls_are_checked(paths: str, expected: list[str], check: Check) -> None:
    text = (
        f'{HEAD}[llm_clients.c]\nformat = "openai_chat"\nbase_url = "https://a.com/x"\n'
        f"paths = {{ {paths} }}\n"
    )

    found = [f"{finding.code} {finding.path}" for finding in check(text).errors]

    assert found == expected


_CLIENT = '[llm_clients.p]\nformat = "openai_chat"\nbase_url = "https://h.example"\n'
_MODEL = '[targets.x]\nid = "m"\nllm_client = "p"\n'
_LANE = (
    '[routes.r]\nid = "r"\ntype = "plan_execute"\ncapable_target = "x"\nefficient_target = "z"\n'
)
_SECOND = '[targets.z]\nid = "n"\nllm_client = "p"\n'
_ALL = f"schema_version = 1\n{_CLIENT}{_MODEL}{_SECOND}{_LANE}"


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        pytest.param("[routes.r]", "[Routes.r]", "SY104", id="case_of_routes"),
        pytest.param("[routes.r]", "[[routes]]", "SY106", id="array_of_routes"),
        pytest.param("[llm_clients.p]", "[llm-clients.p]", "SY104", id="hyphen_in_clients"),
        pytest.param("[llm_clients.p]", "[[llm_clients]]", "SY106", id="array_of_clients"),
        pytest.param("[targets.", "[target.", "SY104", id="singular_targets"),
        pytest.param(f"{_MODEL}{_SECOND}", f"[[targets]]{_MODEL[11:]}", "SY106", id="array"),
        pytest.param("[targets.x]", "[targets.x.y]", "SY104", id="point_in_a_target"),
        pytest.param("[routes.r]", "[routes.r.y]", "SY104", id="point_in_a_route"),
        pytest.param("[routes.r]", f'[targets.""]{_MODEL[11:]}[routes.r]', "SY116", id="blank"),
        pytest.param(
            "[routes.r]", f'[targets."a\\u0007"]{_MODEL[11:]}[routes.r]', "SY116", id="control"
        ),
    ],
)
def test_one_mistake_in_a_name_is_one_finding(before, after, code, check):
    text = _ALL.replace(before, after)
    if ".y]" in after:
        text = text.replace('_target = "x"', '_target = "x.y"')
    assert [finding.code for finding in check(text).findings] == [code]
