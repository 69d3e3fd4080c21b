"""The types of single keys.

Each type refuses an invalid value with a code and a fix, and converts a valid one into what the
engine uses. ``info.context`` is the :class:`.Draft` of the policy, ``None`` in Python code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from switchyard_core.clients import identity_headers
from switchyard_core.declarations import OptionError, Reference
from switchyard_core.errors import nearest
from switchyard_core.identity import HEADER_NAME
from switchyard_core.jsonio.path import Path as JSONPath
from switchyard_core.jsonio.path import PathError, compile_path
from switchyard_core.models import Rule, is_known
from switchyard_core.mutation.paths import is_root
from switchyard_core.patterns import PatternError, compile_pattern
from switchyard_core.policy.document import is_file
from switchyard_core.policy.secrets import looks_like_credential, shown
from switchyard_core.policy.validation import UNRESOLVED

__all__ = [
    "KEY_FIELD",
    "RESERVED_REWRITES",
    "BaseURL",
    "CallPath",
    "ConditionHeader",
    "ConditionPath",
    "ConditionPattern",
    "Distribution",
    "FitRules",
    "HeaderName",
    "HeaderValue",
    "LowerHeaderName",
    "ProfileName",
    "RewriteName",
    "SchemaVersion",
    "ScriptPath",
    "SessionSource",
    "SideCallKind",
    "Tokens",
    "Variable",
    "Word",
    "WorkspaceRoot",
    "bearer",
    "is_variable",
    "same_json",
]

#: Names of rewrites that are always required; this version may not have them.
RESERVED_REWRITES: frozenset[str] = frozenset({"translate", "set_model"})

#: A field of a body: a key, or the path to one.
KEY_FIELD = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")

_WORD = re.compile(r"[!-~]{1,256}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: How other tools refer to a variable: `$X`, `${X}`, `%X%`, `env:X`, with spaces around.
_REFERENCE = re.compile(
    r"\s*(?:\$\{?|%|\$?env:|\{env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:[}%])?\s*", re.ASCII
)
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_CALL_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+/?")
_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
#: Headers that carry credentials or belong to the connection.
_OWN_HEADERS = re.compile(
    "(?:x-)?api-key|x-goog-api-key|(?:proxy-)?authorization|cookie|host|connection"
    "|content-(?:length|type)|transfer-encoding"
)
#: Headers whose value nobody may read in an explanation or a log: names of credentials.
_CREDENTIAL_HEADER = re.compile(
    "(?:.*-)?(?:api-?key|subscription-key|authorization|cookie2?|secret|password"
    "|(?:access|api|auth|bearer|id|security)-token)"
)
#: Our own headers about a request; those of clients are data.
_OUR_HEADERS = "x-switchyard-"


@dataclass(frozen=True, slots=True)
class _As:
    """Replaces the text of a key by what it refers to; Python code passes the object."""

    #: Returns the object; ``info.context`` is the :class:`.Draft` of the policy.
    make: Callable[[str, ValidationInfo], Any]
    pattern: str = ""  # of the text in the JSON Schema, ``""`` for none

    def __get_pydantic_core_schema__(
        self, source: Any, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        is_class = isinstance(source, type)
        return core_schema.json_or_python_schema(
            json_schema=core_schema.with_info_after_validator_function(
                self.make, core_schema.str_schema()
            ),
            python_schema=(
                core_schema.is_instance_schema(source) if is_class else core_schema.any_schema()
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **({"pattern": self.pattern} if self.pattern else {})}


def same_json(left: Any, right: Any) -> bool:
    """Compare as JSON does: a boolean is never equal to a number."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def bearer(kind: Literal["client", "route_type"]) -> object:
    """Return the annotation that replaces a name by the client or route type it names."""

    def find(name: str, info: ValidationInfo) -> Any:
        draft: Any = info.context
        found = draft.bearers[kind].get(name)
        if found is None:
            # The name is reported as unknown, or its table has findings.
            raise PydanticCustomError(UNRESOLVED, "")
        return found

    return _As(find)


def _blank(fix: str) -> OptionError:
    return OptionError("must not be blank", fix=fix, code="SY108")


def _word(text: str) -> str:
    if not text.strip():
        raise _blank("write the name")
    if not _WORD.fullmatch(text):
        msg = "must be 1 to 256 printable ASCII characters without spaces"
        raise OptionError(msg, fix="use letters, digits and punctuation, such as `my-model`")
    return text


def is_variable(text: str) -> bool:
    """Return whether a text can be the name of an environment variable, and is not a key."""
    return _VARIABLE.fullmatch(text) is not None and not looks_like_credential(text)


