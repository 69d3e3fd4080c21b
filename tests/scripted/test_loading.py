"""Reading scripts: every problem at once, with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from switchyard_core.errors import PolicyError
from switchyard_core.scripted import check_script, load_script

BROKEN = """{
 "version": 2, "extra": 1,
 "scripts": [
  {"when": {"modl": "x", "body": "(", "has_tools": "yes"},
   "turns": [
    {"calls": [{"name": "a", "arguments": 3}, {}, {"name": "b", "arguments": {}, "input": ""},
               {"any_of": [{"nam": "c"}]}],
     "delay_s": -1,
     "usage": {"input": "5", "outputs": 1}}],
   "faults": [{"turn": 1}, {"kind": "explode"}, {"kind": "drop", "status": 500},
              {"status": 200}, {"status": 500, "times": 0, "extra": 1}]},
  {"turns": []},
  {"faults": []},
  7
 ]
}
"""


def found(text: str) -> list[str]:
    script, findings = check_script(text, "s.json")
    assert script is None
    return [finding.render().splitlines()[0] for finding in findings]


def test_check_script_reports_every_problem_in_order_of_position() -> None:
    assert found(BROKEN) == [
        "s.json:2:2: SY242 `version` must be 1 at version",
        "s.json:2:16: SY241 unknown key `extra` at extra",
        "s.json:4:13: SY241 unknown key `modl` at scripts[0].when.modl",
        "s.json:4:26: SY242 `body` is not a regular expression: missing ): ( at scripts[0].when.body",  # noqa: E501 - one finding is one line
        "s.json:4:39: SY242 `has_tools` must be true or false at scripts[0].when.has_tools",
        "s.json:6:30: SY242 `arguments` must be an object or a string at scripts[0].turns[0].calls[0].arguments",  # noqa: E501 - one finding is one line
        "s.json:6:47: SY242 a call needs either `name` or `any_of` at scripts[0].turns[0].calls[1]",
        "s.json:6:51: SY242 a call has either `arguments` or `input` at scripts[0].turns[0].calls[2]",  # noqa: E501 - one finding is one line
        "s.json:7:29: SY241 unknown key `nam` at scripts[0].turns[0].calls[3].any_of[0].nam",
        "s.json:8:6: SY242 `delay_s` must be 0 or more at scripts[0].turns[0].delay_s",
        "s.json:9:16: SY242 `input` must be a whole number at scripts[0].turns[0].usage.input",
        "s.json:9:30: SY241 unknown key `outputs` at scripts[0].turns[0].usage.outputs",
        "s.json:10:15: SY242 a fault needs `status` or `kind` at scripts[0].faults[0]",
        "s.json:10:29: SY242 `kind` must be 'drop', 'cut', 'error_event' or 'garbage' at scripts[0].faults[1].kind",  # noqa: E501 - one finding is one line
        "s.json:10:49: SY242 a fault of kind `drop` has no `status` at scripts[0].faults[2]",
        "s.json:11:16: SY242 `status` must be 400 or more at scripts[0].faults[3].status",
        "s.json:11:48: SY242 `times` must be 1 or more at scripts[0].faults[4].times",
        "s.json:11:60: SY241 unknown key `extra` at scripts[0].faults[4].extra",
        "s.json:12:4: SY242 `turns` must have at least one item at scripts[1].turns",
        "s.json:13:3: SY242 `turns` is missing at scripts[2].turns",
        "s.json:14:3: SY242 the item must be an object at scripts[3]",
    ]


def test_every_problem_of_a_script_has_a_fix() -> None:
    _, findings = check_script(BROKEN)

    assert [finding.message for finding in findings if not finding.fix] == []
    fixes = {finding.path: finding.fix for finding in findings}
    assert fixes["scripts[0].when.has_tools"] == "write true or false"
    assert fixes["scripts[2].turns"].startswith("add it")


def test_unknown_key_gives_the_allowed_ones_and_the_nearest() -> None:
    _, (finding,) = check_script('{"version": 1, "scripts": [{"turns": [{"txt": "a"}]}]}')

    assert "text" in finding.notes[0]
    assert finding.fix == "did you mean `text`?"


def test_unknown_key_near_to_nothing_is_to_be_removed() -> None:
    _, (finding,) = check_script('{"version": 1, "scripts": [{"turns": [{}]}], "qqq": 1}')

    assert finding.fix == "remove it"


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        pytest.param("", "s.json:1:1: SY240 the script is not JSON: expecting value", id="empty"),
        pytest.param(
            '{\n "a"', "s.json:2:5: SY240 the script is not JSON: expecting ':' delimiter", id="cut"
        ),
        pytest.param(
            "[" * 100_000,
            "s.json:1:101: SY240 the script is nested more than 100 levels deep",
            id="deep",
        ),
        pytest.param("[]", "s.json:1:1: SY242 the script must be an object", id="array"),
    ],
)
def test_text_that_is_no_script_is_one_finding(text: str, headline: str) -> None:
    assert found(text) == [headline]


def test_load_script_fills_variables_everywhere_and_leaves_other_braces(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    call = {"name": "{{tool}}", "arguments": {"path": ["{{cwd}}/a", "{{other}}", 1]}}
    path.write_text(json.dumps({"version": 1, "scripts": [{"turns": [{"calls": [call]}]}]}))

    script = load_script(path, {"cwd": "/repo", "tool": "read"})

    (made,) = script.scripts[0].turns[0].calls
    assert (made.name, made.arguments) == ("read", {"path": ["/repo/a", "{{other}}", 1]})


def test_load_script_raises_the_findings(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("{}")

    with pytest.raises(PolicyError) as caught:
        load_script(path)

    assert [f"{finding.code} {finding.path}" for finding in caught.value.findings] == [
        "SY242 version", "SY242 scripts",
    ]  # fmt: skip
    assert all(finding.file == str(path) for finding in caught.value.findings)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "not_utf8"])
def test_load_script_that_cannot_be_read_is_a_finding(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "s.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(PolicyError, match="SY240 the script cannot be read") as caught:
        load_script(str(path))

    assert caught.value.findings[0].file == str(path)


def test_script_of_an_unknown_strict_provider_names_the_nearest() -> None:
    text = '{"version": 1, "strict": "antropic", "scripts": [{"turns": [{}]}]}'

    assert found(text) == [
        "s.json:1:16: SY242 `strict` is not a strict provider; did you mean `anthropic`? at strict"
    ]
