from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError, KafkaStorageError
from pylog.files.durable_io import DurableIO
from pylog.files.leader_epochs import (
    EpochEntry,
    LeaderEpochFileCache,
    read_leader_epoch_checkpoint,
    write_leader_epoch_checkpoint,
)
from pylog.model import TopicPartition
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    return path


def test_every_line_of_a_real_checkpoint_is_an_entry(tmp_path: Path) -> None:
    path = write(tmp_path, "0\n3\n0 0\n1 55\n7 3000000069\n")
    assert read_leader_epoch_checkpoint(path) == [
        EpochEntry(0, 0),
        EpochEntry(1, 55),
        EpochEntry(7, 3_000_000_069),
    ]


def test_missing_and_empty_files_have_no_entries(tmp_path: Path) -> None:
    assert read_leader_epoch_checkpoint(tmp_path / "missing") == []
    assert read_leader_epoch_checkpoint(write(tmp_path, "")) == []
    assert read_leader_epoch_checkpoint(write(tmp_path, "0\n0\n")) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0\n2\n0 0\n0 5\n", "'0 5' follows '0 0', expected both numbers to increase"),
        ("0\n2\n3 0\n2 5\n", "'2 5' follows '3 0'"),
        ("0\n2\n0 5\n1 5\n", "'1 5' follows '0 5'"),
        ("0\n2\n0 5\n1 4\n", "'1 4' follows '0 5'"),
        ("0\n1\n-1 0\n", "line 3, '-1 0', is malformed: neither number can be negative"),
        ("0\n1\n0 -1\n", "neither number can be negative"),
        ("0\n1\n0\n", "it has 1 fields, expected 2"),
        ("0\n1\n2147483648 0\n", "does not fit into int32"),
        ("1\n0\n", "version 1, expected 0"),
    ],
)
def test_impossible_epochs_are_corrupt(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        read_leader_epoch_checkpoint(path)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], "0\n0\n"),
        ([EpochEntry(0, 0)], "0\n1\n0 0\n"),
        (
            [EpochEntry(0, 0), EpochEntry(1, 55), EpochEntry(7, 3_000_000_069)],
            "0\n3\n0 0\n1 55\n7 3000000069\n",
        ),
    ],
)
def test_epochs_are_written_one_a_line(
    tmp_path: Path, entries: list[EpochEntry], text: str
) -> None:
    path = write(tmp_path, "what was there before, and longer than what comes")
    write_leader_epoch_checkpoint(DurableIO(), path, entries)
    assert path.read_text() == text


