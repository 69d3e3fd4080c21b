"""Runs a command of plain words without a parser.

Words, plain quotes and variables, pipelines, lists, redirections to files, a heredoc and a loop
over words are most of what agents write. What holds anything else is left to the parser; a test
holds both to the same result.
"""

from __future__ import annotations

from typing import cast

from switchyard_core.mutation.shell.plain import Command, Statement, Word, split_plain
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import Input, Session

__all__ = ["run_simple"]

#: Words of a loop that are gone through.
_MOST_ROUNDS = 8


def run_simple(text: str, session: Session, stdin: Input) -> tuple[bool, str | None]:
    """Record the effects of a bash script when it is a simple one.

    Args:
        text: The script.
        session: Gets the effects.
        stdin: What the script's programs read.

    Returns:
        Whether it is simple, and what it prints, when that can be told.
    """
    if session.functions or (statements := split_plain(text)) is None:
        return False, None
    if stdin.connected and any(
        len(part.commands) > 1 and part.commands[-1].redirects
        for statement in statements
        for part in (statement, *statement.body)
    ):
        # Behind a pipeline the parser's tree does not tell its input from that of a heredoc.
        return False, None
    return True, _run_all(statements, session, stdin)


def _run_all(statements: list[Statement], session: Session, stdin: Input) -> str | None:
    outputs: list[str | None] = []
    start = 0
    for statement in statements:
        start = start if statement.chained else len(outputs)
        commands = statement.commands
        if not commands:
            output = _run_loop(statement, session, stdin)
        elif len(commands) == 1:
            output = _run(commands[0], session, stdin)
        else:
            output = _run_pipeline(commands, session, stdin)
        if commands and commands[-1].redirects:
            # Of a list with a redirection the parser's tree shows the output of its end alone.
            del outputs[start:]
        outputs.append(output)
    known = [output for output in outputs if output is not None]
    return "".join(known) if known and len(known) == len(outputs) else None


def _run_loop(statement: Statement, session: Session, stdin: Input) -> str | None:
    words = [word for value in statement.values for word in _words(value, session)]
    if not words:
        return _run_all(statement.body, session, stdin)
    for word in words[:_MOST_ROUNDS]:
        session.variables[statement.variable] = word
        _run_all(statement.body, session, stdin)
    return None


def _run_pipeline(commands: list[Command], session: Session, stdin: Input) -> str | None:
    # A redirection behind a pipeline stands above all of it.
    targets = _redirected(commands[-1], session, stdin)[1]
    output: str | None = None
    for command in commands:
        # Each part of a pipeline is a shell of its own: its `cd` does not last.
        inner = session.inner()
        output = run_program(_all_words(command, inner), inner, stdin)
        stdin = Input(text=output, connected=True)
    return _kept(output, targets, session)


def _run(command: Command, session: Session, stdin: Input) -> str | None:
    if not command.redirects:
        return run_program(_all_words(command, session), session, stdin)
    stdin, targets = _redirected(command, session, stdin)
    return _kept(run_program(_all_words(command, session), session, stdin), targets, session)


def _redirected(command: Command, session: Session, stdin: Input) -> tuple[Input, list[str]]:
    """Carry out the redirections of a command; return its input and the files of its output."""
    targets: list[str] = []
    for redirect in command.redirects:
        if redirect.operator == "<<":
            stdin = Input(text=_text(redirect.word, session), connected=True)
        elif redirect.operator == "<":
            path = _text(redirect.word, session)
            known = session.files.get(session.resolve(path))
            stdin = Input(text=known, connected=True, file=path)
        elif redirect.operator:
            path = _text(redirect.word, session)
            session.write(path, redirect.operator)
            if redirect.output:
                targets.append(path)
    return stdin, targets


def _kept(output: str | None, targets: list[str], session: Session) -> str | None:
    """Remember what files were given; return the output that is left."""
    if output is not None:
        for path in targets:
            session.remember(path, output)
    return None if targets else output


def _all_words(command: Command, session: Session) -> list[str]:
    if not command.expands:
        return cast("list[str]", command.words)
    return [word for written in command.words for word in _words(written, session)]


def _words(written: Word, session: Session) -> list[str]:
    """Return the words that one word gives; an unquoted variable may be many."""
    text = _text(written, session)
    if isinstance(written, str) or not written.splits or not text or text[0] == "$":
        return [text]
    return text.split()


def _text(written: Word, session: Session) -> str:
    """Return the text of a word; what only the running shell knows stays as written."""
    if isinstance(written, str):
        return written
    return "".join([text or _value(variable, session) for text, variable in written.parts])


def _value(variable: str, session: Session) -> str:
    known = session.variables.get(variable.strip("${}"))
    return known if known is not None and session.budget.take(len(known)) else variable
