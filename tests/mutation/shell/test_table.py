"""What programs write by their options, operands and modes, and what is unknown."""

from __future__ import annotations

from pathlib import Path

import tomli

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command
from switchyard_core.mutation.shell.table import command_table

CASES = Path(__file__).parents[2] / "data" / "program-cases.toml"
#: Flags that name an output in most programs, with an output or without.
OUTPUTS = (
    "-o src/a.py",
    "--output src/a.py",
    "--output=src/a.py",
    "--out=src/a.py",
    "--outfile src/a.py",
    "--output-file=docs/a.md",
    "--output-dir src",
    "--report-file docs/a.md",
    "--export docs/a.json",
    "--write",
    "--in-place",
)


def label(command: str) -> str:
    return read_command(command, PathClasses(), dialect="bash").label


def test_every_use_of_a_program_has_its_label() -> None:
    wrong = [
        (kind, wanted, got, command)
        for kind, labels in tomli.loads(CASES.read_text("utf-8")).items()
        for wanted, commands in labels.items()
        for command in commands
        if (got := label(command)) != wanted
    ]

    assert wrong == []


def test_readers_with_an_unexplained_output_option_are_unknown() -> None:
    readers = ("nl a.txt", "wc", "hexdump a", "mdcat a.md", "tsort", "svelte-check")

    assert [
        command
        for reader in readers
        for option in OUTPUTS
        if label(command := f"{reader} {option}") not in {"unknown", "file_write_other"}
    ] == []
    assert [reader for reader in readers if label(reader) != "read_only"] == []


def test_output_option_of_a_reader_is_no_edit_where_the_place_or_form_tells() -> None:
    expected = {
        "nl --output /tmp/a.txt a": "scratch_write",
        "nl --output build/a.txt a": "file_write_other",
        "nl --output /dev/null a": "read_only",
        "nl --output - a": "read_only",
        "nl --output json a": "read_only",
        "nl --output=yaml a": "read_only",
        "nl -o custom-columns=A:.b a": "read_only",
        "nl -- -o src/a.py": "read_only",
        "cd src && nl -o a.py": "unknown",
    }

    assert {command: label(command) for command in expected} == expected


def test_flags_that_only_look_like_outputs_are_explained_by_the_table() -> None:
    commands = (
        "grep -o x a.py",
        "ls -o src",
        "ps -o pid",
        "[ -f a -o -f b ]",
        "kubectl get po -o name",
        "df --output=size",
        "mount -o ro",
        "diff -i a b",
        "sort -i a",
        "docker ps --format json",
        "journalctl -o cat",
        "shellcheck -o all a.sh",
    )

    assert [command for command in commands if label(command) == "unknown"] == []


def test_unlisted_program_with_an_output_option_says_so() -> None:
    reading = read_command("frobnicate -o src/a.py", PathClasses())

    assert reading.label == "unknown"
    assert "not in the table" in reading.detail
    assert "-o" in reading.detail
    assert "not in the table" not in read_command("frobnicate -x", PathClasses()).detail


def test_entry_that_is_not_asked_decides_nothing() -> None:
    table = command_table()
    told = {
        word
        for listed in table.programs.values()
        for program in listed
        for words in (program.needs, program.needs_bare, program.needs_flag)
        for word in words or ()
    }
    missed = [
        (name, word)
        for name, listed in table.programs.items()
        for word in ({"x"} | table.usual[name][0]) & (told | {"x"})
        for flags in ({"-x"}, set(), {word})
        for program in listed
        if program.may_decide([word], flags) and program not in table.entries(name, [word], flags)
    ]

    assert missed == []
    assert table.entries("git", ["status"], set()) != table.programs["git"]
