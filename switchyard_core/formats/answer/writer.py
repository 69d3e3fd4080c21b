"""Writing an answer in a wire format: its parts one after another, as a stream or whole.

Routers that answer by themselves and the scripted provider write through the same writers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from switchyard_core.asking import ModelUsage

__all__ = ["Frame", "Part", "PartWriter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is known of an answer before its first part.

    Args:
        model: Model id that the answer names.
        id: Id of the answer, with the prefix of its wire format.
        created_s: Seconds since the epoch.
        include_usage: Whether a Chat stream states the usage.
        usage_apart: Whether it does so in a chunk without a choice, as OpenAI does; else the
            last chunk with a choice has it, which clients that read ``choices[0]`` survive.
        request: Settings of the request, which a Responses object repeats.
    """

    model: str
    id: str
    created_s: int
    include_usage: bool = False
    usage_apart: bool = False
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of an answer; its text comes in pieces.

    Args:
        kind: ``call`` is a tool call: its text is the JSON of the arguments, or the free text
            of a ``custom`` one.
        id: Id of a call.
        name: Tool of a call.
        namespace: Namespace of the tool.
        custom: Whether a call takes free text.
        opaque: Opaque form of reasoning, ``""`` without one.
    """

    kind: Literal["text", "reasoning", "call"]
    id: str = ""
    name: str = ""
    namespace: str = ""
    custom: bool = False
    opaque: str = ""


class PartWriter(ABC):
    """Writes one answer: ``begin``; ``open``, ``more`` and ``close`` for each part; ``end``.

    Each gives complete server-sent events, so comments may be put between any two. For a whole
    body the bytes are ignored, and ``whole`` comes in place of ``end``: both have the same content.

    Args:
        frame: What is known before.
    """

    #: What an answer's id begins with, and a tool call's.
    id_prefix: ClassVar[str]
    call_prefix: ClassVar[str]
    #: Whether tools can take free text.
    has_custom_calls: ClassVar[bool] = False
    #: Words for reasons to stop: ``stop``, ``calls``, ``length``, ``filter``; others stay.
    stop_words: ClassVar[Mapping[str, str]]

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        #: The parts so far; the last one may be open.
        self.parts: list[Part] = []
        self.texts: list[str] = []

    @abstractmethod
    def begin(self, usage: ModelUsage) -> bytes:
        """Return the first bytes of a stream; ``usage`` is what is known of it by then."""

    def open(self, part: Part) -> bytes:
        """Begin a part."""
        self.parts.append(part)
        self.texts.append("")
        return self._opened(len(self.parts) - 1, part)

    def more(self, text: str) -> bytes:
        """Add text to the part that is open."""
        self.texts[-1] += text
        return self._more(len(self.parts) - 1, self.parts[-1], text)

    def close(self) -> bytes:
        """End the part that is open."""
        return self._closed(len(self.parts) - 1, self.parts[-1], self.texts[-1])

    @abstractmethod
    def end(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> bytes:
        """Return the last bytes of a stream.

        Args:
            stop: Why it ends; see :attr:`stop_words`.
            usage: Tokens that it took.
            extension: Further members of the last object.
        """

    @abstractmethod
    def whole(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole body; takes what :meth:`end` takes."""

    def arguments(self, text: str) -> str:
        """Return the arguments of a call as this wire format can carry them."""
        return text

    def stop_word(self, stop: str) -> str:
        """Return a reason to stop in the words of this wire format."""
        return self.stop_words.get(stop, stop)

    @abstractmethod
    def _opened(self, index: int, part: Part) -> bytes: ...

    @abstractmethod
    def _more(self, index: int, part: Part, text: str) -> bytes: ...

    @abstractmethod
    def _closed(self, index: int, part: Part, text: str) -> bytes: ...
