"""Files that cannot be played: found when they are loaded, all at once, and never later."""

from __future__ import annotations

import json
import os
import re
import socket

import anyio
import httpx
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import PolicyError, Replay, Request, Switchyard
from switchyard_core.cli import cli
from switchyard_core.errors import ReplayError
from switchyard_core.replay.recording import key_of
from switchyard_core.scripted import ScriptedProviderApp, load_script
from switchyard_core.testing import FakeUpstream
from switchyard_core.world import World
from tests.server.servers import served

BODY = {"model": "m", "messages": []}
PATH = "/v1/chat/completions"
KEY = key_of("POST", PATH, json.dumps(BODY).encode(), ["model"])
NAME = f"{KEY}-main-planning.json"


def recording(**answer):
    return {
        "version": 1,
        "key_fields": ["model"],
        "request": {"method": "POST", "path": PATH, "body": BODY},
        "responses": [{"status": 200, "headers": {}, "body": "hi", **answer}],
    }


def findings(folder, text, name=NAME):
    """Return code and place of all findings about a file with a text or bytes."""
    data = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(data)
    with pytest.raises(ReplayError) as caught:
        Replay(folder)
    assert all(finding.render() in caught.value.message for finding in caught.value.findings)
    return [f"{found.code} {found.path}" for found in caught.value.findings]


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        pytest.param({"headers": {"x-a": "1\r\nx-b: 2"}}, "headers.x-a", id="crlf"),
        pytest.param({"headers": {"x-a": "a\0b"}}, "headers.x-a", id="nul"),
        pytest.param({"headers": {"x-a": "\u20ac"}}, "headers.x-a", id="not_latin_1"),
        pytest.param({"headers": {"x-a": "\ud800"}}, "headers.x-a", id="half_a_character"),
        pytest.param({"headers": {"x-a": " a"}}, "headers.x-a", id="space"),
        pytest.param({"headers": {"x-a": 5}}, "headers.x-a", id="number"),
        pytest.param({"headers": {"x a": "1"}}, "headers.x a", id="name_with_a_space"),
        pytest.param({"headers": {"x\r\na": "1"}}, "headers.x??a", id="name_with_crlf"),
        pytest.param({"headers": {"é": "1"}}, "headers.é", id="name_not_ascii"),
        pytest.param({"headers": {"": "1"}}, "headers.", id="no_name"),
        pytest.param({"headers": {"a": "1", "A": "1"}}, "headers.A", id="name_twice"),
        pytest.param({"headers": {"content-length": "3"}}, "headers.content-length", id="length"),
        pytest.param(
            {"headers": {"Transfer-Encoding": "chunked"}},
            "headers.Transfer-Encoding",
            id="transfer_encoding",
        ),
        pytest.param(
            {"headers": {"content-encoding": "gzip"}}, "headers.content-encoding", id="encoding"
        ),
        pytest.param({"headers": {"connection": "close"}}, "headers.connection", id="connection"),
        pytest.param({"headers": [["a", "b"]]}, "headers", id="headers_as_a_list"),
        pytest.param({"status": 204}, "status", id="204_with_a_body"),
        pytest.param({"status": 304}, "status", id="304_with_a_body"),
        pytest.param({"status": "200"}, "status", id="status_as_text"),
        pytest.param({"status": True}, "status", id="status_as_a_word"),
        pytest.param({"body": {"base64": "%"}}, "body", id="bad_base64"),
        pytest.param({"body": 3}, "body", id="body_is_a_number"),
        pytest.param({"body": {}, "layout": "odd"}, "layout", id="layout"),
        pytest.param({"body": {}, "layout": 3}, "layout", id="layout_is_a_number"),
        pytest.param({"chunks": ["a"]}, "", id="body_and_chunks"),
    ],
)
def test_an_answer_that_cannot_be_sent_is_a_finding_with_its_place(tmp_path, answer, place):
    text = json.dumps(recording(**answer), indent=1)

    found = findings(tmp_path, text)

    assert found == [f"SY251 responses[0]{'.' if place else ''}{place}"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"headers": {"content-length": "2", "x-a": "\u00e9\tb"}}, id="right_length"),
        pytest.param({"status": 204, "body": ""}, id="204_without_a_body"),
        pytest.param({"body": {"a": {"base64": "%"}}, "layout": ""}, id="object"),
    ],
)
def test_an_answer_that_can_be_sent_is_loaded(tmp_path, answer):
    (tmp_path / NAME).write_text(json.dumps(recording(**answer)))

    assert len(Replay(tmp_path).unused()) == 1


