"""Edits that a model writes as text: which form each has, where it begins, which file it names.

One pass over the lines finds all forms. What is shown rather than meant does not count: block
quotes, indented code, inline code, fences of text or with a fence in them, elements such as
``<example>``, and what is not finished.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from switchyard_core.mutation.patch import patched_files
from switchyard_core.mutation.tables import load_table

__all__ = ["FORMS", "TextEdit", "text_edits"]

#: What ``reader`` of a text rule can name.
FORMS: tuple[str, ...] = ("search_replace", "unified_diff", "write_tags", "whole_file")

#: Characters of one text that are read.
_MOST = 1024 * 1024
#: Characters of a line that can be a path, and of an element in which its path is looked for.
_LONGEST = 250
_HEAD_OF_ELEMENT = 2000
#: Lines above a block on which its file may be named, fences and blank lines included.
_ABOVE = 3

_SEARCH = re.compile(r" {0,3}<{5,9} SEARCH>?\s*")
_BEGIN = "*** Begin Patch"
#: What ends a part of a block or of a patch.
_PARTS = {
    "divider": re.compile(r" {0,3}={5,9}\s*"),
    "replace": re.compile(r" {0,3}>{5,9} REPLACE\s*"),
    "patch": re.compile(r"\*\*\* End Patch\s*"),
}
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)([^`]*)")
_ELEMENT = re.compile(r" {0,3}<([A-Za-z_]\w*)(?:\s([^<>]*))?>")
_PATH = re.compile(r'(?:[A-Za-z]:[\\/])?[^\s<>|:"`*?=,;]+')
_EXTENSION = re.compile(r"\.([A-Za-z][\w+-]{0,15})$")
#: Characters with which a line can begin that begins or ends something.
_STARTS = frozenset("`~<-*")
#: Characters with which a line of a hunk begins.
_HUNK = frozenset(" +-\\@")


class TextEdit(msgspec.Struct, frozen=True, gc=False):
    """An edit in a text."""

    form: str  # one of :data:`FORMS`
    path: str  # the file that it names
    offset: int  # index of its first character in the text


class _Fence(msgspec.Struct, eq=False):
    """The fence that is open."""

    line: int  # its number
    close: str  # the shortest line that closes it
    language: str
    #: The file that the line above names, and its number; ``""`` when it names none.
    path: str
    named: int
    holds_edit: bool = False  # whether an edit, or a part of one, is inside

    def closes(self, line: str) -> bool:
        """Return whether a line closes it."""
        mark, end = line.strip(), self.close
        if line.startswith(" " * 4) or len(mark) < len(end):
            return False
        return mark == end or (end[0] in "`~" and not mark.strip(end[0]))


def text_edits(text: str) -> Iterator[TextEdit]:
    """Yield the edits in an assistant's text, in order; takes time linear in the text."""
    yield from _Scan(text[:_MOST]).edits()


