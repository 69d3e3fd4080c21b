"""The TOML of profiles: entries, their rules and the tests of a rule; and reading it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from importlib.resources import files
from math import isfinite
from typing import Annotated, Any, Literal, Self

import tomli
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import to_json

from switchyard_core.declarations import ModelProfiles, WireFormat
from switchyard_core.patterns import PatternError, name_glob

__all__ = [
    "REPAIRS",
    "Entry",
    "Facts",
    "ProfileFile",
    "Reasoning",
    "Rule",
    "ValueTest",
    "core_profiles",
    "glob_test",
    "read_profiles",
]

#: What a rule may do.
Verb = Literal[
    "drop",
    "rename",
    "set",
    "default",
    "map",
    "cap",
    "floor",
    "keep_only",
    "convert",
    "drop_header",
    "add_header",
    "refuse",
]
#: The named repairs that ``convert`` runs.
REPAIRS: tuple[str, ...] = (
    "adaptive_to_budget",
    "bridge_assistant",
    "budget_to_adaptive",
    "developer_to_system",
    "drop_unsigned_thinking",
    "effort_to_native",
    "fit_budget",
    "image_to_text",
    "merge_system",
    "pull_tool_results_up",
    "reasoning_placeholder",
    "signature_placeholder",
    "system_row_to_user",
)
#: The keys that each verb needs, and those that it may have besides ``when`` and ``why``.
_KEYS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    verb: (frozenset(needed.split()), frozenset(more.split()))
    for verb, needed, more in (
        ("drop", "path", ""),
        ("rename", "path to", ""),
        ("set", "path value", ""),
        ("default", "path value", ""),
        ("map", "path values", "else"),
        ("cap", "path value", ""),
        ("floor", "path value", ""),
        ("keep_only", "members", "path header"),
        ("convert", "path to", "value"),
        ("drop_header", "header", "members"),
        ("add_header", "header value", ""),
        ("refuse", "why", "path"),
    )
}
_PART = r"[A-Za-z0-9_-]+"
#: Keys from the top of a body, joined by dots; ``[]`` behind a key means each item of its array.
_PATH = re.compile(rf"{_PART}(?:\[\])?(?:\.{_PART}(?:\[\])?)*(?<!\])")
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_HEADER = re.compile(r"[a-z0-9][a-z0-9-]*")
#: Tests of a request as a whole, which ``when`` names in place of a path.
_OF_REQUEST = ("has_tools", "thinking_on")


def glob_test(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Compile anchored globs to one test; those with a leading ``!`` exclude what they match.

    Only excluding globs leave everything else in.
    """
    wanted = [name_glob(glob) for glob in globs if not glob.startswith("!")]
    barred = [name_glob(glob[1:]) for glob in globs if glob.startswith("!")]
    return lambda text: (
        (not wanted or any(fits(text) for fits in wanted))
        and not any(fits(text) for fits in barred)
    )


def _is_path(text: str) -> str:
    if not _PATH.fullmatch(text):
        msg = "must be keys joined by dots, `[]` behind a key for each item of its array"
        raise ValueError(msg)
    return text


def _are_globs(globs: tuple[str, ...]) -> tuple[str, ...]:
    try:
        # Nothing but a class can be wrong in a glob, and compiling takes its time.
        glob_test(tuple(glob for glob in globs if "[" in glob))
    except PatternError as error:
        msg = f"bad glob: {error.message}"
        raise ValueError(msg) from None
    return globs


def _fits(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            msg = f"must be {what}"
            raise ValueError(msg)
        return text

    return check


_Path = Annotated[str, AfterValidator(_is_path)]
_Globs = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_are_globs)]
_Header = Annotated[str, AfterValidator(_fits(_HEADER, "the name of a header in lower case"))]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ValueTest(_Model):
    """A test of the value at a path; exactly one key.

    Args:
        present: Whether there is a value other than null.
        equals: The value is this one.
        in_: The value is one of these (key ``in``).
        not_in: There is a value, and it is not among these.
        gt: The value is a number above this one.
    """

    present: bool | None = None
    equals: str | bool | int | float | None = None
    in_: tuple[str | bool | int | float, ...] | None = Field(default=None, alias="in")
    not_in: tuple[str | bool | int | float, ...] | None = None
    gt: int | float | None = None

    @model_validator(mode="after")
    def _say_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            msg = "a test has exactly one of `present`, `equals`, `in`, `not_in` and `gt`"
            raise ValueError(msg)
        return self


