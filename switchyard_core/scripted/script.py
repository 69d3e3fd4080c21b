"""What a script may say."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from switchyard_core.declarations import WireFormat
from switchyard_core.patterns import PatternError, compile_pattern
from switchyard_core.scripted.strict.names import check_strict
from switchyard_core.upstream.played import header_problem

__all__ = [
    "Call",
    "Fault",
    "Script",
    "Scripted",
    "Turn",
    "UsageCount",
    "When",
]

_Item = TypeVar("_Item")

FaultKind = Literal["drop", "cut", "error_event", "garbage"]


def _compiles(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except PatternError as error:
        msg = f"is not a regular expression: {error.message}"
        raise ValueError(msg) from error
    return pattern


def _is_arguments(value: Any) -> Any:
    if value is None or isinstance(value, (dict, str)):
        return value
    msg = "must be an object or a string"
    raise ValueError(msg)


def _has_items(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    # ``min_length`` of pydantic counts only the items that are valid themselves.
    if not items:
        msg = "must have at least one item"
        raise ValueError(msg)
    return items


def _is_header(name: str) -> str:
    problem = header_problem(name, "")
    if not problem and name.lower() == "content-length":
        problem = "`content-length` follows from the body of the error"
    if problem:
        raise ValueError(problem)
    return name


def _is_header_value(value: str) -> str:
    if header_problem("x", value):
        msg = "has characters that a header cannot contain"
        raise ValueError(msg)
    return value


def _is_strict(name: str) -> str:
    if fix := check_strict(name):
        msg = f"is not a strict provider; {fix}"
        raise ValueError(msg)
    return name


HeaderName = Annotated[str, AfterValidator(_is_header)]
HeaderValue = Annotated[str, AfterValidator(_is_header_value)]
Pattern = Annotated[str, AfterValidator(_compiles)]
StrictName = Annotated[str, AfterValidator(_is_strict)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class When(_Part):
    """Which requests a script answers; every key given must hold.

    Regular expressions are of RE2: a script is played to whatever bodies come.
    """

    model: Pattern | None = None  # regular expression, searched in the model id
    has_tools: bool | None = None  # whether the request offers tools
    #: Regular expression per header name, searched in its value; the header must be there.
    header: dict[str, Pattern] = Field(default_factory=dict)
    body: Pattern | None = None  # regular expression, searched in the text of the body
    format: WireFormat | None = None


class UsageCount(_Part):
    """Token counts of a turn; what is not given is estimated or 0."""

    input: Count | None = None  # input tokens, cached ones included
    output: Count | None = None  # output tokens, reasoning included
    cached: Count = 0  # how many of the input came from a cache
    reasoning: Count = 0  # how many of the output were reasoning


class Call(_Part):
    """A tool call of a turn, or a choice between several."""

    name: str = ""
    #: Arguments of a function call; a string is sent as it is.
    arguments: Annotated[Any, AfterValidator(_is_arguments)] = None
    #: Text of a free-form call: `custom_tool_call` on Responses, arguments `{"input": text}`
    #: elsewhere.
    input: str | None = None
    namespace: str | None = None  # namespace of the tool, sent on Responses
    id: str | None = None  # made up when absent
    #: Instead of all others: the first whose name the request offers is made, the last one when it
    #: offers none.
    any_of: tuple[Call, ...] = ()

    @model_validator(mode="after")
    def _is_one_call(self) -> Call:
        if bool(self.name) == bool(self.any_of):
            msg = "a call needs either `name` or `any_of`"
            raise ValueError(msg)
        if self.arguments is not None and self.input is not None:
            msg = "a call has either `arguments` or `input`"
            raise ValueError(msg)
        return self


class Turn(_Part):
    """One answer."""

    #: Readable reasoning: summary on Responses, thinking block on Messages, `reasoning_content` on
    #: Chat.
    reasoning: str = ""
    encrypted: str = ""  # opaque reasoning: `encrypted_content` or thinking `signature`
    text: str = ""
    calls: tuple[Call, ...] = ()  # tool calls after the text
    usage: UsageCount = UsageCount()
    #: Reason to stop in the word of any wire format (`length`, `max_tokens`); follows from the
    #: calls when absent.
    stop: str | None = None
    delay_s: Seconds = 0.0
    event_delay_s: Seconds = 0.0


class Fault(_Part):
    """A failure in place of a turn, a number of times."""

    turn: Count | None = None  # number of the turn from 0; any turn when absent
    times: Annotated[int, Field(ge=1)] = 1
    status: Annotated[int | None, Field(ge=400, le=599)] = None  # HTTP status of an error answer
    #: `drop` closes before any byte, `cut` in the middle, `error_event` streams half and then an
    #: error, `garbage` answers 200 with no JSON.
    kind: FaultKind | None = None
    message: str = ""
    #: Further headers of an error answer, such as `retry-after`.
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_what(self) -> Fault:
        if self.status is None and self.kind is None:
            msg = "a fault needs `status` or `kind`"
            raise ValueError(msg)
        if self.status is not None and self.kind not in (None, "error_event"):
            msg = f"a fault of kind `{self.kind}` has no `status`"
            raise ValueError(msg)
        return self


class Scripted(_Part):
    """One script: who it answers, and with what."""

    when: When = When()  # all requests when absent
    #: Answers by number of the turn; past the end the last one repeats.
    turns: Annotated[tuple[Turn, ...], AfterValidator(_has_items)]
    faults: tuple[Fault, ...] = ()
    #: Added to the number of the turn: -1 for a client whose conversations begin with an assistant
    #: message of its own.
    offset: int = 0


class Script(_Part):
    """A whole script file."""

    version: Literal[1]
    #: The first whose `when` holds answers.
    scripts: Annotated[tuple[Scripted, ...], AfterValidator(_has_items)]
    models: tuple[str, ...] = ("scripted-model",)
    #: Provider whose refusals are played, such as `anthropic`; everything is answered without one.
    strict: StrictName | None = None
