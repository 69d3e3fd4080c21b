"""Pages of a real browser against a server on loopback that has a key to spend."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sys

import pytest

from tests.browser.site import Site
from tests.server.servers import KEY, BytesProvider, Reply, policy, served

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

#: What only the provider knows.
SECRET = "secret-Zk4wQp"
#: What the page tries.
ATTEMPTS = 19
EVIL, REBOUND = "evil.example", "rebound.example"
OPEN_TO_ALL = (
    ("content-type", "application/json"),
    ("access-control-allow-origin", "*"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "*"),
    ("cross-origin-resource-policy", "cross-origin"),
)


@pytest.fixture
def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return pytest.fail("there is no browser: install chromium")


@contextlib.asynccontextmanager
async def serving(tmp_path, provider, *options):
    """Yield the URL of ``switchyard serve`` on a provider that lets every page read it."""
    async with served(provider) as upstream:
        config = tmp_path / "policy.toml"
        config.write_text(policy("openai_chat", upstream, top='fallback_client = "provider"'))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", "from switchyard_core.cli import main; main()", "serve"),
            *(str(config), "--port", "0", *options),
            env={**os.environ, "UPSTREAM_KEY": KEY},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            line = (await process.stdout.readline()).decode()
            yield re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        finally:
            process.terminate()
            await process.wait()


async def visit(browser, tmp_path, site, name):
    """Return what the page of a site under some host name could do and read."""
    process = await asyncio.create_subprocess_exec(
        browser,
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        f"--user-data-dir={tmp_path / 'profile'}",
        "--host-resolver-rules=MAP *.example 127.0.0.1",
        f"http://{name}:{site.port}/attack",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(60):
            return await site.report
    finally:
        process.terminate()
        await process.wait()


def provider():
    return BytesProvider(Reply(headers=OPEN_TO_ALL, chunks=(f'"{SECRET}"'.encode(),)))


def readable(report):
    """Return the attempts whose answers a page could read."""
    return {name: text for name, text in report.items() if re.match(r"[12]\d\d ", text)}


@pytest.mark.parametrize("target", ["127.0.0.1", "localhost"])
async def test_page_of_another_origin_reaches_no_provider_and_reads_nothing(
    browser, tmp_path, target
):
    asked = provider()
    async with serving(tmp_path, asked) as url, Site().served() as site:
        site.target = url.replace("127.0.0.1", target)
        report = await visit(browser, tmp_path, site, EVIL)
    assert len(report) == ATTEMPTS
    assert [(seen.method, seen.path) for seen in asked.seen] == []
    assert readable(report) == {}
    assert SECRET not in str(report)


async def test_page_whose_name_is_rebound_to_this_machine_reaches_no_provider_and_reads_nothing(
    browser, tmp_path
):
    asked = provider()
    async with (
        serving(tmp_path, asked) as url,
        Site(behind=int(url.rpartition(":")[2])).served() as site,
    ):
        report = await visit(browser, tmp_path, site, REBOUND)
    assert len(report) == ATTEMPTS
    assert [(seen.method, seen.path) for seen in asked.seen] == []
    # The page may read of its own origin what it likes: there is nothing but refusals.
    assert readable(report) == {}
    assert "host_not_allowed" in report["get_models"]
    assert SECRET not in str(report)


async def test_page_of_an_allowed_origin_calls_and_reads(browser, tmp_path):
    asked = provider()
    async with (
        Site().served() as site,
        serving(tmp_path, asked, "--allowed-origin", f"http://{EVIL}:{site.port}") as url,
    ):
        site.target = url
        report = await visit(browser, tmp_path, site, EVIL)
    assert {"post_json", "post_json_key", "get_models", "get_elsewhere"} <= set(readable(report))
    assert SECRET in report["post_json"]
    assert "OPTIONS" not in {seen.method for seen in asked.seen}
    # What needs no leave of a browser is refused all the same.
    assert report["post_text"].startswith("415 ")
    assert not [seen for seen in asked.seen if seen.query in ("image", "script", "frame")]
