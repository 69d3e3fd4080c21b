"""The shipped packs: what each is for, and how a policy overrules one."""

from __future__ import annotations

import json
from typing import Any

import tomli

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import RuleSetModel, compile_rules, core_packs

AVAILABLE = {
    pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()
}


def _label(pack: str, name: str, arguments: Any = None) -> str:
    rules = compile_rules([pack], AVAILABLE)
    return rules.label(ToolCall(id="1", name=name, source=json.dumps(arguments or {}))).label


def test_packs_are_named_and_described() -> None:
    assert list(AVAILABLE) == ["coding_agents", "reference_compatible", "strict", "text_edits"]
    assert all(model.description for model in AVAILABLE.values())
    assert all(pack.source.endswith(f"{pack.name}.toml") for pack in core_packs())


def test_every_rule_of_a_pack_has_a_name_of_its_own() -> None:
    for model in AVAILABLE.values():
        names = [rule.name for rule in (*model.rules, *model.text)]
        assert all(names)
        assert len(names) == len(set(names))


def test_reference_compatible_knows_eleven_exact_names_only() -> None:
    assert sum(len(rule.match) for rule in AVAILABLE["reference_compatible"].rules) == 11
    assert _label("reference_compatible", "write_file") == "file_edit"
    assert _label("reference_compatible", "writeFile") == "read_only"
    assert _label("reference_compatible", "bash", {"command": "rm a.py"}) == "read_only"


def test_strict_takes_an_unknown_tool_for_an_edit_and_a_known_reader_not() -> None:
    assert _label("strict", "publish_everything") == "file_edit"
    assert _label("strict", "Read", {"file_path": "a"}) == "read_only"
    assert _label("strict", "Bash", {"command": "ls"}) == "read_only"
    assert _label("coding_agents", "publish_everything") == "read_only"


def test_own_rules_overrule_a_pack_that_they_extend() -> None:
    own = RuleSetModel.model_validate(
        {
            "extends": ["coding_agents"],
            "rules": [
                {"label": "file_edit", "match": ["Task", "spawn_agent"]},
                {"label": "read_only", "match": ["Edit"]},
            ],
        }
    )
    rules = compile_rules(["own"], {**AVAILABLE, "own": own})

    labels = [rules.label(ToolCall(id="1", name=name)).label for name in ("Task", "Edit", "Write")]

    assert labels == ["file_edit", "read_only", "file_edit"]
