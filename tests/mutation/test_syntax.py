"""Parsing in bounded time."""

from __future__ import annotations

from itertools import count

import tree_sitter
import tree_sitter_bash

from switchyard_core.mutation.syntax import parse_code

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
