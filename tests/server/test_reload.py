"""Reloading a policy while it is served."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json

import httpx
import pytest

from switchyard_core import Identity, LatchRecord, Switchyard
from switchyard_core.errors import Finding
from switchyard_core.server import reload
from switchyard_core.server.reload import Reloader, policy_changes
from switchyard_core.world import World
from tests.server.servers import KEY, BytesProvider, Reply, body, policy, served

CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}


def version(number, url, **more):
    """Return a policy in which everything that a request shows names the version."""
    text = policy("openai_chat", url, **more)
    return (
        text.replace("big-model", f"big-{number}")
        .replace("small-model", f"small-{number}")
        .replace("Plan first.", f"Plan by {number}.")
    )


class Running:
    """A server on a policy file, its reloader and what that said."""

    def __init__(self, url, app, reloader, said, path):
        self.url, self.app, self.reloader, self.said, self.path = url, app, reloader, said, path

    def write(self, text):
        # As editors do: a reader sees the old file or the new one.
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)

    @property
    def store(self):
        return self.app.engine.runtimes["coding"].store


@contextlib.asynccontextmanager
async def reloading(path, text, **options):
    path.write_text(text)
    said = []
    app = Switchyard.from_policy(path, world=World(environ={"UPSTREAM_KEY": KEY})).asgi()
    reloader = Reloader(app, str(path), say=said.append, **options)
    async with served(app) as url:
        yield Running(url, app, reloader, said, path)


@pytest.fixture
async def upstream():
    provider = BytesProvider()
    async with served(provider) as url:
        provider.url = url
        yield provider


@pytest.fixture
def file(tmp_path):
    return tmp_path / "policy.toml"


def ask(client, url, session="", **options):
    headers = JSON | ({"x-switchyard-session-id": session} if session else {})
    return client.post(url + CHAT, content=body("openai_chat", **options), headers=headers)


async def echo(scope, receive, send):
    """Answer with what was sent, so that each answer can be laid beside its request."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    message = await receive()
    sent = message["body"]
    while message.get("more_body"):
        message = await receive()
        sent += message["body"]
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": sent, "more_body": False})


class Load:
    """Many callers of one server, while its policy changes; remembers what came back."""

    requests, changes, sessions = 600, 20, 25

    def __init__(self, url):
        self.url = url
        self.numbers = itertools.count()
        self.statuses, self.problems, self.versions = [], [], set()
        self.came = asyncio.Event()

    async def call(self, client, url):
        while (number := next(self.numbers)) < self.requests:
            # Every second request belongs to a session that was latched before.
            latched = number % 2 == 0
            answer = await ask(client, url, f"s-{number % self.sessions}" if latched else "")
            self.statuses.append(answer.status_code)
            self.came.set()
            if answer.status_code != 200:
                self.problems.append(answer.text)
                continue
            told = answer.headers["x-model-router-selected-model"]
            kind, _, version_of_it = told.partition("-")
            self.versions.add(int(version_of_it))
            prompted = f"Plan by {version_of_it}." in answer.text
            right = kind == ("small" if latched else "big") and prompted is not latched
            if not right or answer.json()["model"] != told:
                self.problems.append(f"{told}: {answer.text}")

    async def change(self, running):
        for number in range(1, self.changes + 1):
            while len(self.statuses) < number * self.requests // (self.changes + 2):
                self.came.clear()
                await self.came.wait()
            text, broken = version(number, self.url), number % 4 == 0
            running.write(text.replace('"planner"\n', '"planer"\n') if broken else text)
            assert await running.reloader.reload() is not broken


@pytest.mark.timeout(120)
async def test_reload_20_times_under_load_fails_none_and_mixes_no_versions(file):
    async with served(echo) as url, reloading(file, version(0, url)) as running:
        load = Load(url)
        async with httpx.AsyncClient(timeout=25) as client:
            for number in range(load.sessions):
                await ask(client, running.url, f"s-{number}", edited=True)
            callers = [load.call(client, running.url) for _ in range(32)]
            await asyncio.gather(load.change(running), *callers)
        assert await running.store.count() == load.sessions
    assert (len(load.statuses), set(load.statuses)) == (load.requests, {200})
    assert load.problems == []
    # Five of the 20 were broken, and each of the others served.
    assert load.versions == {0} | {number for number in range(1, 21) if number % 4}
    assert sum(line.startswith("reloaded") for line in running.said) == 15
    assert sum(line.startswith("not reloaded") for line in running.said) == 5


