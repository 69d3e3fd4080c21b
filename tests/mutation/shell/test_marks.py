"""Operators are bounded before a script is parsed; what is quoted does not count."""

from __future__ import annotations

import pytest

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command
from switchyard_core.mutation.shell.marks import MOST_MARKS, bounded

CLASSES = PathClasses()
MANY = b"f(a) | [b] > {c}\n" * 200


@pytest.mark.parametrize("code", [b"", b"ls | head", b"(a) " * 100])
def test_usual_script_stays_as_it_is(code: bytes) -> None:
    assert bounded(code)[0] is code


@pytest.mark.parametrize(
    "quoted",
    [
        b"'" + MANY + b"'",
        b'"' + MANY + b'"',
        b'"${a} ' + MANY + b'"',
        b"$'it\\'s " + MANY + b"'",
        b"cat <<'E'\n" + MANY + b"E\n",
        b"cat <<-E > f\n" + MANY + b"\tE\n",
        b"cat <<A <<'B'\n" + MANY + b"A\n" + MANY + b"B\n",
        b"# it's " + MANY.replace(b"\n", b" ") + b"\n",
    ],
)
def test_what_is_quoted_is_hidden_from_the_parser(quoted: bytes) -> None:
    code = b"ls | head; " + quoted + b"; rm a | b\n"
    shown, marks = bounded(code)

    assert len(shown) == len(code)
    assert shown.startswith(b"ls | head; ")
    assert shown.endswith(b"; rm a | b\n")
    assert marks < 20
    assert shown.count(b"|") < 5


@pytest.mark.parametrize(
    "code",
    [
        MANY,
        b"cat <<E\n" + MANY,
        b"cat <<E\n$(a) " + MANY + b"E\n",
        b"cat <<<E\n" + MANY + b"E\n",
        b"echo 'it" + MANY,
        b'echo "$(a)" ' + MANY + b'"',
        b"a\\' " + MANY,
        b"<" * 5000,
        b"'a' " * 5000 + MANY,
    ],
)
def test_script_with_too_many_operators_is_cut(code: bytes) -> None:
    shown, marks = bounded(code)

    assert code.startswith(shown)
    assert len(shown) < len(code)
    assert sum(shown.count(bytes([mark])) for mark in b"|<>()[]{") <= MOST_MARKS + 3
    assert marks <= MOST_MARKS


def test_long_heredoc_keeps_its_effect_and_what_is_behind_it() -> None:
    source = "def f(a):\n    return [a | b for b in {1: (2)}]  # it's\n" * 300

    heredoc = f"cat > /tmp/a.py <<'EOF'\n{source}EOF\n"
    assert read_command(heredoc, CLASSES, dialect="bash").label == "scratch_write"
    assert read_command(heredoc + "rm src/a.py", CLASSES, dialect="bash").label == "file_edit"
    written = read_command(heredoc.replace("/tmp/", "src/"), CLASSES, dialect="bash")
    assert written.detail == "> writes src/a.py"
    run = f"{heredoc}bash /tmp/a.py\n".replace("def f", "rm src/b.py; def f", 1)
    assert read_command(run, CLASSES, dialect="bash").label == "file_edit"


def test_what_a_script_does_before_the_cut_counts() -> None:
    reading = read_command("rm src/a.py\n" + "(a) | [b]\n" * 500, CLASSES, dialect="bash")

    assert (reading.label, reading.word) == ("file_edit", "rm")


def test_unquoted_heredoc_that_runs_commands_is_read() -> None:
    heredoc = "cat <<E\n" + "x (a) [b]\n" * 20 + "$(rm src/a.py)\nE\n"

    assert read_command(heredoc, CLASSES, dialect="bash").label == "file_edit"
