"""``switchyard serve``: a process of its own where one is asked for, else what it would run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli
from switchyard_core.cli.serve import _is_loopback
from tests.server.servers import answer_to, served

SCRIPT = {
    "version": 1,
    "scripts": [
        {"when": {"model": "slow"}, "turns": [{"text": "done", "delay_s": 1.0}]},
        {"turns": [{"text": "hello"}]},
    ],
}
POLICY = """
schema_version = 1

[llm_clients.provider]
format = "scripted"
script = "script.json"
speaks = "openai_chat"

[targets.planner]
id = "MODEL"
llm_client = "provider"

[targets.executor]
id = "other"
llm_client = "provider"

[routes.coding]
id = "coder"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
"""
NOOP = (
    POLICY.replace("MODEL", "fast")
    .replace('type = "plan_execute"', 'type = "noop"')
    .replace('capable_target = "planner"\nefficient_target', "target")
)
REAL = POLICY.replace(
    'format = "scripted"\nscript = "script.json"\nspeaks = "openai_chat"',
    'format = "openai_chat"\nbase_url = "http://127.0.0.1:1"\napi_key_env = "SOME_TEST_KEY"',
)
BODY = {"model": "coder", "messages": [{"role": "user", "content": "hi"}]}
CANARY = "canary-5Tq8WvXz"
CHAT = "/v1/chat/completions"


@pytest.fixture
def config(tmp_path):
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.replace("MODEL", "fast"))
    return path


def start(config, *options, **environ):
    command = [sys.executable, "-c", "from switchyard_core.cli import main; main()", "serve"]
    return subprocess.Popen(
        [*command, str(config), "--port", "0", *options],
        env=os.environ | {"CANARY": CANARY} | environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(config, *options, **environ):
    """Yield process and URL; at the end the process must have ended."""
    process = start(config, *options, **environ)
    try:
        line = process.stdout.readline()
        found = re.fullmatch(
            r"switchyard \S+ ready on (http://127\.0\.0\.1:\d+) \(routes: .+\)\n", line
        )
        assert found, (line, process.poll(), process.stderr.read() if process.poll() else "")
        yield process, found[1]
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(20)
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def made(config, monkeypatch):
    """Return a function that gives the application that ``serve`` would run with options."""
    applications = []

    def instead(app, listener, *_, **__):
        listener.close()
        applications.append(app)
        return True

    def make(*options):
        result = invoke(config, "--port", "0", *options)
        assert result.exit_code == 0, result.output
        return applications.pop()

    monkeypatch.setattr("switchyard_core.server.run.run", instead)
    monkeypatch.setattr("switchyard_core.server.workers.run_workers", instead)
    return make


def invoke(config, *options):
    return CliRunner().invoke(cli, ["serve", str(config), *options])


def test_serve_prints_one_line_when_it_is_ready_and_ends_with_0(config):
    with serving(config) as (process, url):
        answer = httpx.post(url + CHAT, json=BODY)
        process.terminate()
        out, err = process.communicate(timeout=20)

    assert answer.status_code == 200
    assert answer.headers["x-switchyard-target"] == "planner"
    assert (process.returncode, out) == (0, "")
    assert "request=req_" in err
    assert "uvicorn" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_finishes_running_requests_after_a_signal(config, number):
    config.write_text(POLICY.replace("MODEL", "slow"))
    answers = []
    with serving(config) as (process, url):
        call = threading.Thread(
            target=lambda: answers.append(httpx.post(url + CHAT, json=BODY, timeout=20))
        )
        call.start()
        while not httpx.get(url + "/v1/stats").json()["gauges"][0]["value"]:
            time.sleep(0.02)
        process.send_signal(number)
        call.join()
        process.wait(20)
        with pytest.raises(httpx.ConnectError):
            httpx.get(url + "/health")
    assert answers[0].status_code == 200
    assert "done" in answers[0].text
    assert process.returncode == 0


RUN = """
import sys
from switchyard_core import Switchyard
from switchyard_core.server.run import bind, run, url_of
listener = bind("127.0.0.1", 0)
yard = Switchyard.from_policy(sys.argv[1])
run(yard.asgi(), listener, ready=lambda: print(url_of(listener), flush=True), drain_s=1)
"""


def test_run_breaks_off_what_outlasts_the_drain(config):
    slow = {"version": 1, "scripts": [{"turns": [{"text": "never", "delay_s": 60}]}]}
    (config.parent / "script.json").write_text(json.dumps(slow))
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    failures = []
    try:
        url = process.stdout.readline().strip()

        def call():
            try:
                failures.append(httpx.post(url + CHAT, json=BODY, timeout=20).status_code)
            except httpx.HTTPError as error:
                failures.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        while not httpx.get(url + "/v1/stats").json()["gauges"][0]["value"]:
            time.sleep(0.02)
        process.terminate()
        _, err = process.communicate(timeout=20)
        thread.join()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert failures[0] == 500 or isinstance(failures[0], httpx.HTTPError)
    assert "1 requests are still running after 1 s of drain" in err
    assert "Traceback" not in err


def test_serve_with_a_broken_policy_says_what_check_says(config):
    config.write_text(POLICY.replace('"planner"', '"planer"').replace("id = ", "idd = ", 1))
    result = invoke(config)
    checked = CliRunner().invoke(cli, ["check", "--offline", str(config)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.strip() != ""
    assert checked.output.startswith(result.stderr)
    assert "Traceback" not in result.stderr


async def test_serve_needs_the_variables_of_the_keys_unless_it_calls_nobody(config, made):
    config.write_text(REAL)
    result = invoke(config)
    assert result.exit_code == 1
    assert "SY204" in result.stderr
    assert "SOME_TEST_KEY" in result.stderr
    async with served(made("--dry-run")) as url, httpx.AsyncClient() as client:
        answer = await client.post(url + CHAT, json=BODY)
    assert answer.json()["target"] == "planner"


def test_serve_never_prints_a_key(config):
    config.write_text(REAL)
    with serving(config, "--api-key-env", "CANARY", SOME_TEST_KEY=CANARY) as (process, url):
        refusal = httpx.post(url + CHAT, json=BODY)
        failure = httpx.post(url + CHAT, json=BODY, headers={"x-api-key": CANARY})
        process.terminate()
        out, err = process.communicate(timeout=20)
    assert (refusal.status_code, failure.status_code) == (401, 502)
    assert CANARY not in out + err + refusal.text + failure.text + str(failure.headers)


def test_serve_on_a_taken_port_is_one_line_and_exit_2(config):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke(config, "--port", str(port))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--host", "0.0.0.0"], 2, "--insecure"),
        (["--api-key-env", "NO_SUCH_VARIABLE_HERE"], 2, "`NO_SUCH_VARIABLE_HERE` is not set"),
        (["--workers", "2"], 1, "latch store `memory` lives in one process"),
        (["--workers", "2", "--log-bodies", "x"], 2, "--workers 1"),
        (["--port", "70000"], 2, "70000"),
    ],
)
def test_serve_refuses_what_would_not_work(config, options, code, words):
    result = CliRunner().invoke(cli, ["serve", str(config), *options])
    assert result.exit_code == code
    assert words in result.output


@pytest.mark.parametrize("key", ["sk-abc def", "sk-abcdefghijklmnop", "sk_abcdefghijklmnop", "a=b"])
def test_serve_with_the_key_in_place_of_its_variable_does_not_repeat_it(config, key):
    result = invoke(config, "--api-key-env", key)
    assert result.exit_code == 2
    assert "not the key itself" in " ".join(result.output.replace("│", " ").split())
    assert key not in result.output


def test_serve_with_two_workers_warns_of_plans_that_one_of_them_knows(config, made):
    config.write_text((Path(__file__).parents[2] / "policies/planner_executor.toml").read_text())
    result = invoke(config, "--port", "0", "--workers", "2", "--dry-run")
    assert "SY311 warning: the plan store `memory` lives in one process" in result.stderr
    assert result.exit_code == 0


def test_serve_with_a_key_that_nobody_can_send_says_so(config, monkeypatch):
    monkeypatch.setenv("SERVER_KEY", "schl\u00fcssel")
    result = CliRunner().invoke(cli, ["serve", str(config), "--api-key-env", "SERVER_KEY"])
    assert result.exit_code == 2
    assert "`SERVER_KEY` has characters that callers cannot send" in result.output
    assert "schl" not in result.output


def test_serve_with_a_file_where_the_bodies_should_go_is_exit_2(config, tmp_path):
    result = CliRunner().invoke(cli, ["serve", str(config), "--log-bodies", str(config / "x")])
    assert result.exit_code == 2
    assert "cannot write to" in result.output


def test_serve_on_a_policy_that_is_not_there_says_so(tmp_path):
    result = CliRunner().invoke(cli, ["serve", str(tmp_path / "no.toml")])
    assert result.exit_code == 2
    assert "SY100" in result.output


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_is_loopback_knows_what_others_cannot_reach(host, loopback):
    assert _is_loopback(host) is loopback


# --- reload ------------------------------------------------------------------------------


def served_model(url, model):
    """Return whether the server calls a model, at last."""
    for _ in range(200):
        answer = httpx.post(url + CHAT, json=BODY)
        assert answer.status_code == 200
        if answer.headers["x-model-router-selected-model"] == model:
            return True
        time.sleep(0.05)
    return False


def test_serve_reads_its_policy_again_on_sighup_and_keeps_it_when_broken(config):
    with serving(config) as (process, url):
        config.write_text(POLICY.replace("MODEL", "another"))
        process.send_signal(signal.SIGHUP)
        assert served_model(url, "another")
        config.write_text(POLICY.replace("MODEL", "third").replace('"planner"', '"planer"'))
        process.send_signal(signal.SIGHUP)
        while "not reloaded" not in (line := process.stderr.readline()):
            assert line
        assert served_model(url, "another")
        process.terminate()
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_serve_with_reload_reads_a_changed_policy_by_itself(config):
    with serving(config, "--reload") as (process, url):
        config.write_text(POLICY.replace("MODEL", "another"))
        assert served_model(url, "another")
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert f"reloaded {config}\n  changed  target `planner`\n" in err
    assert process.returncode == 0


def test_serve_with_two_workers_answers_hands_sighup_on_and_refuses_a_store_of_one_process(config):
    config.write_text(NOOP)
    with serving(config, "--workers", "2") as (process, url):
        for _ in range(10):
            assert httpx.post(url + CHAT, json=BODY).status_code == 200
        metrics = httpx.get(url + "/metrics").text
        assert re.search(r'latches_|requests_total\{.*worker="\d+"\} ', metrics)
        config.write_text(POLICY.replace("MODEL", "fast"))
        process.send_signal(signal.SIGHUP)
        told = set()
        while len(told) < 2:
            line = process.stderr.readline()
            assert line
            found = re.match(r"worker (\d+): not reloaded .*: 1 error;", line)
            told |= {found[1]} if found else set()
        config.write_text(NOOP.replace('"other"', '"another"'))
        process.send_signal(signal.SIGHUP)
        assert served_model(url, "another")
        process.terminate()
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


# --- who may call, and what a caller may take ------------------------------------------------


KEYED = ("--api-key-env", "SERVER_KEY")
OPEN = ("--host", "0.0.0.0", "--insecure")


@pytest.mark.parametrize(
    ("options", "host", "headers", "status"),
    [
        pytest.param((), "localhost", {}, 200, id="loopback_name"),
        pytest.param((), "127.0.0.1:4000", {}, 200, id="address"),
        pytest.param((), "evil.example", {}, 403, id="rebound_name"),
        pytest.param(("--allowed-host", "box.lan"), "box.lan", {}, 200, id="allowed_name"),
        pytest.param(("--allowed-host", "box.lan"), "evil.example", {}, 403, id="other_name"),
        pytest.param(KEYED, "evil.example", {"x-api-key": "k1"}, 200, id="any_name_with_a_key"),
        pytest.param(
            (*KEYED, "--allowed-host", "box.lan"),
            "evil.example",
            {"x-api-key": "k1"},
            403,
            id="other_name_with_a_key",
        ),
        pytest.param((), "localhost", {"origin": "http://localhost:3000"}, 403, id="page"),
        pytest.param(
            ("--allowed-origin", "http://localhost:3000"),
            "localhost",
            {"origin": "http://localhost:3000"},
            200,
            id="allowed_page",
        ),
        pytest.param(OPEN, "evil.example", {}, 403, id="rebound_name_beyond_loopback"),
        pytest.param(OPEN, "192.168.1.7:4000", {}, 200, id="address_beyond_loopback"),
    ],
)
async def test_serve_says_who_may_call(made, monkeypatch, options, host, headers, status):
    monkeypatch.setenv("SERVER_KEY", "k1")
    async with served(made(*options)) as url, httpx.AsyncClient() as client:
        answer = await client.post(url + CHAT, json=BODY, headers={"host": host, **headers})
        health = await client.get(url + "/health", headers={"host": host})
    assert (answer.status_code, health.status_code) == (status, 200)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("header=5", "unknown limit `header` (limits: headers, header_bytes, body_timeout_s,"),
        ("header=5", "did you mean `headers`?"),
        ("headers", "the limit `headers` must be a whole number, as in `headers=100`"),
        ("headers=2.5", "the limit `headers` must be a whole number, as in `headers=100`"),
        ("body_timeout_s=x", "the limit `body_timeout_s` must be a number, as in"),
        ("body_timeout_s=nan", "the limit `body_timeout_s` must be a positive number, not nan"),
        ("connections=0", "the limit `connections` must be a positive number, not 0"),
        ("connections=-1", "the limit `connections` must be a positive number, not -1"),
    ],
)
def test_serve_refuses_a_limit_that_is_none(config, limit, told):
    result = CliRunner().invoke(cli, ["serve", str(config), "--limit", limit])
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


@pytest.mark.parametrize(
    "options",
    [("--allowed-host", "http://box"), ("--allowed-origin", "*"), ("--allowed-origin", "box:80")],
    ids=" ".join,
)
def test_serve_refuses_a_name_that_no_caller_can_send(config, options):
    result = CliRunner().invoke(cli, ["serve", str(config), *options])
    assert result.exit_code == 2
    assert f"{options[0]}: `{options[1]}` is not" in result.output


def test_serve_goes_on_while_slow_connections_wait_for_their_headers(config):
    limits = ("half_open=20", "header_timeout_s=1.5", "connections=50")
    options = [part for limit in limits for part in ("--limit", limit)]
    with serving(config, *options) as (process, url), contextlib.ExitStack() as opened:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        slow = []
        for _ in range(80):
            connection = opened.enter_context(socket.create_connection(address))
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
            slow.append(connection)
            if len(slow) % 20 == 0:
                assert httpx.post(url + CHAT, json=BODY).status_code == 200
        ends = []
        for connection in slow:
            connection.settimeout(10)
            ends.append(connection.recv(65536)[:12])
        assert httpx.post(url + CHAT, json=BODY).status_code == 200
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert {bytes(end) for end in ends} <= {b"HTTP/1.1 503", b"HTTP/1.1 408"}
    assert ends.count(b"HTTP/1.1 408") in range(1, 21)
    assert err.count("the limit `half_open` is reached") == 1
    assert "Traceback" not in err


def _call(*parts):
    content = json.dumps(BODY).encode()
    return b"".join(
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n",
            b"content-type: application/json\r\n",
            *parts,
            b"content-length: %d\r\n\r\n" % len(content),
            content,
        )
    )


def test_serve_counts_a_client_that_leaves_with_two_requests_sent_as_gone(config):
    config.write_text(POLICY.replace("MODEL", "slow"))
    with serving(config) as (process, url):
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(address) as connection:
            connection.sendall(_call() + _call())
            while not httpx.get(url + "/v1/stats").json()["gauges"][0]["value"]:
                time.sleep(0.02)
        while not (found := httpx.get(url + "/v1/stats").json()["requests"]):
            time.sleep(0.02)
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert [(row["status"], row["count"]) for row in found] == [(499, 1)]
    assert "status=499" in err
    assert "error=client_gone" in err
    assert "internal_error" not in err
    assert "Traceback" not in err


async def test_serve_takes_no_key_from_a_trailer(made, monkeypatch):
    content = json.dumps(BODY).encode()
    monkeypatch.setenv("SERVER_KEY", "k1")
    async with served(made(*KEYED)) as url:
        answer = await answer_to(
            url,
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/json\r\ntransfer-encoding: chunked\r\n"
            b"connection: close\r\n\r\n"
            b"%x\r\n%s\r\n0\r\nx-api-key: k1\r\n\r\n" % (len(content), content),
        )
    assert answer.startswith(b"HTTP/1.1 401 ")


def test_serve_opens_as_many_files_as_its_connections_need_or_says_that_it_cannot(config):
    words = [sys.executable, "-c", "from switchyard_core.cli import main; main()", "serve"]
    words += [str(config), "--port", "0"]
    for hard, told in (("300", True), ("5000", False)):
        process = subprocess.Popen(
            ["sh", "-c", f'ulimit -n {hard} && ulimit -S -n 256 && exec "$0" "$@"', *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert "ready" in process.stdout.readline()
            limits = Path(f"/proc/{process.pid}/limits")
            files = limits.read_text() if limits.exists() else ""
        finally:
            process.terminate()
            _, err = process.communicate(timeout=20)
        assert ("raise `ulimit -n` to 2200" in err) is told
        if files:
            (line,) = [line for line in files.splitlines() if line.startswith("Max open files")]
            assert line.split()[3] == ("300" if told else "2200")