class Rule(_Model):
    """One thing that a model refuses or demands, and what is done about it.

    Args:
        do: What is done.
        path: Keys from the top of the body, joined by dots; ``tools[].type`` means each tool.
        when: Tests that must all hold: by path a value or a test, ``has_tools`` or ``thinking_on``.
        to: New key for ``rename``, named repair for ``convert``.
        value: Value for ``set`` and ``default``, limit for ``cap`` and ``floor``, text for
            ``add_header``, what a repair needs for ``convert``.
        values: For ``map``: the new value of each old one; others stay.
        else_: For ``map``: the new value of those that ``values`` has on neither side (``else``).
        members: Globs for ``keep_only`` and ``drop_header``, a leading ``!`` excludes.
        header: Name of a request header in lower case.
        why: Why, in one sentence; a refused request is answered with it.
    """

    do: Verb
    path: _Path | None = None
    when: dict[str, str | bool | int | float | ValueTest] = {}
    to: str | None = None
    value: Any = None
    values: dict[str, str | bool | int | float] | None = None
    else_: str | bool | int | float | None = Field(default=None, alias="else")
    members: _Globs | None = None
    header: _Header | None = None
    why: str = ""

    @property
    def summary(self) -> str:
        """What it does and when, in one line."""
        return _summary(self)

    @model_validator(mode="after")
    def _say_what_the_verb_needs(self) -> Self:
        needed, more = _KEYS[self.do]
        given = {"else" if name == "else_" else name for name in self.model_fields_set}
        given -= {"do", "when"}
        if missing := sorted(needed - given):
            msg = f"`{self.do}` needs `{missing[0]}`"
            raise ValueError(msg)
        if foreign := sorted(given - needed - more - {"why"}):
            msg = f"`{foreign[0]}` means nothing for `{self.do}`"
            raise ValueError(msg)
        problem = self._problem()
        if problem:
            raise ValueError(problem)
        return self

    def _problem(self) -> str:
        # Neither is JSON.
        numbers = [self.value, self.else_, *(self.values or {}).values()]
        if any(isinstance(each, float) and not isfinite(each) for each in numbers):
            return "a number is neither `nan` nor `inf`"
        for key, wanted in self.when.items():
            if key in _OF_REQUEST and not isinstance(wanted, bool):
                return f"`{key}` is true or false"
            if key not in _OF_REQUEST and not _PATH.fullmatch(key):
                return f"`{key}` is not a path; write it in quotes"
        if self.do == "convert" and self.to not in REPAIRS:
            return f"there is no repair `{self.to}`; repairs: {', '.join(REPAIRS)}"
        if self.do == "rename" and not re.fullmatch(_PART, self.to or ""):
            return "`to` is a key, not a path"
        if self.do == "rename" and self.path and self.to == self.path.rpartition(".")[2]:
            return "`to` is the name that the key has"
        if self.do == "map" and not self.values and self.else_ is None:
            return "`map` needs a value in `values`, or `else`"
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if self.do in ("cap", "floor") and not number:
            return "`value` is a number"
        if self.do == "add_header" and not isinstance(self.value, str):
            return "`value` is a text"
        if self.do == "refuse" and not self.why.strip():
            return "`why` is a sentence"
        if self.do == "keep_only" and (self.path is None) is (self.header is None):
            return "`keep_only` needs either `path` or `header`"
        return self._map_problem()

    def _map_problem(self) -> str:
        """Return why mapping twice is not mapping once, ``""`` when it is."""
        values = self.values or {}
        for old, new in values.items():
            if isinstance(new, str) and values.get(new, new) != new:
                return f"`{old}` becomes `{new}`, which becomes `{values[new]}`"
        last = self.else_
        if isinstance(last, str) and values.get(last, last) != last:
            return f"`else` is `{last}`, which becomes `{values[last]}`"
        return ""


def _summary(rule: Rule) -> str:
    place = rule.path or f"header {rule.header}"
    said = {
        "drop": f"drop {place}",
        "rename": f"rename {place} to {rule.to}",
        "set": f"set {place} to {_shown(rule.value)}",
        "default": f"set {place} to {_shown(rule.value)} if it is absent",
        "map": f"{place}: {_mapped(rule)}",
        "cap": f"{place} at most {_shown(rule.value)}",
        "floor": f"{place} at least {_shown(rule.value)}",
        "keep_only": f"{place}: keep {', '.join(rule.members or ())}",
        "convert": f"{rule.to} at {place}",
        "drop_header": f"drop {place}" + (f": {', '.join(rule.members)}" if rule.members else ""),
        "add_header": f"add to {place}: {_shown(rule.value)}",
        "refuse": f"refuse: {rule.why}",
    }[rule.do]
    tests = [f"{key} {_tested(wanted)}" for key, wanted in rule.when.items()]
    return said + (f" when {' and '.join(tests)}" if tests else "")