async def test_reload_says_what_changed(file, upstream):
    text = version(0, upstream.url)
    spare = '\n[targets.spare]\nid = "s"\nllm_client = "provider"\n'
    async with reloading(file, text + spare) as running:
        running.write(version(1, upstream.url, top='default_route = "coding"'))
        assert await running.reloader.reload()
        running.said.clear()
        running.write(text + spare)
        assert await running.reloader.reload()
    assert "SY220" in running.said[0]
    assert running.said[-6:] == [
        f"reloaded {file}",
        "  added    target `spare`",
        "  changed  target `planner`",
        "  changed  target `executor`",
        "  changed  route `coding`",
        "  removed  `default_route`",
    ]


async def test_reload_of_an_equal_policy_says_so(file, upstream):
    async with reloading(file, version(0, upstream.url)) as running:
        running.write(version(0, upstream.url) + "# a remark\n")
        assert await running.reloader.reload()
    assert running.said == [f"reloaded {file}", "  no changes"]


async def test_reload_of_a_broken_policy_says_what_check_says_and_changes_nothing(file, upstream):
    async with reloading(file, version(0, upstream.url)) as running, httpx.AsyncClient() as client:
        engine = running.app.engine
        running.write(version(1, upstream.url).replace('"planner"', '"planer"'))
        assert not await running.reloader.reload()
        answer = await ask(client, running.url)
    assert running.app.engine is engine
    assert "SY201 unknown target `planer`" in running.said[0]
    assert running.said[-1] == (f"not reloaded {file}: 1 error; keeping the previous policy")
    assert answer.headers["x-model-router-selected-model"] == "big-0"


async def test_reload_of_a_missing_file_changes_nothing(file, upstream):
    async with reloading(file, version(0, upstream.url)) as running:
        file.unlink()
        assert not await running.reloader.reload()
    assert "SY100" in running.said[0]


async def test_reload_looks_for_the_variables_of_keys_when_told_to(file, upstream):
    async with reloading(file, version(0, upstream.url), environ={}) as running:
        assert not await running.reloader.reload()
    assert "SY204" in running.said[0]
    assert "UPSTREAM_KEY" in running.said[0]


async def test_reload_keeps_the_old_policy_on_a_finding_of_the_host(file, upstream):
    def also(new):
        return [new.finding("SY310", "does not fit", ("routes", "coding"), severity="error")]

    async with reloading(file, version(0, upstream.url), also=also) as running:
        assert not await running.reloader.reload()
    assert isinstance(also(running.app.engine.policy)[0], Finding)
    assert "SY310 does not fit" in running.said[0]


async def test_reload_survives_a_fault_of_its_own(file, upstream, monkeypatch, caplog):
    def boom(*_, **__):
        raise RuntimeError("boom")

    async with reloading(file, version(0, upstream.url)) as running:
        monkeypatch.setattr(reload, "check_policy", boom)
        assert not await running.reloader.reload()
    assert running.said == [f"not reloaded {file}: RuntimeError: boom; keeping the previous policy"]
    assert "the policy could not be reloaded" in caplog.text


# --- latches -----------------------------------------------------------------------------


def capacity(number, url, slots):
    return version(number, url, route=f"latch_capacity = {slots}")


async def test_reload_with_a_smaller_capacity_evicts_nobody_and_refuses_new_sessions(
    file, upstream
):
    async with (
        reloading(file, capacity(0, upstream.url, 3)) as running,
        httpx.AsyncClient() as client,
    ):
        for name in "abc":
            assert (await ask(client, running.url, name, edited=True)).status_code == 200
        running.write(capacity(1, upstream.url, 2))
        assert await running.reloader.reload()
        old = [(await ask(client, running.url, name)).headers for name in "abc"]
        refused = await ask(client, running.url, "d", edited=True)
        for name in "ab":
            await running.store.release(Identity(session=name, source="test"))
        taken = await ask(client, running.url, "d", edited=True)
        running.write(capacity(2, upstream.url, 9))
        assert await running.reloader.reload()
        gauge = (await client.get(running.url + "/metrics")).text
    assert {headers["x-switchyard-reason"] for headers in old} == {"latched"}
    assert (refused.status_code, taken.status_code) == (400, 200)
    assert "all 2 session slots" in refused.text
    assert any("3 sessions, over the new capacity of 2; none is evicted" in s for s in running.said)
    assert 'switchyard_latch_capacity{route="coding"} 9.0' in gauge
    assert 'switchyard_latches{route="coding"} 2.0' in gauge


