"""What people write who know JSON, YAML or Python: the slip is named, with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from switchyard_core.errors import Finding, PolicyError
from switchyard_core.policy.document import MOST_ERRORS, parse_document

#: A text, the place of its slip, and words of the message and the fix.
_SLIPS = {
    # values
    "curly_quotes": ("a = “x”", (1, 5), "`“` is not a straight quote", '`"`'),
    "single_curly_quotes": ("a = \u2018x\u2019", (1, 5), "`\u2018` is not a straight quote", "`'`"),
    "guillemets": ("a = «x»", (1, 5), "`«` is not a straight quote", '`"`'),
    "closing_curly_quote": ('a = "x”', (1, 7), "`”` is not a straight quote", '`"`'),
    "curly_in_array": ('a = [\n  "x",\n  “y”,\n]', (3, 3), "not a straight quote", '`"`'),
    "curly_in_key": ("“a” = 1", (1, 1), "not a straight quote", '`"`'),
    "curly_in_header": ("[a.“b”]", (1, 4), "not a straight quote", '`"`'),
    "backticks": ("a = `x`", (1, 5), "a backtick does not quote text", "`'`"),
    "python_true": ("a = True", (1, 5), "`True` is not a value of TOML", "write `true`"),
    "shouted_false": ("a = FALSE # no", (1, 5), "`FALSE` is not a value", "write `false`"),
    "yaml_yes": ("a = yes", (1, 5), "`yes` is not a value of TOML", "write `true`"),
    "yaml_off_in_array": ("a = [off]", (1, 6), "`off` is not a value", "write `false`"),
    "none": ("a = None", (1, 5), "`None` is not a value of TOML, which has no empty", "remove"),
    "null_in_table": ("a = {b = null}", (1, 10), "`null` is not a value", "remove the key"),
    "tilde": ("a = ~", (1, 5), "no empty value", "remove the key"),
    "no_value": ("a =\nb = 1", (1, 1), "this key has no value", "write one"),
    "two_equals": ("a == 1", (1, 4), "one `=` between key and value", "remove the `=`"),
    "arrow": ("a => 1", (1, 4), "one `=` between key and value", "remove the `>`"),
    "plus_equals": ("a += 1", (1, 3), "TOML has no `+=`", "`=`"),
    "variable": ("a = $KEY", (1, 5), "does not read environment variables", "`api_key_env`"),
    "f_string": ('a = f"x"', (1, 5), "has no prefix `f`", "remove it"),
    "raw_string": ("a = r'x'", (1, 5), "has no prefix `r`", "single quotes"),
    "tuple": ("a = (1, 2)", (1, 5), "TOML has no `( )`", "`[ ]`"),
    "block": ("a = |\n  text", (1, 5), "is YAML", '`"""`'),
    "word": ("a = main", (1, 5), "text needs quotes", 'write `"main"`'),
    "words": ("a = hello world # x", (1, 5), "text needs quotes", 'write `"hello world"`'),
    "model_id": ("a = gpt-5", (1, 5), "text needs quotes", 'write `"gpt-5"`'),
    "url": ("a = https://x.y/v1", (1, 5), "text needs quotes", 'write `"https://x.y/v1"`'),
    "word_in_array": ('a = ["x", y]', (1, 11), "text needs quotes", 'write `"y"`'),
    "word_like_true": ("a = truest", (1, 5), "text needs quotes", 'write `"truest"`'),
    "credential": ("a = sk-abcdefghijklmnop1234", (1, 5), "text needs quotes", "(hidden)"),
    "unit": ("a = 30s", (1, 5), "`30s` is not a number", "write a number alone"),
    "address": ("a = 127.0.0.1", (1, 5), "`127.0.0.1` is not a number", '`"127.0.0.1"`'),
    "leading_digit": ("a = [4o-mini]", (1, 6), "`4o-mini` is not a number", '`"4o-mini"`'),
    "commas": ("a = 1,000", (1, 5), "a number has no commas", "write `1_000`"),
    "leading_zero": ("a = 08", (1, 5), "does not begin with 0", "write `8`"),
    "leading_point": ("a = .5", (1, 5), "a number begins with a digit", "write `0.5`"),
    "no_such_date": ("a = 2026-13-40", (1, 5), "no such date", "correct it"),
    "joined": ('a = "x" + "y"', (1, 9), "does not calculate or join", "one value"),
    "quote_inside": ('a = "say "hi" now"', (1, 11), 'it has a `"` inside', 'write `\\"`'),
    "apostrophe": ("a = 'it's'", (1, 9), "it has a `'` inside", "put the text between"),
    "windows_path": (r'a = "C:\Users\x"', (1, 8), "`\\` begins an escape", "write `\\\\`"),
    "pattern": (r'a = "\d+"', (1, 6), "`\\` begins an escape", "single quotes"),
    # what follows
    "slashes": ("a = 1 // one", (1, 7), "`//` does not begin a comment", "with `#`"),
    "semicolon": ("a = 1;", (1, 6), "does not end with `;`", "remove it"),
    "comma": ("a = 1,\nb = 2", (1, 6), "does not end with `,`", "remove it"),
    "two_keys": ("a = 1, b = 2", (1, 6), "holds one key or one table", "new line"),
    "key_after_header": ("[a] b = 1", (1, 5), "holds one key or one table", "new line"),
    # keys
    "colon": ("a: 1", (1, 2), "`=` between key and value, not `:`", "write `a = 1`"),
    "walrus": ("a := 1", (1, 3), "`=` between key and value, not `:`", "write `a = 1`"),
    "colon_in_table": ('a = {"b": 1}', (1, 9), "not `:`", "write `b = 1`"),
    "key_alone": ("a\nb = 1", (1, 1), "the key `a` has no value", "write one"),
    "no_equals": ('a "x"', (1, 1), "this line is not `key = value`", 'write `a = "x"`'),
    "prose": ("just some words", (1, 1), "this line is not `key = value`", "comment with `#`"),
    "tag": ("<policy>", (1, 1), "this line is not `key = value`", "write `key = value`, or"),
    "line_separator": ('a = "b"\u2028', (1, 8), "only looks like a space (U+2028)", "remove it"),
    "blank_in_key": ("a b = 1", (1, 1), "the key `a b` needs quotes", 'write `"a b"`'),
    "umlaut_in_key": ("schlüssel = 1", (1, 1), "the key `schlüssel` needs quotes", '"schlüssel"'),
    "export": ("export A = 1", (1, 1), "`export` is not used in TOML", "remove it"),
    "no_key": ("= 1", (1, 1), "the key is missing", "before `=`"),
    # headers
    "open_header": ("[a.b\nc = 1", (1, 5), "`]` is missing", "write `[a.b]`"),
    "half_open_header": ("[[a.b]\nc = 1", (1, 7), "`]` is missing", "write `[[a.b]]`"),
    "header_closed_twice": ("[a]]\nc = 1", (1, 4), "one `]` too many", "`[[name]]`"),
    "blank_in_header": ("[a.my b]", (1, 2), "needs quotes", 'write `[a."my b"]`'),
    "slash_in_header": ("[a/b]", (1, 2), "needs quotes", 'write `["a/b"]`'),
    "header_without_name": ("[]", (1, 2), "the table has no name", "`[name]`"),
    "two_points": ("[a..b]", (1, 2), "a part of the name is missing", "one `.`"),
    # lines of another language
    "slash_comment": ("// c", (1, 1), "`//` does not begin a comment", "with `#`"),
    "dash_comment": ("-- c", (1, 1), "`--` does not begin a comment", "with `#`"),
    "c_comment": ("/* c\n d */", (1, 1), "`/*` does not begin a comment", "each of its lines"),
    "ini_comment": ("; c", (1, 1), "`;` does not begin a comment", "with `#`"),
    "docstring": ('"""What it does."""', (1, 1), "text without a key", "with `#`"),
    "json": ('\n{"a": 1}', (2, 1), "this is JSON", "`key = value`"),
    "yaml": ("---\na: 1", (1, 1), "this is YAML", "`key = value`"),
    "yaml_table": ("routes:\n  a: 1", (1, 1), "`routes:` is YAML", "`[routes]`"),
    "yaml_list": ("- x", (1, 1), "for a list is YAML", "write an array"),
    "brace": ("a = 1\n}", (2, 1), "nothing is open that `}` closes", "remove it"),
    "conflict": ("<<<<<<< HEAD\na = 1", (1, 1), "a merge conflict", "keep one side"),
    "no_break_space": ("a =\u00a01", (1, 4), "only looks like a space (U+00A0)", "ordinary"),
    "zero_width": ("\u200ba = 1", (1, 1), "only looks like a space (U+200B)", "remove it"),
    "carriage_return": ("a = 1\rb = 2", (1, 6), "a carriage return alone", "LF line ends"),
    "control": ("a = \x071", (1, 5), "the control character U+0007", "remove it"),
    # brackets and strings
    "comma_missing": ('a = ["x" "y"]', (1, 9), "a comma is missing", "write `,`"),
    "comma_missing_on_a_line": ('a = ["x"\n  "y"]', (2, 2), "a comma is missing", "write `,`"),
    "comma_missing_in_table": ("a = {b = 1 c = 2}", (1, 11), "a comma is missing", "write `,`"),
    "two_commas": ("a = [1,, 2]", (1, 8), "one `,` too many", "remove it"),
    "other_bracket": ('a = ["x"}', (1, 9), "does not close the bracket", "write `]`"),
    "array_not_closed": ('a = ["x"\nb = 1', (2, 1), "the array is not closed", "write `]`"),
    "array_before_header": ('a = ["x"\n[b]', (2, 1), "the array is not closed", "write `]`"),
    "table_not_closed": ("a = {b = 1", (1, 11), "the inline table is not closed", "write `}`"),
    "string_not_closed": ('a = "x\nb = 1', (1, 7), "the string is not closed", '`"`'),
    "literal_not_closed": ("a = 'x", (1, 7), "the string is not closed", "`'`"),
    "block_not_closed": ('a = """x\n', (2, 1), "the string is not closed", '`"""`'),
}


