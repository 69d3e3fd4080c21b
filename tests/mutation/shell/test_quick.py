"""The quick ways past the parser say what the parser says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.mutation.labels import READ_ONLY, Reading
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import bash, command, read_argv, read_command
from switchyard_core.mutation.shell.powershell import is_powershell
from switchyard_core.mutation.shell.quick import may_be_windows, only_reads
from switchyard_core.mutation.shell.special import SPECIAL
from switchyard_core.mutation.shell.table import command_table
from switchyard_core.mutation.shell.windows_cmd import is_cmd
from switchyard_core.mutation.tables import load_table

DATA = Path(__file__).parents[2] / "data"
CLASSES = PathClasses()


def corpus() -> list[str]:
    lines = [
        line
        for name in ("shell-cases", "shell-corpus-dev")
        for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    return list(dict.fromkeys(str(json.loads(line)["command"]) for line in lines))


@contextmanager
def parser_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "only_reads", lambda _text: False)
        patch.setattr(command, "may_be_windows", lambda _text: True)
        patch.setattr(bash, "run_simple", lambda _text, _session, _stdin: (False, None))
        yield


def parsed(text: str, dialect: str) -> Reading:
    with parser_only():
        return read_command(text, CLASSES, dialect=dialect)


def check(text: str) -> None:
    for dialect in ("bash", "auto"):
        assert read_command(text, CLASSES, dialect=dialect) == parsed(text, dialect), dialect
    if only_reads(text):
        assert parsed(text, "bash") == READ_ONLY
        with parser_only():
            assert read_argv(["bash", "-lc", text], CLASSES) == READ_ONLY
    if is_powershell(text) or is_cmd(text):
        assert may_be_windows(text)


def heads() -> list[str]:
    table = command_table()
    used = [program for use in load_table("reads")["use"] for program in use["programs"]]
    subs = ["git diff", "git log", "git branch", "git -C x show", "sed -n 1,5p", "npm test"]
    subs += ["npx tsc --noEmit", "ruff check", "go test", "cargo test", "git status", "xargs rm"]
    return sorted({*table.simple, *table.programs, *SPECIAL}) + 40 * (used + subs)


def flags() -> list[str]:
    names = {
        word for use in load_table("reads")["use"] for p in use["programs"] for word in p.split()
    }
    programs = [p for name in sorted(names) for p in command_table().programs.get(name, ())]
    return sorted(
        {w for p in programs for rule in p.rules for w in (*rule.flags, *rule.also, *rule.sub)}
        | {flag for program in programs for flag in program.valued}
    )


ODD = [
    *(
        "-n",
        "-i",
        "-o",
        "--output=x",
        "out.txt",
        "src/a.py",
        "*.py",
        "a=b",
        "'1,5p'",
        '"a b"',
        "''",
    ),
    *('""', "'a|del'", "if", "in", "done", "test", "^x", "%x%", "~", "~/a", "--", "-", "-delete"),
    *("-exec", "rm", "{}", "@x", "+x", "?", "x:y", "2", "/tmp/x", "#c", "time", "!", "[", "a]"),
    *("--fix", "a''b", "'-i'", '"-o"x', "''-i", "Get-Item", "=Get-Item", "/a", "a,b", "select"),
    *("http://x/y?z=1", "'$x'", "'\\n'", '"a!b"', "é", '"é"', '"a`b`"', "$x", "\\x", "(a)", ">x"),
]
JOINS = [
    "|",
    "&&",
    "||",
    ";",
    " | ",
    " && ",
    "; ",
    "\n",
    " 2>&1 ",
    " 2>/dev/null | ",
    " >/dev/null; ",
]
JOINS += [" > /dev/null ", " # c\n", "; ;", "&& \n", " & ", " "]
PARTS = st.tuples(
    st.sampled_from(heads()),
    st.lists(st.one_of(st.sampled_from(ODD), st.sampled_from(flags())), max_size=4),
    st.sampled_from(JOINS),
)


VARIABLES = [
    *(
        "$f",
        '"$f"',
        '"${f}.py"',
        '"a $f b"',
        '"$f[0]"',
        "$f[0]",
        "${f}",
        '"$f$g"',
        '"${f}$g"',
        '"$"',
    ),
    *('"$f', "$1", '"$?"', "$f/x", "x$f", '"$f"/x', "'$f'", '"$(f)"', '"`f`"', '"$f\\"'),
]
VALUES = [
    "src/*.py",
    "a",
    "1",
    "do",
    "in",
    "done",
    "a.b",
    "$x",
    "'a b'",
    "'a.b c'",
    "-x/",
    '"*"',
    "a; b",
]


@given(
    st.sampled_from(["f", "file", "in", "done", "g_1"]),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    st.lists(
        st.tuples(
            st.sampled_from(
                ["echo", "cat", "head -3", "ls", "wc -l", "cd", "rm", "git show", "grep x"]
            ),
            st.lists(st.sampled_from(VARIABLES + ODD), max_size=3),
            st.sampled_from(JOINS),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["{}", "for {} in {}; do {}; done", "for {} in {}; do {}; done | sh"]),
)
def test_generated_loops_get_the_same_reading_with_and_without_the_parser(
    name: str, values: list[str], parts: list[tuple[str, list[str], str]], frame: str
) -> None:
    pieces = [piece for head, words, join in parts for piece in (" ".join([head, *words]), join)]
    body = "".join(pieces[:-1])
    check(body if frame == "{}" else frame.format(name, " ".join(values), body))


@given(st.lists(PARTS, min_size=1, max_size=4), st.booleans())
def test_generated_commands_get_the_same_reading_with_and_without_the_parser(
    parts: list[tuple[str, list[str], str]], open_end: bool
) -> None:
    pieces = [piece for head, words, join in parts for piece in (" ".join([head, *words]), join)]
    check("".join(pieces if open_end else pieces[:-1]))


def test_corpus_gets_the_same_readings_with_and_without_the_parser() -> None:
    for text in corpus():
        check(text)


def test_every_reading_program_of_the_quick_table_reads_with_any_flag() -> None:
    names = [n for n, label in command_table().simple.items() if label == "read_only"]
    quick = [name for name in [*names, *load_table("reads")["always"]] if only_reads(f"{name} a")]

    assert len(quick) > 350
    for name in quick:
        check(f"{name} -i -o x --output=y --fix a.py")


@pytest.mark.parametrize(
    "text",
    [
        "ls -la src",
        "cd /w/x && grep -rn 'a b' --include='*.py' . | head -20",
        "sed -n '10,40p' a.py",
        "find . -name '*.py' -not -path './x/*' 2>/dev/null | sort -u | wc -l",
        "git -C /w diff --stat HEAD~1 -- a.py",
        "python -m pytest tests -k x -q 2>&1 | tail -5",
        'for f in src/*.py; do echo "== $f"; head -3 "$f" | cat; done',
        'ls -la $HOME && cat "${x}.py"',
    ],
)
def test_usual_reads_are_known_without_the_parser(text: str) -> None:
    assert only_reads(text)


@pytest.mark.parametrize(
    "text",
    [
        "sort -o a a",
        "sort a -uo a",
        "sed -n 'w x' a",
        "sed -n -i 1,5p a",
        "find . -delete",
        "find . -name x -exec rm {} +",
        "git diff --output=x",
        "git diff --output x",
        "git branch new",
        "git log $(rm x)",
        'echo "$(rm x)"',
        "echo a > b",
        "cat a | tee b",
        "uniq a b",
        "xxd a b",
        "jq -i . a",
        "pytest --junitxml=x",
        "python -m pytest --snapshot-update",
        "npm test -- -u",
        "ls; rm x",
        "ls\nrm x",
        "ls & rm x",
        "cat `rm x`",
        "sed -n 1,5p $x",
        "git log $x",
        "find $x",
        "$x a",
        "for f in a; do ls; done",
        "for f in *; do rm $f; done",
        "for f in *; do git show $f; done",
        "for f in *; do echo $f; done | sh",
        "",
    ],
)
def test_what_may_write_is_left_to_the_parser(text: str) -> None:
    assert not only_reads(text)
