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
    """What must come back."""

    status: int
    target: str = ""  # side of the route: ``planner`` or ``executor``
    phase: str = ""
    reason: str = ""  # code of the decision's reason
    code: str = ""  # code of switchyard's error; then nothing may be sent
    latched: int  # sessions latched afterwards


class Step(_Part):
    """One request."""

    title: str  # what happens, in a few words
    about: str  # why
    session: str
    tell: str  # which conversation is sent
    turns: int  # how many of its turns
    final: bool = False  # whether it is marked as the session's last request
    expect: Expectation  # what must come back


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
