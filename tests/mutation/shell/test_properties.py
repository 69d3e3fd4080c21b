"""What holds for every command, whatever it is."""

from __future__ import annotations

import shlex
import sys
import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchyard_core.mutation.labels import LABELS, Reading
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_argv, read_command
from switchyard_core.mutation.shell.session import TOO_MUCH

CLASSES = PathClasses()

#: Text with many characters that mean something to a shell.
shell_text = st.lists(
    st.one_of(
        st.sampled_from(list("\"'`$(){}[]<>|&;\\\n\t #=-*?!~%^@/.:,")),
        st.characters(),
        st.sampled_from(
            [
                "rm ",
                "sed -i ",
                "<<EOF\n",
                "EOF\n",
                "$(",
                "python -c ",
                "git ",
                "apply ",
                "awk ",
                "find ",
                "xargs ",
                "cmd /c ",
                "Set-Content ",
                "psql -c ",
                "for x in ",
                "; do ",
                "tar ",
                "node -e ",
            ]
        ),
    ),
    max_size=40,
).map("".join)
READS = [
    "git status",
    "cat src/app.py",
    "grep -rn foo src",
    "sed -n 1,5p src/app.py",
    "ls -la",
    "find . -name x.py",
]
EDITS = [
    "sed -i s/a/b/ src/app.py",
    "rm src/app.py",
    "git apply fix.patch",
    "cp a.py b.py",
    "echo x > src/app.py",
    "black src",
]


@settings(max_examples=400, deadline=None)
@given(shell_text, st.sampled_from(["bash", "powershell", "cmd", "auto"]))
def test_any_text_is_read_without_an_error(text: str, dialect: str) -> None:
    assert read_command(text, CLASSES, dialect=dialect).label in LABELS


@settings(max_examples=150, deadline=None)
@given(st.lists(shell_text, min_size=1, max_size=5))
def test_any_argv_is_read_without_an_error(words: list[str]) -> None:
    assert read_argv(words, CLASSES).label in LABELS


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["echo", "grep -n", "git log --grep", "printf %s"]), shell_text)
def test_quoted_text_is_never_an_edit(program: str, text: str) -> None:
    command = f"{program} {shlex.quote(text.replace(chr(0), ''))}"

    assert read_command(command, CLASSES, dialect="bash").label == "read_only"


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(READS), st.data())
def test_quoting_of_its_words_never_makes_a_read_an_edit(command: str, data: st.DataObject) -> None:
    words = [
        data.draw(st.sampled_from([word, f"'{word}'", f'"{word}"', f"{word[0]}'{word[1:]}'"]))
        if word
        else word
        for word in command.split()
    ]

    assert read_command(" ".join(words), CLASSES, dialect="bash").label == "read_only"


WRAPPERS = [
    "bash -lc {quoted}",
    "sh -c {quoted}",
    "sudo bash -c {quoted}",
    "env X=1 bash -c {quoted}",
    "( {command} )",
    "{{ {command}; }}",
    "if true; then {command}; fi",
    "cd src && {command}",
    "true || {command}",
    "{command} && pytest",
    "{command}; git status",
    "git status\n{command}",
    "for i in 1; do {command}; done",
    "x=$({command})",
    "eval {quoted}",
    "f() {{ {command}; }}; f",
    "time ( {command} )",
    "time -p {{ {command}; }}",
    "trap {quoted} EXIT",
    "bash <({command_printed})",
    "source <({command_printed})",
    "{command_printed} | sh",
    "! {command}",
    "{command} &",
    "ls | while read x; do {command}; done",
    "case x in x) {command};; esac",
    "bash <<'EOF'\n{command}\nEOF",
]


def wrap(wrapper: str, command: str) -> str:
    quoted = shlex.quote(command)
    return wrapper.format(command=command, quoted=quoted, command_printed=f"echo {quoted}")


def wrapped_wrongly(commands: list[str], label: str) -> list[tuple[str, Reading]]:
    return [
        (wrapped, reading)
        for wrapper, command in product(WRAPPERS, commands)
        if (reading := read_command(wrapped := wrap(wrapper, command), CLASSES, dialect="bash"))
        and reading.label != label
    ]


