"""The usual slips of people who know JSON, YAML or Python: what is wrong, and what to write.

TOML's parser says where it stopped and what it expected there. The line that failed tells more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from switchyard_core.policy.secrets import shown

__all__ = ["Slip", "slip_at"]


class Slip(NamedTuple):
    """One slip in a text that is not TOML."""

    message: str
    fix: str
    start: int  # offset of the wrong text
    end: int
    #: Text of the same length with which the rest can be read, ``""`` when there is none.
    instead: str = ""
    bracket: bool = False  # whether the place of the open bracket tells more


#: Characters that look like quotes, by the quote that was meant.
_QUOTES: Mapping[int, str] = {
    **dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0xAB, 0xBB, 0xFF02), '"'),
    **dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2039, 0x203A, 0x60, 0xB4, 0xFF07), "'"),
}
#: Characters that look like a space, or like nothing.
_SPACES = (
    "\u00a0\u1680\u2002\u2003\u2007\u2009\u202f\u3000\u200b\u200c\u200d\u2060\ufeff"
    "\u2028\u2029\u0085"
)
_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("true", "yes", "on"), "true"),
    **dict.fromkeys(("false", "no", "off"), "false"),
}
_NOTHING = frozenset({"none", "null", "nil", "undefined", "~"})
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: .*)?$")
_COMMENT = re.compile(r"//|/\*|--|;|<!--|%")
#: A value without quotes, up to what ends it.
_BARE = re.compile(r"[^,#\n\]}]*")
_LINE = re.compile(r"[^\n]*")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PAIR = re.compile(r"""[ \t]*(?:[A-Za-z0-9_.-]+|"[^"\n]*"|'[^'\n]*')[ \t]*=""")
_HEADER = re.compile(r"[ \t]*(\[\[?)([^\]\n#]*)(\]{0,2})")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\w)")
#: What may come after a `:` as a value, in one line.
_AFTER_COLON = re.compile(r"""[ \t=]*("[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^,#}\]]*)""")
_PREFIXED = re.compile(r"""([A-Za-z]{1,2})["']""")
_NUMBER_PART = re.compile(r"[\w.+:%/-]*\Z")


def slip_at(text: str, at: int, message: str) -> Slip | None:
    """Return the slip that made the parser stop at an offset with a message, if it is a usual one.

    The text has LF line ends and no byte order mark.
    """
    rest = _LINE.match(text, at)
    line = rest.group() if rest else ""
    found = _odd_character(text, at, line)
    if found is None:
        begin = next((key for key in _BY_MESSAGE if message.startswith(key)), "")
        found = _BY_MESSAGE[begin](text, at, line) if begin else None
    return found


def _odd_character(text: str, at: int, line: str) -> Slip | None:
    """Return a slip that is one wrong character, whatever was expected."""
    mark = line[:1]
    if at == _line_start(text, at) and _CONFLICT.match(line):
        message = "a merge conflict is not resolved"
        fix = "keep one side, and remove the lines with `<<<<<<<`, `=======` and `>>>>>>>`"
        return Slip(message, fix, at, at + len(line))
    if mark and mark in _SPACES:
        return Slip(
            f"here is a character that only looks like a space (U+{ord(mark):04X})",
            "write an ordinary space, or remove it",
            at,
            at + 1,
            " ",
        )
    if mark and ord(mark) in _QUOTES:
        return _quote(at, line)
    if mark == "\r":
        message = "a carriage return alone does not end a line"
        return Slip(message, "save the file with LF line ends", at, at + 1)
    if mark and ord(mark) < ord(" ") and mark != "\t":
        message = f"the control character U+{ord(mark):04X} is not allowed"
        return Slip(message, "remove it", at, at + 1, " ")
    return None


def _quote(at: int, line: str) -> Slip:
    mark, plain = line[0], _QUOTES[ord(line[0])]
    what = "a backtick does not quote text" if mark == "`" else f"`{mark}` is not a straight quote"
    return Slip(what, f"write `{plain}` in its place", at, at + len(line), line.translate(_QUOTES))


# --- values -----------------------------------------------------------------------------------