@pytest.mark.parametrize(
    ("tree", "places"),
    [
        pytest.param([], [""], id="list"),
        pytest.param({}, ["version", "key_fields", "request", "responses"], id="empty"),
        pytest.param(
            {**recording(), "version": True, "key_fields": [1]},
            ["version", "key_fields"],
            id="version",
        ),
        pytest.param(
            {**recording(), "request": {"method": 1, "path": None}},
            ["request.method", "request.path", "request.body"],
            id="request",
        ),
        pytest.param(
            {
                **recording(),
                "responses": [3, {}, {"status": 200, "headers": {}, "chunks": [1, {}]}],
            },
            [
                "responses[0]",
                "responses[1]",
                "responses[1].headers",
                "responses[1].status",
                "responses[2].chunks[0]",
                "responses[2].chunks[1]",
            ],
            id="answers",
        ),
    ],
)
def test_wrong_types_are_findings_all_at_once(tmp_path, tree, places):
    found = findings(tmp_path, json.dumps(tree, indent=1))

    assert sorted(found) == sorted(f"SY251 {place}" for place in places)


@pytest.mark.parametrize(
    ("data", "words", "place"),
    [
        pytest.param(b"\xff", "is not UTF-8", ":1:1:", id="not_utf8"),
        pytest.param(b'{\n"a": \xff}', "is not UTF-8", ":2:6:", id="not_utf8_later"),
        pytest.param(b"", "is not JSON", ":1:1:", id="empty"),
        pytest.param(b'{"a":\n 1 2}', "is not JSON", ":2:4:", id="no_comma"),
        pytest.param(b"[1,\nNaN]", "it contains `NaN`", ":2:1:", id="nan"),
        pytest.param(b"[" + b"7" * 9000 + b"]", "thousands of digits", ":1:2:", id="long_number"),
        pytest.param(nested(900).encode(), "more than 1", ":1:10", id="900_levels"),
        pytest.param(b"[" * 100_000, "is nested more than", ":1:10", id="open_for_ever"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path, data, words, place):
    recordings, script = tmp_path / "recordings", tmp_path / "script.json"
    recordings.mkdir()
    (recordings / NAME).write_bytes(data)
    script.write_bytes(data)

    with pytest.raises(ReplayError) as caught:
        Replay(recordings)
    with pytest.raises(PolicyError) as refused:
        load_script(script)

    for code, found in (("SY250", caught.value.findings), ("SY240", refused.value.findings)):
        assert [finding.code for finding in found] == [code]
        assert words in found[0].message
        assert place in found[0].render()


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def folder(path):
    path.mkdir()


def dangling(path):
    path.symlink_to("nowhere")


def socket_(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("make", [fifo, device, folder, dangling, socket_])
def test_what_is_no_ordinary_file_is_a_finding_and_nothing_waits_for_it(
    tmp_path, make, monkeypatch
):
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    monkeypatch.chdir(recordings)  # the path of a socket must be short
    make(recordings / NAME)

    with pytest.raises(ReplayError, match="SY250 the recording cannot be read") as caught:
        Replay(recordings)
    with pytest.raises(PolicyError, match="SY240 the script cannot be read"):
        load_script(recordings / NAME)

    assert caught.value.path == str(recordings / NAME)


def test_all_files_of_a_folder_are_told_at_once_by_check_and_by_replay(tmp_path):
    wrong = recording(headers={"x-a": "1\r\n"}, status=204)
    (tmp_path / NAME).write_text(json.dumps(wrong, indent=1))
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / f"{'0' * 16}.json").write_text(json.dumps(recording()))
    (tmp_path / f"{'1' * 16}.json").write_text("{")

    checked = CliRunner().invoke(cli, ["check", str(tmp_path)])
    served_ = CliRunner().invoke(cli, ["demo", "--replay", str(tmp_path)])

    places = re.findall(r"([0-9a-z-]+\.json(?::\d+:\d+)?): (SY\d+)", checked.output)
    assert places == [
        (f"{'0' * 16}.json", "SY252"),
        (f"{'1' * 16}.json:1:2", "SY250"),
        (f"{NAME}:16:4", "SY251"),
        (f"{NAME}:18:5", "SY251"),
        ("package.json", "SY252"),
    ]
    assert checked.exit_code == 1
    assert re.findall(r"([0-9a-z-]+\.json(?::\d+:\d+)?): (SY\d+)", served_.output) == places
    assert served_.exit_code == 2


def test_check_of_good_recordings_finds_nothing(tmp_path):
    (tmp_path / NAME).write_text(json.dumps(recording()))

    result = CliRunner().invoke(cli, ["check", str(tmp_path)])

    assert (result.exit_code, result.output) == (0, "1 file checked: no findings\n")


def test_of_many_problems_the_first_are_told_in_no_time(tmp_path):
    wrong = {f"x-{number}": "\r" for number in range(30_000)}
    script = {"version": 1, "scripts": [{"turns": [{}]}], **wrong}
    (tmp_path / "script.json").write_text(json.dumps(script, indent=0))

    folder_ = tmp_path / "recordings"
    folder_.mkdir()
    found = findings(folder_, json.dumps(recording(headers=wrong), indent=0))
    with pytest.raises(PolicyError) as caught:
        load_script(tmp_path / "script.json")

    assert len(found) == len(caught.value.findings) == 200


# --- any bytes --------------------------------------------------------------------------------

keys = st.sampled_from(
    [
        *("version", "key_fields", "request", "responses", "method", "path", "body", "status"),
        *("headers", "chunks", "layout", "base64", "content-length", "scripts", "turns", "when"),
        *("faults", "text", "calls", "usage", "models", "kind", "\ud800", "a\r\nb"),
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 700)
    | st.floats(allow_nan=True)
    | st.sampled_from(["", "m", "POST", "\ud800", "a\0b", "compact", "drop", "YQ==", "(a+)+$"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@st.composite
def damaged(draw, good):
    """Draw the text of a good file with something else in one place."""
    tree = json.loads(json.dumps(good))
    node = tree
    while True:
        places = list(node) if isinstance(node, dict) else list(range(len(node)))
        place = draw(st.sampled_from(places))
        if isinstance(node[place], dict | list) and node[place] and draw(st.booleans()):
            node = node[place]
            continue
        node[place] = draw(values)
        break
    return json.dumps(tree).encode()


SCRIPT = {
    "version": 1,
    "models": ["m"],
    "scripts": [
        {
            "when": {"model": "m", "has_tools": False, "header": {"x-a": "a"}},
            "turns": [
                {"text": "hi", "calls": [{"name": "a", "arguments": {"b": [1]}}], "usage": {}}
            ],
            "faults": [{"turn": 1, "status": 500, "headers": {"retry-after": "0"}, "message": "m"}],
        }
    ],
}
any_file = st.binary(max_size=60) | values.map(lambda tree: json.dumps(tree).encode())


@given(any_file | damaged(recording()) | damaged(recording(chunks=["a"], status=204)))
def test_any_bytes_as_a_recording_give_findings_or_load(tmp_path_factory, data):
    folder_ = tmp_path_factory.mktemp("any")
    (folder_ / NAME).write_bytes(data)

    known, told = 0, ()
    try:
        known = len(Replay(folder_).unused())
    except ReplayError as error:
        error.message.encode()
        told = error.findings

    assert bool(told) != bool(known)


@given(any_file | damaged(SCRIPT))
def test_any_bytes_as_a_script_give_findings_or_load(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("any") / "script.json"
    file.write_bytes(data)

    script, told = None, ()
    try:
        script = load_script(file)
    except PolicyError as error:
        str(error).encode()
        told = error.findings

    assert bool(told) != bool(script)
    assert all(finding.line for finding in told)


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        pytest.param({"x-a": "1\r\nx-b: 2"}, "headers.x-a", id="crlf"),
        pytest.param({"x-a": "\u20ac"}, "headers.x-a", id="not_latin_1"),
        pytest.param({"x\0a": "1"}, "headers.x?a", id="name"),
        pytest.param({"content-length": "5"}, "headers.content-length", id="length"),
        pytest.param({"transfer-encoding": "x"}, "headers.transfer-encoding", id="encoding"),
    ],
)
def test_a_fault_that_cannot_be_sent_is_a_finding(tmp_path, headers, path):
    script = {"version": 1, "scripts": [{"turns": [{}], "faults": [{"status": 500}]}]}
    script["scripts"][0]["faults"][0]["headers"] = headers
    (tmp_path / "s.json").write_text(json.dumps(script))

    with pytest.raises(PolicyError) as caught:
        load_script(tmp_path / "s.json")

    assert [f"{each.code} {each.path}" for each in caught.value.findings] == [
        f"SY242 scripts[0].faults[0].{path}"
    ]


@given(damaged(SCRIPT))
def test_a_script_that_loads_plays_whatever_is_asked(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("any") / "script.json"
    file.write_bytes(data)
    try:
        script = load_script(file)
    except PolicyError:
        return

    async def play():
        transport = httpx.ASGITransport(app=ScriptedProviderApp(script, sleep=_no_sleep))
        async with httpx.AsyncClient(transport=transport, base_url="http://p") as client:
            for path in (PATH, "/v1/messages", "/v1/responses"):
                for stream in (False, True):
                    asked = {**BODY, "stream": stream, "input": "hi"}
                    try:
                        answer = await client.post(path, json=asked)
                    except ConnectionResetError:
                        continue
                    assert 200 <= answer.status_code < 600

    anyio.run(play)


async def _no_sleep(_seconds):
    pass


async def test_a_script_of_900_levels_is_not_served(tmp_path):
    good = {"version": 1, "scripts": [{"turns": [{"calls": [{"name": "a", "arguments": {}}]}]}]}
    text = json.dumps(good).replace('"arguments": {}', '"arguments": {"a":' + nested(80) + "}")
    (tmp_path / "s.json").write_text(text)

    script = load_script(tmp_path / "s.json")

    async with served(ScriptedProviderApp(script)) as url, httpx.AsyncClient() as client:
        assert (await client.post(url + PATH, json=BODY)).status_code == 200


POLICY = """
schema_version = 1
[llm_clients.c]
format = "openai_chat"
base_url = "https://provider.invalid/v1"
api_key_env = "KEY"
[targets.t]
id = "t"
llm_client = "c"
[routes.plain]
id = "plain"
type = "noop"
target = "t"
"""


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"status": 204, "body": ""}, id="204"),
        pytest.param({"status": 304, "body": "", "headers": {"etag": '"a"'}}, id="304"),
        pytest.param({"status": 299, "body": "x"}, id="299"),
        pytest.param({"status": 418, "body": {"a": 1}, "layout": "indented"}, id="418"),
        pytest.param({"headers": {"content-length": "2", "x-a": ""}, "body": "hi"}, id="length"),
        pytest.param({"headers": {"X-Request-Id": "\u00e9 \t\u0080a"}, "body": "hi"}, id="latin_1"),
        pytest.param({"headers": {"x-request-id": "\x01"}}, id="control"),
        pytest.param({"headers": {"content-length": "02"}}, id="length_with_a_zero"),
        pytest.param({"headers": {"trailer": "x"}}, id="trailer"),
        pytest.param({"headers": {"upgrade": "websocket"}}, id="upgrade"),
    ],
)
async def test_a_recording_that_loads_is_served(tmp_path, answer):
    asked = {"model": "plain", "messages": [{"role": "user", "content": "hi"}]}
    live = Switchyard.from_policy_text(
        POLICY,
        connect=lambda _client: FakeUpstream(),
        world=World(environ={"KEY": "k"}),
        replay=Replay(tmp_path, "record"),
    )
    async with await live.handle(
        Request(wire_format="openai_chat", body=json.dumps(asked).encode(), headers={})
    ) as response:
        await response.read()
    (file,) = tmp_path.glob("*.json")
    tree = json.loads(file.read_text())
    tree["responses"] = [{"status": 200, "headers": {}, "body": "hi", **answer}]
    file.write_text(json.dumps(tree))

    try:
        replay = Replay(tmp_path)
    except ReplayError:
        return
    yard = Switchyard.from_policy_text(POLICY, world=World(environ={}), replay=replay)
    async with served(yard.asgi()) as url, httpx.AsyncClient() as client:
        played = await client.post(url + PATH, json=asked)
        again = await client.post(url + PATH, json=asked)

    wanted = tree["responses"][0]
    assert (played.status_code, again.status_code) == (wanted["status"], wanted["status"])
    assert played.content == again.content
    assert bool(played.content) == bool(wanted["body"])
