"""The policies that ship with the project, pointed at a provider on this machine."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from switchyard_core import WireFormat

PROVIDER_KEY = "provider-key-not-secret"
_POLICIES = Path(__file__).parents[2] / "policies"
_BASE_URL = re.compile(r'^base_url = "(.*)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """One policy file with a route of type ``plan_execute``."""

    name: str
    text: str
    wire_format: WireFormat
    planner: str
    executor: str
    key_variables: tuple[str, ...]  # those that the server needs, empty when it forwards the key

    def at(self, provider: str) -> str:
        """Return the policy with the host of its provider replaced, and nothing else."""
        return _BASE_URL.sub(
            lambda found: f'base_url = "{provider}{urlsplit(found[1]).path}"', self.text
        )

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the server gets."""
        return dict.fromkeys(self.key_variables, PROVIDER_KEY)

    @property
    def forwards_key(self) -> bool:
        return not self.key_variables


def shipped(name: str) -> Shipped:
    """Read ``policies/<name>.toml``."""
    text = (_POLICIES / f"{name}.toml").read_text()
    content = tomllib.loads(text)
    targets = content["targets"]
    route = next(r for r in content["routes"].values() if r["type"] == "plan_execute")
    planner, executor = targets[route["capable_target"]], targets[route["efficient_target"]]
    client = content["llm_clients"][planner["llm_client"]]
    return Shipped(
        name=name,
        text=text,
        wire_format=client["format"],
        planner=planner["id"],
        executor=executor["id"],
        key_variables=tuple(
            c["api_key_env"] for c in content["llm_clients"].values() if "api_key_env" in c
        ),
    )