def _mapped(rule: Rule) -> str:
    pairs = [f"{old} to {_shown(new)}" for old, new in (rule.values or {}).items()]
    return ", ".join([*pairs, *([f"else {_shown(rule.else_)}"] if rule.else_ is not None else [])])


def _tested(wanted: str | bool | float | ValueTest) -> str:  # noqa: FBT001
    if not isinstance(wanted, ValueTest):
        return f"is {_shown(wanted)}"
    if wanted.present is not None:
        return "is there" if wanted.present else "is absent"
    if wanted.in_ is not None:
        return f"is one of {', '.join(map(_shown, wanted.in_))}"
    if wanted.not_in is not None:
        return f"is not {' or '.join(map(_shown, wanted.not_in))}"
    if wanted.gt is not None:
        return f"is above {_shown(wanted.gt)}"
    return f"is {_shown(wanted.equals)}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class Reasoning(_Model):
    """How a model reasons.

    Args:
        echo: Whether its reasoning must, may or must not come back.
        key: Key of a message that holds it.
        default: Whether it reasons when the request does not say.
        off: Whether it can be switched off.
        foreign: What becomes of the opaque reasoning of models that it does not read: an error, or
            it is dropped without a word.
    """

    echo: Literal["required", "optional", "forbidden"] | None = None
    key: str | None = None
    default: Literal["on", "off"] | None = None
    off: bool | None = None
    foreign: Literal["refused", "dropped"] | None = None


class Facts(_Model):
    """What is known of a model; absent means unknown.

    Args:
        context_window: Tokens.
        max_output: Tokens; a higher limit in a request is lowered.
        tool_id_style: As the key of a target.
        accepts_prefill: As the key of a target.
        structured_output: As the key of a target.
        prefix_bound: Whether its thinking is valid only behind the history that it was made in.
        system_rows: Whether instructions may come within the history, in the format's own role.
        reads: Globs on the models whose thinking it reads.
        reasoning: How it reasons.
        rules: What it refuses and demands, in order.
    """

    context_window: Annotated[int, Field(ge=1)] | None = None
    max_output: Annotated[int, Field(ge=1)] | None = None
    tool_id_style: Literal["alphanumeric_9"] | None = None
    accepts_prefill: bool | None = None
    structured_output: Literal["json_schema", "forced_tool", "prompt"] | None = None
    prefix_bound: bool | None = None
    system_rows: bool | None = None
    reads: _Globs | None = None
    reasoning: Reasoning = Reasoning()
    rules: tuple[Rule, ...] = ()


class Entry(Facts):
    """``[[profile]]``: facts about some models, with where they come from.

    Args:
        id: Unique among the profiles of all plugins.
        match: Anchored globs on the model id; a leading ``!`` excludes, case does not matter.
        wire_format: The wire formats that the facts are about; ``()`` for all.
        host: Globs on the host of the client's ``base_url``, where the facts belong to it.
        source: Public page, repository or issue.
        as_of: The day on which it was read.
        sure: ``doc`` from the vendor, ``report`` of others, ``code`` of another project.
    """

    id: Annotated[str, AfterValidator(_fits(_ID, "lower-case letters, digits, `.`, `_` and `-`"))]
    match: _Globs
    wire_format: WireFormat | tuple[WireFormat, ...] = ()
    host: _Globs | None = None
    source: Annotated[str, Field(min_length=1)]
    as_of: date
    sure: Literal["doc", "report", "code"]

    @property
    def wire_formats(self) -> tuple[WireFormat, ...]:
        """The wire formats that the facts are about; ``()`` for all."""
        formats = self.wire_format
        return (formats,) if isinstance(formats, str) else formats


class ProfileFile(_Model):
    """A TOML text with profiles, in the order in which they apply."""

    profile: Annotated[tuple[Entry, ...], Field(min_length=1)]


def core_profiles() -> tuple[ModelProfiles, ...]:
    """Return the profiles of this distribution, one declaration per vendor."""
    folder = files(__package__) / "data"
    found = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return tuple(
        ModelProfiles(
            text=entry.read_text("utf-8"), source=f"switchyard_core/models/data/{entry.name}"
        )
        for entry in found
        if entry.name.endswith(".toml")
    )


@lru_cache(maxsize=64)
def read_profiles(declared: ModelProfiles) -> tuple[Entry, ...]:
    """Return the entries of a declaration; a ``ValueError`` says what is wrong with its text."""
    place = f" ({declared.source})" if declared.source else ""
    try:
        tree = tomli.loads(declared.text)
    except (ValueError, RecursionError) as error:
        msg = f"gives model profiles{place} that are not TOML: {error}"
        raise ValueError(msg) from error
    try:
        return ProfileFile.model_validate_json(to_json(tree)).profile
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"gives wrong model profiles{place}: {where}: {first['msg']}"
        raise ValueError(msg) from error
