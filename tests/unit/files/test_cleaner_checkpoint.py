"""How far logs are clean: what the file says after every change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError
from pylog.files.cleaner_checkpoint import CleanerCheckpoint
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.model import TopicPartition
from tests.support.crash_replay import Names
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO, replay

if TYPE_CHECKING:
    from pathlib import Path

FOO, BAR, GONE = TopicPartition("foo", 0), TopicPartition("bar", 1), TopicPartition("gone", 0)
NAME = "cleaner-offset-checkpoint"


def opened(directory: Path, io: RecordingIO | FaultyIO | None = None) -> CleanerCheckpoint:
    io = RecordingIO(directory) if io is None else io
    failures = LogDirFailureChannel(is_logged=False)
    checkpoint = CleanerCheckpoint(str(directory), io, failures, lambda: [FOO, BAR])
    checkpoint.load()
    return checkpoint


def write(directory: Path, *entries: str) -> None:
    (directory / NAME).write_text("\n".join(["0", str(len(entries)), *entries, ""]))


def test_an_update_is_in_the_file_and_leaves_the_other_entries(tmp_path: Path) -> None:
    write(tmp_path, "foo 0 3", "bar 1 8")
    checkpoint = opened(tmp_path)
    checkpoint.update(FOO, 5)
    assert (tmp_path / NAME).read_text() == "0\n2\nfoo 0 5\nbar 1 8\n"
    assert checkpoint.offsets() == {FOO: 5, BAR: 8}
    assert opened(tmp_path).offsets() == {FOO: 5, BAR: 8}


def test_entries_of_partitions_that_are_not_there_go_with_the_next_update(tmp_path: Path) -> None:
    write(tmp_path, "gone 0 7", "bar 1 8")
    checkpoint = opened(tmp_path)
    assert checkpoint.offsets() == {GONE: 7, BAR: 8}
    checkpoint.update(FOO, 5)
    assert (tmp_path / NAME).read_text() == "0\n2\nbar 1 8\nfoo 0 5\n"


@pytest.mark.parametrize(("offset", "after"), [(2, 2), (3, 3), (4, 3)])
def test_an_entry_is_lowered_and_never_raised(tmp_path: Path, offset: int, after: int) -> None:
    write(tmp_path, "foo 0 3")
    io = RecordingIO(tmp_path)
    checkpoint = opened(tmp_path, io)
    checkpoint.lower(FOO, offset)
    checkpoint.lower(BAR, 1)  # has no entry
    assert opened(tmp_path).offsets() == {FOO: after}
    assert bool(io.operations) is (offset < 3)


def test_an_entry_is_removed_once(tmp_path: Path) -> None:
    write(tmp_path, "foo 0 3", "bar 1 8")
    io = RecordingIO(tmp_path)
    checkpoint = opened(tmp_path, io)
    checkpoint.remove(FOO)
    writes = len(io.operations)
    checkpoint.remove(FOO)
    assert len(io.operations) == writes
    assert (checkpoint.offset(FOO), checkpoint.offset(BAR)) == (0, 8)
    assert opened(tmp_path).offsets() == {BAR: 8}


def test_a_file_that_does_not_follow_the_format_counts_as_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).write_text("0\n2\nfoo 0 3\n")
    assert opened(tmp_path).offsets() == {}
    assert "taking a checkpoint for empty" in caplog.text


def test_where_the_disk_fails_the_old_entries_hold(tmp_path: Path) -> None:
    write(tmp_path, "foo 0 3")
    io = FaultyIO()
    checkpoint = opened(tmp_path, io)
    io.faults.append(Fault(kinds=frozenset({Kind.REPLACE})))
    with pytest.raises(KafkaStorageError):
        checkpoint.update(FOO, 5)
    assert checkpoint.offsets() == {FOO: 3}
    assert opened(tmp_path).offsets() == {FOO: 3}


@pytest.mark.parametrize("names", list(Names))
def test_a_crash_leaves_the_old_entry_or_the_new_one(tmp_path: Path, names: Names) -> None:
    source = tmp_path / "source"
    source.mkdir()
    write(source, "foo 0 3")
    io = RecordingIO(source)
    opened(source, io).lower(FOO, 2)
    seen = []
    for count in range(len(io.operations) + 1):
        target = tmp_path / f"after-{count}"
        target.mkdir()
        write(target, "foo 0 3")
        replay(io.operations[:count], target, lose_unsynced=True, names=names)
        seen.append(opened(target).offset(FOO))
    assert set(seen) <= {3, 2}
    assert (seen[0], seen[-1]) == (3, 2)
