"""Parsing in bounded time."""

from __future__ import annotations

import json
import time

import pytest

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import compile_rules
from switchyard_core.mutation.shell.parsing import parse_code
from switchyard_core.plugins import PluginRegistry


def test_text_is_parsed_whole() -> None:
    data = b"ls -l src; " * 1000
    parsed = parse_code("bash", data, 1000)

    assert parsed.whole
    assert parsed.tree.root_node.end_byte == len(data)
    assert 50 < parsed.work < 1000


def test_parse_that_takes_too_much_gives_the_start_the_same_every_time() -> None:
    data = b"ls -l src; " * 1000
    first, second = parse_code("bash", data, 40), parse_code("bash", data, 40)

    assert not first.whole
    assert 1000 < first.tree.root_node.end_byte < len(data) / 2
    assert first.work == second.work <= 2 * 40
    assert first.tree.root_node.end_byte == second.tree.root_node.end_byte


def test_parse_without_any_work_gives_the_first_words() -> None:
    parsed = parse_code("bash", b"ls -l src; " * 1000, 0)

    assert not parsed.whole
    assert parsed.tree.root_node.end_byte <= 256


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