def problems(text: str | bytes) -> tuple[Finding, ...]:
    with pytest.raises(PolicyError) as caught:
        parse_document(text, "p.toml")
    return caught.value.findings


@pytest.mark.parametrize(("text", "place", "message", "fix"), _SLIPS.values(), ids=_SLIPS)
def test_usual_slip_is_named_with_its_place_and_what_to_write(
    text: str, place: tuple[int, int], message: str, fix: str
) -> None:
    finding = problems(text)[0]
    assert (finding.line, finding.column) == place
    assert message in finding.message
    assert fix in finding.fix
    assert finding.code == "SY103"


def test_slips_of_a_file_are_reported_at_once_and_in_order() -> None:
    lines = ["// mine", "a = True", "b: 1", "c = 'fine'", "d = “x”", "[my table]", 'e = ["x" y]']
    found = problems("\n".join(lines))
    assert [finding.line for finding in found] == [1, 2, 3, 5, 6, 7]
    assert all("nothing after this place" not in finding.fix for finding in found)


def test_slip_behind_which_nothing_can_be_read_says_so() -> None:
    (first, second) = problems('a = True\nb = ["x"\nc = None')
    assert (first.line, second.line) == (1, 3)
    assert second.fix.endswith("nothing after this place was read")


def test_many_slips_end_with_a_limit() -> None:
    assert len(problems("a = True\n" * 100)) <= MOST_ERRORS


def test_utf16_is_named() -> None:
    (finding,) = problems("a = 1".encode("utf-16"))
    assert (finding.code, finding.line, finding.column) == ("SY102", 1, 1)
    assert "UTF-16" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ta\t=\t1\t# x\n", id="tabs"),
        pytest.param('a = "“x” None // True"\n# “y” // z', id="inside_strings_and_comments"),
        pytest.param("a = {\n  b = 1,\n}", id="trailing_comma"),
    ],
)
def test_text_that_is_toml_has_no_slip(text: str) -> None:
    assert "a" in parse_document(text, "p.toml").values


def test_shipped_policies_have_no_slip() -> None:
    folder = Path(__file__).parents[2] / "policies"
    assert all(parse_document(p.read_bytes(), p.name).values for p in folder.glob("*.toml"))