class _Scan:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [line.removesuffix("\r") for line in text.split("\n")]
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._at = 0  # number of the line that is read
        self._fence: _Fence | None = None
        self._ended = -1  # last line of the block that was read last
        self._file = ""  # the file of that block: another one may follow without a name
        #: Line numbers by what is on them, each list made once.
        self._places: dict[str, list[int]] = {}
        self._unclosed: set[str] = set()  # elements that no later tag closes

    def edits(self) -> Iterator[TextEdit]:
        """Yield every edit."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.lstrip(" ")[:1] not in _STARTS:
                self._at += 1
                continue
            before = self._at
            yield from self._read(line)
            if self._at == before:
                self._at += 1

    def _read(self, line: str) -> Iterator[TextEdit]:
        """Read what begins or ends on a line; move on when that is more than the line."""
        fence = self._fence
        if fence is not None and fence.closes(line):
            self._fence = None
            if fence.path and not fence.holds_edit and self._is_whole_file(fence):
                yield self._edit("whole_file", fence.path, fence.named)
        elif fence is None and (opened := self._opening(self._at)) is not None:
            self._fence = opened
        elif _SEARCH.fullmatch(line):
            yield from self._block()
        elif line[:4] == "--- ":
            yield from self._diff()
        elif line[: len(_BEGIN)] == _BEGIN:
            yield from self._patch()
        elif fence is None and (tag := _ELEMENT.match(line)):
            yield from self._element(tag)

    def _edit(self, form: str, path: str, line: int) -> TextEdit:
        return TextEdit(form, path, self._starts[line])

    # --- fences ------------------------------------------------------------------------------

    def _opening(self, number: int) -> _Fence | None:
        """Return the fence that a line opens."""
        line = self._lines[number]
        if (match := _FENCE.fullmatch(line)) is not None:
            close, words = match[1], match[2].split()
            language = words[0].casefold() if words else ""
        elif (tag := line.strip()[1:-1]) in _table()["fence_tags"] and line.strip() == f"<{tag}>":
            close, language = f"</{tag}>", ""
        else:
            return None
        named = number - 1
        if named > self._ended + 1 and not self._lines[named].strip():
            named -= 1
        path = path_on(self._lines[named]) if named > self._ended else ""
        return _Fence(line=number, close=close, language=language, path=path, named=named)

    def _is_whole_file(self, fence: _Fence) -> bool:
        """Return whether what is in a fence that ends here is the file that it names."""
        filled = any(self._lines[n].strip() for n in range(fence.line + 1, self._at))
        diff = fence.language and fence.language in _table()["diff_fences"]
        return filled and not diff and (not _quotes(fence) or _is_document(fence.path))

    # --- search and replace --------------------------------------------------------------------

    def _block(self) -> Iterator[TextEdit]:
        head, fence = self._at, self._fence
        if fence is not None:
            fence.holds_edit = True
        divider = self._next("divider", head)
        end = None if divider is None else self._next("replace", divider)
        if end is None:
            return
        path, named = self._named_above(head)
        shown = (
            fence is not None
            and _quotes(fence)
            and not (_is_document(path) and head <= fence.line + 2)
        )
        self._at, self._ended = end + 1, end
        if path and not shown:
            self._file = path
            yield self._edit("search_replace", path, named)

    def _named_above(self, head: int) -> tuple[str, int]:
        """Return the file that the lines above a block name, and which line does."""
        for number in range(head - 1, max(head - 1 - _ABOVE, self._ended), -1):
            line = self._lines[number]
            fence = _FENCE.fullmatch(line)
            # Some models write the path in place of the language.
            if fence is not None and (path := path_on(fence[2])):
                return path, number
            if fence is None and line.strip() and line.strip()[1:-1] not in _table()["fence_tags"]:
                near = not any(not above.strip() for above in self._lines[number + 1 : head])
                if path := path_on(line, loose=near):
                    return path, number
                break
        return self._file, head

    def _next(self, what: str, behind: int) -> int | None:
        """Return the number of the next line behind one that ends a part of a block."""
        if what not in self._places:
            ends = _PARTS[what].fullmatch
            self._places[what] = [n for n, line in enumerate(self._lines) if ends(line)]
        places = self._places[what]
        place = bisect_right(places, behind)
        return places[place] if place < len(places) else None

    # --- diffs and patches ------------------------------------------------------------------------

    def _may_hold_diff(self) -> bool:
        fence = self._fence
        may = fence is None or fence.language in _table()["diff_fences"]
        if fence is not None:
            fence.holds_edit = fence.holds_edit or may
        return may

    def _diff(self) -> Iterator[TextEdit]:
        """Read the part of a unified diff about one file: its head, and hunks that change lines."""
        lines, head = self._lines, self._at
        heads = lines[head + 1 : head + 3]
        if [line[:2] for line in heads] != ["++", "@@"] or heads[0][:4] != "+++ ":
            return
        changes, number = False, head + 3
        while number < len(lines) and lines[number][:1] in _HUNK:
            following = lines[number + 1 : number + 2]
            if lines[number][:4] == "--- " and following and following[0][:4] == "+++ ":
                break
            changes = changes or lines[number][:1] in {"+", "-"}
            number += 1
        self._at, self._ended = number, number - 1
        names = patched_files("\n".join(lines[head : head + 2]))
        if changes and names and self._may_hold_diff():
            yield self._edit("unified_diff", names[-1], head)

    def _patch(self) -> Iterator[TextEdit]:
        """Read a patch in an envelope, which may be about several files."""
        begin, end = self._at, self._next("patch", self._at)
        if end is None:
            return
        self._at, self._ended = end + 1, end
        if self._may_hold_diff():
            for name in patched_files("\n".join(self._lines[begin:end])):
                yield self._edit("unified_diff", name, begin)

    # --- elements --------------------------------------------------------------------------------

    def _element(self, tag: re.Match[str]) -> Iterator[TextEdit]:
        """Read an element that writes a file; skip one whose content is not for the client."""
        name = tag[1]
        writes = name in _table()["write_tags"]
        if name in self._unclosed or not (writes or name in _table()["quoting_tags"]):
            return
        begin = self._starts[self._at] + tag.end()
        end = self._text.find(f"</{name}>", begin)
        if end < 0:
            self._unclosed.add(name)
            return
        number = self._at
        self._at = bisect_right(self._starts, end)
        self._ended = self._at - 1
        if writes:
            path = _path_of_element(
                tag[2] or "", self._text[begin : min(end, begin + _HEAD_OF_ELEMENT)]
            )
            if path:
                yield self._edit("write_tags", path, number)


def path_on(line: str, *, loose: bool = False) -> str:
    """Return the path that stands alone on a line, ``""`` without one.

    It may be a heading, bold, or inline code, and end with a colon. ``loose`` takes any word.
    """
    text = line.strip().lstrip("#").strip()
    if len(text) > _LONGEST or line.startswith((" " * 4, "\t", ">")):
        return ""
    text = text.strip("*").strip()
    word, colon, rest = text.partition(":")
    if colon and word.strip("* ").casefold() in _table()["path_words"]:
        text = rest
    text = text.strip(" *").removesuffix(":").strip("*`\"'")
    if not _PATH.fullmatch(text) or text.endswith("."):
        return ""
    known = _EXTENSION.search(text) or text.casefold() in _table()["bare_files"]
    # `Example:` is a word of the prose.
    loose = loose and (not line.rstrip().endswith(":") or bool(re.search(r"[./\\]", text)))
    return text if loose or known else ""


def _path_of_element(attributes: str, head: str) -> str:
    names = "|".join(map(re.escape, _table()["path_tags"]))
    quoted = re.search(rf"""\b(?:{names})\s*=\s*(?:"([^"]+)"|'([^']+)')""", attributes)
    if quoted:
        return (quoted[1] or quoted[2]).strip()
    inner = re.search(rf"<({names})>([^<>]+)</\1>", head)
    return inner[2].strip() if inner else ""


def _quotes(fence: _Fence) -> bool:
    return fence.language in _table()["quoting_fences"]


def _is_document(path: str) -> bool:
    extension = _EXTENSION.search(path)
    return extension is not None and extension[1].casefold() in _table()["documents"]


@cache
def _table() -> dict[str, Any]:
    return load_table("text")
