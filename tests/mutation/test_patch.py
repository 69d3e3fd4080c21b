"""The files that a patch names."""

from __future__ import annotations

from typing import Any

from switchyard_core.mutation.patch import patched_files, read_patch
from switchyard_core.mutation.paths import PathClasses

TEXTS: list[tuple[str, list[str]]] = [
    ("*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch", ["a.py"]),
    ("*** Update File: a.py\n*** Move to: b.py\n@@", ["a.py", "b.py"]),
    ("*** Delete File: a b.py  \n", ["a b.py"]),
    ("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@", ["x.py", "x.py"]),
    ("--- /dev/null\n+++ b/new.py\t2024-01-01\n", ["new.py"]),
    ("rename from a.py\nrename to b.py", ["a.py", "b.py"]),
    ("no patch", []),
]


def test_patched_files_of_both_notations() -> None:
    assert [(text, patched_files(text)) for text, _ in TEXTS] == TEXTS


PATCHES: list[tuple[Any, str]] = [
    ("*** Update File: src/a.py", "file_edit"),
    ({"input": "*** Add File: dist/a.js"}, "file_write_other"),
    ({"patch": "*** Add File: PLAN.md"}, "file_write_other"),
    ({"patchText": "*** Add File: dist/a.js\n*** Add File: a.js"}, "file_edit"),
    ({"operation": {"type": "create_file", "path": "server.log"}}, "file_write_other"),
    ({"operation": {"type": "create_file", "path": "/tmp/x"}}, "file_edit"),
    ({"path": "a.py"}, "file_edit"),
    ({"_raw": "*** Add File: dist/x.js"}, "file_write_other"),
    (["*** Add File: dist/x.js"], "file_write_other"),
    ({}, "file_edit"),
    (None, "file_edit"),
]


def test_patch_is_labelled_by_its_files() -> None:
    label = PathClasses().target_label

    assert [(value, read_patch(value, label).label) for value, _ in PATCHES] == PATCHES
