"""Files of recordings: what is written, what is read, what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.errors import RecordingError, ReplayError
from switchyard_core.replay.folder import Folder, file_name
from switchyard_core.replay.recording import Answer, Recording
from tests.replay.calls import files

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.70}'


def recording(folder, body=BODY, *texts, name=None):
    answers = [
        Answer(status=200, headers=(("content-type", "text/plain"),), chunks=(text,), stream=False)
        for text in texts or (b"ok",)
    ]
    made = Recording(
        file=folder / "x.json",
        key_fields=("model", "messages"),
        method="POST",
        path="/v1/chat/completions",
        body=body,
        answers=tuple(answers),
    )
    return Recording(
        **{
            **{field: getattr(made, field) for field in made.__slots__},
            "file": folder / (name or file_name(made.key, "main", "planning")),
        }
    )


def test_a_recording_is_read_as_it_was_written(tmp_path):
    written = recording(tmp_path, BODY, b"one", b"two")

    Folder(tmp_path).write(written)

    assert list(Folder(tmp_path)) == [written] or (
        [each.answers for each in Folder(tmp_path)] == [written.answers]
    )
    assert files(tmp_path) == [written.file.name]


def test_a_file_is_indented_and_keeps_keys_and_numbers_as_they_were_sent(tmp_path):
    Folder(tmp_path).write(recording(tmp_path))

    text = next(tmp_path.iterdir()).read_text("utf-8")

    assert text.endswith("}\n")
    assert '      "temperature": 0.70\n' in text
    assert list(json.loads(text)) == ["version", "key_fields", "request", "responses"]
    assert list(json.loads(text)["request"]["body"]) == ["model", "messages", "temperature"]


@given(st.binary(max_size=40))
def test_any_body_of_a_request_keeps_its_key(tmp_path_factory, body):
    folder = tmp_path_factory.mktemp("any")
    made = recording(folder, body)

    Folder(folder).write(made)

    found = Folder(folder).get(made.key)
    assert found is not None
    assert found.answers == made.answers


def test_writing_again_replaces_and_leaves_no_second_file(tmp_path):
    folder = Folder(tmp_path)
    folder.write(recording(tmp_path, name=recording(tmp_path).key + "-old-name.json"))

    folder.write(recording(tmp_path, BODY, b"new"))

    assert files(tmp_path) == [recording(tmp_path).file.name]
    assert folder.get(recording(tmp_path).key).answers[0].chunks == (b"new",)


def test_the_route_and_role_in_a_name_do_not_matter(tmp_path):
    made = recording(tmp_path, name=recording(tmp_path).key + "-any thing.json")
    Folder(tmp_path).write(made)

    assert Folder(tmp_path).get(made.key) is not None


@pytest.mark.parametrize(
    ("route", "role", "name"),
    [
        ("main", "planning", "k-main-planning.json"),
        ("", "", "k-call-call.json"),
        ("../../etc", "a/b c", "k-etc-a_b_c.json"),
        ("ü" * 9, "x" * 99, f"k-call-{'x' * 60}.json"),
    ],
)
def test_names_are_safe(route, role, name):
    assert file_name("k", route, role) == name


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "f").write_text("x")

    with pytest.raises(ReplayError, match="is a file") as caught:
        Folder(tmp_path / "f")

    assert caught.value.path == str(tmp_path / "f")


def good(tmp_path):
    return json.loads(recording(tmp_path).dumped())


def changed(**changes):
    return lambda tree: {**tree, **changes}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda _tree: [1], "is not a recording", id="list"),
        pytest.param(changed(version=2), "`version` is not 1", id="version"),
        pytest.param(changed(request=3), "has no `request`", id="request"),
        pytest.param(
            changed(request={"method": "POST", "path": "/"}), "base64 in an object", id="body"
        ),
        pytest.param(changed(responses=[]), "`responses`", id="no_answer"),
        pytest.param(changed(responses=[3]), "an answer must be an object", id="odd_answer"),
        pytest.param(
            changed(responses=[{"status": 200, "headers": {}}]), "`body` or `chunks`", id="no_body"
        ),
        *(
            pytest.param(
                changed(responses=[{"status": status, "headers": {}, "body": {}}]),
                "from 200 to 599",
                id=f"status_{status}",
            )
            for status in (99999, 600, 199, 0, -200, True)
        ),
        pytest.param(changed(key_fields=None), "must be a list of strings", id="key_fields"),
        pytest.param(changed(key_fields=["model"]), "named for another call", id="other_key"),
    ],
)
def test_what_is_no_recording_is_an_error_with_its_path(tmp_path, change, words):
    file = recording(tmp_path).file
    file.write_text(json.dumps(change(good(tmp_path))))

    with pytest.raises(ReplayError) as caught:
        Folder(tmp_path)

    assert caught.value.path == str(file)
    assert words in caught.value.message
    assert "NoneType" not in caught.value.message


@pytest.mark.parametrize("content", ["", "{", "not json"])
def test_a_broken_file_is_an_error_with_its_path(tmp_path, content):
    file = recording(tmp_path).file
    file.write_text(content)

    with pytest.raises(ReplayError, match=r"SY250 the recording is not JSON") as caught:
        Folder(tmp_path)

    assert str(file) in caught.value.message


def test_a_foreign_json_file_is_an_error_and_other_files_are_let_be(tmp_path):
    (tmp_path / "README.md").write_text("about these recordings")
    (tmp_path / ".hidden.json").write_text("{}")
    assert len(Folder(tmp_path)) == 0

    (tmp_path / "package.json").write_text("{}")
    with pytest.raises(ReplayError, match=r"package\.json` is not named `<key>"):
        Folder(tmp_path)


def test_two_files_of_one_call_are_an_error_that_names_both(tmp_path):
    Folder(tmp_path).write(recording(tmp_path))
    twin = recording(tmp_path, name=recording(tmp_path).key + "-twin.json")
    twin.file.write_text(twin.dumped())

    with pytest.raises(ReplayError, match="record the same call") as caught:
        Folder(tmp_path)

    assert twin.file.name in caught.value.message
    assert recording(tmp_path).file.name in caught.value.message


def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path):
    made = recording(tmp_path, name="0123456789abcdef-" + "x" * 300 + ".json")

    with pytest.raises(RecordingError, match="cannot be written"):
        Folder(tmp_path).write(made)

    assert files(tmp_path) == []
