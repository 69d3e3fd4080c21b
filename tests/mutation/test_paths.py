"""What a written path means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.mutation.labels import LABELS
from switchyard_core.mutation.paths import PathClasses, clean_path
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import path_classes, path_glob


@pytest.mark.parametrize(
    ("path", "cleaned"),
    [
        ("./src/../a.py", "a.py"),
        ("src\\a.py", "src/a.py"),
        ('"a b.py"', "a b.py"),
        ("$PWD/src/a.py", "src/a.py"),
        ("src/", "src/"),
        ("", ""),
        ("/", "/"),
        ("a//b", "a/b"),
    ],
)
def test_clean_path_gives_one_spelling(path: str, cleaned: str) -> None:
    assert clean_path(path) == cleaned


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/dev/null", "read_only"),
        ("NUL", "read_only"),
        ("$null", "read_only"),
        ("-", "read_only"),
        ("/dev/fd/3", "read_only"),
        ("/tmp/a", "scratch_write"),
        ("/var/tmp/x/y", "scratch_write"),
        ("$TMPDIR/x", "scratch_write"),
        ("%TEMP%\\x", "scratch_write"),
        ("$env:TEMP\\x", "scratch_write"),
        ("C:\\Users\\me\\AppData\\Local\\Temp\\x", "scratch_write"),
        ("/tmpfoo/a.py", "file_edit"),
        ("app.log", "file_write_other"),
        ("build/a.o", "file_write_other"),
        ("/repo/node_modules/x/index.js", "file_write_other"),
        ("data/x.csv", "file_write_other"),
        ("~/.bashrc", "file_write_other"),
        ("/etc/hosts", "file_write_other"),
        ("src/build.py", "file_edit"),
        ("src/logger.py", "file_edit"),
        ("rebuild/x.py", "file_edit"),
        ("/app/main.py", "file_edit"),
        ("package.json", "file_edit"),
        ("f", "file_edit"),
        ("", "file_edit"),
        ("src/report.txt", "file_edit"),
        ("report.txt", "file_write_other"),
    ],
)
def test_shell_label_of_a_path(path: str, label: str) -> None:
    assert PathClasses().shell_label(path).label == label


def test_workspace_directory_itself_is_not_scratch() -> None:
    classes = PathClasses(workspace=("/tmp/repo",))

    assert not classes.is_scratch("/tmp/repo/a/b.py")
    assert not classes.is_scratch("/tmp/repo")
    assert classes.is_scratch("/tmp/repository/a.py")


@given(st.text())
def test_any_text_has_a_label(path: str) -> None:
    classes = PathClasses(scratch=("/s/**",), artifact=("gen",), plan=("*.p",), workspace=("/w",))

    assert classes.shell_label(path).label in LABELS
    assert classes.target_label(path, scratch=True).label in LABELS


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["/", "src", "tmp", "/tmp/", "/dev/null", "dist", ".git", "x.log"]),
            st.sampled_from(["plan.md", "docs", "~", "C:/", "out", "a.py", ".", "data.sqlite"]),
            st.text(max_size=4),
        ),
        max_size=6,
    ).map("".join)
)
def test_one_look_finds_the_classes_that_a_look_for_each_finds(path: str) -> None:
    globs = {name: [str(glob) for glob in listed] for name, listed in load_table("paths").items()}
    single = [name for name, listed in globs.items() if path_glob(listed)(path)]

    assert sorted(path_classes(globs)(path)) == sorted(single)
