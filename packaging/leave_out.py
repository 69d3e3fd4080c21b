"""Build hook of the core: leaves plugins of the repository out of the wheel when asked.

``SWITCHYARD_WITHOUT="plan_execute demo_routers" python -m build --wheel`` makes a core without
these plugins and without their entry points; ``packaging/<plugin>`` builds each of them as a
wheel of its own. So every built-in can be shown to need nothing that a stranger's plugin lacks.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["LeaveOut"]

#: Names of entry points, separated by spaces.
VARIABLE = "SWITCHYARD_WITHOUT"
#: The entry-point group whose modules are packages below ``plugins/``.
GROUP = "switchyard"


class LeaveOut(BuildHookInterface[Any]):
    """Takes the plugins that the environment names out of packages and entry points."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Change what is about to be built.

        Raises:
            ValueError: The variable names something that is no plugin of the repository.
        """
        points: dict[str, str] = self.metadata.core.entry_points[GROUP]
        packages: list[str] = self.build_config.target_config["packages"]
        for name in os.environ.get(VARIABLE, "").split():
            package = f"plugins/{points.get(name)}"
            if package not in packages:
                known = ", ".join(
                    n for n, module in points.items() if f"plugins/{module}" in packages
                )
                msg = f"{VARIABLE}: `{name}` is no plugin of this repository; known: {known}"
                raise ValueError(msg)
            del points[name]
            packages.remove(package)
