"""Walks the syntax tree of a bash command and runs what it says on paper."""

from __future__ import annotations

import re

import tree_sitter

from switchyard_core.mutation.shell.grammar import Script, parse_bash
from switchyard_core.mutation.shell.heredocs import substitutions
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import MAX_DEPTH, NO_INPUT, Input, Session
from switchyard_core.mutation.shell.simple import run_simple

__all__ = ["run_bash"]

_Node = tree_sitter.Node

_EXPANSIONS = {"simple_expansion", "expansion"}
_TEXTS = {"word", "number", "string_content", "extglob_pattern", "regex", "variable_name"}
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "0": "\0"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEFAULTED = re.compile(r"\$\{([A-Za-z_]\w*)(:?[-=])(.*)\}$", re.DOTALL)
#: Nodes inside nodes that are followed.
_MAX_NESTING = 150
#: Steps that it takes to begin with a substitution in a heredoc.
_FILL = 5
#: Characters of a variable that are kept.
_MAX_VALUE = 64 * 1024
#: The file that a process substitution stands for.
_SUBSTITUTED = "/dev/fd/63"
_HEREDOC = "heredoc_redirect"
_HERESTRING = "herestring_redirect"
_QUOTE = frozenset("'\"\\")


def run_bash(text: str, session: Session, stdin: Input = NO_INPUT) -> str | None:
    """Record the effects of a bash script; never raises on bad syntax.

    Args:
        text: The script.
        session: Gets the effects.
        stdin: What the script's programs read.

    Returns:
        What the script prints, when that can be told, else ``None``.
    """
    if session.depth > MAX_DEPTH or not session.budget.take(len(text)):
        session.add("unknown", "shell", "nested too deeply")
        return None
    # No shell has a character of code 0 in a command, and the grammar ends there.
    text = text.replace("\0", "")
    simple, output = run_simple(text, session, stdin)
    if simple:
        return output
    script = parse_bash(text, session)
    return _Walker(session, script).run(script.root, stdin, 0)


