"""What each coding agent sends: where its ids are, what marks its side calls, what it retries on.

All of it is data: one TOML file per client in this folder. ``README.md`` there explains the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal

import msgspec
import tomli

from switchyard_core.patterns import id_glob, linear, pattern_set

__all__ = [
    "SMALL_MODEL",
    "Client",
    "Retries",
    "SideCall",
    "SideCallMark",
    "Source",
    "TurnMetadata",
    "clients",
    "forwarded",
    "gets_error_event",
    "identity_headers",
    "is_for_provider",
    "is_small_model",
    "path_prefixes",
    "side_call_kinds",
    "workspaces_in",
]

#: Kind and mark of a request for a model that clients use for side calls.
SMALL_MODEL = "small_model"
#: Directories that one way of saying it may name.
_MOST_ROOTS = 8
#: Between the directories of one line.
_SEVERAL = re.compile(r",\s+(?=[/~]|[A-Za-z]:)")


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables of a client's file."""


class Source(_Table, frozen=True, kw_only=True):
    """Where a client puts an id: a header, or a field of the body."""

    header: str = ""
    body: str = ""  # dotted path
    key: str = ""  # of the JSON object that is there, as an object or as text
    shape: str = ""  # RE2 that the whole value matches; its group `id`, if any, is the id
    wire_format: str = ""  # of the requests whose body has it

    @property
    def place(self) -> str:
        """How explanations name it."""
        return f"header:{self.header}" if self.header else f"body:$.{self.body}"

    def fitting(self, value: str) -> str:
        """Return the id in a value, ``""`` when it has another shape."""
        if not self.shape:
            return value
        found = _shape(self.shape).fullmatch(value.strip().encode("utf-8", "replace").decode())
        if found is None:
            return ""
        return str(found["id"] if "id" in found.groupdict() else found[0])


class TurnMetadata(_Table, frozen=True, kw_only=True):
    """A header in which a client says, as JSON, what a request is."""

    header: str
    kind_header: str  # has the kind of a sub-agent
    kind_key: str  # so has this key of the JSON
    root_kinds: tuple[str, ...]  # kinds that are upkeep of the root conversation
    spawned: dict[str, str]  # keys and values that mark a sub-agent
    parent_key: str  # key that such a sub-agent has as well


class SideCallMark(_Table, frozen=True, kw_only=True):
    """How a client marks a side call: every part that is set must hold."""

    name: str
    kind: str
    wire_format: str = ""
    headers: tuple[str, ...] = ()  # that are there
    user_agent: str = ""  # begin of that header
    metadata: str = ""  # key of the turn metadata that is there
    values: tuple[str, ...] = ()  # its values, () for all
    unless: tuple[str, ...] = ()  # values that it must not have
    subagent: tuple[str, ...] = ()  # kinds of sub-agent
    body: tuple[str, ...] = ()  # dotted keys that are there and not null
    tools: bool = True  # whether it may offer tools
    system: tuple[str, ...] = ()  # one of these is in the instructions
    user: tuple[str, ...] = ()  # a line of the user's last message begins with one of these


class Retries(_Table, frozen=True, kw_only=True):
    """What a client tries again."""

    statuses: tuple[int, ...] = ()
    words: str = ""  # regular expression, any case, on the text of an error
    cut_stream: bool | None = None  # whether it repeats a stream that was cut; None: unknown
    #: How a stream that is cut ends for it: with an error event, or with a broken connection.
    cut: Literal["event", "break"] = "event"


class Client(_Table, frozen=True, kw_only=True):
    """One coding agent."""

    name: str
    order: int  # the ids of a client with a lower number are looked for first
    user_agent: str = ""  # begin of that header
    session: tuple[Source, ...] = ()
    agent: tuple[Source, ...] = ()
    subagent_headers: tuple[str, ...] = ()  # that only requests of sub-agents have
    child_headers: tuple[str, ...] = ()  # of sub-agents that have a session of their own
    other_ids: tuple[str, ...] = ()  # further headers that say whose request it is
    small_models: tuple[str, ...] = ()  # globs on the ids of models for side calls
    for_provider: tuple[str, ...] = ()  # begins of instructions to its own provider, no model
    workspace: tuple[str, ...] = ()  # RE2 on a prompt, `root` has directories, one per line
    path_prefixes: tuple[str, ...] = ()  # of paths, in front of those of a wire format
    forward: dict[str, tuple[str, ...]] = {}  # headers that go on, by wire format
    turn: TurnMetadata | None = None
    side_calls: tuple[SideCallMark, ...] = ()
    retries: Retries | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCall:
    """What is known of a request that a client makes for itself.

    Args:
        kind: ``compaction``, ``title``, ``small_model``, ``count_tokens``, …: one word.
        mark: Name of what told: a client's mark, or ``housekeeping[<number>]`` of the policy.
    """

    kind: str
    mark: str


