"""Commands that edit where they run, or in a directory that they name."""

from __future__ import annotations

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command

#: Edits of what is in the directory.
HERE = [
    *("npm init -y", "npm pkg set a=b", "bun init -y", "uv init", "go mod init a", "go fmt ./..."),
    *("cargo init", "cargo new a", "cargo fmt", "rails new a", "django-admin startproject a"),
    *("tsc --init", "terraform fmt", "npx eslint --fix .", "patch -p1 < /repo/a.patch"),
    *("ruff check --fix", "npm run lint -- --fix", "sometool --fix .", "rename s/a/b/ *.txt"),
]
#: Those that name it: `%s` stands for the directory.
NAMED = [
    *("git -C %s pull", "patch -d %s -p1 < a.patch", "patch -d %s a.c < a.patch", "cargo new %s"),
    *("uv init %s", "npx create-vite %s", "npx create-vite@latest %s --template react"),
    *("dotnet new console -o %s", "npm init -y --prefix %s", "npm create vite@latest %s"),
    *("terraform -chdir=%s fmt", "rails new %s", "degit a/b %s", "uv init --directory %s"),
    *("django-admin startproject a %s", "cookiecutter gh:a/b -o %s", "copier copy gh:a/b %s"),
]
#: Edits elsewhere, although they begin in a scratch directory.
ELSEWHERE = [
    *("eslint --fix /repo/src", "npx eslint --fix $REPO/src", "npm init -y --prefix /repo"),
    *("npm init -y --prefix ../../repo", "cargo fmt --manifest-path /repo/Cargo.toml"),
    *("cargo new ~/proj", "terraform fmt ../../repo", "git -C /repo pull", "cd /repo && uv init"),
]
#: Inputs from a scratch directory say nothing of the place.
INPUTS = [
    *("git apply /tmp/a.patch", "svn patch /tmp/a.patch", "cookiecutter /tmp/template"),
    *("copier copy /tmp/template .", "patch -p1 < /tmp/a.patch", "antlr4 /tmp/G.g4"),
]
REPOSITORY = ["git apply a.patch", "git pull", "git checkout -- a.py", "hg update", "svn up"]
#: What makes a directory that cannot be the workspace.
MAKING = [
    *("git clone https://a/b /tmp/x && cd /tmp/x", "cd /tmp && git clone https://a/b.git && cd b"),
    *("gh repo clone a/b /tmp/x && cd /tmp/x/y", "cd $(mktemp -d) && git init"),
    *("mkdir -p /tmp/x && cd /tmp/x && git init", "git clone git@a:b/c /tmp/c; cd /tmp/c"),
]
ROOTED = PathClasses(workspace=("/repo",))


def _others(commands: list[str], label: str, classes: PathClasses = ROOTED) -> list[str]:
    return [each for each in commands if read_command(each, classes).label != label]


def test_edit_is_judged_by_the_directory_in_which_it_happens() -> None:
    scratch = [f"cd /tmp/x && {command}" for command in HERE]

    assert _others(HERE, "file_edit") == []
    assert _others(scratch, "scratch_write") == []
    assert _others(scratch, "scratch_write", PathClasses()) == []
    assert _others(scratch, "file_edit", PathClasses(workspace=("/tmp/x",))) == []
    assert _others(HERE, "scratch_write", ROOTED.starting_in("/tmp/x")) == []


def test_edit_is_judged_by_the_directory_that_it_names() -> None:
    assert _others([use % "/tmp/x" for use in NAMED], "scratch_write") == []
    assert _others([use % "/tmp/x" for use in NAMED], "scratch_write", PathClasses()) == []
    assert _others([use % "x" for use in NAMED], "file_edit") == []
    assert _others([f"cd /tmp/x && {use % '/repo/x'}" for use in NAMED], "file_edit") == []


def test_edit_that_leaves_a_scratch_directory_is_one() -> None:
    assert _others([f"cd /tmp/x && {command}" for command in ELSEWHERE], "file_edit") == []
    assert _others(INPUTS, "file_edit") == []


def test_repository_is_scratch_if_the_workspace_is_known_to_be_elsewhere() -> None:
    scratch = [f"cd /tmp/x && {command}" for command in REPOSITORY]

    assert _others(scratch, "scratch_write") == []
    assert _others(scratch, "file_edit", PathClasses()) == []
    assert _others(scratch, "file_edit", PathClasses(workspace=("/tmp/x",))) == []


def test_repository_that_the_command_makes_is_scratch() -> None:
    made = [f"{making} && git checkout -f v1" for making in MAKING]

    assert _others(made, "scratch_write", PathClasses()) == []
    assert _others(["git clone u vendor/b && git apply a.patch"], "file_edit") == []
    assert _others(["git clone https://a/app.js", "gh repo clone a/docs"], "file_write_other") == []
