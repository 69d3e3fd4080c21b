"""The contract of mutation packs catches packs that are wrong in one way."""

from __future__ import annotations

import inspect

import pytest

from switchyard_core import MutationPack, PluginError, hookimpl
from switchyard_core.testing import Call, MutationPackConformance, call
from switchyard_core.wire import WIRE_FORMATS

RIGHT = '[[rules]]\nlabel = "file_edit"\nmatch = ["write"]\n'
TEXT = '[[text]]\nreader = "search_replace"\n'
BLOCK = "a.py\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n"
EDIT = {"file_edit": (call("write", path="a.py"),)}


def suite(text, examples):
    class Plugin:
        @hookimpl
        def switchyard_mutation_packs(self):
            return [MutationPack(name="mine", text=text)]

    fields = {"plugins": (Plugin(),), "pack": "mine", "examples": examples}
    return type("TestMine", (MutationPackConformance,), fields)()


def failures(made):
    found = {}
    for name, test in inspect.getmembers(made, inspect.ismethod):
        if name.startswith("test_"):
            given = ["openai_chat"] if "wire_format" in inspect.signature(test).parameters else []
            try:
                test(*given)
            except (AssertionError, PluginError) as error:
                found[name.removeprefix("test_pack_")] = str(error)
    return found


@pytest.mark.parametrize(
    ("text", "examples", "test", "message"),
    [
        (RIGHT.replace("write", "save"), EDIT, "labels_its_examples", "is `read_only`"),
        (RIGHT, {}, "labels_its_examples", "give `examples`"),
        (RIGHT, {"edit": EDIT["file_edit"]}, "labels_its_examples", "`edit` is not a label"),
        (TEXT, {"read_only": (BLOCK,)}, "labels_its_examples", "is `file_edit`, not `read_only`"),
        (RIGHT, {"file_edit": (BLOCK,)}, "labels_its_examples", "is `read_only`, not `file_edit`"),
        (RIGHT + 'path = "$["\n', EDIT, "is_a_clean_rule_set", "SY4"),
        ("label = 3", EDIT, "is_a_clean_rule_set", "that is not a rule set"),
    ],
    ids=[
        *("other_label", "no_examples", "no_label", "edit_in_a_text", "no_edit_in_a_text"),
        *("bad_path", "no_rule_set"),
    ],
)
def test_wrong_pack_is_caught(text, examples, test, message):
    assert message in failures(suite(text, examples))[test]


def test_right_pack_passes():
    assert failures(suite(RIGHT, EDIT)) == {}


def test_unknown_pack_names_the_known_ones():
    made = type("TestMine", (MutationPackConformance,), {"pack": "mine"})()

    assert "known: coding_agents, " in failures(made)["is_a_clean_rule_set"]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_example_that_a_wire_format_cannot_express_is_left_out_there(wire_format):
    patch = Call(name="p", shape="apply_patch_call", arguments={"type": "update_file"})
    text = RIGHT.replace("write", "apply_patch_call")

    suite(text, {"file_edit": (patch,)}).test_pack_labels_its_examples(wire_format)