def _variable(text: str) -> str:
    if is_variable(text):
        return text
    if not text.strip():
        raise _blank("write the name of an environment variable, or remove the key")
    reference = _REFERENCE.fullmatch(text)
    if reference is not None and not looks_like_credential(text):
        msg = "must be only the name of an environment variable"
        raise OptionError(msg, fix=f"write `{shown(reference['name'])}`")
    msg = "must be the name of an environment variable, not the key itself"
    fix = "write a name of letters, digits and underscores that does not begin with a digit"
    if looks_like_credential(text):
        fix = "export the key as a variable and write its name; revoke this key"
    elif "=" in text:
        fix = "write only the name; the value belongs in the environment"
    raise OptionError(msg, fix=fix)


def _usable(variable: str, info: ValidationInfo) -> str:
    environ = info.context.environ if info.context is not None else None
    if environ is None:
        return variable
    value = environ.get(variable)
    if value is None:
        problem = "is not set"
    elif not value.strip():
        problem = "is empty"
    elif not _HEADER_VALUE.fullmatch(value):
        problem = "holds characters that a header cannot carry"
    else:
        return variable
    msg = f"environment variable `{shown(variable)}` {problem}"
    fix = f"export {shown(variable)}=...; `check --offline` and `serve --dry-run` need none"
    raise OptionError(msg, fix=fix, code="SY204")


def _version(number: int) -> int:
    if number != 1:
        msg = "this version reads schema version 1 only"
        raise OptionError(msg, fix="write 1")
    return number


def _installed(name: str) -> str:
    if not _DISTRIBUTION.fullmatch(name):
        msg = f"`{shown(name)}` is not the name of a distribution"
        raise OptionError(msg, fix="write the name alone, without a version", code="SY507")
    try:
        version(name)
    except PackageNotFoundError:
        msg = f"distribution `{shown(name)}` is not installed"
        raise OptionError(msg, fix=f"run `pip install {shown(name)}`", code="SY507") from None
    return name


def _url(url: str, info: ValidationInfo) -> str:
    """Refuse an unusable URL without repeating it: it may hold a password."""
    problem = _url_problem(url)
    if problem and info.data.get("kind") != "scripted":
        fix = 'write an absolute URL such as "https://api.example.com/v1"'
        raise OptionError(f"the URL {problem}", fix=fix, code="SY203")
    return url.rstrip("/")