def test_wrapper_never_hides_an_edit() -> None:
    assert wrapped_wrongly(EDITS, "file_edit") == []


def test_wrapper_never_makes_a_read_an_edit() -> None:
    assert wrapped_wrongly(READS, "read_only") == []


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(EDITS),
    st.lists(st.sampled_from(WRAPPERS[:6] + WRAPPERS[7:9]), min_size=1, max_size=4),
)
def test_nested_wrappers_never_hide_an_edit(command: str, wrappers: list[str]) -> None:
    for wrapper in wrappers:
        command = wrap(wrapper, command)

    assert read_command(command, CLASSES, dialect="bash").label == "file_edit"


def test_prefix_never_hides_an_edit() -> None:
    prefixes = ["sudo", "env X=1", "time", "nohup", "nice -n 5", "timeout 5", "X=1", "command"]
    commands = ["sed -i s/a/b/ src/app.py", "rm src/app.py", "git apply x"]

    assert [
        (prefix, command)
        for prefix, command in product([*prefixes, "stdbuf -oL"], commands)
        if read_command(f"{prefix} {command}", CLASSES).label != "file_edit"
    ] == []


def test_deep_nesting_is_read_without_an_error() -> None:
    assert read_command("(" * 3000 + "ls" + ")" * 3000, CLASSES).label in LABELS
    assert read_command("$(" * 3000, CLASSES, dialect="bash").label in LABELS
    assert read_command("eval " * 500 + "rm a.py", CLASSES).label in LABELS


def test_recursive_function_ends() -> None:
    assert read_command("f() { f; f; rm a.py; }; f", CLASSES).label == "file_edit"


def test_command_over_the_limit_is_read_to_there_and_says_so() -> None:
    command = "rm src/a.py\n" + "# padding\n" * 30000

    reading = read_command(command, CLASSES, dialect="bash")

    assert reading.label == "file_edit"
    assert "256 KiB" in reading.detail


def test_long_read_is_unknown_because_its_end_was_not_read() -> None:
    reading = read_command("ls\n" + "# padding\n" * 30000, CLASSES, dialect="bash")

    assert (reading.label, "256 KiB" in reading.detail) == ("unknown", True)


def test_edit_behind_many_commands_is_found() -> None:
    reading = read_command("echo a; " * 500 + "rm a.py", CLASSES, dialect="bash")

    assert reading.label == "file_edit"


@pytest.mark.parametrize("text", ["{\U000c44df", "{\U00031860 rm a.py", "echo {\U0010ffff}"])
def test_character_beyond_the_scanners_table_does_not_crash_the_process(text: str) -> None:
    assert read_command(text, CLASSES, dialect="bash").label in LABELS


def test_text_beyond_ascii_keeps_its_paths() -> None:
    reading = read_command("echo é > 'src/ü\U0001f600.py' # 日本", CLASSES, dialect="bash")

    assert (reading.label, reading.detail) == ("file_edit", "> writes src/ü\U0001f600.py")


def test_loops_in_loops_end_within_the_budget() -> None:
    loops = "".join(f"for v{n} in 1 2 3 4 5 6 7 8; do " for n in range(12))

    reading = read_command(loops + "ls; " + "done; " * 12, CLASSES, dialect="bash")

    assert (reading.label, reading.detail) == ("unknown", TOO_MUCH)


def test_functions_that_call_each_other_twice_end_within_the_budget() -> None:
    functions = "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}; " for n in range(40))

    assert read_command(functions + "f0", CLASSES, dialect="bash").label == "unknown"


