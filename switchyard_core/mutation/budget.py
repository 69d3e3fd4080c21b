"""What reading one call may take: steps are counted, so that no label depends on the time."""

from __future__ import annotations

import msgspec

__all__ = ["STEPS", "TOO_MUCH", "Budget"]

#: Steps for one command or script; a step takes one or two microseconds.
STEPS = 10_000
#: What a verdict says of a call of which only a part was read.
TOO_MUCH = "too much to be read whole"


class Budget(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """What reading one command may take: loops in loops would take for ever.

    Args:
        left: Steps that are left; what takes longer than a step, such as running a program, is
            several.
        text: Characters of code and of expanded variables that are left; a variable that is
            doubled forty times would fill the memory.
    """

    left: int = STEPS
    text: int = 1024 * 1024

    @property
    def spent(self) -> bool:
        """Whether more was needed than there was."""
        return self.left < 0

    def spend(self, steps: int = 1) -> bool:
        """Take some steps; return whether there were that many left."""
        self.left -= steps
        return self.left >= 0

    def take(self, characters: int) -> bool:
        """Take characters; return whether there were that many left."""
        self.text -= characters
        return self.text >= 0
