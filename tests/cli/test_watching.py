"""Running again when files change."""

from __future__ import annotations

from switchyard_core.cli.test import stamps, watch


def test_watch_runs_once_and_again_after_each_change():
    states = iter([{"a": (1, 1)}, {"a": (1, 1)}, {"a": (2, 1)}, {"a": (2, 1)}, {}])
    codes = iter([1, 2, 0])
    slept = []

    def sleep(seconds):
        if len(slept) == 4:
            raise KeyboardInterrupt
        slept.append(seconds)

    code = watch(lambda: next(codes), lambda: next(states), sleep)

    assert code == 0
    assert list(codes) == []
    assert all(0 < seconds <= 1 for seconds in slept)


def test_watch_ends_with_the_last_code_when_it_is_interrupted():
    def interrupt(seconds):
        raise KeyboardInterrupt

    assert watch(lambda: 1, dict, interrupt) == 1


def test_stamps_see_new_changed_and_removed_files(tmp_path):
    policy = tmp_path / "sub" / "a.toml"
    policy.parent.mkdir()
    policy.write_text("a")
    (tmp_path / "other.txt").write_text("not looked at")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    first = stamps([tmp_path])

    policy.write_text("ab")
    second = stamps([tmp_path])
    policy.unlink()

    assert list(first) == [str(policy)]
    assert first != second
    assert stamps([tmp_path]) == {}