#: Texts of which 100 KB once took more than a second, some of them hours, or all the memory.
SLOW = {
    "pipes that end in one": "a|",
    "redirections from nothing": "<",
    "doubled variable": "a=$a$a;",
    "blank lines": "\n",
    "directories": "cd a;",
    "open parentheses": "(",
    "open substitutions": "$(",
    "adjacent strings": "'a'",
    "commands": "rm a; ",
    "reads": "ls -l src; ",
    "cmdlets": "Get-Item a; ",
    "braces": "{a,b}",
    "heredocs": "cat <<E\nx\nE\n",
    "functions": "f() { ls; }; f; ",
    "line joins": "a\\\n",
}
SLOW_CODE = {
    "doubled text": "a = a + a\n",
    "adjacent strings": '"a"',
    "blanks": " ",
    "open calls": "open(",
    "chained calls": ".a()",
    "sums": '"a"+',
    "writes to variables": "$x = 1; file_put_contents($x, 1);",
}
INTERPRETERS = ["python3", "node", "ruby", "perl", "php", "psql", "julia", "lua", "Rscript"]
#: Seconds of processor time per 100 KB. Ordinary text takes some milliseconds; a text that is
#: nothing but commands takes as long as they do, and instrumented runs take several times that.
BOUND = 2.5 if sys.gettrace() is None else 8


def seconds(text: str, dialect: str) -> float:
    began = time.process_time()
    assert read_command(text, CLASSES, dialect=dialect).label in LABELS
    return time.process_time() - began


@pytest.mark.parametrize("dialect", ["bash", "powershell", "cmd", "auto"])
def test_long_text_takes_no_long_time(dialect: str) -> None:
    taken = {name: seconds((unit * 100_000)[:100_000], dialect) for name, unit in SLOW.items()}

    assert {name: found for name, found in taken.items() if found >= BOUND} == {}


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_long_code_takes_no_long_time(interpreter: str) -> None:
    taken = {
        name: seconds(f"{interpreter} - <<'END'\n{(unit * 100_000)[:100_000]}\nEND\n", "bash")
        for name, unit in SLOW_CODE.items()
    }

    assert {name: found for name, found in taken.items() if found >= BOUND} == {}


def test_long_heredoc_takes_milliseconds() -> None:
    text = "".join(f"line {number} of a file\n" for number in range(5000))
    command = f"cat <<'END'\n{text}END\n"
    fastest = min(seconds(command, "bash") for _ in range(5))

    assert fastest < 0.05 * len(command) / 100_000 + 0.01


@settings(max_examples=25, deadline=None)
@given(st.lists(shell_text, min_size=1, max_size=5), st.sampled_from(["bash", "powershell", "cmd"]))
def test_any_text_that_is_repeated_takes_no_long_time(texts: list[str], dialect: str) -> None:
    text = ("".join(texts) or "a") * 100_000

    assert seconds(text[:30_000], dialect) < BOUND


def test_doubled_variable_does_not_fill_the_memory() -> None:
    doubling = "a=xxxxxxxx; " + "a=$a$a$a$a; " * 40

    assert read_command(doubling + "echo $a > src/f.py", CLASSES, dialect="bash").label in LABELS


def test_doubled_text_of_code_does_not_fill_the_memory() -> None:
    lines = ["v0 = 'xxxxxxxx'", *(f"v{n} = v{n - 1} + v{n - 1}" for n in range(1, 60))]
    command = "python3 - <<'END'\n" + "\n".join(lines) + "\nopen(v59, 'w')\nEND\n"

    assert read_command(command, CLASSES, dialect="bash").label == "file_edit"


def test_first_edit_ends_the_reading() -> None:
    reading = read_command("echo a > src/f.py; " + "ls -l; " * 10_000, CLASSES, dialect="bash")

    assert (reading.label, reading.word) == ("file_edit", ">")


def test_text_that_is_too_dear_to_parse_is_read_as_far_as_it_can() -> None:
    reading = read_command("rm src/a.py; " + "a|" * 50_000, CLASSES, dialect="bash")

    assert (reading.label, reading.word) == ("file_edit", "rm")


def test_reading_ends_after_some_thousand_commands_and_says_so() -> None:
    reading = read_command("ls; " * 4000 + "rm a.py", CLASSES, dialect="bash")

    assert (reading.label, reading.detail) == ("unknown", TOO_MUCH)