def _value(text: str, at: int, line: str) -> Slip | None:
    """Return the slip in a value that cannot begin like this."""
    found = _BARE.match(text, at)
    bare = found.group().rstrip() if found else ""
    end, zero = at + len(bare), "0".ljust(len(bare))
    if line[:1] == ",":
        return _extra_comma(at)
    if not bare:
        start = _code_start(text, at)
        message, fix = "this key has no value", "write one, or remove the key"
        whole = _PAIR.fullmatch(text[start:at].rstrip())
        return Slip(message, fix, start, at, "#" if whole else "")
    if bare[0] == "=" or (bare[0] == ">" and text[at - 1] == "="):
        message, fix = "TOML has one `=` between key and value", f"remove the `{bare[0]}`"
        return Slip(message, fix, at, at + 1, " ")
    folded = bare.casefold()
    if folded in _WORDS:
        message = f"`{bare}` is not a value of TOML"
        return Slip(message, f"write `{_WORDS[folded]}`", at, end, zero)
    if folded in _NOTHING:
        message = f"`{bare}` is not a value of TOML, which has no empty value"
        return Slip(message, "remove the key, or write a value", at, end, zero)
    return _foreign(at, line, bare) or _unquoted(at, bare)


def _foreign(at: int, line: str, bare: str) -> Slip | None:
    """Return the slip in a value of another language."""
    end, zero = at + len(bare), "0".ljust(len(bare))
    prefix = _PREFIXED.match(line)
    if prefix is not None:
        message = f"a string of TOML has no prefix `{prefix[1]}`"
        fix = "remove it; text in single quotes has no escapes"
        return Slip(message, fix, at, at + len(prefix[1]), " " * len(prefix[1]))
    if bare[0] == "$":
        message = "TOML does not read environment variables"
        fix = "write the value; for a key of a provider, name its variable in `api_key_env`"
        return Slip(message, fix, at, end, zero)
    if bare[0] == "(":
        return Slip("TOML has no `( )`", "write an array in `[ ]`", at, end)
    if bare in {"|", "|-", ">", ">-"}:
        message = f"`{bare}` for text over several lines is YAML"
        return Slip(message, 'put the text between `"""` and `"""`', at, end)
    if bare.startswith("- "):
        return _list_item(at, end)
    if bare[0] == ".":
        return Slip("a number begins with a digit", f"write `0{shown(bare)}`", at, end, zero)
    return None


def _unquoted(at: int, bare: str) -> Slip | None:
    if '"' in bare or "'" in bare or bare[0] in ")}:":
        return None
    if _DATE.match(bare):
        return Slip("there is no such date or time", "correct it", at, at + len(bare))
    fix, zero = f'write `"{shown(bare)}"`', "0".ljust(len(bare))
    return Slip("text needs quotes", fix, at, at + len(bare), zero)


def _after_value(text: str, at: int, line: str) -> Slip | None:
    """Return the slip in what follows a value."""
    begin = _number_start(text, at)
    if begin < at:
        return _number(text, begin)
    end, gone = at + len(line), "#".ljust(len(line), " ")
    comment = _COMMENT.match(line)
    if comment and line.rstrip() != ";":
        return _comment(at, line, comment.group())
    if line.rstrip() in {",", ";"}:
        message = f"a line of TOML does not end with `{line[0]}`"
        return Slip(message, "remove it", at, end, gone)
    if line[0] in "+*|&?":
        return Slip("TOML does not calculate or join values", "write one value", at, end, gone)
    if line[0] == "]":
        message, fix = "here is one `]` too many", "write `[name]`, or `[[name]]` for an array"
        return Slip(message, fix, at, end, gone)
    if text[at - 1] in "\"'" and not _PAIR.match(line):
        quote = text[at - 1]
        other = "'" if quote == '"' else '"'
        message = f"the string ends here: it has a `{quote}` inside"
        fix = f"write `\\{quote}` inside, or put the text between `{other}` and `{other}`"
        if quote == "'":
            fix = f"put the text between `{other}` and `{other}`"
        return Slip(message, fix, at, end, gone)
    message, fix = "a line of TOML holds one key or one table", "begin a new line here"
    return Slip(message, fix, at, end, gone)


def _number_start(text: str, at: int) -> int:
    """Return where the word begins that an offset is inside of, else the offset."""
    if at >= len(text) or not re.match(r"[\w.+:%/,-]", text[at]):
        return at
    if text[at] == "," and not text[at + 1 : at + 2].isdigit():
        return at
    start = _line_start(text, at)
    found = _NUMBER_PART.search(text, start, at)
    return found.start() if found else at


def _number(text: str, begin: int) -> Slip | None:
    """Return the slip in a value that begins like a number."""
    found = _BARE.match(text, begin)
    bare = found.group().rstrip() if found else ""
    bare += re.match(r"(?:,\d{3})*", text[begin + len(bare) :]).group()  # type: ignore[union-attr]
    end, zero = begin + len(bare), "0".ljust(len(bare))
    if re.fullmatch(r"0[0-9_]+", bare):
        plain = bare.lstrip("0_") or "0"
        return Slip("a number does not begin with 0", f"write `{plain}`", begin, end, zero)
    if re.fullmatch(r"\d{1,3}(,\d{3})+", bare):
        message = "a number has no commas"
        return Slip(message, f"write `{bare.replace(',', '_')}`", begin, end, zero)
    if not bare or not bare[0].isalnum():
        return None
    if _DATE.match(bare):
        return Slip("there is no such date or time", "correct it", begin, end, zero)
    message = f"`{shown(bare)}` is not a number"
    fix = f'write a number alone, or text in quotes: `"{shown(bare)}"`'
    if bare[0].isalpha():
        message, fix = "text needs quotes", f'write `"{shown(bare)}"`'
    return Slip(message, fix, begin, end, zero)


