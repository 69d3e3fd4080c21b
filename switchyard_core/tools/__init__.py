"""Running the tools that a route lists: what a model asks for goes in, what it is told comes out.

Whatever goes wrong in a call is a result for the model, never an exception of the router.
"""

from __future__ import annotations

from switchyard_core.tools.box import MAX_OUTPUT_CHARS, Toolbox
from switchyard_core.tools.wording import spec_of

__all__ = ["MAX_OUTPUT_CHARS", "Toolbox", "spec_of"]
