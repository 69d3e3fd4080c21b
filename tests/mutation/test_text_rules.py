"""Text rules: edits that the assistant wrote as text, labelled beside its tool calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tomli

from switchyard_core.declarations import WireFormat
from switchyard_core.mutation import RuleSetModel, Verdict, compile_rules, core_packs, text_rules
from switchyard_core.mutation.rules import MutationRules
from switchyard_core.router import Mutations
from switchyard_core.testing import conversation
from switchyard_core.wire import WIRE_FORMATS

PACKS = {pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()}
BLOCK = "{}\n```python\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"
DIFF = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"
FILE = "{}\n```python\nx = 1\n```\n"
BLOCKS = {"reader": "search_replace"}
SWITCHED = (
    "I switched to a new code base. Please don't consider the above files or try to edit them."
)


def _rules(*text: dict[str, Any], **keys: Any) -> MutationRules:
    own = RuleSetModel.model_validate({"text": list(text), **keys})
    return compile_rules(["own"], {**PACKS, "own": own})


def _pack() -> MutationRules:
    return compile_rules(["text_edits"], PACKS)


@pytest.fixture(params=WIRE_FORMATS)
def wire_format(request: pytest.FixtureRequest) -> WireFormat:
    found: WireFormat = request.param
    return found


def _verdicts(rules: MutationRules, told: Any) -> tuple[Verdict, ...]:
    return Mutations(told.request(), rules).verdicts


def test_edits_in_texts_and_calls_come_in_the_order_of_the_history(wire_format: WireFormat) -> None:
    told = conversation(wire_format).user("fix").says(BLOCK.format("a.py")).user("go on")
    told = (
        told.edits("edit_file", path="b.py").says("Done.").user("and?").says(BLOCK.format("c.py"))
    )

    verdicts = _verdicts(_pack(), told)

    assert [(v.word, v.tool, v.offset, v.label) for v in verdicts] == [
        ("a.py", "", 0, "file_edit"),
        ("b.py", "edit_file", None, "file_edit"),
        ("c.py", "", 0, "file_edit"),
    ]


def test_verdict_on_a_text_says_rule_place_and_file(wire_format: WireFormat) -> None:
    told = conversation(wire_format).user("fix").says(f"Here:\n\n{BLOCK.format('src/a.py')}")

    (verdict,) = _verdicts(_pack(), told)

    key = "input" if wire_format == "openai_responses" else "messages"
    assert (verdict.rule_set, verdict.rule) == ("text_edits", "search-replace")
    assert (verdict.word, verdict.detail) == ("src/a.py", "writes src/a.py")
    assert (verdict.message, verdict.offset) == (1, 7)
    assert verdict.place == f"text at $.{key}[1], character 7"


def test_turn_of_several_items_is_a_slice() -> None:
    told = conversation("openai_chat").user("fix").says("First.").says(BLOCK.format("a.py"))
    request = told.request()
    body = json.loads(request.body)
    body["messages"] = [
        body["messages"][0],
        {"role": "assistant", "content": "First."},
        {"role": "assistant", "content": BLOCK.format("a.py")},
    ]
    changed = type(request)(wire_format="openai_chat", body=json.dumps(body).encode())

    (verdict,) = Mutations(changed, _pack()).verdicts

    assert verdict.call_path == "$.messages[1:3]"


def test_blocks_of_users_instructions_and_tools_are_not_edits(wire_format: WireFormat) -> None:
    block = BLOCK.format("a.py")
    told = conversation(wire_format).system(block).user(block).reads("read_file", result=block)

    assert [v.label for v in _verdicts(_pack(), told)] == ["read_only"]


def test_no_pack_but_text_edits_reads_texts(wire_format: WireFormat) -> None:
    told = conversation(wire_format).user("fix").says(BLOCK.format("a.py"))

    assert {name: len(_verdicts(compile_rules([name], PACKS), told)) for name in PACKS} == {
        "coding_agents": 0,
        "reference_compatible": 0,
        "strict": 0,
        "text_edits": 1,
    }


def test_paths_decide_the_label_as_they_do_for_edit_tools() -> None:
    cases = {
        "src/a.py": "file_edit",
        "plan.md": "file_write_other",
        "build/out.js": "file_write_other",
        "/tmp/repo/a.py": "file_edit",
    }
    rules = _rules(BLOCKS)

    found = {path: rules.label_text(BLOCK.format(path))[0].label for path in cases}

    assert found == cases


def test_scratch_counts_where_the_rule_says_so() -> None:
    rules = _rules({**BLOCKS, "scratch": True}, scratch_paths=["/scratch/**"])

    labels = [rules.label_text(BLOCK.format(p))[0].label for p in ("/scratch/a.py", "src/a.py")]

    assert labels == ["scratch_write", "file_edit"]


def test_label_of_a_rule_is_that_of_its_edits_only() -> None:
    rules = _rules({**BLOCKS, "label": "unknown"})

    labels = [rules.label_text(BLOCK.format(path))[0].label for path in ("src/a.py", "plan.md")]

    assert labels == ["unknown", "file_write_other"]


def test_first_rule_for_a_form_decides_and_own_rules_come_before_extended_ones() -> None:
    rules = _rules(
        {**BLOCKS, "label": "read_only"}, {**BLOCKS, "name": "late"}, extends=["text_edits"]
    )

    (block,) = rules.label_text(BLOCK.format("a.py"))
    (diff,) = rules.label_text(DIFF.format("a.py"))

    assert (block.label, block.rule_set, block.rule) == ("read_only", "own", "text[0]")
    assert (diff.label, diff.rule_set, diff.rule) == ("file_edit", "text_edits", "diffs")


def test_form_without_a_rule_is_not_read() -> None:
    assert _rules(BLOCKS).label_text(DIFF.format("a.py")) == ()


ASKED = {
    "Write changes like a unified diff.": ["b.py"],
    "Use the V4A format.": ["b.py"],
    "Return a *file listing* for each file.": ["c.py"],
    "Use *SEARCH/REPLACE* blocks. The full contents of any file may be asked for.": [],
}


def test_forms_that_also_show_code_count_where_the_instructions_ask_for_them(
    wire_format: WireFormat,
) -> None:
    said = "\n".join([BLOCK.format("a.py"), DIFF.format("b.py"), FILE.format("c.py")])
    found = {}
    for asked in ASKED:
        told = conversation(wire_format).system(asked).user("fix").says(said)
        found[asked] = [verdict.word for verdict in _verdicts(_pack(), told)]

    assert found == {asked: ["a.py", *paths] for asked, paths in ASKED.items()}


def test_users_words_are_not_instructions(wire_format: WireFormat) -> None:
    told = conversation(wire_format).system("Be brief.").user("Write a unified diff.")

    assert _verdicts(_pack(), told.says(DIFF.format("a.py"))) == ()


def test_examples_of_the_client_end_where_it_says_so(wire_format: WireFormat) -> None:
    told = conversation(wire_format).user("Change it").says(BLOCK.format("example.py"))
    told = told.user(SWITCHED).says("Ok.").user("fix").says(BLOCK.format("real.py"))
    told = told.user(SWITCHED).says(BLOCK.format("later.py"))

    assert [v.word for v in _verdicts(_pack(), told)] == ["real.py", "later.py"]


def test_only_the_first_mark_of_a_user_ends_examples() -> None:
    told = conversation("openai_chat").user("fix").says(BLOCK.format("a.py"))
    told = told.says(SWITCHED)

    assert [v.word for v in _verdicts(_pack(), told)] == ["a.py"]


def test_second_request_reads_only_new_texts(
    wire_format: WireFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    reader = text_rules.text_edits

    def counted(text: str) -> Any:
        read.append(text)
        return reader(text)

    monkeypatch.setattr(text_rules, "text_edits", counted)
    rules = _pack()
    told = conversation(wire_format).user(SWITCHED)
    for number in range(20):
        # Rules that are compiled once remember what other tests read: these texts are new.
        text = f"{wire_format} {number}\n{BLOCK.format('a.py')}" + "x" * 300
        told = told.says(text).user("more")
    first = _verdicts(rules, told)
    before = len(read)
    second = _verdicts(rules, told.says(f"{wire_format}\n{BLOCK.format('new.py')}"))

    assert (before, len(read)) == (20, 21)
    assert second[:20] == first
    assert second[20].word == "new.py"


def test_first_edit_in_a_text_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    told = conversation("openai_chat").user("fix").edits("read_file", path="x")
    told = told.says(BLOCK.format("a.py")).user("more").says(BLOCK.format("b.py"))
    mutations = Mutations(told.request(), _pack())

    first = mutations.first({"file_edit"})

    assert first is not None
    assert (first.verdict.word, first.number, first.through) == (
        "a.py",
        None,
        {"through_message": first.verdict.message},
    )
    assert len(mutations.labelled) == 2


def test_call_behind_an_edit_in_a_text_keeps_its_number() -> None:
    told = conversation("openai_chat").user("fix").says(BLOCK.format("plan.md")).user("go on")
    told = told.reads("read_file", path="x").edits("edit_file", path="a.py")

    first = Mutations(told.request(), _pack()).first({"file_edit"})

    assert first is not None
    assert (first.number, first.through) == (1, {"through_call": 1})
