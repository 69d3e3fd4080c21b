"""Reloading the policy while it is served: on SIGHUP, or when its files change.

A policy with errors changes nothing. A good one serves the requests that come from then on;
running ones keep the policy they began with.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from switchyard_core.engine.calling import script_findings
from switchyard_core.errors import Finding, PluginError
from switchyard_core.policy import Policy, check_policy
from switchyard_core.server.app import SwitchyardApp

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["POLL_S", "Reloader", "policy_changes"]

#: Seconds between two looks at the files of a policy.
POLL_S = 0.5

_LOG = logging.getLogger("switchyard")
_Stamp = tuple[int, int, int] | None


class Reloader:
    """Replaces the policy of an application by what its file says now.

    ``also`` gives further findings; errors keep the old policy. Without ``poll_s`` it waits to
    be asked, and without ``environ`` nothing looks for the variables of ``api_key_env``.
    """

    def __init__(
        self,
        app: SwitchyardApp,
        config: str,
        *,
        say: Callable[[str], None],
        environ: Mapping[str, str] | None = None,
        also: Callable[[Policy], Sequence[Finding]] = lambda _policy: (),
        poll_s: float | None = None,
    ) -> None:
        self._app = app
        self._config = config
        self._say = say
        self._environ = environ
        self._also = also
        self._poll_s = poll_s
        self._asked = asyncio.Event()
        self._files = _files_of(app.engine.policy)
        self._read = _stamps(self._files)
        self._seen = self._read

    def ask(self) -> None:
        """Have the policy read again soon; call it in the loop of :meth:`run`."""
        self._asked.set()

    async def run(self) -> None:
        """Reload whenever that is asked for or the files changed; ends only by cancellation."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._asked.wait()
            if self._asked.is_set() or self._settled():
                self._asked.clear()
                try:
                    await self.reload()
                except Exception:  # noqa: BLE001  # nor may this end the watch
                    # Such as a latch store that cannot count, or a closed terminal.
                    _LOG.exception("reloading the policy failed")

    def _settled(self) -> bool:
        """Return whether the files differ from what was read and are no longer being written."""
        before, self._seen = self._seen, _stamps(self._files)
        return self._seen != self._read and self._seen == before

    async def reload(self) -> bool:
        """Read the policy, report its findings, and return whether it serves now."""
        self._read = self._seen = _stamps(self._files)
        before = self._app.engine
        try:
            # In a thread: requests are served meanwhile.
            engine, findings, files = await asyncio.to_thread(self._load, before)
        except PluginError as error:
            return self._refused(str(error))
        except Exception as error:  # noqa: BLE001  # an error must not end the watch
            _LOG.exception("the policy could not be reloaded")
            return self._refused(f"{type(error).__name__}: {error}")
        for finding in findings:
            self._say(finding.render())
        self._watch(files)
        if engine is None:
            errors = sum(finding.severity == "error" for finding in findings)
            return self._refused(f"{errors} {'error' if errors == 1 else 'errors'}")
        await self._app.replace(engine)
        self._say(f"reloaded {self._config}")
        for line in policy_changes(before.policy, engine.policy):
            self._say(f"  {line}")
        for line in await _latch_notes(before, engine):
            self._say(f"  {line}")
        return True

    def _refused(self, why: str) -> bool:
        self._say(f"not reloaded {self._config}: {why}; keeping the previous policy")
        return False

    def _load(self, before: Switchyard) -> tuple[Switchyard | None, list[Finding], set[Path]]:
        """Return an engine, unless the policy has errors; its findings; its files."""
        result = check_policy(self._config, before.registry, environ=self._environ)
        findings = [*result.findings]
        policy = result.policy
        if policy is not None:
            findings += [*script_findings(policy), *self._also(policy)]
        wrong = any(finding.severity == "error" for finding in findings)
        # Of a policy with errors we only know what it was, and where its errors are.
        known = before.policy if policy is None else policy
        files = {*_files_of(known)} | {Path(finding.file) for finding in findings}
        engine = None if policy is None or wrong else before.successor(policy)
        return engine, findings, files

    def _watch(self, files: Iterable[Path]) -> None:
        """Look at these files from now on; what was seen of the old ones stays seen."""
        self._files = frozenset(files)
        new = _stamps(self._files - set(self._read))
        self._read = self._seen = {
            file: self._read[file] if file in self._read else new[file] for file in self._files
        }


def _files_of(policy: Policy) -> frozenset[Path]:
    scripts = (client.script for client in policy.clients.values())
    return frozenset((*policy.files, *(script for script in scripts if script is not None)))


def _stamps(files: Iterable[Path]) -> dict[Path, _Stamp]:
    """Return what changes when a file is written or replaced, by file; ``None`` without one."""
    found: dict[Path, _Stamp] = {}
    for file in files:
        found[file] = None
        with contextlib.suppress(OSError):
            about = file.stat()
            found[file] = about.st_mtime_ns, about.st_size, about.st_ino
    return found


def policy_changes(before: Policy, after: Policy) -> list[str]:
    """Return what differs between two policies, a line for each thing, for people."""
    lines: list[str] = []
    for word, old, new in (
        ("client", before.clients, after.clients),
        ("target", before.targets, after.targets),
        ("route", before.routes, after.routes),
        ("rule set", before.rule_sets, after.rule_sets),
        ("price", before.prices, after.prices),
    ):
        lines += _differences(word, old, new)
    for key in ("default_route", "fallback_client", "identity", "housekeeping", "replay"):
        was, now = before.document.values.get(key), after.document.values.get(key)
        if was != now:
            word = "added  " if was is None else "removed" if now is None else "changed"
            lines.append(f"{word}  `{key}`")
    return lines or ["no changes"]


def _differences(word: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    yield from (f"added    {word} `{name}`" for name in new if name not in old)
    yield from (f"removed  {word} `{name}`" for name in old if name not in new)
    both = (name for name in new if name in old)
    yield from (f"changed  {word} `{name}`" for name in both if old[name] != new[name])


async def _latch_notes(before: Switchyard, after: Switchyard) -> list[str]:
    """Return a line for each route whose latches were not simply kept."""
    lines = []
    for name, runtime in after.runtimes.items():
        old = before.runtimes.get(name)
        if old is None or old.store is None or runtime.store is None:
            continue
        if runtime.store is not old.store:
            lines.append(f"latches  of route `{name}` start over: its type or its store changed")
            continue
        count = await runtime.store.count()
        if count > runtime.store.capacity:
            lines.append(
                f"latches  of route `{name}`: {count} sessions, over the new capacity of "
                f"{runtime.store.capacity}; none is evicted, and new ones are refused "
                "until enough slots are free"
            )
    return lines
