"""Make the recordings that ship with the policies, from scripted replies.

Each ``policies/recordings/<name>.script.json`` plays the providers of ``policies/<name>.toml``;
what its requests get is recorded in ``policies/recordings/<name>/``. Run it after a change of a
prompt, a tool or the catalogue: ``make recordings``.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from contextlib import aclosing
from pathlib import Path

from switchyard_core import Request, Switchyard
from switchyard_core.policy import Client
from switchyard_core.replay import Replay
from switchyard_core.scripted import ScriptedUpstream, load_script
from switchyard_core.upstream.base import Upstream
from switchyard_core.world import World

ROOT = Path(__file__).parents[1]

#: What each policy is asked.
REQUESTS = {
    "planner_executor": (
        "switchyard/shop",
        "help me put together a birthday gift for someone who likes photography under $200",
    ),
}

#: When the recorded answers say that they were made, in seconds since the epoch: 2026-11-01.
WHEN = 1_793_491_200.0


async def record(name: str, folder: Path) -> None:
    """Record what one policy gets.

    Args:
        name: Its name, without a suffix.
        folder: Where the recordings go; empty.
    """
    script = load_script(ROOT / "policies/recordings" / f"{name}.script.json")

    def connect(client: Client) -> Upstream:
        return ScriptedUpstream(script, client.format, now=lambda: WHEN)

    yard = Switchyard.from_policy(
        ROOT / "policies" / f"{name}.toml",
        connect=connect,
        world=World(environ={"PROVIDER_API_KEY": "none"}),
        replay=Replay(folder, "record"),
    )
    model, text = REQUESTS[name]
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    events = yard.answer(Request(wire_format="openai_chat", body=body))
    async with aclosing(events):
        async for _ in events:
            pass
    await yard.aclose()


def main() -> None:
    """Record all of them."""
    for name in REQUESTS:
        folder = ROOT / "policies/recordings" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        asyncio.run(record(name, folder))
        sys.stdout.write(f"{folder.relative_to(ROOT)}: {len(list(folder.iterdir()))} files\n")


if __name__ == "__main__":
    main()
