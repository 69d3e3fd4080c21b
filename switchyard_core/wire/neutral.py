"""A request as no wire format in particular: read out of one, written in another.

Readers put in what has a counterpart anywhere, and name what has none in the :class:`Told` of the
request. Writers leave out, and name, what their own format has no place for. Raw JSON stays raw,
so that a number or a schema is the caller's own to the byte.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote_to_bytes

__all__ = [
    "SCHEMA_TOOL",
    "AskedTool",
    "Call",
    "Choice",
    "Facts",
    "Media",
    "NeutralPart",
    "NeutralRequest",
    "Result",
    "Schema",
    "Thought",
    "Told",
    "ToolName",
    "Turn",
    "Words",
    "is_empty_data",
    "one_of_each",
    "tell_lost_choice",
]


#: Name of the tool that a model must call where ``Facts.forced_schema`` asks for its answer so.
SCHEMA_TOOL = "structured_answer"
_PLACE = re.compile(r"\[\d+\]")
#: Lines of one kind that a report has at most.
_MOST_ALIKE = 8


@dataclass(slots=True)
class Told:
    """What a translation has to say, a line each, with the place in the body that it was found in.

    Args:
        changed: What means the same and looks different, such as ``moved the image of
            input[3] to a message of the user``. What every translation does is not worth a line.
        left_out: Settings and marks that the target has no place for.
        lost: Content and tools that nobody but the caller's provider can serve; a target may
            refuse a request that has some.
    """

    changed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """All lines, each once; of many that differ in their place alone, the first few."""
        gone = [f"left out {line}" for line in (*self.lost, *self.left_out)]
        kinds: dict[str, list[str]] = {}
        for line in dict.fromkeys((*self.changed, *gone)):
            kinds.setdefault(_PLACE.sub("[]", line), []).append(line)
        made: list[str] = []
        for alike in kinds.values():
            made += alike[:_MOST_ALIKE]
            if len(alike) > _MOST_ALIKE:
                made.append(f"{alike[0]}, and {len(alike) - _MOST_ALIKE} more like it")
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a writer knows of the model that it writes for, besides the wire format.

    Args:
        max_output: Tokens that an answer may have where the format demands a limit and the
            request sets none; ``None`` for the format's usual one.
        reasoning_key: Key of a message that takes earlier reasoning back; ``""`` for none.
        system_rows: Whether instructions may come within the history, in the format's own role.
        thinks: Whether the model is known to reason.
        forced_schema: Whether a schema is asked for by a tool that the model must call.
        cache_marks: Whether a request without marks gets some (``auto``).
    """

    max_output: int | None = None
    reasoning_key: str = ""
    system_rows: bool = False
    thinks: bool = False
    forced_schema: bool = False
    cache_marks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Visible text, never blank in what a reader gives.

    Args:
        refusal: Whether it is the model's refusal, where the format tells it apart.
        cache: JSON of the cache mark on it, ``b""`` for none.
    """

    text: str
    refusal: bool = False
    cache: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """Readable reasoning, never blank; opaque forms stay with the provider that made them."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, or another file.

    Args:
        url: ``data:<media type>;base64,<data>``, or an address.
        detail: How closely a model is to look, in OpenAI's words; ``""`` leaves it open.
        name: Name of the file, ``""`` for none.
        cache: As for :class:`Words`.
    """

    kind: Literal["image", "file"]
    url: str
    detail: str = ""
    name: str = ""
    cache: bytes = b""

    @property
    def text(self) -> str:
        """Text of a text file that the request holds, behind its name; ``""`` for any other."""
        head, _, data = self.url.partition(",")
        if not head.startswith("data:text/"):
            return ""
        coded = head.endswith(";base64")
        try:
            raw = b64decode(data, validate=True) if coded else unquote_to_bytes(data)
        except (Error, ValueError):
            return ""
        text = raw.decode("utf-8", "replace")
        return f"{self.name}:\n{text}" if self.name and text.strip() else text.strip() and text


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolName:
    """The name of a tool, with its namespace where the caller's format has those."""

    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call in the history.

    Args:
        id: Id that its result names, as the caller's body has it; ``""`` for none.
        arguments: JSON text as the model wrote it, ``""`` for none, which need not be JSON; the
            free text of a ``custom`` call.
        custom: Whether the tool takes free text.
        cache: As for :class:`Words`.
    """

    id: str
    tool: ToolName
    arguments: str = ""
    custom: bool = False
    cache: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a call.

    Args:
        failed: Whether it is marked as an error.
        custom: Whether it is the result of a ``custom`` call, where the format tells.
    """

    call_id: str
    parts: tuple[Words | Media, ...] = ()
    failed: bool = False
    custom: bool = False
    cache: bytes = b""


