"""Who a request belongs to: a session, and within it perhaps a sub-agent.

Read from where real clients put it (``switchyard_core.clients``); from the body only where a value
cannot be mistaken or where the policy names the place, because a wrong shared value would latch
strangers together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, TypeAlias

from switchyard_core.clients import Source, TurnMetadata, clients

__all__ = [
    "HEADER_NAME",
    "Headers",
    "Identity",
    "Mark",
    "from_subagent",
    "read_identity",
    "read_mark",
]

#: The name of a header, in any case.
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

#: Longest header value that can be an identity, in characters.
MAX_LENGTH = 8192

#: Longest turn metadata that is read, in characters; it lists the workspaces.
MAX_METADATA = 65536

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A client's own turn metadata."""

    metadata: Mapping[str, Any]  # the parsed turn metadata, empty without it
    subagent: str = ""  # the kind of sub-agent that a header or the metadata names
    of_root: bool = False  # whether it is upkeep of the root, though marked as a sub-agent's
    spawned: bool = False  # whether the metadata says that a sub-agent sent it


_NO_MARK = Mark(metadata={})


def read_mark(headers: Headers) -> Mark:
    """Return the client's own metadata; never fails on a broken one."""
    for turn in _places().turns:
        text = headers.by_name.get(turn.header, "")
        kind: Any = headers.by_name.get(turn.kind_header, "").strip()
        if not text and not kind:
            continue
        metadata = _object(text) if len(text) <= MAX_METADATA else {}
        kind = kind or metadata.get(turn.kind_key)
        kind = kind if isinstance(kind, str) else ""
        told = all(metadata.get(key) == value for key, value in turn.spawned.items())
        return Mark(
            metadata=metadata,
            subagent=kind,
            of_root=kind in turn.root_kinds,
            spawned=bool(told and metadata.get(turn.parent_key)),
        )
    return _NO_MARK


def read_identity(
    headers: Headers,
    mark: Mark,
    *,
    wire_format: str = "",
    body: Callable[[str], Any] = lambda _path: None,
    extra: Sequence[tuple[str, Callable[[], str | None]]] = (),
) -> tuple[Identity | None, str]:
    """Return whom a request belongs to, and the place of an id that cannot be used, or ``""``.

    ``body`` gives the value at a dotted path of the body; ``extra`` has the policy's sources, by
    place, which come behind the headers of clients and before their bodies. A sub-agent without
    an agent id, and an agent without a session, is nobody.
    """
    reader = _Reader(headers, mark, wire_format, body)
    place, found, agents = reader.session(extra)
    session = _clean(found)
    if session is None:
        return None, place
    if not _is_subagent(headers, mark):
        # A body says which of its threads it is of, and a sub-agent's has another name.
        where, agent = reader.first(agents)
        if agent and agent != session and not mark.of_root:
            return _as_agent(session, place, agent, where)
        return Identity(session=session, source=place), ""
    where, agent = reader.first(_places().agents)
    return _as_agent(session, place, agent, where) if where else (None, "")


def _as_agent(
    session: str, place: str, agent: str, agent_place: str
) -> tuple[Identity | None, str]:
    clean = _clean(agent)
    if clean is None:
        return None, agent_place
    found = Identity(session=session, agent=clean, source=place, agent_source=agent_place)
    return found, ""


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the places of one request where clients put ids."""

    headers: Headers
    mark: Mark
    wire_format: str
    body: Callable[[str], Any]

    def session(
        self, extra: Sequence[tuple[str, Callable[[], str | None]]]
    ) -> tuple[str, str, tuple[_Named, ...]]:
        """Return place and value of the first id, and where its client names agents in a body."""
        places = _places()
        # Half of the clients send none of these headers.
        if not places.headers.isdisjoint(self.headers.by_name):
            place, value = self.first(places.sessions)
            if place:
                return place, value, ()
        for name, read in extra:
            told = read()
            if isinstance(told, str) and told.strip():
                return name, told, ()
        for source, agents in places.bodies.get(self.wire_format, ()):
            place, value = self.first((source,))
            if place:
                return place, value, agents
        return "", "", ()

    def first(self, sources: Sequence[_Named]) -> tuple[str, str]:
        """Return place and value of the first source that has one; both empty without."""
        for place, source in sources:
            value = self._value(source)
            if isinstance(value, str) and value.strip():
                fit = source.fitting(value) if source.shape else value
                if fit:
                    return place, fit
        return "", ""

    def _value(self, source: Source) -> Any:
        if source.header:
            if source.key and source.header in _places().turn_headers:
                return self.mark.metadata.get(source.key)
            found: Any = self.headers.by_name.get(source.header)
        else:
            found = self.body(source.body)
        if not source.key:
            return found
        holder = _object(found) if isinstance(found, str) else found
        return holder.get(source.key) if isinstance(holder, dict) else None


#: A source behind its place, as explanations name it.
_Named: TypeAlias = tuple[str, Source]


def _named(sources: Iterable[Source]) -> tuple[_Named, ...]:
    return tuple((source.place, source) for source in sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where all clients put their ids, in the order in which they are looked for."""

    sessions: tuple[_Named, ...]  # headers
    headers: frozenset[str]  # their names
    #: By wire format, each with where agents are in such a body.
    bodies: Mapping[str, Sequence[tuple[_Named, tuple[_Named, ...]]]]
    agents: tuple[_Named, ...]  # headers
    signs: tuple[str, ...]
    children: tuple[str, ...]
    turns: tuple[TurnMetadata, ...]
    turn_headers: frozenset[str]


@cache
def _places() -> _Places:
    known = clients()
    turns = tuple(client.turn for client in known if client.turn is not None)
    bodies: dict[str, list[tuple[_Named, tuple[_Named, ...]]]] = {}
    for client in known:
        agents = _named(source for source in client.agent if source.body)
        for source in client.session:
            if source.body:
                named = (source.place, source)
                bodies.setdefault(source.wire_format, []).append((named, agents))
    return _Places(
        sessions=_named(s for client in known for s in client.session if s.header),
        headers=frozenset(s.header for client in known for s in client.session if s.header),
        bodies=bodies,
        agents=_named(s for client in known for s in client.agent if s.header),
        signs=tuple(name for client in known for name in client.subagent_headers),
        children=tuple(name for client in known for name in client.child_headers),
        turns=turns,
        turn_headers=frozenset(turn.header for turn in turns),
    )


def from_subagent(headers: Headers, mark: Mark) -> bool:
    """Return whether a sub-agent sent a request, in a session of its own or of its root."""
    children = _places().children
    return _is_subagent(headers, mark) or any(map(headers.by_name.__contains__, children))


def _is_subagent(headers: Headers, mark: Mark) -> bool:
    explicit = headers.flag("x-switchyard-is-subagent")
    if explicit is not None:
        return explicit
    if mark.of_root:
        return False
    signs = map(headers.by_name.get, _places().signs)
    return any(map(str.strip, filter(None, signs))) or bool(mark.subagent or mark.spawned)


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is, an empty one for any other text."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _clean(value: str) -> str | None:
    """Return a usable id: not blank, ASCII, at most 8 KiB."""
    value = value.strip()
    return value if value and len(value) <= MAX_LENGTH and value.isascii() else None
