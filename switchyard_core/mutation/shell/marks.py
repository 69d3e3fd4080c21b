"""Bounds the operators of a script before it is parsed.

The grammar of bash recovers from some errors in time that grows with the square of the pipes,
redirections or brackets before them: 100 KB of ``a|a|a|`` take minutes, without the parser's
counter moving. What stands in quotes and heredocs does not count, and is hidden from the parser.
"""

from __future__ import annotations

import re

__all__ = ["MOST_MARKS", "bounded"]

#: Operators of a script that are parsed; nobody writes that many outside of quotes by hand.
MOST_MARKS = 300
#: Quotes, heredocs and operators that are looked at one by one.
_MOST_STEPS = 4000
_MARKS = b"|<>()[]{"
_HIDE = bytes.maketrans(_MARKS, b"x" * len(_MARKS))
_SCAN = re.compile(
    rb"""\\.
    |(?P<quoted>
        \$'(?:[^'\\]|\\.)*'
        |'[^']*'
        |"(?:[^"\\$`]|\\.|\$(?![({])|\$\{\w+\})*"
        |(?<![^\s;|&(])\#[^\n]*)
    |(?P<mark><<<|[|>()\[\]{]|<(?!<))
    |<<-?[ \t]*(?P<quote>['"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)
    |(?P<lone><)
    |(?P<open>['"])""",
    re.VERBOSE | re.DOTALL,
)


def bounded(code: bytes) -> tuple[bytes, int]:
    """Return a script of the same layout that has no more than so many operators.

    Args:
        code: The script.

    Returns:
        The script or its start, in which operators in quotes may be letters, and how many
        operators it has.
    """
    marks = sum(map(code.count, _BYTES))
    if marks <= MOST_MARKS:
        return code, marks
    scan = _Scan(code)
    end = scan.end()
    return bytes(scan.hidden[:end]), min(scan.marks, MOST_MARKS)


_BYTES = [bytes([mark]) for mark in _MARKS]


class _Scan:
    """One pass over a script."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.hidden = bytearray(code)
        self.marks = 0
        self.awaited: list[tuple[bytes, bool]] = []
        self.line_end = len(code)

    def end(self) -> int:
        """Hide what is quoted; return where there are too many operators."""
        position = 0
        for _ in range(_MOST_STEPS):
            match = _SCAN.search(self.code, position)
            if self.awaited and (match is None or match.start() > self.line_end):
                position = self._bodies()
                if self.marks > MOST_MARKS:
                    return position
                continue
            if match is None:
                return len(self.code)
            position = match.end()
            if match["end"] is not None:
                if not self.awaited:
                    self.line_end = self._find_line_end(position)
                self.awaited.append((match["end"], bool(match["quote"])))
                self.marks += 2
            elif match["quoted"] is not None:
                self._hide(match.start(), position)
            elif match["mark"] is not None or match["lone"] is not None:
                self.marks += position - match.start()
            elif match["open"] is not None:
                # From here on nothing is certain: all of it counts, and none of it is hidden.
                return self._count(match.start(), len(self.code))
            if self.marks > MOST_MARKS:
                return match.start()
        return position

    def _find_line_end(self, position: int) -> int:
        found = self.code.find(b"\n", position)
        return len(self.code) if found < 0 else found

    def _bodies(self) -> int:
        """Pass over the bodies of the heredocs that begin on a line; return where they end."""
        position = self.line_end
        for word, quoted in self.awaited:
            found = re.compile(rb"\n\t*" + word + rb"(?=\n|$)").search(self.code, position)
            stop = found.start() if found else len(self.code)
            body = self.code[position:stop]
            if found and (quoted or not (b"$(" in body or b"`" in body or b"${" in body)):
                self._hide(position, stop)
            else:
                end = self._count(position, stop)
                if self.marks > MOST_MARKS:
                    return end
            position = found.end() if found else stop
        self.awaited.clear()
        return position

    def _hide(self, start: int, end: int) -> None:
        self.hidden[start:end] = self.code[start:end].translate(_HIDE)

    def _count(self, start: int, end: int) -> int:
        """Count the operators of a part; return where there are too many, else its end."""
        for match in re.finditer(rb"[|<>()\[\]{]", self.code[start:end]):
            self.marks += 1
            if self.marks > MOST_MARKS:
                return start + match.start()
        return end
