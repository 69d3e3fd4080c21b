"""The policies that ship with the project, pointed at a provider on this machine."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from switchyard_core import WireFormat

PROVIDER_KEY = "provider-key-not-secret"
_POLICIES = Path(__file__).parents[2] / "policies"
_BASE_URL = re.compile(r'^base_url = "(.*)"$', re.MULTILINE)
#: The strict provider that stands for a real one, by host.
_STRICT = {
    "api.anthropic.com": "anthropic",
    "api.deepseek.com": "deepseek",
    "api.openai.com": "openai",
}


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """One policy file with a route of type ``plan_execute``."""

    name: str
    text: str

    def at(self, provider: str) -> str:
        """Return the policy with the hosts of its providers replaced, and nothing else."""
        return _BASE_URL.sub(
            lambda found: f'base_url = "{provider}{urlsplit(found[1]).path}"', self.text
        )

    @property
    def planner(self) -> str:
        """Model id of the planner."""
        return self._model("capable_target")

    @property
    def executor(self) -> str:
        """Model id of the executor."""
        return self._model("efficient_target")

    @property
    def formats(self) -> Mapping[str, WireFormat]:
        """The wire format of each target, by model id."""
        return {
            target["id"]: self._clients[target["llm_client"]]["format"]
            for target in self._content["targets"].values()
        }

    @property
    def wire_format(self) -> WireFormat:
        """The wire format of the planner."""
        return self.formats[self.planner]

    @property
    def strict(self) -> Mapping[WireFormat, str]:
        """The strict provider of each format."""
        return {
            client["format"]: _STRICT[urlsplit(client["base_url"]).netloc]
            for client in self._clients.values()
        }

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the server gets."""
        named = [c["api_key_env"] for c in self._clients.values() if "api_key_env" in c]
        return dict.fromkeys(named, PROVIDER_KEY)

    @property
    def forwards_key(self) -> bool:
        """Whether the client's own key reaches a provider."""
        return any(client.get("forward_auth") for client in self._clients.values())

    def sends_key_to(self, wire_format: str | None) -> bool:
        """Return whether the client's own key reaches the provider of a format."""
        return any(
            client.get("forward_auth", False)
            for client in self._clients.values()
            if client["format"] == wire_format
        )

    @cached_property
    def _content(self) -> dict[str, Any]:
        return tomllib.loads(self.text)

    @property
    def _clients(self) -> dict[str, dict[str, Any]]:
        clients: dict[str, dict[str, Any]] = self._content["llm_clients"]
        return clients

    def _model(self, role: str) -> str:
        routes = self._content["routes"].values()
        route = next(route for route in routes if route["type"] == "plan_execute")
        model: str = self._content["targets"][route[role]]["id"]
        return model


def shipped(name: str) -> Shipped:
    """Read ``policies/<name>.toml``."""
    return Shipped(name=name, text=(_POLICIES / f"{name}.toml").read_text())
