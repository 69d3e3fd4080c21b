"""What counts as a script of plain words, and what its words are."""

from __future__ import annotations

import pytest

from switchyard_core.mutation.shell.plain import Expanding, split_plain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -la", [[["ls", "-la"]]]),
        ("a 'b c'|d e\"f\" && g;", [[["a", "b c"], ["d", "ef"]], [["g"]]]),
        ("# why\na b # c\n\nc 2>/dev/null", [[["a", "b"]], [["c"]]]),
        ("a 2>&1 | b", [[["a"], ["b"]]]),
        ("a \"it's\" '$x'", [[["a", "it's", "$x"]]]),
    ],
)
def test_words_are_taken_as_the_shell_does(text: str, words: object) -> None:
    statements = split_plain(text)

    assert statements is not None
    assert [[c.words for c in s.commands] for s in statements] == words


def test_variable_is_told_from_text_and_splits_only_alone_and_unquoted() -> None:
    statements = split_plain("""a $x "$x" "y ${x}z"'$q'""")

    assert statements is not None
    assert statements[0].commands[0].words[1:] == [
        Expanding((("", "$x"),), splits=True),
        Expanding((("", "$x"),), splits=False),
        Expanding((("y ", ""), ("", "${x}"), ("z", ""), ("$q", "")), splits=False),
    ]


def test_redirections_and_the_heredoc_belong_to_their_command() -> None:
    statements = split_plain("cd x && cat > 'a b' 2>&1 << 'E'\nc $d\n\nE\nls 2>> y <z")

    assert statements is not None
    found = [
        (s.chained, [(r.operator, r.word, r.output) for r in s.commands[-1].redirects])
        for s in statements
    ]
    assert found == [
        (False, []),
        (True, [(">", "a b", True), ("", "", False), ("<<", "c $d\n\n", False)]),
        (False, [(">>", "y", False), ("<", "z", False)]),
    ]


def test_loop_has_its_variable_values_and_body() -> None:
    statements = split_plain('for f in a "b c"; do ls; rm $f; done || d')

    assert statements is not None
    loop, last = statements
    assert (loop.variable, loop.values, len(loop.body)) == ("f", ["a", "b c"], 2)
    assert last.chained


@pytest.mark.parametrize(
    "text",
    [
        *("a `b`", "a &", "a && ", "| a", "a;;b", "X=1 a", "if a", "a (b)", "eval a", ". a"),
        *("a \\b", "a 'b", 'a "$b', "a 2>&1 b", "a <<X", "'a' b", "", "a {b,c}", "ls;" * 200),
        *("a > b c", "a>b", "> a", "a 12> b", "a > b | c", "a <<< b", "a > -", "a $1", "a $x[0]"),
        *("cat <<E | b\nc\nE", "cat <<E\n$b\nE", "cat <<E\nE", "cat <<E\nb E\nE", "cat <<-E\nb\nE"),
        *("cat <<E <<F\na\nE\nb\nF", 'a "<<E"\nb\nE', f"cat <<E\n{'a' * 20_000}\nE"),
        *(
            "for f in a; do b",
            "for f; do b; done",
            "for f in a; do b; done | c",
            "done",
            "echo done",
        ),
        *("for f in a; do for g in b; do c; done; done", "for f in a; do b; done > c"),
        f"for f in a; do {'b;' * 41} done",
    ],
)
def test_the_rest_is_left_to_the_parser(text: str) -> None:
    assert split_plain(text) is None
