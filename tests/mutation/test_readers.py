"""The code reader: tool calls and writes in scripts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchyard_core.mutation.labels import LABELS, READ_ONLY, Reading
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.readers import CallReader
from switchyard_core.mutation.shell.javascript import UNREADABLE, calls_of
from switchyard_core.mutation.shell.session import Budget


def _read(code: str) -> tuple[str, list[tuple[str, Any]]]:
    seen: list[tuple[str, Any]] = []

    def recurse(name: str, arguments: Any) -> Reading:
        seen.append((name, arguments))
        return Reading(label="file_edit" if name == "apply_patch" else "read_only")

    reader = CallReader(
        classes=PathClasses(),
        dialect="auto",
        tool="exec",
        broken=False,
        read_command=lambda _command, _dialect: (READ_ONLY, 0),
        budget=Budget(),
        label_inner=recurse,
    )
    return reader.read("code", code).label, seen


CALLS: list[tuple[str, str, list[tuple[str, Any]]]] = [
    ("await tools.apply_patch('P')", "file_edit", [("apply_patch", "P")]),
    ("await tools.apply_patch(`a\\nb`)", "file_edit", [("apply_patch", "a\nb")]),
    ("const p = 'P';\ntools.apply_patch(p)", "file_edit", [("apply_patch", "P")]),
    ("tools.apply_patch(['a', 'b'].join('\\n'))", "file_edit", [("apply_patch", "a\nb")]),
    ("tools.apply_patch('a' + 'b')", "file_edit", [("apply_patch", "ab")]),
    ("tools['apply_patch']('P')", "file_edit", [("apply_patch", "P")]),
    ("tools.apply_patch(make())", "file_edit", [("apply_patch", {})]),
    ("tools.apply_patch()", "file_edit", [("apply_patch", {})]),
    (
        "tools.exec_command({cmd: 'ls', n: 1})",
        "read_only",
        [("exec_command", {"cmd": "ls", "n": "1"})],
    ),
    ("tools.exec_command({cmd})", "unknown", [("exec_command", {})]),
    (
        "tools.exec_command({'cmd': `ls ${x}`})",
        "read_only",
        [("exec_command", {"cmd": "ls {}"})],
    ),
    ("tools.view_image({path: p})", "read_only", [("view_image", {})]),
    ("tools[name]({})", "unknown", []),
    ("// tools.apply_patch('P')", "unknown", []),
    ("/* tools.apply_patch('P') */ 1", "unknown", []),
    ("text(\"tools.apply_patch('P')\")", "read_only", []),
    ("other.apply_patch('P')", "unknown", []),
    ("", "unknown", []),
    ("tools.apply_patch('P'", "unknown", []),
    (
        "await Promise.all([tools.exec_command({cmd:'ls'}), tools.apply_patch('P')])",
        "file_edit",
        [("exec_command", {"cmd": "ls"}), ("apply_patch", "P")],
    ),
]


def test_tool_calls_of_a_script_are_labelled() -> None:
    assert [(code, *_read(code)) for code, _, _ in CALLS] == CALLS


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("require('fs').writeFileSync('src/a.js', x)", "file_edit"),
        ("fs.promises.rm('src/a.js')", "file_edit"),
        ("fs.mkdirSync('src/new')", "file_write_other"),
        ("console.log(fs.readFileSync('a'))", "unknown"),
        ("import os\nos.remove('src/a.py')", "file_edit"),
        ("import os\nx = 'a\u2028b\x0c'\nos.remove('src/a.py')", "file_edit"),
        ("x = '''a\u2028!rm src/a.py'''", "unknown"),
        ("x = 1\n!rm src/a.py", "file_edit"),
        ("%%bash\nrm src/a.py", "file_edit"),
        ("%%bash\nls", "unknown"),
        ("require('child_process').execSync('rm src/a.js')", "file_edit"),
        ("require('child_process').spawnSync('rm', ['src/a.js'])", "file_edit"),
        ("/rm/.exec(text)", "unknown"),
        ("list.remove('src/a.js')", "unknown"),
    ],
)
def test_writes_of_a_script_are_labelled(code: str, label: str) -> None:
    assert _read(code)[0] == label


def test_values_that_only_the_script_knows_are_marked() -> None:
    (call,) = calls_of("f(g.h, [1, k], {a: null, b: true, c: -x}, `t`)", Budget())

    assert call.name == "f"
    assert call.arguments[0] is UNREADABLE
    assert call.arguments[1] == ["1", UNREADABLE]
    assert call.arguments[2] == {"a": None, "b": True, "c": UNREADABLE}
    assert call.arguments[3] == "t"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="tools.apy_ch(){}[]'`\"+,=>$;:\n/\\* x", max_size=60))
def test_any_script_is_read_without_an_error(code: str) -> None:
    assert _read(code)[0] in LABELS


def test_script_that_is_read_in_part_is_unknown_unless_it_edits() -> None:
    calls = "tools.exec_command({cmd: 'ls'});\n" * 2000

    assert _read(calls)[0] == "unknown"
    assert _read("tools.apply_patch('P');\n" + calls)[0] == "file_edit"