def test_checkpoint_is_replaced_as_a_whole(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    write_leader_epoch_checkpoint(io, tmp_path / "c", [EpochEntry(0, 0)])
    assert io.summary[2:] == ["sync c.tmp", "replace c.tmp c", "sync-directory ."]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([EpochEntry(0, 0), EpochEntry(0, 5)], "'0 5' follows '0 0', expected both numbers"),
        ([EpochEntry(0, 5), EpochEntry(1, 5)], "'1 5' follows '0 5'"),
        ([EpochEntry(-1, 0)], "neither number can be negative"),
        ([EpochEntry(0, -1), EpochEntry(1, 5)], "neither number can be negative"),
    ],
)
def test_epochs_that_could_not_be_read_back_are_refused(
    tmp_path: Path, entries: list[EpochEntry], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        write_leader_epoch_checkpoint(DurableIO(), tmp_path / "c", entries)
    assert list(tmp_path.iterdir()) == []


PARTITION = TopicPartition("ledger", 3)
UNDEFINED = (-1, -1)
Entries = list[tuple[int, int]]


class CountingIO(DurableIO):
    """Counts the files written, and fails when told to."""

    def __init__(self) -> None:
        self.written = 0
        self.is_broken = False

    def rename(self, source: str, target: str) -> None:
        if self.is_broken:
            raise OSError(errno.EIO, "broken")
        self.written += 1
        super().rename(source, target)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leader-epoch-checkpoint"


def open_cache(path: Path, io: DurableIO | None = None) -> LeaderEpochFileCache:
    return LeaderEpochFileCache(PARTITION, str(path), io=DurableIO() if io is None else io)


def cache_of(path: Path, entries: Entries) -> LeaderEpochFileCache:
    cache = open_cache(path)
    for epoch, start_offset in entries:
        cache.assign(epoch, start_offset)
    return cache


def test_new_partition_has_an_empty_file_and_no_epoch(path: Path) -> None:
    cache = open_cache(path)
    assert path.read_bytes() == b""
    assert cache.is_empty
    assert cache.entries == ()
    assert cache.latest_epoch is None
    assert (cache.latest_entry, cache.earliest_entry) == (None, None)
    assert cache.epoch_for_offset(0) is None
    assert cache.end_offset_for(0, 10) == UNDEFINED


def test_assigned_epochs_are_in_the_file_at_once(path: Path) -> None:
    cache = cache_of(path, [(0, 0), (1, 55), (7, 3_000_000_069)])
    assert path.read_text() == "0\n3\n0 0\n1 55\n7 3000000069\n"
    assert open_cache(path).entries == cache.entries
    assert cache.latest_epoch == 7
    assert cache.latest_entry == (7, 3_000_000_069)
    assert cache.earliest_entry == (0, 0)
    assert not cache.is_empty


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ([(2, 6)], [(2, 6)]),
        ([(2, 6), (2, 7)], [(2, 6)]),  # an epoch begins once
        ([(2, 6), (2, 6)], [(2, 6)]),
        ([(2, 9), (3, 9)], [(3, 9)]),  # the earlier one wrote nothing
        ([(2, 6), (3, 5)], [(3, 5)]),
        ([(2, 6), (1, 7)], [(1, 7)]),  # epochs increase
        ([(2, 6), (3, 8), (1, 7)], [(1, 7)]),
        ([(1, 5), (2, 6), (3, 8), (2, 7)], [(1, 5), (2, 7)]),
        ([(2, 7), (2, 6)], [(2, 6)]),  # the same epoch, but it began earlier
        ([(1, 5), (2, 10), (2, 7)], [(1, 5), (2, 7)]),
        ([(0, 0), (1, 4), (2, 8), (5, 3)], [(0, 0), (5, 3)]),
    ],
)
def test_epochs_and_start_offsets_both_increase(
    path: Path, assigned: Entries, expected: Entries
) -> None:
    cache = cache_of(path, assigned)
    assert list(cache.entries) == expected
    assert list(open_cache(path).entries) == expected


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1), (-1, -1)])
def test_negative_numbers_cannot_be_assigned(path: Path, entry: tuple[int, int]) -> None:
    cache = cache_of(path, [(2, 6)])
    with pytest.raises(ValueError, match="of partition ledger-3 has a negative number"):
        cache.assign(*entry)
    assert list(cache.entries) == [(2, 6)]


def test_file_is_written_only_when_something_changes(path: Path) -> None:
    io = CountingIO()
    cache = open_cache(path, io)
    for epoch, start_offset, written in ((0, 0, 1), (0, 0, 1), (0, 9, 1), (1, 9, 2), (1, 12, 2)):
        cache.assign(epoch, start_offset)
        assert io.written == written
    cache.truncate_from_end(10)
    cache.truncate_from_end(-1)
    cache.truncate_from_start(0)
    assert io.written == 2
    cache.truncate_from_end(9)
    assert io.written == 3
    cache.truncate_from_start(4)
    assert io.written == 4
    assert path.read_text() == "0\n1\n0 4\n"


def test_nothing_changes_where_the_file_cannot_be_written(path: Path) -> None:
    io = CountingIO()
    cache = open_cache(path, io)
    cache.assign(0, 0)
    cache.assign(1, 5)
    io.is_broken = True
    changes: list[Callable[[], None]] = [
        lambda: cache.assign(2, 9),
        lambda: cache.truncate_from_end(5),
        lambda: cache.truncate_from_start(5),
        cache.clear_and_flush,
    ]
    for change in changes:
        with pytest.raises(KafkaStorageError):
            change()
        assert list(cache.entries) == [(0, 0), (1, 5)]
    assert path.read_text() == "0\n2\n0 0\n1 5\n"


