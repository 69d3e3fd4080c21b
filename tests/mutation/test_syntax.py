"""Parsing in bounded time."""

from __future__ import annotations

import json
import time
from itertools import count

import pytest
import tree_sitter
import tree_sitter_bash

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import compile_rules
from switchyard_core.mutation.syntax import parse_code
from switchyard_core.plugins import PluginRegistry

BASH = tree_sitter.Language(tree_sitter_bash.language())


def test_text_is_parsed_whole() -> None:
    data = b"ls -l src; " * 1000
    tree, whole = parse_code(BASH, data)
    assert whole
    assert tree.root_node.end_byte == len(data)


def test_parse_that_takes_too_long_gives_the_start() -> None:
    ticks = count(step=1000)
    tree, whole = parse_code(BASH, b"ls -l src; " * 1000, clock=lambda: float(next(ticks)))
    assert not whole
    assert tree.root_node.end_byte == 4096


@pytest.mark.parametrize("unit", ["ls | ", "a|a|"])
def test_pipes_that_end_in_an_error_cost_no_more_than_the_text(unit: str) -> None:
    rules = compile_rules(["coding_agents"], PluginRegistry.from_entry_points().rule_sets)
    command = (unit * 50_000)[:100_000]
    call = ToolCall(id="c", name="bash", source=json.dumps({"command": command}))
    rules.label(ToolCall(id="c", name="bash", source='{"command": "ls"}'))

    start = time.thread_time()
    verdict = rules.label(call)

    # Unbounded, this takes 15 to 60 seconds.
    assert time.thread_time() - start < 2
    assert verdict.label == "unknown"
