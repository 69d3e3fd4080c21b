"""Heredocs and quotes of a script, and its operators, which are bounded before it is parsed."""

from __future__ import annotations

import pytest

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
EDITS = [
    "x=`cat <<'EOF'`\nrm b.py\nEOF",
    "x=$(cat <<- E'O'F>b.py\nx\n\tEOF\n)",
    "echo `cat<<E'O'F; tee b.py\nx\nEOF\n`",
    "cat <<EOF>src/app.py\nprint(1)\nEOF",
    "cat <<EOF>>f.py\nx\nEOF",
    "cat <<-EOF>f.py\n\tx\n\tEOF",
    "cat <<EOF|tee src/a.py\nx\nEOF",
    "cat <<EOF|sed s/a/b/>src/a.py\nx\nEOF",
    "cat <<EOF&&rm b.py\nx\nEOF",
    "cat <<EOF & rm b\nx\nEOF",
    "cat <<EOF; rm b\nx\nEOF",
    "cat <<EOF ; rm b\nx\nEOF",
    "cat <<'EOF'; rm b\nx\nEOF",
    'cat <<"EOF"; rm b\nx\nEOF',
    "cat <<EOF; sed -i s/a/b/ src/a.py\nx\nEOF",
    "cat <<EOF; mv a.py b.py\nx\nEOF",
    "cat <<EOF; git checkout -- a.py\nx\nEOF",
    "cat <<EOF;\nx\nEOF\nsed -i s/a/b/ src/a.py\npytest",
    "x=$(cat <<EOF)\nhi\nEOF\nrm b",
    "mkdir -p src; cat <<EOF>src/a.py; ls\nx\nEOF",
    "cat <<EOF; ls\n$(rm a.py)\nEOF",
    "cat <<EOF; ls\n`rm a.py`\nEOF",
    "cat <<A<<B>f.py\na\nA\nb\nB",
    "cat <<EOF>f.py",
    "cat <<EOF|sh\nrm a.py\nEOF",
    "python3 <<EOF; ls\nopen('a.py','w').write('it')\nEOF",
    "echo $((1<<2)); cat <<EOF; rm b\nx\nEOF",
    'x="$(cat <<EOF; rm b\nit\'s\nEOF\n)"',
    "if true; then cat <<EOF>a.py; fi\nx\nEOF",
    "while read l; do echo $l; done<<EOF>a.py\nx\nEOF",
    "f() { cat <<EOF>a.py; }\nx\nEOF\nf",
    "cat <<EOF\n`rm a.py`\nEOF",
    "cat <<EOF\n${x:-$(rm a.py)}\nEOF",
    "m[$(rm a.py)]=1",
    "echo ${m[$(rm a.py)]}",
    "echo $(( $(rm a.py; echo 1) + 1 ))",
    "m[`rm a.py`]=1 ls",
    "cat <<EOF\n$(( $(rm a.py) + 1 ))\nEOF",
    "cat <<\\EOF; rm b\nx\nEOF",
    'echo "${m[$(rm a.py)]}"',
    "cat <<EOF\n$(cat <<X>a.py\nq\nX\n)\nEOF",
    "! { rm a.py; }",
    "if ! { rm a.py; }; then ls; fi",
    "ls && ! { rm a.py; }",
    "ls\n\\rm a.py",
    "cat <<EOF; ls\nx\nEOF\n\\rm a.py",
    "[ a \\> b ] && rm a.py",
    "echo a\\\\>a.py",
]
READS = [
    "! { ls; }",
    "ls \\\n\\rm",
    'echo "\n\\rm a.py"',
    "echo a \\> b.py",
    "[ a \\< b ]",
    "cat <<EOF; ls\nrm b\nEOF",
    "cat <<EOF|grep a\nrm b\nEOF",
    "cat <<'EOF'; ls\n$(rm b)\nEOF",
    "cat <<'EOF'\n`rm b`\nEOF",
    "cat <<EOF&&ls\nit's \"\nEOF",
    "cat <<EOF; ls\n\\$(rm a.py) \\`rm a.py\\`\nEOF",
    "x=$(cat <<EOF)\nhi\nEOF\nls",
    "cat <<EOF & ls\nx\nEOF",
    "echo ${m[$(ls)]}",
    "echo $(( $(ls) ))",
    "cat <<EOF>/dev/null; ls\nx\nEOF",
    "echo 'a <<EOF; rm b'",
    "cat <<\\EOF\n$(rm b)\nEOF",
    "[ a \\> b ] && ls",
]


UNKNOWN = [
    "cat <<EOF>/dev/null; echo 'a\nx\nEOF",
    "cat <<EOF; x=$(ls\nx\nEOF",
    "cat <<EOF; ) fi\nx\nEOF",
    "cat <<EOF; ls\nx\nEOF\n" + "'a'" * 5000,
]


def test_edit_or_read_behind_in_or_beside_a_heredoc_or_substitution_is_seen() -> None:
    expected = [
        *((text, "file_edit") for text in EDITS),
        *((text, "read_only") for text in READS),
        *((text, "unknown") for text in UNKNOWN),
    ]
    wrong = [
        (text, label, reading)
        for text, label in expected
        if (reading := read_command(text, CLASSES, dialect="bash")).label != label
    ]

    assert wrong == []


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


@pytest.mark.parametrize(
    "text", ["cat <<E; echo 'a\nx\nE", "cat <<E; x=$(ls\nx\nE", "a <<E " * 5000]
)
def test_script_that_is_left_open_or_too_long_is_not_whole(text: str) -> None:
    assert not inline_heredocs(text).whole


def test_substitutions_of_a_body_are_what_the_shell_runs() -> None:
    body = r"""a \$(b) $(c "$(d)" ')') `e \`f\`` ${g:-$(h)} $((1 + $(i)))"""

    assert list(substitutions(body)) == ["c \"$(d)\" ')'", "e `f`", "h", "(1 + $(i))"]


def test_substitution_that_is_left_open_goes_to_the_end() -> None:
    assert list(substitutions("$(a `b")) == ["a `b"]
    assert list(substitutions("`a")) == ["a"]


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
    shown, operators = bounded(code)

    assert len(shown) == len(code)
    assert shown.startswith(b"ls | head; ")
    assert shown.endswith(b"; rm a | b\n")
    assert operators < 20
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
    shown, operators = bounded(code)

    assert code.startswith(shown)
    assert len(shown) < len(code)
    assert sum(shown.count(bytes([mark])) for mark in b"|<>()[]{") <= MOST_OPERATORS + 3
    assert operators <= MOST_OPERATORS


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
