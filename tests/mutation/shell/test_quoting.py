"""Heredocs and quotes of a script, and its operators, which are bounded before it is parsed."""

from __future__ import annotations

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command
from switchyard_core.mutation.shell.quoting import (
    MOST_OPERATORS,
    Heredoc,
    bounded,
    inline_heredocs,
    substitutions,
)

CLASSES = PathClasses()
MANY = b"f(a) | [b] > {c}\n" * 200


def test_text_without_heredocs_stays_as_it_is() -> None:
    text = "echo $((1<<2)) '<<EOF' # <<EOF\nls <<<EOF"
    inlined = inline_heredocs(text)

    assert (inlined.source, inlined.heredocs, inlined.whole) == (text, {}, True)


def test_heredocs_of_a_line_are_taken_in_order() -> None:
    inlined = inline_heredocs("cat <<A 3<<-'B';ls\n'a'\nA\n\tb\n\tB\npwd")

    assert inlined.source == "cat  <'h'  3<'h' ;ls\npwd"
    assert inlined.heredocs == {
        6: Heredoc("'a'\n", expands=True),
        13: Heredoc("\tb\n", expands=False),
    }


def test_heredoc_whose_word_has_something_behind_it_ends_there() -> None:
    inlined = inline_heredocs("if a; then cat <<E\nx\nE; fi; rm b")

    assert inlined.source == "if a; then cat  <'h' ; fi; rm b"
    assert [heredoc.body for heredoc in inlined.heredocs.values()] == ["x\n"]


def test_heredoc_whose_word_stands_alone_further_down_ends_there() -> None:
    inlined = inline_heredocs("cat <<E\nx\nE; ls\nE\nrm b")

    assert inlined.source == "cat  <'h' \nrm b"


def test_script_that_is_left_open_or_too_long_is_not_whole() -> None:
    texts = ["cat <<E; echo 'a\nx\nE", "cat <<E; x=$(ls\nx\nE", "a <<E " * 5000]

    assert [text for text in texts if inline_heredocs(text).whole] == []


def test_script_of_which_a_part_is_not_looked_at_is_unknown() -> None:
    text = "cat <<EOF; ls\nx\nEOF\n" + "'a'" * 5000

    assert read_command(text, CLASSES, dialect="bash").label == "unknown"


def test_substitutions_of_a_body_are_what_the_shell_runs() -> None:
    body = r"""a \$(b) $(c "$(d)" ')') `e \`f\`` ${g:-$(h)} $((1 + $(i)))"""

    assert list(substitutions(body)) == ["c \"$(d)\" ')'", "e `f`", "h", "(1 + $(i))"]


def test_substitution_that_is_left_open_goes_to_the_end() -> None:
    assert list(substitutions("$(a `b")) == ["a `b"]
    assert list(substitutions("`a")) == ["a"]


def test_usual_script_stays_as_it_is() -> None:
    scripts = [b"", b"ls | head", b"(a) " * 100]

    assert [code for code in scripts if bounded(code)[0] is not code] == []


QUOTED = [
    b"'" + MANY + b"'",
    b'"' + MANY + b'"',
    b'"${a} ' + MANY + b'"',
    b"$'it\\'s " + MANY + b"'",
    b"cat <<'E'\n" + MANY + b"E\n",
    b"cat <<-E > f\n" + MANY + b"\tE\n",
    b"cat <<A <<'B'\n" + MANY + b"A\n" + MANY + b"B\n",
    b"# it's " + MANY.replace(b"\n", b" ") + b"\n",
]


def test_what_is_quoted_is_hidden_from_the_parser() -> None:
    for quoted in QUOTED:
        code = b"ls | head; " + quoted + b"; rm a | b\n"
        shown, operators = bounded(code)

        assert len(shown) == len(code), quoted
        assert shown.startswith(b"ls | head; "), quoted
        assert shown.endswith(b"; rm a | b\n"), quoted
        assert operators < 20, quoted
        assert shown.count(b"|") < 5, quoted


CROWDED = [
    MANY,
    b"cat <<E\n" + MANY,
    b"cat <<E\n$(a) " + MANY + b"E\n",
    b"cat <<<E\n" + MANY + b"E\n",
    b"echo 'it" + MANY,
    b'echo "$(a)" ' + MANY + b'"',
    b"a\\' " + MANY,
    b"<" * 5000,
    b"'a' " * 5000 + MANY,
]


def test_script_with_too_many_operators_is_cut() -> None:
    for code in CROWDED:
        shown, operators = bounded(code)

        assert code.startswith(shown), code
        assert len(shown) < len(code), code
        assert len(shown) - len(shown.translate(None, b"|<>()[]{")) <= MOST_OPERATORS + 3, code
        assert operators <= MOST_OPERATORS, code


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