# --- keys, headers and comments ---------------------------------------------------------------


def _statement(text: str, at: int, line: str) -> Slip | None:
    """Return the slip in a line that cannot begin like this."""
    comment = _COMMENT.match(line)
    if comment:
        return _comment(at, line, comment.group())
    if line[:1] == "{" and not re.search(r"^[^#\s]", text[:at], re.MULTILINE):
        message, fix = "this is JSON", "write a line `key = value` per key, and headers `[table]`"
        return Slip(message, fix, at, at + 1)
    if line[:1] and line[0] in "]})":
        return Slip(f"nothing is open that `{line[0]}` closes", "remove it", at, at + 1, "#")
    if line[:1] == "=":
        return Slip("the key is missing", "write it before `=`", at, at + 1, "#")
    return _key(text, at, line)


def _key(text: str, at: int, line: str) -> Slip | None:
    """Return the slip in a key, or between a key and its value."""
    start = max(_line_start(text, at), *(text.rfind(mark, 0, at) + 1 for mark in "{,"))
    start += len(text[start:at]) - len(text[start:at].lstrip())
    key, stripped = text[start:at].strip(), line.strip()
    comment = _COMMENT.match(key)
    if key == "---" and not stripped:
        return Slip("this is YAML", "write `key = value`, and headers `[table]`", start, at)
    if comment:
        return _comment(start, text[start:at] + line, comment.group())
    if line.startswith(":"):
        return _colon(start, at, key, line)
    if key == "-" or key.startswith("- "):
        return _list_item(start, at)
    if text.startswith('"""', start):
        return Slip("text without a key", "begin each line of a comment with `#`", start, at)
    before, equals, _ = line.partition("=")
    if not equals or "#" in before:
        message = "this line is not `key = value`"
        fix = "write `key = value`, or begin a comment with `#`"
        if stripped[:1] in {'"', "'"} or stripped[:1].isdigit():
            fix = f"write `{shown(key)} = {shown(stripped)}`"
        elif not stripped or stripped.startswith("#"):
            message = f"the key `{shown(key)}` has no value"
            fix = "write one, or begin a comment with `#`"
        alone = start == _code_start(text, at)
        return Slip(message, fix, start, start + 1, "#" if alone else "")
    if before[-1:] in {"+", "?"}:
        message, fix = f"TOML has no `{before[-1]}=`", "write `=`, and the whole value"
        end = at + len(before)
        return Slip(message, fix, end - 1, end + 1, " =")
    whole = (text[start:at] + before).strip()
    first = whole.split(maxsplit=1)
    if len(first) > 1 and first[0] in {"export", "set", "let", "const", "var"}:
        message, gone = f"`{first[0]}` is not used in TOML", " " * len(first[0])
        return Slip(message, "remove it", start, start + len(gone), gone)
    message = f"the key `{shown(whole)}` needs quotes"
    fix = f'write `"{shown(whole)}"`, or a name of letters, digits, `-` and `_`'
    return Slip(message, fix, start, start + len(whole), _as_name(whole))


def _colon(start: int, at: int, key: str, line: str) -> Slip:
    found = _AFTER_COLON.match(line, 1)
    after = found[1].strip() if found else ""
    name = shown(key.strip("\"'")) if _PLAIN_KEY.fullmatch(key.strip("\"'")) else shown(key)
    if not after:
        message, fix = f"`{shown(key)}:` is YAML", f"write a header, `[{name}]`"
        return Slip(message, fix, start, at + 1)
    message = "TOML has `=` between key and value, not `:`"
    fix, width = f"write `{name} = {shown(after)}`", 2 if line.startswith(":=") else 1
    return Slip(message, fix, at, at + width, "=".ljust(width))


