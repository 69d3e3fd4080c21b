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
    "unfit_source",
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

    __slots__ = ("_values", "items_")

    def __init__(self, items: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> None:
        pairs = items.items() if isinstance(items, Mapping) else items
        self.items_: tuple[tuple[str, str], ...] = tuple((n.lower(), v) for n, v in pairs)
        self._values: dict[str, str] = {}
        for name, value in self.items_:
            if not self._values.get(name, "").strip():
                self._values[name] = value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def joined(self, name: str) -> str | None:
        """Return all values of a header as one, as HTTP joins them; ``None`` without any."""
        values = [value for key, value in self.items_ if key == name and value.strip()]
        return ", ".join(values) if values else None

    def flag(self, *names: str) -> bool | None:
        """Return the first of some headers that says yes or no, ``None`` without one."""
        for name in names:
            word = self._values.get(name, "").strip().lower()
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

    @property
    def maintenance(self) -> bool:
        """Whether the client marks the request as upkeep, such as compaction."""
        kind = self.metadata.get("request_kind")
        return self.of_root or (isinstance(kind, str) and kind != "turn")


def read_mark(headers: Headers) -> Mark:
    """Return the client's own metadata; never fails on a broken one."""
    metadata: Any = {}
    text = headers.get(_CODEX_METADATA)
    if text and len(text) <= MAX_METADATA:
        try:
            metadata = json.loads(text)
        except (ValueError, RecursionError):
            metadata = {}
    if not isinstance(metadata, dict):
        metadata = {}
    kind = headers.get("x-openai-subagent", "").strip() or metadata.get("subagent_kind")
    return Mark(metadata=metadata, subagent=kind if isinstance(kind, str) else "")


def read_identity(
    headers: Headers,
    mark: Mark,
    *,
    user_id: Callable[[], str | None] | None = None,
    extra: Sequence[tuple[str, Callable[[], str | None]]] = (),
) -> Identity | None:
    """Return whom a request belongs to, or ``None`` and the place of an unusable id.

    A sub-agent without an agent id, and an agent without a session, is nobody.
    """
    return _read(headers, mark, user_id, extra)[0]


def unfit_source(
    headers: Headers,
    mark: Mark,
    *,
    user_id: Callable[[], str | None] | None = None,
    extra: Sequence[tuple[str, Callable[[], str | None]]] = (),
) -> str:
    """Return where a request names itself in a way that is no identity, ``""`` if nowhere.

    That is an id with other than ASCII characters, or one over 8192 of them. It makes the
    request nobody's, and its sender should hear which header it was.
    """
    return _read(headers, mark, user_id, extra)[1]


def _read(
    headers: Headers,
    mark: Mark,
    user_id: Callable[[], str | None] | None,
    extra: Sequence[tuple[str, Callable[[], str | None]]],
) -> tuple[Identity | None, str]:
    """Return the identity, or ``None`` and the place of the id that is not fit to be one."""
    session, source = _session(headers, mark, user_id, extra)
    if session is None:
        return None, source
    if not _is_subagent(headers, mark):
        return Identity(session=session, source=source), ""
    for name in _AGENT_HEADERS:
        value = mark.metadata.get("thread_id") if name == _CODEX_METADATA else headers.get(name)
        if not _blank(value):
            agent, found = _clean(value), f"header:{name}"
            if agent is None:
                return None, found
            identity = Identity(session=session, agent=agent, source=source, agent_source=found)
            return identity, ""
    return None, ""


def _session(
    headers: Headers,
    mark: Mark,
    user_id: Callable[[], str | None] | None,
    extra: Sequence[tuple[str, Callable[[], str | None]]],
) -> tuple[str | None, str]:
    """Return the first id that is given and its place; both empty without one."""
    for name in _SESSION_HEADERS:
        value = mark.metadata.get("session_id") if name == _CODEX_METADATA else headers.get(name)
        if not _blank(value):
            return _clean(value), f"header:{name}"
    for name, read in extra:
        value = read()
        if not _blank(value):
            return _clean(value), name
    value = _session_of_user_id(user_id()) if user_id else None
    return (None, "") if _blank(value) else (_clean(value), "body:$.metadata.user_id")


def _is_subagent(headers: Headers, mark: Mark) -> bool:
    explicit = headers.flag("x-switchyard-is-subagent")
    if explicit is not None:
        return explicit
    if mark.of_root:
        return False
    if any(headers.get(name, "").strip() for name in _SIGN_HEADERS) or mark.subagent:
        return True
    metadata = mark.metadata
    return metadata.get("thread_source") == "subagent" and bool(metadata.get("parent_thread_id"))


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


def _blank(value: object) -> bool:
    return not isinstance(value, str) or not value.strip()


def _clean(value: object) -> str | None:
    """Return a usable id: not blank, ASCII, at most 8 KiB; anything else is no identity."""
    if not isinstance(value, str):
        return None
    value = value.strip()
    if not value or len(value) > MAX_LENGTH or not value.isascii():
        return None
    return value