@cache
def clients() -> tuple[Client, ...]:
    """Return every known client, in the order in which their ids are looked for."""
    found = [
        msgspec.convert(tomli.loads(entry.read_text("utf-8")), Client)
        for entry in files("switchyard_core.clients").iterdir()
        if entry.name.endswith(".toml")
    ]
    return tuple(sorted(found, key=lambda client: client.order))


@cache
def forwarded(wire_format: str) -> tuple[str, ...]:
    """Return the headers of clients that go to every target of a wire format."""
    return tuple(name for client in clients() for name in client.forward.get(wire_format, ()))


@cache
def identity_headers() -> frozenset[str]:
    """Return the names of all headers that say whose request it is: no provider gets them."""
    names = {
        name
        for client in clients()
        for name in (
            *(source.header for source in (*client.session, *client.agent)),
            *client.subagent_headers,
            *client.child_headers,
            *client.other_ids,
        )
    }
    return frozenset(names - {""})


@cache
def path_prefixes() -> tuple[str, ...]:
    """Return what may stand in front of the paths of a wire format."""
    return tuple(prefix for client in clients() for prefix in client.path_prefixes)


@cache
def side_call_kinds() -> frozenset[str]:
    """Return the kinds of side calls that clients mark."""
    return frozenset({SMALL_MODEL, *(m.kind for client in clients() for m in client.side_calls)})


def is_for_provider(instruction: str) -> bool:
    """Return whether a client means an instruction for its own provider, and for no model."""
    return instruction.startswith(_for_provider())


@cache
def _for_provider() -> tuple[str, ...]:
    return tuple(begin for client in clients() for begin in client.for_provider)


def gets_error_event(user_agent: str) -> bool:
    """Return whether a stream that is cut ends with an error event, as trials with a client say."""
    retries = next(
        (
            client.retries
            for client in clients()
            if client.user_agent and user_agent.startswith(client.user_agent)
        ),
        None,
    )
    return retries is None or retries.cut == "event"


def workspaces_in(text: str) -> tuple[str, ...]:
    """Return the directories that a client's prompt calls the workspace, each once."""
    data = text.encode("utf-8", "replace")
    patterns, found = _workspace_words()
    matches = (
        match["root"].decode("utf-8")
        for place in sorted(found(data) or ())
        for match in islice(patterns[place].finditer(data), _MOST_ROOTS)
    )
    lines = (line.strip().removeprefix("- ") for root in matches for line in root.splitlines())
    roots = (root.strip(" \t`'\"") for line in lines for root in _SEVERAL.split(line))
    return tuple(dict.fromkeys(filter(None, roots)))


@cache
def _workspace_words() -> tuple[
    list[re.Pattern[Any]], Callable[[str | bytes], Sequence[int] | None]
]:
    """Return every client's words for the workspace, and what finds which of them a text has."""
    words = list(dict.fromkeys(word for client in clients() for word in client.workspace))
    # The engine works on bytes, and would count the characters of a text for every pattern.
    return [linear(word) for word in words], pattern_set([f"(?m:{word})" for word in words])


def is_small_model(model: str) -> bool:
    """Return whether an id is one of the models that clients use for their side calls."""
    return any(matches(model) for matches in _small_models())


@cache
def _small_models() -> tuple[Callable[[str], bool], ...]:
    globs = dict.fromkeys(glob for client in clients() for glob in client.small_models)
    return tuple(map(id_glob, globs))


@cache
def _shape(pattern: str) -> re.Pattern[str]:
    return linear(pattern)
