"""A command of plain words does without the parser what it does with it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import bash, read_command
from switchyard_core.mutation.shell.plain import split_plain
from switchyard_core.mutation.shell.session import NO_INPUT, Decided, Input, Session
from tests.mutation.shell.test_quick import corpus

CLASSES = PathClasses()


def effects(text: str, stdin: Input) -> tuple[Any, ...]:
    session = Session(classes=CLASSES)
    session.variables.own.update({"x": "src/a.py", "two": "a b", "none": "", "self": "$y"})
    output: str | None = "decided"
    with suppress(Decided):
        output = bash.run_bash(text, session, stdin)
    return (
        output,
        session.readings,
        session.files,
        session.directory,
        session.variables.own,
    )


def misread(text: str) -> bool:
    """Tell whether the parser takes `a && b 2>&1 | c` for `(a && b) 2>&1 | c` in a script."""
    return any(
        statement.chained and any(command.redirects for command in statement.commands[:-1])
        for statement in split_plain(text) or ()
    )


def check(text: str, stdin: Input = NO_INPUT) -> None:
    if misread(text):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bash, "run_simple", lambda _text, _session, _stdin: (False, None))
        parsed = effects(text, stdin)
    assert effects(text, stdin) == parsed


#: Programs that print, read their input, change the directory or write.
HEADS = [
    *("echo", "cat", "printf", "cd", "ls", "pwd", "rm", "rm -f", "mkdir -p", "touch", "tee", "cp"),
    *(
        "sed -i s/a/b/",
        "sed -n 1p",
        "git add",
        "git commit -qm",
        "bash",
        "bash -c",
        "sh",
        "npm run",
    ),
    *(
        "python -c",
        "python",
        "python3 -",
        "xargs rm",
        "xargs",
        "mktemp",
        "./run.sh",
        "head -3",
        "sort",
    ),
    *(
        "sudo",
        "env",
        "true",
        "find . -name",
        "make",
        "patch",
        "apply_patch",
        "node",
        "source",
        "eval",
    ),
    *("tar xf", "curl -o", "ln -s", "mv", "git apply", "awk", "psql", "ssh host", "docker exec x"),
]
WORDS = [
    *(
        "a",
        "src/a.py",
        "/tmp/x",
        "-",
        "--",
        "-n",
        "-o",
        "*.py",
        "src/*.c",
        "~",
        "~/x",
        "1",
        "22",
        "a=b",
    ),
    *(
        "'a b'",
        '"a b"',
        "''",
        '""',
        "'$x'",
        '"rm src/q.py"',
        "'rm src/q.py'",
        '"it\'s"',
        "a'b'\"c\"",
    ),
    *("$x", "${x}", '"$x"', '"${x}"', '"a$x"', '"$x b"', "$x/b", "a$x", "a/$x.c", "$two", '"$two"'),
    *("$none", '"$none"', "$self", '"$self"', "$y", '"$y"', "${y}", "$x$two", '"$x$two"', "$x'a'"),
    *(
        "'a'$x",
        '"$x"$y',
        "--a=$x",
        "$f",
        '"$f"',
        '"$f.o"',
        '"${f}.o"',
        "$x,",
        "@$x",
        "%$x",
        "$x:",
        "+$x",
    ),
    *(
        "^",
        "?",
        "?$x",
        "*$x",
        "~$x",
        "=$x",
        "-$x",
        "'é'",
        '"é"',
        '"é$x"',
        "a#b",
        "!",
        "{}",
        "[",
        "]",
        ".",
    ),
    *(
        "in",
        "do",
        "done",
        "for",
        "time",
        "$1",
        "$?",
        "$$",
        "$",
        "$(a)",
        '"$(a)"',
        "\\a",
        "$x[0]",
        "$_",
    ),
    *(
        '"$x[0]"',
        '"$xé"',
        "$xé",
        '"$"',
        '"a$"',
        "a,b",
        "'\n'",
        '"a\tb"',
        "\t",
        "&",
        "2",
        "{a,b}",
        '"!"',
    ),
]
REDIRECTS = [
    *(
        " > src/o.py",
        " > /tmp/o",
        " >> o.txt",
        " 2>/dev/null",
        " 2>&1",
        " >&2",
        " > /dev/null",
        " < a",
    ),
    *(
        " >src/o.py",
        " 1> o.sh",
        " 2> err.log",
        " 2>>err.log",
        " &> all.log",
        " &>> all.log",
        " < o.sh",
    ),
    *(
        " > $x",
        ' > "$x"',
        " > 'a b'",
        ' > "a b"',
        " > -",
        " >o$x",
        " > 1",
        " > *.py",
        " <> a",
        " >| a",
    ),
    *(
        " > done",
        " >a=b",
        " >~/x",
        "> a",
        "2> a",
        "2>&1",
        " 3> a",
        " 12> a",
        " 2>&-",
        " >&-",
        " 1>&2",
    ),
    *(" <<< a", " > a b", " 2>&1 a", " > $two", " > $none", " < $x", " > {a,b}", " > @x", " >%x"),
    *(
        " > o.sh 2>&1",
        " 2>&1 > o.sh",
        " > a > b",
        " < a > b",
        " > a < b",
        " >a#b",
        " >a # b",
        " > +a",
    ),
]
HEREDOCS = [
    (f" <<{blank}{start}{more}", f"\n{body}{word}{after}")
    for start, word in (("E", "E"), ("'E'", "E"), ('"EOF"', "EOF"), ("_E1", "_E1"), ("\\E", "E"))
    for blank, more in (
        ("", ""),
        (" ", ""),
        (" ", " > src/o.py"),
        ("", " > o.sh 2>&1"),
        ("", " | sh"),
    )
    for body in (
        "",
        "a\n",
        "rm src/q.py\n",
        "a $x\n",
        "$(rm b)\n",
        "a\\\n",
        "'\n",
        "\n\n",
        " E\n",
        " a\n",
        "\ta\n",
        "a\n\n b\n",
        "xE\n",
        "é\n",
        "E x\n",
    )
    for after in ("", "\n", " ", ";", " a", "\nls", "\n\n")
]
JOINS = [
    " | ",
    " && ",
    " || ",
    "; ",
    ";",
    "\n",
    "|",
    "&&",
    "\n\n",
    " # c\n",
    ";;",
    "&& \n",
    " & ",
    " |& ",
    "\\\n",
]

#: Odd things are rare in a script, or none would be simple.
word = st.sampled_from([w for w in WORDS if split_plain(f"a {w}")] * 12 + WORDS)
redirect = st.sampled_from([r for r in REDIRECTS if split_plain(f"a{r}")] * 6 + REDIRECTS)
join = st.sampled_from([j for j in JOINS if split_plain(f"a{j}b")] * 8 + JOINS)
command = st.builds(
    lambda head, words, end: " ".join([head, *words]) + "".join(end),
    st.sampled_from(HEADS),
    st.lists(word, max_size=3),
    st.one_of(st.just([]), st.just([]), st.lists(redirect, max_size=2)),
)
with_heredoc = st.builds(
    lambda text, doc: f"{text}{doc[0]}{doc[1]}",
    command,
    st.sampled_from(HEREDOCS + 4 * [doc for doc in HEREDOCS if split_plain(f"a{doc[0]}{doc[1]}")]),
)


def joined(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.lists(st.tuples(part, join), min_size=1, max_size=4)
    return st.builds(
        lambda found, end: "".join(a + b for a, b in found)[: None if end else -len(found[-1][1])],
        pairs,
        st.booleans(),
    )


loop = st.builds(
    lambda name, values, do, body, end: f"for {name} in {' '.join(values)}{do}{body}{end}",
    st.sampled_from(["f", "f", "x", "f_1", "in", "_"]),
    st.lists(word, min_size=1, max_size=3),
    st.sampled_from([*["; do ", "\ndo\n", ";do ", "; do\n"] * 4, " do ", "; \ndo "]),
    joined(command),
    st.sampled_from([*["; done", "\ndone", ";done"] * 4, " done", "; done 2>&1", "; done > o"]),
)


@given(joined(st.one_of(command, command, with_heredoc, loop)))
def test_generated_scripts_have_the_same_effects_as_by_the_parser(text: str) -> None:
    check(text)
    check(text, Input(text="rm src/z.py\n", connected=True))


@given(loop)
def test_generated_loops_have_the_same_effects_as_by_the_parser(text: str) -> None:
    check(text)


@given(with_heredoc)
def test_generated_heredocs_have_the_same_effects_as_by_the_parser(text: str) -> None:
    check(text)


def test_corpus_has_the_same_effects_as_by_the_parser() -> None:
    for text in corpus():
        check(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("cd /tmp && a 2>&1 | b; rm c", "scratch_write"),
        ("cd /tmp && a 2>&1 | b; echo c > d.py", "file_edit"),
        ("cd /tmp && a 2>&1 | b; rm $c", "file_edit"),
    ],
)
def test_list_that_the_parser_misreads_is_left_to_it_unless_there_are_only_words(
    text: str, label: str
) -> None:
    assert read_command(text, CLASSES, dialect="bash").label == label


def test_function_that_eval_defines_is_run() -> None:
    reading = read_command("eval 'f() { rm x.py; }'; f", CLASSES, dialect="bash")

    assert (reading.label, reading.word) == ("file_edit", "rm")


@pytest.mark.parametrize(
    "line", ["x = f(a[1]) | {b} > c < d\n", "it's `a` $(b) \"c\n", "é\n", "<<E\n"]
)
def test_long_heredoc_has_the_same_effects_as_by_the_parser(line: str) -> None:
    body = line * (16_000 // len(line))

    check(f"mkdir -p src && cat > src/a.py <<'EOF'\n{body}EOF\nrm -f /tmp/x")
    check(f"cat <<'EOF' > run.sh\n{body}rm src/b.py\nEOF\nbash run.sh")
