"""Walks the syntax tree of a bash command and simulates it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tree_sitter

from switchyard_core.mutation.shell.parsing import Script, parse_bash
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.quoting import substitutions
from switchyard_core.mutation.shell.session import NO_INPUT, TOO_DEEP, Input, Session
from switchyard_core.mutation.shell.table import command_table

__all__ = ["read_bash"]

_Node = tree_sitter.Node

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_QUOTED_ESCAPE = re.compile(r'\\([\\"$`\n])')
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "0": "\0"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEFAULTED = re.compile(r"\$\{([A-Za-z_]\w*)(:?[-=])(.*)\}$", re.DOTALL)
#: Maximum depth of nodes.
_MAX_NESTING = 150
#: Steps to begin a substitution in a heredoc.
_FILL = 5
#: Characters of a variable that are kept, and words of a loop that are run.
_MAX_VALUE = 64 * 1024
_MOST_ROUNDS = 8
#: Between items in the values of `name[@]` and `@`, and the items with variables of their own.
_BETWEEN = "\0"
_INDEXED = 8
#: Characters of an array that are copied in a step.
_COPIED = 500
#: The file of a process substitution.
_SUBSTITUTED = "/dev/fd/63"
_EXPANSIONS = {"simple_expansion", "expansion"}
_SUBSTITUTIONS = {"command_substitution", "process_substitution"}
#: Nodes that are one word each.
_SINGLE = {"word", "raw_string", "number"}
_REDIRECTS = {"file_redirect", "herestring_redirect"}
#: Redirections of a descriptor to none, and to another one or a file.
_CLOSING = {">&-", "<&-"}
_DUPLICATING = {">&", "<&"}
_DESCRIPTOR = re.compile(r"\d*-?")
_DUPLICATION = re.compile(r"\d*[<>]&\d+")
#: Commands, words and strings that are what they show, and the numbers of such a command. Their
#: nodes are not looked at, which takes longer; the steps are those of the nodes.
_PLAIN_COMMAND = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*+(?: [A-Za-z0-9_./ ~:,=@+%-]*+)?")
_NUMBER = re.compile(r" -?(?:0x)?[0-9]++(?![^ ])")
_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*+")
_PLAIN_STRING = re.compile(r'"[^\s"\\$`][^"\\$`\n]*+"')


def read_bash(text: str, session: Session, stdin: Input) -> str | None:
    """Record the effects of a bash script; return its output if it is known."""
    # A command has no NUL, where the grammar would end.
    script = parse_bash(text.replace("\0", ""), session)
    return _Walker(session, script).run(script.root, stdin)


class _Walker:
    """Runs the nodes of one tree in one session."""

    __slots__ = ("depth", "script", "session", "source")

    def __init__(self, session: Session, script: Script, depth: int = 0) -> None:
        self.session = session
        self.script = script
        self.source = script.source
        self.depth = depth

    def inner(self) -> _Walker:
        return _Walker(self.session.inner(), self.script, self.depth)

    def as_written(self, node: _Node) -> str:
        return self.source[node.start_byte : node.end_byte]

    # Statements: each returns its output if it is known.

    def run(self, node: _Node, stdin: Input = NO_INPUT) -> str | None:
        """Run a node; return its output if it is known."""
        budget = self.session.budget
        budget.left -= 1
        if budget.left < 0:
            self.session.spend(0)
        if self.depth > _MAX_NESTING:
            self.session.add("unknown", "shell", TOO_DEEP)
            return None
        statement = _STATEMENTS.get(node.type)
        self.depth += 1
        try:
            if statement is None:
                return self.sequence(node.named_children, stdin)
            return statement(self, node, stdin)
        finally:
            self.depth -= 1

    def sequence(self, nodes: Sequence[_Node], stdin: Input) -> str | None:
        """Run nodes in order; the output is known when all of it is."""
        outputs: list[str] = []
        known = True
        for node in nodes:
            if node.type != "comment":
                output = self.run(node, stdin)
                if output is None:
                    known = False
                else:
                    outputs.append(output)
        return "".join(outputs) if known and outputs else None

    def loop(self, node: _Node, stdin: Input) -> str | None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        values = node.children_by_field_name("value")
        self.session.spend(len(values))
        words = [word for value in values for word in self.words(value)]
        if body is None:
            return None
        if variable is None or not words:
            return self.run(body, stdin)
        name = self.as_written(variable)
        for word in words[:_MOST_ROUNDS]:
            self.session.variables[name] = word
            self.run(body, stdin)
        return None

    def define(self, node: _Node, _stdin: Input) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            redirects = node.children_by_field_name("redirect")
            self.session.functions[self.as_written(name)] = (self.script, body, redirects)

    def assign(self, node: _Node, _stdin: Input) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        self.substitute(name)
        variable, variables = self.as_written(name), self.session.variables
        appends = any(child.type == "+=" for child in node.children)
        if value is not None and value.type == "array":
            self.assign_array(variable, value, appends=appends)
            return
        text = self.text(value, value.type) if value is not None else ""
        if appends:
            text = variables.get(variable, "") + text
        variables[variable] = text.replace(_BETWEEN, " ")[:_MAX_VALUE]

    def assign_array(self, name: str, value: _Node, *, appends: bool) -> None:
        variables = self.session.variables
        items = [word for child in value.named_children for word in self.words(child)]
        if appends and (before := variables.get(f"{name}[@]")):
            items = [before, *items]
        text = _BETWEEN.join(items)[:_MAX_VALUE]
        self.session.spend(len(text) // _COPIED)
        items = text.split(_BETWEEN)
        variables.update((f"{name}[{place}]", item) for place, item in enumerate(items[:_INDEXED]))
        variables[name] = items[0]
        variables[f"{name}[@]"] = text
        variables[f"{name}[*]"] = " ".join(items)

    def stages(self, nodes: Sequence[_Node], stdin: Input) -> str | None:
        """Run parts of a pipeline, each in its own shell: a ``cd`` does not last."""
        output: str | None = None
        for place, node in enumerate(nodes):
            if place == 0 and node.type == "redirected_statement":
                # The grammar reads `a && b 2>&1 | c` as `(a && b) 2>&1 | c`.
                body, redirects = self.last_of_list(node, stdin)
                output = self.inner().redirect(redirects, body, stdin)
            else:
                output = self.inner().run(node, stdin)
            stdin = Input(text=output, connected=True)
        return output

    def redirected(self, node: _Node, stdin: Input) -> str | None:
        body, redirects = self.last_of_list(node, stdin)
        return self.redirect(redirects, body, stdin)

    def last_of_list(self, node: _Node, stdin: Input) -> tuple[_Node | None, list[_Node]]:
        """Return what is redirected, and the redirections.

        They belong to the last command of a list, although the grammar attaches them to all of it:
        the commands before it are run.
        """
        body = node.child_by_field_name("body")
        while body is not None and body.type == "list" and body.named_children:
            *first, body = [child for child in body.named_children if child.type != "comment"]
            for child in first:
                self.run(child, stdin)
        return body, node.children_by_field_name("redirect")

    def redirect(self, redirects: Sequence[_Node], body: _Node | None, stdin: Input) -> str | None:
        targets: list[str] = []
        extra: list[str] = []
        given = self.carry_out(redirects, targets, extra)
        output = self.feed(body, stdin, given, extra) if body is not None else None
        return self.kept(output, targets)

    def feed(
        self, body: _Node, stdin: Input, given: Input | None, extra: Sequence[str]
    ) -> str | None:
        if body.type == "command" and extra:
            return self.command(body, given or stdin, extra)
        if body.type == "pipeline" and (given is not None or extra):
            # Both are its last command's.
            *first, last = body.named_children
            piped = Input(text=self.stages(first, stdin), connected=True)
            return self.inner().feed(last, piped, given, extra)
        return self.run(body, given or stdin)

    def kept(self, output: str | None, targets: Sequence[str]) -> str | None:
        """Remember the content of written files; return the remaining output."""
        if output is not None:
            for path in targets:
                self.session.remember(path, output)
        return None if targets else output

    def carry_out(
        self, redirects: Sequence[_Node], targets: list[str], extra: list[str]
    ) -> Input | None:
        """Apply redirections; return the input that they give.

        ``targets`` gets the files that take the output, ``extra`` the words after a file's name,
        which belong to the command.
        """
        given: Input | None = None
        for redirect in redirects:
            if redirect.type == "herestring_redirect":
                (*_, word) = redirect.named_children or (redirect,)
                given = Input(text=self.text(word, word.type) + "\n", connected=True)
            elif redirect.type == "file_redirect":
                given = self.file_redirect(redirect, targets, extra) or given
            else:
                # A heredoc in an unknown context: its parts count, its text is unknown.
                self.sequence(redirect.named_children, NO_INPUT)
        return given

    def file_redirect(self, node: _Node, targets: list[str], extra: list[str]) -> Input | None:
        if _DUPLICATION.fullmatch(self.as_written(node)):
            self.session.spend(2)
            return None
        operator = next((child.type for child in node.children if not child.is_named), "")
        places = node.children_by_field_name("destination") or node.named_children[-1:]
        if not places:
            return None
        first, *others = places
        extra += [word for other in others for word in self.words(other)]
        # The grammar does not know `<>`.
        reads = operator.startswith("<") and "<>" not in self.as_written(node)
        if first.type == "process_substitution":
            output = self.run(first)
            return Input(text=output, connected=True) if reads else None
        descriptor = next((c for c in node.named_children if c.type == "file_descriptor"), None)
        number = self.as_written(descriptor) if descriptor is not None else ""
        if (heredoc := self.script.heredocs.get(first.start_byte)) is not None:
            for script in substitutions(heredoc.body) if heredoc.expands else ():
                self.session.spend(_FILL)
                self.session.inner().read(script, "bash")
            return Input(text=heredoc.body, connected=True) if number in {"", "0"} else None
        path = self.text(first, first.type).replace(_BETWEEN, " ")
        if operator in _CLOSING or (operator in _DUPLICATING and _DESCRIPTOR.fullmatch(path)):
            return None
        if reads:
            return Input(text=self.session.content(path), connected=True, file=path)
        self.session.write(path, "<>" if operator.startswith("<") else operator)
        if number in {"", "1"}:
            targets.append(path)
        return None

    def command(self, node: _Node, stdin: Input, extra: Sequence[str] = ()) -> str | None:
        written = self.source[node.start_byte : node.end_byte]
        # The grammar takes `==` for an operator, not a word.
        plain = _PLAIN_COMMAND.fullmatch(written) and " =" not in written
        if plain and not node.has_error:
            words = written.split()
            self.session.spend(len(words) + 2 * len(_NUMBER.findall(written)))
            return self.invoke([*words, *extra], stdin)
        words = []
        redirects: list[_Node] = []
        children = node.named_children
        self.session.spend(len(children))
        source = self.source
        for child in children:
            kind, written = child.type, source[child.start_byte : child.end_byte]
            if kind == "word" and "\\" not in written:
                words.append(written)
            elif kind in _SINGLE:
                words.append(self.text(child, kind))
            elif kind == "command_name":
                if _PLAIN.fullmatch(written):
                    words.append(written)
                    continue
                for part in child.named_children:
                    words += self.words(part)
            elif kind in _REDIRECTS:
                redirects.append(child)
            elif kind == "variable_assignment":
                # The variable is the program's alone.
                name, *values = [self.text(part, part.type) for part in child.named_children]
                if values and name in command_table().words["command_variables"]:
                    self.session.inner().read(values[-1], "bash")
            elif kind != "comment":
                words += self.words(child)
        targets: list[str] = []
        if redirects:
            stdin = self.carry_out(redirects, targets, words) or stdin
        words += extra
        output = self.invoke(words, stdin) if words else None
        return self.kept(output, targets) if targets else output

    def invoke(self, words: list[str], stdin: Input) -> str | None:
        session = self.session
        if not session.functions:
            return run_program(words, session, stdin)
        name = words[0]
        function = session.functions.get(name)
        if function is None or name in session.running:
            return run_program(words, session, stdin)
        session.running.add(name)
        if isinstance(function, str):
            return self.run_alias(name, function, words[1:], stdin)
        script, body, redirects = function
        for place, word in enumerate(words[1:], 1):
            session.variables[str(place)] = word
        session.variables.update({"@": _BETWEEN.join(words[1:]), "*": " ".join(words[1:])})
        try:
            return _Walker(session, script, self.depth).redirect(redirects, body, stdin)
        finally:
            session.running.discard(name)

    def run_alias(self, name: str, text: str, words: list[str], stdin: Input) -> str | None:
        try:
            return self.session.read(" ".join([text, *map(shlex.quote, words)]), "bash", stdin)
        finally:
            self.session.running.discard(name)

    # Words: what only a running shell knows stays as written.

    def words(self, node: _Node) -> list[str]:
        """Return the words of one node of a command; an unquoted variable may be several."""
        kind = node.type
        text = self.text(node, kind)
        if _BETWEEN in text:
            return text.split(_BETWEEN)
        if kind in _EXPANSIONS and text and not text.startswith("$"):
            return text.split()
        return [text]

    def text(self, node: _Node, kind: str) -> str:
        written = self.source[node.start_byte : node.end_byte]
        if kind == "word" and "\\" not in written:
            return written
        self.session.spend()
        if self.depth > _MAX_NESTING:
            return written
        if kind == "raw_string":
            return written[1:-1]
        if kind == "string" and _PLAIN_STRING.fullmatch(written):
            self.session.spend()
            return written[1:-1]
        self.depth += 1
        try:
            return _WORDS.get(kind, _Walker.as_it_is)(self, node, written)
        finally:
            self.depth -= 1

    def as_it_is(self, node: _Node, written: str) -> str:
        self.substitute(node)
        return written

    def joined(self, node: _Node, _written: str) -> str:
        parts: list[str] = []
        position = node.start_byte
        children = node.named_children
        self.session.spend(len(children))
        for child in children:
            parts.append(self.source[position : child.start_byte])
            if child.type == "string_content":
                parts.append(_QUOTED_ESCAPE.sub(r"\1", self.as_written(child)))
            else:
                parts.append(self.text(child, child.type))
            position = child.end_byte
        parts.append(self.source[position : node.end_byte])
        return "".join(parts)

    def string(self, node: _Node, written: str) -> str:
        text = self.joined(node, written).removeprefix("$")
        return text[1:-1] if text[:1] == '"' and text[-1:] == '"' and len(text) > 1 else text

    def output(self, node: _Node, _written: str) -> str:
        output = self.run(node)
        return output.rstrip("\n") if output is not None else "$(…)"

    def output_file(self, node: _Node, _written: str) -> str:
        output = self.run(node, Input(connected=True))
        self.session.files.pop(_SUBSTITUTED, None)
        if output is not None:
            self.session.remember(_SUBSTITUTED, output)
        return _SUBSTITUTED

    def expansion(self, node: _Node, written: str) -> str:
        variables = self.session.variables
        name = written.strip('${}"')
        value = variables.get(name)
        if value is not None:
            return value if self.session.budget.take(len(value)) else written
        self.substitute(node)
        if match := _DEFAULTED.match(written):
            return variables.get(match[1], match[3] or written)
        if match := _NAME.match(name):
            # `${f%.py}.txt` and the like: the value is close enough to tell what kind it is.
            return variables.get(match[0], written)
        return written

    def substitute(self, node: _Node) -> None:
        """Run the substitutions in a node that is not a command."""
        self.session.spend()
        if self.depth > _MAX_NESTING:
            return
        self.depth += 1
        for child in node.named_children:
            if child.type in _SUBSTITUTIONS:
                self.run(child)
            else:
                self.substitute(child)
        self.depth -= 1


_Statement: TypeAlias = Callable[[_Walker, _Node, Input], str | None]
#: How nodes are run, by type; the parts of others are run in order.
_STATEMENTS: dict[str, _Statement] = {
    "command": _Walker.command,
    "pipeline": lambda walker, node, stdin: walker.stages(node.named_children, stdin),
    "redirected_statement": _Walker.redirected,
    **dict.fromkeys(
        ("subshell", *_SUBSTITUTIONS),
        lambda walker, node, stdin: walker.inner().sequence(node.named_children, stdin),
    ),
    "for_statement": _Walker.loop,
    "function_definition": _Walker.define,
    "variable_assignment": _Walker.assign,
    **dict.fromkeys(_REDIRECTS, lambda walker, node, stdin: walker.redirect([node], None, stdin)),
    "case_item": lambda walker, node, stdin: walker.sequence(node.named_children[1:], stdin),
    **dict.fromkeys(
        (
            *("word", "number", "string_content", "extglob_pattern", "regex", "variable_name"),
            *("raw_string", "comment", "ansi_c_string"),
        ),
        lambda *_: None,
    ),
}
_Word: TypeAlias = Callable[[_Walker, _Node, str], str]
#: What words mean, by type; of others only the substitutions count.
_WORDS: dict[str, _Word] = {
    **dict.fromkeys(
        ("word", "extglob_pattern", "regex"),
        lambda _walker, _node, written: _ESCAPE.sub(r"\1", written.replace("\\\n", "")),
    ),
    "ansi_c_string": lambda _walker, _node, written: _ESCAPE.sub(
        lambda match: _ANSI.get(match[1], match[1]), written[2:-1]
    ),
    **dict.fromkeys(("string", "translated_string"), _Walker.string),
    **dict.fromkeys(("concatenation", "array"), _Walker.joined),
    **dict.fromkeys(_EXPANSIONS, _Walker.expansion),
    "command_substitution": _Walker.output,
    "process_substitution": _Walker.output_file,
}
