from __future__ import annotations

import pytest

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command
from switchyard_core.mutation.shell.heredocs import inline_heredocs, substitutions

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


@pytest.mark.parametrize("text", EDITS)
def test_edit_behind_or_in_a_heredoc_or_substitution_is_seen(text: str) -> None:
    assert read_command(text, PathClasses(), dialect="bash").label == "file_edit"


@pytest.mark.parametrize("text", READS)
def test_command_beside_it_that_only_reads_is_no_edit(text: str) -> None:
    assert read_command(text, PathClasses(), dialect="bash").label == "read_only"


@pytest.mark.parametrize(
    "text",
    [
        "cat <<EOF>/dev/null; echo 'a\nx\nEOF",
        "cat <<EOF; x=$(ls\nx\nEOF",
        "cat <<EOF; ) fi\nx\nEOF",
        "cat <<EOF; ls\nx\nEOF\n" + "'a'" * 5000,
    ],
)
def test_heredoc_in_what_is_not_understood_is_unknown(text: str) -> None:
    assert read_command(text, PathClasses(), dialect="bash").label == "unknown"


def test_text_without_heredocs_stays_as_it_is() -> None:
    text = "echo $((1<<2)) '<<EOF' # <<EOF\nls <<<EOF"
    inlined = inline_heredocs(text)

    assert inlined is not None
    assert (inlined.source, inlined.code, inlined.expanding) == (text, text, frozenset())


def test_heredocs_of_a_line_are_taken_in_order() -> None:
    inlined = inline_heredocs("cat <<A 3<<-'B';ls\n'a'\nA\n\tb\n\tB\npwd")

    assert inlined is not None
    assert inlined.source == "cat  <<<''a''  3<<<'\tb' ;ls\npwd"
    assert inlined.code == "cat  <<<'xxx'  3<<<'xx' ;ls\npwd"
    assert inlined.expanding == frozenset({8})


def test_substitutions_of_a_body_are_what_the_shell_runs() -> None:
    body = r"""a \$(b) $(c "$(d)" ')') `e \`f\`` ${g:-$(h)} $((1 + $(i)))"""

    assert list(substitutions(body)) == ["c \"$(d)\" ')'", "e `f`", "h", "(1 + $(i))"]


def test_substitution_that_is_left_open_goes_to_the_end() -> None:
    assert list(substitutions("$(a `b")) == ["a `b"]
    assert list(substitutions("`a")) == ["a"]