async def test_reload_of_another_route_type_begins_with_no_latches(file, upstream):
    other = version(1, upstream.url).replace('type = "plan_execute"', 'type = "plan_review"')
    other = other.replace('planning_prompt = "Plan by 1."\n', "")
    async with reloading(file, version(0, upstream.url)) as running, httpx.AsyncClient() as client:
        await ask(client, running.url, "a", edited=True)
        running.write(other)
        assert await running.reloader.reload(), running.said
        assert await running.store.count() == 0
    assert any("latches  of route `coding` start over" in line for line in running.said)


async def test_reload_goes_on_counting_requests_without_identity(file, upstream):
    async with reloading(file, version(0, upstream.url)) as running, httpx.AsyncClient() as client:
        await ask(client, running.url)
        assert await running.reloader.reload()
        await ask(client, running.url)
        assert running.app.engine.runtimes["coding"].without_identity == 2


# --- connections -------------------------------------------------------------------------


async def test_reload_keeps_connections_of_equal_clients_and_closes_the_others_at_the_end(file):
    go_on, inside = asyncio.Event(), asyncio.Event()

    async def wait():
        inside.set()
        await go_on.wait()

    slow = BytesProvider(Reply(chunks=(b"{", b"}"), between=wait))
    closed = []
    async with served(slow) as first, served(BytesProvider()) as second:
        text = version(0, first)
        async with reloading(file, text) as running, httpx.AsyncClient() as client:
            call = asyncio.create_task(ask(client, running.url))
            await inside.wait()
            before = running.app.engine
            upstream = before.upstreams.of(before.policy.clients["provider"])

            async def close(original=upstream.aclose):
                closed.append(True)
                await original()

            upstream.aclose = close
            running.write(version(1, first))
            assert await running.reloader.reload()
            same = running.app.engine
            assert same.upstreams.of(same.policy.clients["provider"]) is upstream

            running.write(version(2, second))
            assert await running.reloader.reload()
            assert (await ask(client, running.url)).status_code == 200
            assert closed == []
            go_on.set()
            answer = await call
            assert answer.content == b"{}"
            assert answer.headers["x-model-router-selected-model"] == "big-0"
            assert closed == [True]


async def test_reload_reads_the_script_of_a_scripted_client_again(file, tmp_path):
    script = tmp_path / "script.json"
    text = policy("openai_chat", "http://x", client="").replace(
        'format = "openai_chat"\nbase_url = "http://x"\nmax_retries = 0',
        'format = "scripted"\nscript = "script.json"\nspeaks = "openai_chat"',
    )

    def play(word):
        script.write_text(json.dumps({"version": 1, "scripts": [{"turns": [{"text": word}]}]}))

    play("first")
    async with (
        reloading(file, text, poll_s=0.02) as running,
        httpx.AsyncClient() as client,
    ):
        first = await ask(client, running.url)
        task = asyncio.create_task(running.reloader.run())
        play("a later answer")
        await said(running, "reloaded")
        then = await ask(client, running.url)
        task.cancel()
    assert "first" in first.text
    assert "a later answer" in then.text


# --- watching ----------------------------------------------------------------------------


async def said(running, word):
    """Wait until the reloader has said it."""
    async with asyncio.timeout(10):
        while not any(line.startswith(word) for line in running.said):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_watch_reloads_when_the_file_changes_and_not_before(file, upstream):
    async with reloading(file, version(0, upstream.url), poll_s=0.02) as running:
        task = asyncio.create_task(running.reloader.run())
        await asyncio.sleep(0.2)
        assert running.said == []
        running.write(version(1, upstream.url).replace('"planner"', '"planer"'))
        await said(running, "not reloaded")
        running.write(version(2, upstream.url))
        await said(running, "reloaded")
        lines = list(running.said)
        await asyncio.sleep(0.2)
        assert running.said == lines
        task.cancel()
    assert running.app.engine.policy.targets["planner"].id == "big-2"


