"""What compiled rules remember."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import RuleSetModel, Verdict, compile_rules, core_packs
from switchyard_core.mutation.memory import Memo, brief
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.rule import CallView
from switchyard_core.mutation.rules import _placed


def test_memo_keeps_the_latest_entries() -> None:
    memo: Memo[int, str] = Memo(2)
    for number in range(4):
        assert memo.keep(number, str(number)) == str(number)

    assert [memo.get(number) for number in range(4)] == [None, None, "2", "3"]
    assert len(memo) == 2


def test_long_text_is_a_key_by_its_digest() -> None:
    assert brief("a" * 256) == "a" * 256
    assert brief("a" * 257) == brief(b"a" * 257)
    assert len(brief("\ud800" * 300)) == 16


PACK = {pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()}
TOOLS = sorted(
    {name for rule in PACK["coding_agents"].rules for name in rule.match if "*" not in name}
)
#: Arguments that rules of the pack look at, and others.
ARGUMENTS = sorted(
    {
        path.removeprefix("$.arguments.").split("[")[0]
        for rule in PACK["coding_agents"].rules
        for path in [rule.target, *(condition.path for condition in rule.where)]
        if path is not None
    }
    | {"_raw", "restart", "cmd", "input", "other"}
)
VALUES: list[Any] = [
    *("src/a.py", "/tmp/x", "out.log", "", " ", "view", "read", "ls -la", "rm a.py", "é", "C:/x"),
    *(True, False, None, 0, 1, {}, [], ["a.py"], ["bash", "-lc", "ls"], {"path": "a.py"}, [["b"]]),
]
calls = st.builds(
    lambda name, arguments, as_bytes, kind: ToolCall(
        id="1",
        name=name,
        source=json.dumps(arguments).encode() if as_bytes else json.dumps(arguments),
        kind=kind,
    ),
    st.sampled_from(TOOLS),
    st.dictionaries(st.sampled_from(ARGUMENTS), st.sampled_from(VALUES), max_size=4),
    st.booleans(),
    st.sampled_from(["function", "function", "builtin", "mcp", "custom"]),
)
RULES = compile_rules(["coding_agents"], PACK, workspace=["/tmp/w"])


@given(calls)
def test_remembered_verdict_is_what_all_rules_in_turn_say(call: ToolCall) -> None:
    indices = RULES._tool(call).indices
    said = _placed(RULES._decide(CallView(call), indices, RULES._classes), call)

    assert [RULES.label(call), RULES.label(call)] == [said, said]


class Reads:
    """Rules of one tool, and the calls that they had to read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any]) -> None:
        self.ids: list[str] = []
        model = RuleSetModel.model_validate({"rules": [rule]})
        self.rules = compile_rules(["own"], {"own": model})
        keep = self.rules._decide

        def counted(view: CallView, indices: Sequence[int], classes: PathClasses) -> Verdict:
            self.ids.append(view.call.id)
            return keep(view, indices, classes)

        monkeypatch.setattr(self.rules, "_decide", counted)

    def label(self, source: str | bytes | Mapping[str, Any], *ids: str) -> list[str]:
        for call_id in ids:
            self.rules.label(ToolCall(id=call_id, name="bash", source=source))
        return self.ids


SHELL = {"match": ["bash"], "reader": "shell", "command": "$.arguments"}
ON_ID = {"match": ["bash"], "label": "unknown", "where": [{"path": "$.id", "exists": True}]}


def test_calls_with_the_same_arguments_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in (unit * size for unit in ("a", b"\xff", "\ud800") for size in (1, 1000)):
        assert Reads(monkeypatch, SHELL).label(source, "1", "2") == ["1"]


def test_calls_are_told_apart_by_their_ids_when_a_rule_looks_at_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Reads(monkeypatch, ON_ID).label("{}", "1", "2", "1") == ["1", "2"]


def test_arguments_that_are_not_text_are_read_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Reads(monkeypatch, SHELL).label({"command": "ls"}, "1", "2") == ["1", "2"]