class _Walker:
    """Runs the nodes of one tree in one session."""

    def __init__(self, session: Session, script: Script) -> None:
        self.session = session
        self.script = script
        self.source = script.source

    def _source(self, node: _Node) -> str:
        """Return the text of a node as the command has it."""
        return self.source[node.start_byte : node.end_byte]

    def run(self, node: _Node, stdin: Input, depth: int) -> str | None:
        """Run a node and return its output, when that can be told."""
        self.session.spend()
        if depth > _MAX_NESTING:
            self.session.add("unknown", "shell", "nested too deeply")
            return None
        kind = node.type
        if kind == "command":
            return self._command(node, stdin, depth)
        if kind == "pipeline":
            return self._pipeline(list(node.named_children), stdin, depth)
        if kind == "redirected_statement":
            return self._redirected(node, stdin, depth)
        if kind in {"subshell", "command_substitution", "process_substitution"}:
            walker = _Walker(self.session.inner(), self.script)
            return walker.sequence(node.named_children, stdin, depth)
        if kind == "for_statement":
            return self._for(node, stdin, depth)
        if kind == "function_definition":
            self._define(node)
            return None
        if kind == "variable_assignment":
            self._assign(node, depth)
            return None
        if kind in {"file_redirect", _HEREDOC, _HERESTRING}:
            return self._redirects([node], None, stdin, depth)
        if kind == "case_item":
            return self.sequence(node.named_children[1:], stdin, depth)
        if kind in _TEXTS or kind in {"raw_string", "comment", "ansi_c_string"}:
            return None
        return self.sequence(node.named_children, stdin, depth)

    def sequence(self, nodes: list[_Node], stdin: Input, depth: int) -> str | None:
        """Run nodes one after the other; the output is known when all of it is."""
        outputs = [self.run(node, stdin, depth + 1) for node in nodes if node.type != "comment"]
        known = [output for output in outputs if output is not None]
        return "".join(known) if known and len(known) == len(outputs) else None

    def _pipeline(self, nodes: list[_Node], stdin: Input, depth: int) -> str | None:
        output: str | None = None
        for node in nodes:
            # Each part of a pipeline is a shell of its own: its `cd` does not last.
            walker = _Walker(self.session.inner(), self.script)
            output = walker.run(node, stdin, depth + 1)
            stdin = Input(text=output, connected=True)
        return output

    def _for(self, node: _Node, stdin: Input, depth: int) -> str | None:
        variable = node.child_by_field_name("variable")
        values = node.children_by_field_name("value")
        words = [word for value in values for word in self.words(value, depth)]
        body = node.child_by_field_name("body")
        if variable is not None and words:
            name = self._source(variable)
            for word in words[:8]:
                self.session.variables[name] = word
                if body is not None:
                    self.run(body, stdin, depth + 1)
            return None
        return self.run(body, stdin, depth + 1) if body is not None else None

    def _define(self, node: _Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.session.functions[self._source(name)] = (self, body)

    def _assign(self, node: _Node, depth: int) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        self._substitute(name, depth)
        text = self.text(value, depth) if value is not None else ""
        if any(child.type == "+=" for child in node.children):
            text = (self.session.variables.get(self._source(name)) or "") + text
        self.session.variables[self._source(name)] = text[:_MAX_VALUE]

    def _redirected(self, node: _Node, stdin: Input, depth: int) -> str | None:
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        # A redirection belongs to the last command of a list, though it stands above all of them.
        while body is not None and body.type == "list" and body.named_children:
            *first, last = [child for child in body.named_children if child.type != "comment"]
            for child in first:
                self.run(child, stdin, depth + 1)
            body = last
        return self._redirects(redirects, body, stdin, depth)

    def _redirects(
        self, redirects: list[_Node], body: _Node | None, stdin: Input, depth: int
    ) -> str | None:
        """Run a statement with its redirections and whatever the parser hung under a heredoc."""
        targets: list[str] = []
        trailing: list[_Node] = []
        extra: list[str] = []
        queue = list(redirects)
        # The parser hangs what follows a heredoc's start on its line under the heredoc.
        while queue:
            redirect = queue.pop(0)
            if redirect.type == "file_redirect":
                stdin = self._file_redirect(redirect, stdin, targets, extra, depth)
            elif redirect.type == _HERESTRING:
                stdin = Input(text=self._last_text(redirect, depth) + "\n", connected=True)
            elif redirect.type == _HEREDOC:
                stdin = Input(text=self._heredoc_text(redirect), connected=True)
                for child in redirect.named_children:
                    if child.type in {"file_redirect", _HEREDOC, _HERESTRING}:
                        queue.append(child)
                    elif child.type not in {"heredoc_start", "heredoc_body", "heredoc_end"}:
                        trailing.append(child)
        words = [
            child
            for child in trailing
            if child.type in _TEXTS | {"string", "raw_string", "concatenation"} | _EXPANSIONS
        ]
        extra += [word for child in words for word in self.words(child, depth)]
        following = [child for child in trailing if child not in words]
        output: str | None = None
        if body is not None:
            output = self._body(body, extra, stdin, depth)
        for path in targets:
            if output is not None:
                self.session.remember(path, output)
        for child in following:
            piped = child.type == "pipeline" or _after_pipe(child)
            source = Input(text=output, connected=True) if piped else NO_INPUT
            output = self.run(child, source, depth + 1)
        return None if targets and not following else output

    def _body(self, body: _Node, extra: list[str], stdin: Input, depth: int) -> str | None:
        if body.type == "command" and extra:
            return self._command(body, stdin, depth, extra)
        if body.type == "pipeline" and extra:
            self.session.variables["_"] = " ".join(extra)
        if body.type == "pipeline" and stdin.connected and body.named_children:
            # A heredoc behind a pipeline belongs to its last command.
            *first, last = body.named_children
            self._pipeline(first, NO_INPUT, depth)
            return self._body(last, extra, stdin, depth)
        return self.run(body, stdin, depth + 1)

    def _file_redirect(
        self, node: _Node, stdin: Input, targets: list[str], extra: list[str], depth: int
    ) -> Input:
        operator = next((child.type for child in node.children if not child.is_named), "")
        destinations = node.children_by_field_name("destination")
        places: list[_Node | None] = [*(destinations or node.named_children[-1:])]
        first, *others = places or [None]
        # Words behind the destination belong to the command, though they stand under it.
        extra += [
            word for other in others if other is not None for word in self.words(other, depth)
        ]
        if first is None:
            return stdin
        if first.type == "process_substitution":
            self.run(first, NO_INPUT, depth + 1)
            return Input(connected=True) if operator.startswith("<") else stdin
        path = self.text(first, depth)
        if operator.startswith("<") and operator != "<>":
            known = self.session.files.get(self.session.resolve(path))
            return Input(text=known, connected=True, file=path)
        if operator in {">&", "<&", ">&-", "<&-"} and (
            path.isdigit() or path.rstrip("-").isdigit() or path in {"-", ""}
        ):
            return stdin
        if operator in {">&-", "<&-"}:
            return stdin
        self.session.write(path, operator)
        descriptor = next((c for c in node.named_children if c.type == "file_descriptor"), None)
        if descriptor is None or self._source(descriptor) == "1":
            targets.append(path)
        return stdin

    def _last_text(self, node: _Node, depth: int) -> str:
        return self.text(node.named_children[-1], depth) if node.named_children else ""

    def _heredoc_text(self, node: _Node) -> str:
        body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
        if body is None:
            return ""
        start = next(child for child in node.named_children if child.type == "heredoc_start")
        text = self._source(body)
        if _QUOTE.isdisjoint(self._source(start)):
            self._fill_in(text)
        return text

    def _fill_in(self, body: str) -> None:
        """Run the substitutions in the body of a heredoc."""
        for script in substitutions(body):
            self.session.spend(_FILL)
            run_bash(script, self.session.inner())

    def _substitute(self, node: _Node, depth: int) -> None:
        """Run the substitutions anywhere in a node that is no command."""
        self.session.spend()
        for child in node.named_children if depth <= _MAX_NESTING else ():
            if child.type in {"command_substitution", "process_substitution"}:
                self.run(child, NO_INPUT, depth + 1)
            else:
                self._substitute(child, depth + 1)

    def _command(
        self, node: _Node, stdin: Input, depth: int, extra: list[str] | None = None
    ) -> str | None:
        words: list[str] = []
        redirects: list[_Node] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                if (name := child.child_by_field_name("name")) is not None:
                    self._substitute(name, depth)
                if (value := child.child_by_field_name("value")) is not None:
                    self.text(value, depth)
            elif child.type in {_HERESTRING, "file_redirect", _HEREDOC}:
                redirects.append(child)
            elif child.type == "command_name":
                for part in child.named_children:
                    words += self.words(part, depth)
            elif child.type != "comment":
                words += self.words(child, depth)
        if redirects:
            targets: list[str] = []
            for redirect in redirects:
                if redirect.type == _HERESTRING:
                    stdin = Input(text=self._last_text(redirect, depth) + "\n", connected=True)
                elif redirect.type == "file_redirect":
                    stdin = self._file_redirect(redirect, stdin, targets, words, depth)
        words += extra or []
        if not words:
            return None
        return self._invoke(words, stdin, depth)

    def _invoke(self, words: list[str], stdin: Input, depth: int) -> str | None:
        name = words[0]
        session = self.session
        function = session.functions.get(name)
        if function is not None and name not in session.running:
            walker, body = function
            session.running.add(name)
            for place, word in enumerate(words[1:], 1):
                session.variables[str(place)] = word
            session.variables["@"] = session.variables["*"] = " ".join(words[1:])
            try:
                walker.session = session
                result: str | None = walker.run(body, stdin, depth + 1)
            finally:
                session.running.discard(name)
            return result
        return run_program(words, session, stdin)

    def words(self, node: _Node, depth: int) -> list[str]:
        """Return the words that one node of a command gives; an unquoted variable may be many."""
        text = self.text(node, depth)
        if node.type in _EXPANSIONS and text and not text.startswith("$"):
            return text.split()
        return [text]

    def text(self, node: _Node, depth: int) -> str:
        """Return the text of a word; what only the running shell knows stays as written."""
        if depth > _MAX_NESTING:
            return self._source(node)
        self.session.spend()
        kind = node.type
        if kind in {"word", "extglob_pattern", "regex"}:
            return re.sub(r"\\(.)", r"\1", self._source(node).replace("\\\n", ""), flags=re.DOTALL)
        if kind == "raw_string":
            body = self._source(node)[1:-1]
            if node.start_byte in self.script.expanding:
                self._fill_in(body)
            return body
        if kind == "ansi_c_string":
            inner = self._source(node)[2:-1]
            return re.sub(r"\\(.)", lambda m: _ANSI.get(m[1], m[1]), inner, flags=re.DOTALL)
        if kind in {"string", "concatenation", "translated_string", "array"}:
            return self._joined(node, depth)
        if kind in _EXPANSIONS:
            return self._expansion(node, depth)
        if kind == "command_substitution":
            output = self.run(node, NO_INPUT, depth + 1)
            return output.rstrip("\n") if output is not None else "$(…)"
        if kind == "process_substitution":
            output = self.run(node, Input(connected=True), depth + 1)
            self.session.files.pop(_SUBSTITUTED, None)
            if output is not None:
                self.session.remember(_SUBSTITUTED, output)
            return _SUBSTITUTED
        self._substitute(node, depth)
        return self._source(node)

    def _joined(self, node: _Node, depth: int) -> str:
        """Return the text of a string or concatenation, with what the grammar leaves between."""
        quoted = node.type != "concatenation"
        parts: list[str] = []
        position = node.start_byte
        for child in node.named_children:
            parts.append(self.source[position : child.start_byte])
            if child.type == "string_content":
                parts.append(re.sub(r'\\([\\"$`\n])', r"\1", self._source(child)))
            else:
                parts.append(self.text(child, depth + 1))
            position = child.end_byte
        parts.append(self.source[position : node.end_byte])
        text = "".join(parts)
        if quoted and node.type in {"string", "translated_string"}:
            text = text.removeprefix("$")
            return text[1:-1] if text[:1] == '"' and text[-1:] == '"' and len(text) > 1 else text
        return text

    def _expansion(self, node: _Node, depth: int) -> str:
        source = self._source(node)
        name = source.strip('${}"')
        known = self.session.variables.get(name)
        if known is not None:
            return known if self.session.budget.take(len(known)) else source
        self._substitute(node, depth)
        if match := _DEFAULTED.match(source):
            default = self.session.variables.get(match[1])
            return (match[3] or source) if default is None else default
        if (match := _NAME.match(name)) and (base := self.session.variables.get(match[0])):
            # `${f%.py}.txt` and the like: the value is close enough to tell what kind it is.
            return base
        return source


def _after_pipe(node: _Node) -> bool:
    before = node.prev_sibling
    return before is not None and before.type in {"|", "|&"}
