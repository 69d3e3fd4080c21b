"""The events of an answer, checked for their order and cut into the pieces that writers write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from switchyard_core.answering import (
    Announced,
    AnswerEvent,
    Extension,
    Finished,
    ModelUsage,
    Progress,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_core.jsonio.tree import encode, loads

__all__ = ["Closed", "More", "Opened", "Piece", "Sections"]

#: What ends the text of every section: helpers of the SDKs join sections without a separator.
_END = "\n\n"


@dataclass(frozen=True, slots=True)
class Opened:
    """A section begins to be written.

    Args:
        index: Its number among the written sections, from 0.
    """

    index: int


@dataclass(frozen=True, slots=True)
class More:
    """More text of a section.

    Args:
        index: Number of the section.
        delta: The text, never empty.
    """

    index: int
    delta: str


@dataclass(frozen=True, slots=True)
class Closed:
    """A section is complete.

    Args:
        index: Number of the section.
        text: All of its text, with the blank line at its end.
    """

    index: int
    text: str


Piece = Opened | More | Closed


class Sections:
    """Follows the events of one answer.

    Whitespace at the end of what a section said so far is held back, so that its text ends with
    exactly one blank line whatever the router wrote. A section begins to be written with its
    first visible character; one without any is not written at all, because providers refuse
    empty parts when the answer comes back as history.

    Attributes:
        texts: Texts of the complete sections.
        usage: Sum of the usage so far.
        extension: Data of the last :class:`~switchyard_core.Extension`, ``None`` without one.
        status: Status of :class:`~switchyard_core.Finished`, ``None`` before it.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.usage = ModelUsage()
        self.extension: Any = None
        self.status: str | None = None
        self._open: str | None = None
        self._said: list[str] = []
        self._held = ""

    def take(self, event: AnswerEvent) -> tuple[Piece, ...]:
        """Return what an event writes.

        Raises:
            ValueError: The event is none, or may not stand here; the message says why.
        """
        if self.status is not None:
            msg = f"`{type(event).__name__}` after `Finished`, which is the last event of an answer"
            raise ValueError(msg)
        match event:
            case SectionStarted():
                self._start(event)
            case TextDelta():
                return self._more(event)
            case SectionFinished():
                return self._close()
            case Extension():
                self.extension = _plain(event.data)
            case Usage():
                self.usage += event.usage
            case Finished():
                self._finish(event)
            case Announced() | Progress():
                pass
            case _:
                msg = f"`{type(event).__name__}` is no event of an answer; see `AnswerEvent`"
                raise ValueError(msg)
        return ()

    def _start(self, event: SectionStarted) -> None:
        if self._open is not None:
            msg = (
                f"the section `{event.kind}` starts while the section `{self._open}` is open: "
                "yield `SectionFinished` first"
            )
            raise ValueError(msg)
        self._open, self._said, self._held = event.kind, [], ""

    def _more(self, event: TextDelta) -> tuple[Piece, ...]:
        if self._open is None:
            msg = "`TextDelta` outside of a section: yield `SectionStarted` first"
            raise ValueError(msg)
        if not isinstance(event.delta, str):
            msg = f"the delta of a `TextDelta` must be text, not {type(event.delta).__name__}"
            raise ValueError(msg)  # noqa: TRY004  # one error for all that a router does wrong
        text = self._held + event.delta
        visible = text.rstrip()
        self._held = text[len(visible) :]
        if not visible:
            return ()
        index = len(self.texts)
        opened = () if self._said else (Opened(index),)
        self._said.append(visible)
        return (*opened, More(index, visible))

    def _close(self) -> tuple[Piece, ...]:
        if self._open is None:
            msg = "`SectionFinished` without a section: yield `SectionStarted` first"
            raise ValueError(msg)
        self._open = None
        if not self._said:
            return ()
        index = len(self.texts)
        self.texts.append("".join(self._said) + _END)
        return More(index, _END), Closed(index, self.texts[index])

    def _finish(self, event: Finished) -> None:
        if self._open is not None:
            msg = f"`Finished` while the section `{self._open}` is open: yield `SectionFinished`"
            raise ValueError(msg)
        self.status = event.status


def _plain(data: Mapping[str, Any]) -> Any:
    """Return data as it will be read, independent of what the router does with its own."""
    try:
        return loads(encode(dict(data)))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"the data of an `Extension` is no JSON object: {error}"
        raise ValueError(msg) from None
