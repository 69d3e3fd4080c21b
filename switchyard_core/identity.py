"""Who a request belongs to: a session, and within it perhaps a sub-agent.

Read from headers that real clients send; from the body only where a value cannot be mistaken
or where the policy names the place, because a wrong shared value would latch strangers
together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from switchyard_core.patterns import linear

__all__ = [
    "HEADER_NAME",
    "Headers",
    "Identity",
    "Mark",
    "read_identity",
    "read_mark",
]

#: The name of a header, in any case.
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

#: Longest header value that can be an identity, in characters.
MAX_LENGTH = 8192

#: Longest turn metadata that is read, in characters; it lists the workspaces.
MAX_METADATA = 65536

_CODEX_METADATA = "x-codex-turn-metadata"
_SESSION_HEADERS = (
    "x-switchyard-session-id",
    "x-claude-code-session-id",
    "x-nemo-relay-session-id",
    "x-session-id",
    _CODEX_METADATA,
    "session-id",
    "session_id",
)
_AGENT_HEADERS = (
    "x-switchyard-agent-id",
    "x-claude-code-agent-id",
    "x-nemo-relay-subagent-id",
    _CODEX_METADATA,
    "thread-id",
)
_SIGN_HEADERS = ("x-claude-code-agent-id", "x-nemo-relay-subagent-id")
# A client's own upkeep of the root conversation, though it is marked like a sub-agent.
_MAINTENANCE = frozenset({"compact", "memory_consolidation"})
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_USER_ID = linear(r"user_.+_account_.*_session_(?P<session>[0-9A-Za-z-]+)")


class Headers(Mapping[str, str]):
    """Request headers: names without case, the first value of a repeated one that is not blank.

    Args:
        items: A mapping, or pairs of name and value; both ``str``.
    """

    __slots__ = ("by_name", "items_")

    def __init__(self, items: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> None:
        pairs = items.items() if isinstance(items, Mapping) else items
        #: The value of each name in lower case; all pairs as they came.
        self.by_name: dict[str, str] = {}
        found: list[tuple[str, str]] = []
        for key, value in pairs:
            name = key.lower()
            found.append((name, value))
            if not self.by_name.get(name, "").strip():
                self.by_name[name] = value
        self.items_: tuple[tuple[str, str], ...] = tuple(found)

    def __getitem__(self, name: str) -> str:
        return self.by_name[name.lower()]

    def __iter__(self) -> Any:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def joined(self, name: str) -> str | None:
        """Return all values of a header as one, as HTTP joins them; ``None`` without any."""
        values = [value for key, value in self.items_ if key == name and value.strip()]
        return ", ".join(values) if values else None

    def flag(self, *names: str) -> bool | None:
        """Return the first of some headers that says yes or no, ``None`` without one."""
        for name in names:
            word = self.by_name.get(name, "").strip().lower()
            if word in _TRUE:
                return True
            if word in _FALSE:
                return False
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A session and, for a sub-agent, the agent within it; compared as a pair.

    Args:
        session: Session id, 1 to 8192 ASCII characters.
        agent: Agent id, ``None`` for the root conversation.
        source: Where the session id was found: ``header:<name>`` or ``body:<path>``.
        agent_source: Where the agent id was found, ``""`` for the root.
    """

    session: str
    agent: str | None = None
    source: str = ""
    agent_source: str = ""

    @property
    def key(self) -> tuple[str, str | None]:
        """The pair that latch stores compare."""
        return (self.session, self.agent)

    @property
    def root(self) -> Identity:
        """The root conversation of the same session."""
        return self if self.agent is None else Identity(session=self.session, source=self.source)

    @property
    def digest(self) -> str:
        """A short hash for logs, which never hold the ids themselves."""
        text = f"{self.session}\0{self.agent or ''}"
        return blake2b(text.encode("ascii", "replace"), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Mark:
    """A client's own turn metadata."""

    metadata: Mapping[str, Any]  # the parsed Codex turn metadata, empty without it
    subagent: str  # `x-openai-subagent` or the metadata's `subagent_kind`, `""` without

    @property
    def of_root(self) -> bool:
        """Whether the request is upkeep of the root, though marked as a sub-agent's."""
        return self.subagent in _MAINTENANCE


def read_mark(headers: Headers) -> Mark:
    """Return the client's own metadata; never fails on a broken one."""
    metadata: Any = {}
    text = headers.by_name.get(_CODEX_METADATA)
    if text and len(text) <= MAX_METADATA:
        try:
            metadata = json.loads(text)
        except (ValueError, RecursionError):
            metadata = {}
    if not isinstance(metadata, dict):
        metadata = {}
    kind = headers.by_name.get("x-openai-subagent", "").strip() or metadata.get("subagent_kind")
    return Mark(metadata=metadata, subagent=kind if isinstance(kind, str) else "")


def read_identity(
    headers: Headers,
    mark: Mark,
    *,
    user_id: Callable[[], str | None] | None = None,
    extra: Sequence[tuple[str, Callable[[], str | None]]] = (),
) -> tuple[Identity | None, str]:
    """Return whom a request belongs to, and the place of an id that cannot be used, or ``""``.

    ``user_id`` reads the body; ``extra`` has the policy's sources, by place. A sub-agent without
    an agent id, and an agent without a session, is nobody.
    """
    place, found = _session(headers, mark, user_id, extra)
    session = _clean(found)
    if session is None:
        return None, place
    if not _is_subagent(headers, mark):
        return Identity(session=session, source=place), ""
    for name in _AGENT_HEADERS:
        told = mark.metadata.get("thread_id") if name == _CODEX_METADATA else headers.get(name)
        if isinstance(told, str) and told.strip():
            agent, found_at = _clean(told), f"header:{name}"
            if agent is None:
                return None, found_at
            return Identity(session=session, agent=agent, source=place, agent_source=found_at), ""
    return None, ""


def _session(
    headers: Headers,
    mark: Mark,
    user_id: Callable[[], str | None] | None,
    extra: Sequence[tuple[str, Callable[[], str | None]]],
) -> tuple[str, str]:
    """Return the place of the first id that is given, and the id; both empty without one."""
    value: Any
    for name in _SESSION_HEADERS:
        codex = name == _CODEX_METADATA
        value = mark.metadata.get("session_id") if codex else headers.by_name.get(name)
        if isinstance(value, str) and value.strip():
            return f"header:{name}", value
    for name, read in extra:
        value = read()
        if isinstance(value, str) and value.strip():
            return name, value
    value = _session_of_user_id(user_id()) if user_id else None
    return ("body:$.metadata.user_id", value) if value and value.strip() else ("", "")


def _is_subagent(headers: Headers, mark: Mark) -> bool:
    explicit = headers.flag("x-switchyard-is-subagent")
    if explicit is not None:
        return explicit
    if mark.of_root:
        return False
    for name in _SIGN_HEADERS:
        if headers.by_name.get(name, "").strip():
            return True
    metadata = mark.metadata
    threaded = metadata.get("thread_source") == "subagent" and metadata.get("parent_thread_id")
    return bool(mark.subagent or threaded)


def _session_of_user_id(user_id: str | None) -> str | None:
    """Read the two forms of Claude Code; anything else may be shared by strangers."""
    if not user_id:
        return None
    if user_id.lstrip().startswith("{"):
        try:
            value = json.loads(user_id)
        except (ValueError, RecursionError):
            return None
        session = value.get("session_id") if isinstance(value, dict) else None
        return session if isinstance(session, str) else None
    match = _USER_ID.fullmatch(user_id.encode("utf-8", "replace").decode())
    return match["session"] if match else None


def _clean(value: str) -> str | None:
    """Return a usable id: not blank, ASCII, at most 8 KiB."""
    value = value.strip()
    return value if value and len(value) <= MAX_LENGTH and value.isascii() else None
