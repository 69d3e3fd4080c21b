"""Where calls stand in the documents that rules with a path of their own run on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from switchyard_core.conversation import Conversation
from switchyard_core.jsonio.path_steps import Location

__all__ = ["conversation_places", "owner_of", "wire_location"]

_WIRE_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def conversation_places(conversation: Conversation) -> dict[Location, int]:
    """Return where each call stands in the conversation document."""
    numbers = {id(call): number for number, call in enumerate(conversation.calls)}
    return {
        ("messages", i, "content", j): numbers[id(part)]
        for i, message in enumerate(conversation.messages)
        for j, part in enumerate(message.content)
        if id(part) in numbers
    }


def wire_location(path: str) -> Location:
    """Return the location that a wire path such as ``$.input[6]`` names."""
    return tuple(int(index) if index else name for name, index in _WIRE_STEP.findall(path))


def owner_of(location: Location, places: Mapping[Location, int], longest: int) -> int | None:
    """Return the number of the call that holds a location.

    Args:
        location: Where a value was found.
        places: Where the calls are.
        longest: Length of the longest of these places.
    """
    for end in range(min(len(location), longest), 0, -1):
        if (number := places.get(location[:end])) is not None:
            return number
    return None