async def test_watch_sees_an_included_file_change_and_come_back_from_a_mistake(file, upstream):
    rules = file.with_name("rules.toml")
    good = "[mutation_rules.mine]\nrules = [{ match = ['%s'], label = 'file_edit' }]\n"
    rules.write_text(good % "one")
    text = version(0, upstream.url, top='include = ["rules.toml"]')
    async with reloading(file, text, poll_s=0.02) as running:
        task = asyncio.create_task(running.reloader.run())
        rules.write_text("[mutation_rules")
        await said(running, "not reloaded")
        rules.write_text(good % "another")
        await said(running, "reloaded")
        task.cancel()
    assert "  changed  rule set `mine`" in running.said


async def test_watch_sees_a_file_behind_links_change_again_and_again(file, upstream):
    # As a ConfigMap is mounted: a link to a file below a link that is replaced.
    def publish(number):
        folder = file.with_name(f"v{number}")
        folder.mkdir()
        (folder / "policy.toml").write_text(version(number, upstream.url))
        new = file.with_name("new")
        new.symlink_to(folder.name)
        new.replace(file.with_name("data"))

    publish(0)
    real = file.with_name("real.toml")
    real.symlink_to("data/policy.toml")
    said = []
    app = Switchyard.from_policy(real, world=World(environ={"UPSTREAM_KEY": KEY})).asgi()
    reloader = Reloader(app, str(real), say=said.append, poll_s=0.02)
    task = asyncio.create_task(reloader.run())
    for number in (1, 2):
        publish(number)
        async with asyncio.timeout(10):
            while app.engine.policy.targets["planner"].id != f"big-{number}":  # noqa: ASYNC110
                await asyncio.sleep(0.005)
    task.cancel()
    await app.engine.aclose()
    assert said.count(f"reloaded {real}") == 2


async def test_reloader_that_does_not_watch_waits_until_it_is_asked(file, upstream):
    async with reloading(file, version(0, upstream.url)) as running:
        task = asyncio.create_task(running.reloader.run())
        running.write(version(1, upstream.url))
        await asyncio.sleep(0.1)
        assert running.said == []
        running.reloader.ask()
        await said(running, "reloaded")
        task.cancel()


async def test_reloader_goes_on_after_a_fault(file, upstream, monkeypatch, caplog):
    async def boom(self):
        raise RuntimeError("boom")

    async with reloading(file, version(0, upstream.url)) as running:
        task = asyncio.create_task(running.reloader.run())
        with monkeypatch.context() as patch:
            patch.setattr(type(running.store), "count", boom)
            running.reloader.ask()
            await said(running, "reloaded")
        running.said.clear()
        running.reloader.ask()
        await said(running, "reloaded")
        task.cancel()
    assert "reloading the policy failed" in caplog.text


def test_policy_changes_names_a_record_of_each_kind():
    def load(text):
        return Switchyard.from_policy_text(text, name="p").policy

    before = load(version(0, "http://127.0.0.1:1"))
    after = load(
        version(0, "http://127.0.0.1:2", top='fallback_client = "provider"')
        + "[prices.big-0]\nas_of = 2025-01-01\ninput = 1.0\noutput = 2.0\n"
        + "[identity]\nsession = ['header:x-mine']\n"
    )
    assert policy_changes(before, after) == [
        "changed  client `provider`",
        "changed  target `planner`",
        "changed  target `executor`",
        "added    price `big-0`",
        "added    `fallback_client`",
        "added    `identity`",
    ]
    assert policy_changes(after, before)[-1] == "removed  `identity`"


async def test_successor_store_is_shared_and_a_record_written_late_is_seen():
    yard = Switchyard.from_policy_text(version(0, "http://127.0.0.1:1"), name="p")
    after = yard.successor(yard.policy)
    who = Identity(session="s", source="test")
    await yard.runtimes["coding"].store.latch(who, LatchRecord())
    assert await after.runtimes["coding"].store.get(who) == LatchRecord()
