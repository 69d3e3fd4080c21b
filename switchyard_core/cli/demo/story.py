"""The fixed requests of the demo, and what is expected of each."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from switchyard_core.declarations import WireFormat
from switchyard_core.testing import Call, ConversationBuilder, conversation

__all__ = ["Expectation", "Step", "StoryBook", "Turn", "load_story"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Turn(_Part):
    """One turn of a conversation: the user's, or the assistant's call with its result."""

    user: str = ""
    says: str = ""
    call: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    result: str = ""


class Expectation(_Part):
    """What must come back.

    Args:
        status: HTTP status.
        target: Side of the route: ``planner`` or ``executor``.
        phase: Phase of the decision.
        reason: Code of the decision's reason.
        code: Code of an error of ours; nothing may have been sent then.
        latched: How many sessions are latched afterwards.
    """

    status: int
    target: str = ""
    phase: str = ""
    reason: str = ""
    code: str = ""
    latched: int


class Step(_Part):
    """One request.

    Args:
        title: What happens, in a few words.
        about: Why.
        session: Session id.
        tell: Which conversation is sent.
        turns: How many of its turns.
        final: Whether it is marked as the session's last request.
        expect: What must come back.
    """

    title: str
    about: str
    session: str
    tell: str
    turns: int
    final: bool = False
    expect: Expectation


class StoryBook(_Part):
    """The whole demo."""

    instructions: str
    tools: tuple[str, ...]
    sessions: dict[str, tuple[Turn, ...]]
    steps: tuple[Step, ...]

    def body(self, step: Step, wire_format: WireFormat) -> bytes:
        """Return the body of a step's request in one wire format."""
        story = conversation(wire_format).system(self.instructions).offers(*self.tools)
        for turn in self.sessions[step.tell][: step.turns]:
            story = _told(story, turn)
        return story.body(f"demo/{wire_format}")


def _told(story: ConversationBuilder, turn: Turn) -> ConversationBuilder:
    if turn.user:
        return story.user(turn.user)
    said = story.says(turn.says) if turn.says else story
    return said.parallel(Call(name=turn.call, arguments=turn.arguments, result=turn.result))


def load_story() -> StoryBook:
    """Return the story that comes with the package."""
    text = (files(__package__) / "story.json").read_text("utf-8")
    return StoryBook.model_validate_json(text)
