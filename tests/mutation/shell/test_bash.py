"""What the walker of bash makes of lists, pipelines, redirections and shells in shells."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.readers import read_whole
from switchyard_core.mutation.shell import bash, new_session, read_argv, read_command
from switchyard_core.mutation.shell.session import MAX_DEPTH, Decided, Input, Session

CLASSES = PathClasses()


def run(text: str, stdin: str | None = None) -> tuple[str | None, Session]:
    session = new_session(CLASSES)
    output: str | None = None
    with suppress(Decided):
        given = Input() if stdin is None else Input(text=stdin, connected=True)
        output = session.read(text, "bash", given)
    return output, session


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("echo a; echo b", "a\nb\n"),
        ("echo a | cat", "a\n"),
        ("printf '%s.py\\n' 1", "1.py\n"),
        ("x=1; echo $x", None),
        ("echo $(echo a | cat) b", "a b\n"),
        ("for x in a b; do echo $x; done", None),
        ("echo a; ls", None),
        ("echo a > b.log", None),
        ("cat", "given\n"),
        ("cat <<E\na\nE", "a\n"),
    ],
)
def test_output_is_known_when_all_of_it_can_be_told(text: str, output: str | None) -> None:
    assert run(text, "given\n")[0] == output


def test_file_that_a_command_writes_keeps_its_content() -> None:
    _, session = run("cd /tmp; echo a > x; cat <<E 2>&1 > y\nb\nE\ncat x y")

    assert session.files == {"/tmp/x": "a\n", "/tmp/y": "b\n"}


def test_effects_of_an_inner_shell_are_shared_and_its_state_is_not() -> None:
    session = new_session(CLASSES)
    session.variables["x"] = "1"
    inner = session.inner()
    inner.enter("/tmp")
    inner.variables["x"] = "2"
    inner.write("a", "touch")

    assert [reading.label for reading in session.readings] == ["scratch_write"]
    assert (session.directory, session.variables) == ("", {"x": "1"})


def test_shells_in_shells_are_followed_only_so_deep() -> None:
    session = new_session(CLASSES)
    session.depth = MAX_DEPTH + 1
    session.read("rm a.py", "bash")

    assert [reading.label for reading in session.readings] == ["unknown"]


@pytest.mark.parametrize("host", ["powershell", "powershell.exe", "pwsh", "/usr/bin/pwsh"])
def test_powershell_inside_bash_is_read(host: str) -> None:
    for command in (f'{host} -Command "Set-Content a.py x"', f"sudo {host} -c 'rm a.py'"):
        assert read_command(command, CLASSES, dialect="bash").label == "file_edit"
    assert read_argv([host, "-Command", "Set-Content a.py x"], CLASSES).label == "file_edit"


@pytest.mark.parametrize("host", ["cmd", "cmd.exe"])
def test_cmd_inside_bash_is_read(host: str) -> None:
    assert read_command(f"{host} /c del a.c", CLASSES, dialect="bash").label == "file_edit"


def test_plain_command_is_read_as_its_nodes_are(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [
        *("ls", "head -20", "git log -5 HEAD~1 -- src/a.py", "dd of=src/a.py bs=1", "touch 1 2 a1"),
        *("rm -f  /tmp/a.log", "cd /tmp", "kill -9 0x10 %1 1.5 5:3 a=5", "npx tsc --noEmit -p x"),
        *(
            "black src",
            "sudo sed -i s/a/b/ src/a.py",
            "printf a 2>&1",
            "echo 1 | tee 2",
            "cp a ./b",
        ),
        *("rm == src/a.py", "touch =a =~ b"),
    ]
    strings = ['touch "src/a b.py"', "touch 'src/a b.py'", 'rm "7" " " "" "a"', 'echo "a\nb" > 5']
    taken = [read_whole(command, CLASSES, "bash") for command in commands + strings]
    assert all(map(bash._PLAIN_COMMAND.fullmatch, commands[:11]))

    for name in ("_PLAIN_COMMAND", "_PLAIN", "_PLAIN_STRING", "_DUPLICATION"):
        monkeypatch.setattr(bash, name, re.compile("(?!)"))

    assert taken == [read_whole(command, CLASSES, "bash") for command in commands + strings]