def test_contradiction_is_warned_of_unless_the_epoch_wrote_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = cache_of(path, [(1, 5), (2, 9)])
    cache.assign(3, 9)
    assert not caplog.records
    cache.assign(4, 7)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "partition ledger-3" in caplog.text
    cache.assign(2, 5)
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0\n2\n2 9\n3 9\n", [(3, 9)]),
        ("0\n3\n0 0\n5 20\n3 30\n", [(0, 0), (3, 30)]),
        ("0\n3\n0 0\n1 20\n2 10\n", [(0, 0), (2, 10)]),
        ("0\n2\n4 4\n4 4\n", [(4, 4)]),
        ("", []),
    ],
)
def test_the_later_of_two_contradicting_lines_counts(
    path: Path, text: str, expected: Entries
) -> None:
    path.write_text(text)
    io = CountingIO()
    assert list(open_cache(path, io).entries) == expected
    assert io.written == 0
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["1\n0\n", "0\n1\n0 0 0\n", "0\n2\n0 0\n", "0\n1\n-1 0\n"])
def test_malformed_file_is_corrupt(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(CorruptCheckpointError) as caught:
        open_cache(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (-1, UNDEFINED),
        (0, (0, 11)),  # below all: what it wrote is gone, the log begins with epoch 2
        (1, (1, 11)),
        (2, (2, 13)),
        (3, (2, 13)),  # no such epoch: the one before it
        (4, (4, 17)),
        (5, (4, 17)),
        (6, (4, 17)),
        (7, (7, 30)),  # the latest goes on
        (8, UNDEFINED),
    ],
)
def test_requested_epoch_ends_where_the_next_one_begins(
    path: Path, requested: int, expected: tuple[int, int]
) -> None:
    cache = cache_of(path, [(2, 11), (4, 13), (7, 17)])
    assert cache.end_offset_for(requested, 30) == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, None), (4, None), (5, 2), (7, 2), (8, 3), (9, 3), (10, 6), (1_000, 6)],
)
def test_offset_was_written_under_the_epoch_that_began_before(
    path: Path, offset: int, expected: int | None
) -> None:
    assert cache_of(path, [(2, 5), (3, 8), (6, 10)]).epoch_for_offset(offset) == expected


@pytest.mark.parametrize(
    ("end_offset", "expected"),
    [
        (-1, [(2, 6), (3, 8), (4, 11)]),
        (12, [(2, 6), (3, 8), (4, 11)]),
        (11, [(2, 6), (3, 8)]),  # at a boundary the epoch that begins there goes
        (9, [(2, 6), (3, 8)]),
        (8, [(2, 6)]),
        (6, []),
        (0, []),
    ],
)
def test_truncation_at_the_end_removes_epochs_that_begin_there_or_above(
    path: Path, end_offset: int, expected: Entries
) -> None:
    cache = cache_of(path, [(2, 6), (3, 8), (4, 11)])
    cache.truncate_from_end(end_offset)
    assert list(cache.entries) == expected
    assert list(open_cache(path).entries) == expected


@pytest.mark.parametrize(
    ("start_offset", "expected"),
    [
        (5, [(2, 6), (3, 8), (4, 11)]),
        (6, [(2, 6), (3, 8), (4, 11)]),
        (7, [(2, 7), (3, 8), (4, 11)]),
        (8, [(3, 8), (4, 11)]),
        (9, [(3, 9), (4, 11)]),  # between: the epoch that wrote there begins there now
        (11, [(4, 11)]),
        (15, [(4, 15)]),  # the latest is kept whatever goes
    ],
)
def test_truncation_at_the_start_keeps_the_epoch_that_wrote_there(
    path: Path, start_offset: int, expected: Entries
) -> None:
    cache = cache_of(path, [(2, 6), (3, 8), (4, 11)])
    cache.truncate_from_start(start_offset)
    assert list(cache.entries) == expected
    assert list(open_cache(path).entries) == expected


def test_truncating_an_empty_cache_does_nothing(path: Path) -> None:
    cache = open_cache(path)
    cache.truncate_from_start(7)
    cache.truncate_from_end(7)
    assert cache.is_empty


def test_clearing_and_flushing_empties_the_file(path: Path) -> None:
    cache = cache_of(path, [(2, 6), (3, 8)])
    cache.clear_and_flush()
    assert cache.is_empty
    assert path.read_text() == "0\n0\n"


def test_entries_once_given_never_change(path: Path) -> None:
    cache = cache_of(path, [(2, 6), (3, 8)])
    before = cache.entries
    cache.assign(4, 12)
    cache.truncate_from_start(7)
    assert list(before) == [(2, 6), (3, 8)]
