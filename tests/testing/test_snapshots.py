"""Snapshots compare tokens, not values."""

import pytest

pytest_plugins = ["pytester"]

TEST = """
import pytest
from switchyard_core.testing import RequestBodySnapshot

@pytest.mark.parametrize("case", ["Anthropic/First Edit"])
def test_body(snapshot, case):
    assert {data!r} == snapshot.use_extension(RequestBodySnapshot)
"""


@pytest.fixture
def run(pytester):
    pytester.makeini("[pytest]\naddopts = -p no:randomly -p no:cacheprovider")

    def once(data, *options):
        pytester.makepyfile(test_case=TEST.replace("{data!r}", repr(data)))
        return pytester.runpytest_subprocess("-q", *options)

    return once


def test_snapshot_is_one_readable_file_with_a_plain_name(run, pytester):
    run(b'{"b":1.10,"a":null}', "--snapshot-update").assert_outcomes(passed=1)

    (file,) = (pytester.path / "__snapshots__" / "test_case").iterdir()
    assert file.name == "test_body-anthropic-first-edit.json"
    assert file.read_text() == '{\n  "b": 1.10,\n  "a": null\n}\n'


@pytest.mark.parametrize(
    "changed",
    [
        b'{"a":null,"b":1.10}',
        b'{"b":1.1,"a":null}',
        b'{"b":1.10}',
        b'{"b":1.10,"a":null,"a":null}',
        {"b": 1.1, "a": None},
    ],
    ids=["key_order", "number", "missing_null", "duplicate_key", "tree"],
)
def test_snapshot_fails_when_a_token_differs(run, changed):
    run(b'{"b":1.10,"a":null}', "--snapshot-update")

    run(changed).assert_outcomes(failed=1)


def test_snapshot_passes_when_only_spacing_differs(run):
    run(b'{"b":1.10,"a":null}', "--snapshot-update")

    run('{ "b" : 1.10,\n"a":null }').assert_outcomes(passed=1)


def test_snapshot_with_a_filter_is_an_error():
    from switchyard_core.testing import RequestBodySnapshot  # noqa: PLC0415  # needs syrupy

    with pytest.raises(ValueError, match="compared whole"):
        RequestBodySnapshot().serialize({}, exclude=lambda **_: False)


def test_kit_has_no_other_lazy_names():
    import switchyard_core.testing as kit  # noqa: PLC0415  # the module itself is asked

    with pytest.raises(AttributeError, match="no attribute"):
        _ = kit.nothing
