"""The files of one attempt: written, handed to the disk early, synced, removed."""

from __future__ import annotations

import errno
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

import psutil
import pytest

from pylog.errors import KafkaStorageError
from pylog.files.durable_io import DurableIO
from pylog.files.staged_files import JobKey, entries_name
from pylog.writing.stage_files import StageFiles
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
KEY = JobKey("nightly")


class WatchedIO(DurableIO):
    """Notes by which descriptors and threads the disk is asked for something."""

    def __init__(self) -> None:
        super().__init__()
        self.descriptors: dict[str, set[int]] = defaultdict(set)
        self.handed_over: list[tuple[int, int]] = []
        self.syncing_threads: set[int] = set()

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        self.descriptors[path].add(descriptor)
        return super().pwrite(path, descriptor, position, data)

    def start_write_back(self, descriptor: int, position: int, length: int) -> None:
        self.handed_over.append((position, length))
        super().start_write_back(descriptor, position, length)

    def fsync(self, path: str, descriptor: int) -> None:
        self.descriptors[path].add(descriptor)
        self.syncing_threads.add(threading.get_ident())
        super().fsync(path, descriptor)


def open_files(directory: Path) -> int:
    paths = [each.path for each in psutil.Process().open_files()]
    return sum(path.startswith(str(directory)) for path in paths)


def fill(files: StageFiles, size_bytes: int) -> str:
    name = files.begin()
    for position in range(0, size_bytes, MIB):
        files.write(name, position, memoryview(bytes(min(MIB, size_bytes - position))))
    files.write_entries(name, b"entries")
    return name


def test_what_was_written_is_handed_to_the_disk_every_few_mib(tmp_path: Path) -> None:
    io = WatchedIO()
    files = StageFiles(str(tmp_path), io, KEY)
    name = fill(files, 20 * MIB)
    assert io.handed_over == [(0, 8 * MIB), (8 * MIB, 8 * MIB)]
    files.sync()
    # The descriptor that was written to is the one that hears of what could not be written.
    assert len(io.descriptors[files.path(name)]) == 1
    assert (tmp_path / name).stat().st_size == 20 * MIB
    assert (tmp_path / entries_name(name)).read_bytes() == b"entries"
    assert open_files(tmp_path) == 0


def test_many_files_are_not_all_kept_open(tmp_path: Path) -> None:
    files = StageFiles(str(tmp_path), DurableIO(), KEY)
    names = [fill(files, 10) for _ in range(100)]
    assert open_files(tmp_path) == 64
    files.write(names[-1], 10, memoryview(b"more"))
    files.sync()
    assert (tmp_path / names[-1]).stat().st_size == 14
    assert open_files(tmp_path) == 0


@pytest.mark.parametrize(("size_bytes", "many_threads"), [(1_000, False), (3 * MIB, True)])
def test_threads_sync_what_is_worth_it(
    tmp_path: Path, size_bytes: int, *, many_threads: bool
) -> None:
    io = WatchedIO()
    files = StageFiles(str(tmp_path), io, KEY)
    for _ in range(4):
        fill(files, size_bytes)
    files.sync()
    assert (threading.get_ident() not in io.syncing_threads) is many_threads


@pytest.mark.parametrize("size_bytes", [1_000, 3 * MIB])
def test_a_sync_that_fails_is_an_error_wherever_it_was_made(
    tmp_path: Path, size_bytes: int
) -> None:
    fault = Fault(kinds=frozenset({Kind.SYNC}), at=3, error_number=errno.EIO)
    files = StageFiles(str(tmp_path), FaultyIO(fault), KEY)
    for _ in range(4):
        fill(files, size_bytes)
    with pytest.raises(KafkaStorageError, match="cannot sync the file"):
        files.sync()
    files.discard()
    assert not list(tmp_path.iterdir())
    assert open_files(tmp_path) == 0
