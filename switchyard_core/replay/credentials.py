"""What of a call may be kept: headers, statuses, and nothing that holds a credential.

A recording is committed and shared. Cutting a secret out would change what was sent, so the
person who records decides; the message names the field and never its value.

Recordings are full of long random words (ids, signatures, pictures), so only what has the
beginning of a known kind of key counts, not everything that looks random, and not in fields
that hold opaque data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import tomli

from switchyard_core.patterns import linear, pattern_set
from switchyard_core.policy.secrets import shown
from switchyard_core.replay.recording import object_of
from switchyard_core.upstream.played import MAX_DEPTH

__all__ = ["credential_in_body", "credential_in_stream", "listed", "without_credentials"]


# Searched in whatever a model says, so no text may slow them down.
_KNOWN = pattern_set(
    (
        r"\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bhf_[A-Za-z0-9]{16,}",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\bAIza[A-Za-z0-9_-]{30,}",
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.",
        r"-----BEGIN [A-Z ]*PRIVATE KEY",
    )
)
#: What begins as keys of OpenAI, Anthropic, Stripe and those like them do.
_PREFIXED = linear(r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]+")
_PREFIXES = frozenset({"sk", "pk", "rk"})
#: Words that may come between such a prefix and the key, as in `sk-proj-…`.
_MOST_WORDS = 8
_SENT = linear(r"(?i:\b(?:bearer|basic))\s+([A-Za-z0-9+/_.=-]{16,})")
#: User and password in a URL, and the placeholders that every manual has.
_IN_URL = linear(r"""://[^/\s@:"']*:([^/\s@"']+)@""")
_PLACEHOLDER = linear(
    r"(?i:pass(?:word|wd)?|secret|changeme|postgres|root|admin|user|test|x+|[*]+|[$<{%].*)"
)
#: Characters of a word that mixes letters and digits, of any word, and of a whole key that mixes
#: digits, capitals and small letters.
_MIXED_WORD, _LONG_WORD, _LONG_KEY = 12, 20, 32
_DIGIT = re.compile(r"[0-9]")
_PUNCTUATION = re.compile(r"[-_]")


@cache
def listed(name: str) -> Mapping[Any, None]:
    """Return the members of a list of ``recordings.toml``, in their order."""
    path = files("switchyard_core.replay").joinpath("recordings.toml")
    return dict.fromkeys(tomli.loads(path.read_text(encoding="utf-8"))[name])


def credential_in_body(body: bytes) -> str | None:
    """Return where a body seems to hold a credential, as in ``tools[0].headers.x``, or ``None``."""
    tree = object_of(body)
    if tree is None:
        return "the body" if _holds_credential(body.decode("utf-8", "replace")) else None
    return _first(tree)


def credential_in_stream(body: bytes) -> str | None:
    """Return where a stream seems to hold a credential, in one event or in their joined texts."""
    pieces: dict[tuple[str, ...], list[str]] = {}
    number = 0
    # Of bytes only line feeds and carriage returns end a line, as in a stream.
    for line in [part.decode("utf-8", "replace") for part in body.splitlines()]:
        name, _, data = line.partition(":")
        tree = object_of(data.strip().encode("utf-8")) if name == "data" else None
        if tree is None:
            if name != "data" or data.strip() == "[DONE]":
                continue
            if _holds_credential(data):
                return f"event {number + 1}"
        else:
            found = _first(tree)
            if found is not None:
                return f"event {number + 1}: {found}"
            for group, text in _pieces(tree):
                pieces.setdefault(group, []).append(text)
        number += 1
    for group, texts in pieces.items():
        if _of_text("".join(texts)):
            return f"the text of `{group[-1]}` in the stream's events together"
    return None


def without_credentials(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; those that seem to hold a credential are replaced."""
    for line in lines:
        yield f"{line[:1]} (hidden: looks like a credential)" if _holds_credential(line) else line


def _first(tree: Any) -> str | None:
    found = next(_found(tree, ()), None)
    if found is None:
        return None
    steps = (f"[{step}]" if isinstance(step, int) else f".{shown(step)}" for step in found)
    return "".join(steps).removeprefix(".")


def _found(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if len(path) > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, str):
                yield from _found(item, (*path, key))
            elif _PUNCTUATION.sub("", key.lower()) in listed("credential_fields"):
                if item.strip():
                    yield (*path, key)
            elif key not in listed("opaque_fields") and _of_text(item):
                yield (*path, key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if not isinstance(item, str):
                yield from _found(item, (*path, index))
            elif _of_text(item):
                yield (*path, index)


def _of_text(text: str) -> bool:
    """Return whether a text holds a credential, or is JSON with one, as arguments of calls are."""
    if text.startswith("data:"):
        return False
    if _holds_credential(text):
        return True
    if not text.lstrip().startswith("{"):
        return False
    try:
        return _first(json.loads(text)) is not None
    except (ValueError, RecursionError):
        return False


def _holds_credential(text: str) -> bool:
    # Half of an emoji, as some clients send it, cannot be encoded for the engine.
    plain = text.encode("utf-8", "replace").decode()
    return (
        bool(_KNOWN(plain))
        or any(_is_key(plain, found) for found in _PREFIXED.finditer(plain))
        or any(_DIGIT.search(found[1]) for found in _SENT.finditer(plain))
        or any(not _PLACEHOLDER.fullmatch(found[1]) for found in _IN_URL.finditer(plain))
    )


def _is_key(text: str, found: re.Match[str]) -> bool:
    """Return whether a text with a key's prefix is one, and not `sk_buff_head_init`."""
    words = found[0].replace("_", "-").split("-")
    before = text[max(found.start() - 1, 0) : found.start()]
    begun = None if before.isascii() and before.isalnum() else 0
    first = begun
    for number, word in enumerate(words):
        if begun is not None and number - begun <= _MOST_WORDS + 1 and _is_random(word):
            return True
        if number and word in _PREFIXES:
            begun = number
            first = number if first is None else first
    if first is None:
        return False
    rest = "-".join(words[first + 1 :])
    mixed = rest not in (rest.lower(), rest.upper()) and _DIGIT.search(rest) is not None
    return mixed and len(rest) >= _LONG_KEY


def _is_random(word: str) -> bool:
    mixed = not word.isdigit() and not word.isalpha()
    return len(word) >= (_MIXED_WORD if mixed else _LONG_WORD)


def _pieces(value: Any, group: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of an event that continue in the next, by what tells them apart."""
    if isinstance(value, dict):
        marks = tuple(f"{key}={value[key]}" for key in ("index", "output_index") if key in value)
        for key, item in value.items():
            if isinstance(item, str):
                if key in listed("delta_fields"):
                    yield (*group, *marks, key), item
            else:
                yield from _pieces(item, (*group, *marks))
    elif isinstance(value, list):
        for item in value:
            yield from _pieces(item, group)