def _header(text: str, at: int, _line: str) -> Slip | None:
    """Return the slip in a header of a table."""
    start = _line_start(text, at)
    found = _HEADER.match(text, start)
    if found is None:
        return _extra_comma(at) if text[at : at + 1] == "," else None
    opened, inner, closed = found.groups()
    marks = [i for i, char in enumerate(inner) if ord(char) in _QUOTES]
    if marks:
        return _quote(found.start(2) + marks[0], _rest(text, found.start(2) + marks[0]))
    parts = [part.strip() for part in inner.split(".")]
    name = ".".join(
        p if _PLAIN_KEY.fullmatch(p) or p[:1] in {'"', "'"} else f'"{p}"' for p in parts
    )
    fix = f"write `{opened}{shown(name)}{']' * len(opened)}`"
    if not inner.strip():
        message, fix = "the table has no name", "write `[name]`"
    elif not all(parts):
        message, fix = "a part of the name is missing", "write names with one `.` between them"
    elif len(closed) < len(opened):
        missing = len(opened) - len(closed)
        return Slip(f"`{']' * missing}` is missing", fix, found.end(3), found.end(3))
    else:
        message = "a name with other characters than letters, digits, `-` and `_` needs quotes"
    instead = _as_name(inner) if all(parts) else ""
    return Slip(message, fix, found.start(2), found.end(2), instead)


def _comment(at: int, line: str, mark: str) -> Slip:
    message, fix = f"`{mark}` does not begin a comment", "begin it with `#`"
    if mark == "/*" and "*/" not in line:
        return Slip(message, "begin each of its lines with `#`", at, at + 2)
    return Slip(message, fix, at, at + len(mark), "#".ljust(len(mark)))


def _extra_comma(at: int) -> Slip:
    return Slip("here is one `,` too many", "remove it", at, at + 1, " ")


def _list_item(start: int, end: int) -> Slip:
    return Slip("`- ` for a list is YAML", 'write an array: `key = ["a", "b"]`', start, end)


# --- strings and brackets ---------------------------------------------------------------------


def _string(text: str, at: int, _line: str) -> Slip | None:
    """Return the slip in a string that is not closed on its line."""
    line = text[_line_start(text, at) : at] or text[_line_start(text, max(at - 1, 0)) : at]
    code = line.rstrip(" ,]}\n")
    begin = at - len(line) + len(code) - 1
    if code and ord(code[-1]) in _QUOTES and code[-1] != "`":
        return _quote(begin, _rest(text, begin))
    return None


def _escape(text: str, at: int, _line: str) -> Slip | None:
    """Return the slip in a backslash that begins no escape."""
    start = text.rfind("\\", 0, at + 1)
    quote = text.rfind('"', 0, start)
    if min(start, quote) < 0:
        return None
    found = re.compile(r"[^\"\n]*").match(text, start)
    inside = found.group() if found else ""
    message = "`\\` begins an escape in a string with double quotes"
    fix = "write `\\\\`, or put the text between single quotes"
    return Slip(message, fix, start, start + len(inside), inside.replace("\\", "/"))


def _bracket(text: str, at: int, line: str) -> Slip | None:
    """Return the slip at a place where a comma or a closing bracket was expected."""
    begin = _number_start(text, at)
    if begin < at and not text[at].isspace():
        return _number(text, begin)
    if not line or line.startswith("["):
        return None
    same_line = text[_line_start(text, at) : at].strip() != ""
    if line[0] in ":=":
        return Slip(f"`{line[0]}` is not allowed here", "put `key = value` in `{ }`", at, at + 1)
    if line[0] in "]})":
        message = f"`{line[0]}` does not close the bracket that is open"
        return Slip(message, f"write `{'}' if line[0] == ']' else ']'}`", at, at + 1, bracket=True)
    if line[0] in "\"'{" or (line[0].isalnum() and same_line):
        if _PAIR.match(line) and not same_line:
            return None
        # A blank before it has room for the comma.
        room = "," if text[at - 1] in " \t" else ""
        return Slip("a comma is missing", "write `,` before this", at - len(room), at, room, True)
    return None


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _code_start(text: str, at: int) -> int:
    """Return where the line of an offset begins, without its indentation."""
    start = _line_start(text, at)
    return start + len(text[start:at]) - len(text[start:at].lstrip())


def _rest(text: str, at: int) -> str:
    found = _LINE.match(text, at)
    return found.group() if found else ""


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)


_BY_MESSAGE: Mapping[str, Callable[[str, int, str], Slip | None]] = {
    "Invalid value": _value,
    "Invalid statement": _statement,
    "Expected newline": _after_value,
    "Expected '=' after": _key,
    "Expected ']": _header,
    "Invalid initial character": _header,
    "Unterminated string": _string,
    "Illegal character '\\n'": _string,
    "Found invalid character '\\n'": _string,
    "Expected \"'": _string,
    "Unescaped": _escape,
    "Invalid hex value": _escape,
    "Escaped character": _escape,
    "Unclosed array": _bracket,
    "Unclosed inline table": _bracket,
}
