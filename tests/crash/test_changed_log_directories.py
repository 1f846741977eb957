"""Power fails at every step of what changes a log directory as a whole: the next call ends it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.jobs import end_adoption, erase
from pylog.recovery.adoption_target import ADOPTION
from tests.crash.test_splitting import CRASHES
from tests.support.adopted_disks import formatted, left_in, old
from tests.support.crash_replay import replay
from tests.support.reading import scanned
from tests.unit.recovery.test_adopt_cluster import disks
from tests.unit.recovery.test_erase import MINE, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tests.conftest import SomeOf
    from tests.support.batches import Stored
    from tests.support.recording_io import RecordingIO


def crashes(
    recorded: RecordingIO, root: Path, begun: Path, kind: str, points: Iterable[int]
) -> Iterator[list[str]]:
    """Make a folder what each number of steps leaves of it; yield the last of these steps.

    It is the folder that the steps were recorded in, since some files have its path.
    """
    lose_unsynced, names = CRASHES[kind]
    for done in points:
        shutil.rmtree(root)
        shutil.copytree(begun, root)
        replay(
            recorded.operations[:done],
            root,
            lose_unsynced=lose_unsynced,
            names=names,
            moves_are_whole=True,
        )
        yield recorded.summary[:done][-3:]


WAYS: dict[str, Callable[[Path, Path], object]] = {
    "adopt": lambda root, new: pylog.adopt(root / "old", into=new),
    "adopt --as-cluster": lambda root, new: pylog.jobs.adopt_cluster(
        *sorted((root / "cluster").iterdir()), into=new, nodes=[2], endpoints={2: "host:9093"}
    ),
}


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("kind", CRASHES)
@pytest.mark.parametrize("way", WAYS)
def test_adopted_topics_are_all_there_or_none_is(
    tmp_path: Path,
    recorded: RecordingIO,
    some_of: SomeOf,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    kind: str,
    *,
    undo: bool,
) -> None:
    root, begun = tmp_path / "recorded", tmp_path / "begun"
    old(root / "old")
    disks(root / "cluster")
    new = formatted(root / "new", 2)
    before = left_in(new)
    shutil.copytree(root, begun)
    WAYS[way](root, new)
    whole = left_in(new)
    monkeypatch.undo()
    points = some_of(range(len(recorded.operations) + 1), one_in=5)
    outcomes = set()
    for steps in crashes(recorded, root, begun, kind, points):
        if (new / ADOPTION).exists():
            is_ended = end_adoption([new], undo=undo)
            assert is_ended in (False, not undo), steps
        left = left_in(new)
        assert left in (before, whole), steps
        outcomes.add(left == whole)
    assert left == whole
    assert outcomes == {False, True}


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("kind", CRASHES)
def test_what_ends_an_adoption_may_be_cut_short_as_well(
    tmp_path: Path,
    recorded: RecordingIO,
    some_of: SomeOf,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    *,
    undo: bool,
) -> None:
    root, begun = tmp_path / "recorded", tmp_path / "begun"
    old(root / "old")
    new = formatted(root / "new")
    before = left_in(new)
    shutil.copytree(root, begun)
    pylog.adopt(root / "old", into=new)
    whole = left_in(new)
    moved = next(n for n, step in enumerate(recorded.summary) if step.endswith(" new/t-0"))
    [_] = crashes(recorded, root, begun, "process death", [moved + 1])
    begun = begun.rename(tmp_path / "not begun").with_name("begun")
    shutil.copytree(root, begun)
    recorded.operations.clear()
    assert end_adoption([new], undo=undo) is not undo
    monkeypatch.undo()
    points = some_of(range(len(recorded.operations) + 1), one_in=2)
    for steps in crashes(recorded, root, begun, kind, points):
        if (new / ADOPTION).exists():
            assert end_adoption([new], undo=undo) is not undo, steps
        assert left_in(new) == (before if undo else whole), steps


@pytest.mark.parametrize("kind", CRASHES)
def test_an_erasure_loses_no_other_record_and_is_ended_by_the_next_one(
    tmp_path: Path,
    recorded: RecordingIO,
    some_of: SomeOf,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    root, begun = tmp_path / "recorded", tmp_path / "begun"
    for _ in range(3):
        pylog.write_topic(root, "users", rows(60), key="key", value="value")
        with pylog.logs.own_log_directory(root) as manager:
            manager.get_log(pylog.TopicPartition("users", 0)).roll()
    shutil.copytree(root, begun)
    recorded.operations.clear()
    before = scanned(root)
    erase(root, MINE)
    expected = scanned(root)
    assert expected == without_mine(before)
    monkeypatch.undo()
    points = some_of(range(len(recorded.operations) + 1), one_in=12)
    seen = set()
    for steps in crashes(recorded, root, begun, kind, points):
        found = scanned(root)
        assert without_mine(found) == expected, steps
        seen.add(len(found))
        erase(root, MINE)
        assert scanned(root) == expected, steps
    assert found == expected
    assert len(seen) > 1


def without_mine(records: list[Stored]) -> list[Stored]:
    return [each for each in records if each.key != b"me"]