NeutralPart = Words | Thought | Media | Call | Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one side said at once; neighbours of one role but ``system`` are one turn.

    ``tool`` has results and nothing else, in the order of the history; what the user said beside
    them is a turn of its own behind it. ``system`` are instructions within the history.
    """

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[NeutralPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTool:
    """A tool that the request offers and that the caller itself runs.

    Args:
        parameters: JSON schema of its arguments, ``b""`` for none.
        strict: Whether arguments must follow the schema, ``None`` where the request does not say.
        custom: Whether it takes free text.
        grammar: JSON of the form that free text has, with ``type``, ``syntax`` and ``definition``
            in one object; ``b""`` for any text.
        about_namespace: What the namespace is for, ``""`` for nothing.
        cache: As for :class:`Words`.
    """

    tool: ToolName
    description: str = ""
    parameters: bytes = b""
    strict: bool | None = None
    custom: bool = False
    grammar: bytes = b""
    about_namespace: str = ""
    cache: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Whether the model must, may or must not call tools; ``allowed`` are the only ones, if any.

    ``required`` with one allowed tool is the choice of a tool by name.
    """

    mode: Literal["none", "auto", "required"]
    allowed: tuple[ToolName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Structured output: JSON of a schema, or ``b""`` for any JSON object."""

    schema: bytes
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(slots=True, kw_only=True)
class NeutralRequest:
    """One request.

    Args:
        model: The model id that the caller asks for.
        instructions: Those in front of the history, a part each.
        turns: The history.
        tools: Tools that the caller runs.
        choice: Which of them the model must call, ``None`` where the request does not say.
        parallel: Whether several calls at once are allowed, ``None`` where it does not say.
        schema: The form of the answer, ``None`` for text.
        effort: Reasoning effort in the caller's word, ``none`` for switched off, ``""`` unsaid.
        limit: Most tokens of the answer.
        stop: Texts at which the answer ends.
        stream: Whether the answer is a stream, ``None`` where the request does not say.
        settings: JSON of further settings by neutral name: ``temperature``, ``top_p``, ``top_k``,
            ``seed``, ``frequency_penalty``, ``presence_penalty``, ``logprobs``, ``top_logprobs``,
            ``verbosity``, ``user``, ``metadata``, ``service_tier``, ``store``, ``cache_key``,
            ``safety_identifier``.
        told: What its reader has to say.
    """

    model: str = ""
    instructions: tuple[Words, ...] = ()
    turns: tuple[Turn, ...] = ()
    tools: tuple[AskedTool, ...] = ()
    choice: Choice | None = None
    parallel: bool | None = None
    schema: Schema | None = None
    effort: str = ""
    limit: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool | None = None
    settings: Mapping[str, bytes] = field(default_factory=dict)
    told: Told = field(default_factory=Told)


def is_empty_data(url: str) -> bool:
    """Return whether an address holds data, and none of it."""
    return url[:5].lower() == "data:" and url.find(",") in (-1, len(url.rstrip()) - 1)


def one_of_each(tools: Iterable[AskedTool], told: Told) -> tuple[AskedTool, ...]:
    """Return the tools with the last one of each name; another one of the name is named."""
    found: dict[ToolName, AskedTool] = {}
    for tool in tools:
        if found.get(tool.tool, tool) != tool:
            told.left_out.append(f"an earlier tool `{tool.tool.name}` of the same name")
        found[tool.tool] = tool
    return tuple(found.values())


def tell_lost_choice(request: NeutralRequest) -> None:
    """Name the choice of a tool where the request has none that its caller runs."""
    if not request.tools and request.choice is not None and request.choice.mode == "required":
        request.told.left_out.append("the choice of a tool, for there are none")