def _url_problem(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "cannot be read"
    if parts.scheme.lower() not in {"http", "https"} or not host:
        return "must be absolute and begin with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user or password"
    if "?" in url or "#" in url:
        return "must have no query and no fragment"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "must be printable ASCII without spaces"
    return ""


def _call_path(path: str) -> str:
    if not _CALL_PATH.fullmatch(path):
        msg = "must be a path that begins with `/` and has no query"
        raise OptionError(msg, fix="write it as `/chat/completions`", code="SY203")
    return path


def _root(path: str) -> str:
    if not path.strip():
        raise _blank("write the directory, or remove it")
    if not is_root(path):
        msg = f"`{shown(path)}` is not an absolute directory"
        raise OptionError(msg, fix=f"write where it is, such as `~/{shown(path)}`", code="SY107")
    return path


def _header_name(name: str) -> str:
    if not name.strip():
        msg, fix = "the name of a header is blank", "write the name, or remove it"
    elif not HEADER_NAME.fullmatch(name):
        msg, fix = f"`{shown(name)}` is not a header name", "use letters, digits and hyphens"
    elif _OWN_HEADERS.fullmatch(name.lower()):
        msg = f"header `{name}` cannot be set by a policy"
        fix = "remove it; credentials come from `api_key_env` or `forward_auth`"
    elif name.lower() in identity_headers() or name.lower().startswith(_OUR_HEADERS):
        msg = f"header `{name}` says whose request it is and is not sent to a provider"
        fix = "remove it; `[identity]` names further sources of session ids"
    else:
        return name
    raise OptionError(msg, fix=fix, code="SY210")


def _header_value(text: str) -> str:
    if not _HEADER_VALUE.fullmatch(text):
        msg = "a header value must be printable ASCII"
        raise OptionError(msg, fix="change the value", code="SY210")
    return text


def _fit(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    for rule in rules:
        if rule.header is not None:
            _header_name(rule.header)
        if rule.do == "add_header":
            _header_value(str(rule.value))
    return rules


def _script(text: str, info: ValidationInfo) -> Path:
    if not text.strip():
        raise _blank("write the text, or remove the key")
    draft: Any = info.context
    path: Path = draft.base / text
    if info.data.get("kind") == "scripted" and not is_file(path):
        fix = "give the path relative to the policy's folder"
        raise OptionError(f"no such script: `{shown(text)}`", fix=fix, code="SY209")
    return path


def _switchable(name: str, info: ValidationInfo) -> str:
    declared = info.context.registry.rewrites.get(name) if info.context is not None else None
    if name in RESERVED_REWRITES if declared is None else not declared.switchable:
        msg = f"rewrite `{name}` cannot be switched off"
        raise OptionError(msg, fix="remove the key", code="SY208")
    return name


def _profile(name: str | bool, info: ValidationInfo) -> str | bool:  # noqa: FBT001 - a value
    if isinstance(name, bool):
        if name:
            msg = "true names no profile"
            raise OptionError(msg, fix="write a name, or false for none; or remove the key")
        return name
    entries = info.context.registry.profiles if info.context is not None else ()
    if info.context is not None and not is_known(entries, name):
        msg = f"no profile is named `{shown(name)}` or matches a model of that id"
        near = nearest(name, [entry.id for entry in entries])
        fix = f"did you mean `{near}`?" if near else "`switchyard plugins` lists the profiles"
        raise OptionError(msg, fix=fix, code="SY212")
    return name


def _session_source(source: str) -> str:
    kind, _, rest = source.partition(":")
    if kind == "body":
        _path(rest, shift=len("body:"))
        return source
    if kind == "header" and _CREDENTIAL_HEADER.fullmatch(rest.lower()):
        msg = f"header `{rest}` carries a credential, which is nobody's session id"
        fix = "name a header that the client sets per session; explanations and logs show it"
        raise OptionError(msg, fix=fix, code="SY109")
    if kind == "header" and HEADER_NAME.fullmatch(rest):
        return f"header:{rest.lower()}"
    msg = f"`{shown(source)}` is not a session source"
    raise OptionError(msg, fix="write `header:<name>` or `body:<JSONPath>`", code="SY109")


def _kind(word: str) -> str:
    if not _KIND.fullmatch(word):
        msg = f"`{shown(word)}` is not a kind of side calls"
        raise OptionError(msg, fix="write one word in snake_case, such as `title`", code="SY109")
    return word


def _condition_header(name: str) -> str:
    if not HEADER_NAME.fullmatch(name):
        msg = f"`{shown(name)}` is not a header name"
        raise OptionError(msg, fix="use letters, digits and hyphens", code="SY109")
    return name.lower()


def _path(text: str, _info: ValidationInfo | None = None, *, shift: int = 0) -> JSONPath:
    try:
        return compile_path(text)
    except PathError as error:
        msg, column = f"bad JSONPath: {error.message}", shift + error.column
        fix = "correct the expression"
        raise OptionError(msg, column=column, fix=fix, code="SY401") from None


def _pattern(text: str, _info: ValidationInfo) -> Callable[[str], bool]:
    try:
        return compile_pattern(text, dot_all=True)
    except PatternError as error:
        msg, fix = f"not a regular expression: {error}", "correct the expression (RE2 syntax)"
        raise OptionError(msg, column=error.column, fix=fix, code="SY402") from None


#: Ids go into headers and messages, so they hold no spaces or control characters.
Word = Annotated[
    str, AfterValidator(_word), Field(json_schema_extra={"pattern": f"^{_WORD.pattern}$"})
]
#: Name of an environment variable that holds a key.
Variable = Annotated[
    str,
    AfterValidator(_variable),
    AfterValidator(_usable),
    Field(json_schema_extra={"pattern": f"^{_VARIABLE.pattern}$"}),
]
SchemaVersion = Annotated[int, AfterValidator(_version), Field(json_schema_extra={"const": 1})]
Tokens = Annotated[int, Field(ge=1)]
#: Name of an installed distribution.
Distribution = Annotated[str, AfterValidator(_installed)]
#: Without a final slash.
BaseURL = Annotated[str, AfterValidator(_url)]
#: Path of a call below a base URL.
CallPath = Annotated[
    str, AfterValidator(_call_path), Field(json_schema_extra={"pattern": f"^{_CALL_PATH.pattern}$"})
]
#: A root of the workspace.
WorkspaceRoot = Annotated[str, AfterValidator(_root), Field(json_schema_extra={"pattern": r"\S"})]
HeaderName = Annotated[str, AfterValidator(_header_name)]
LowerHeaderName = Annotated[HeaderName, AfterValidator(str.lower)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]
FitRules = Annotated[tuple[Rule, ...], AfterValidator(_fit)]
#: A file below the policy's folder.
ScriptPath = Annotated[Path, _As(_script, r"\S")]
#: Id of a model profile, or of a model that one is about; false for none.
ProfileName = Annotated[
    str | bool, AfterValidator(_profile), Field(json_schema_extra={"not": {"const": True}})
]
RewriteName = Annotated[str, AfterValidator(_switchable), Reference("rewrite")]
#: ``header:<name>`` or ``body:<JSONPath>``.
SessionSource = Annotated[str, AfterValidator(_session_source)]
#: A word for what a side call is for.
SideCallKind = Annotated[
    str, AfterValidator(_kind), Field(json_schema_extra={"pattern": f"^{_KIND.pattern}$"})
]
#: Lower-case name of a header that a condition reads.
ConditionHeader = Annotated[str, AfterValidator(_condition_header)]
ConditionPath = Annotated[JSONPath, _As(_path)]
#: A compiled regular expression that is searched in a text.
ConditionPattern = Annotated[Callable[[str], bool], _As(_pattern)]
