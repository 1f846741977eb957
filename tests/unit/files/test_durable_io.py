from __future__ import annotations

import errno
import os
import signal
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.errors import KafkaStorageError, SegmentVanishedError, UnexpectedFileError
from pylog.files.durable_io import DurableIO
from pylog.files.writable_file import WritableFile
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pylog.files.writable_file import BytesLike

OLD, NEW = b"what was there before\n", b"new\n"
WRITES = frozenset({Kind.WRITE})
SYNCS = frozenset({Kind.SYNC})


def test_file_is_written_and_read_by_position(tmp_path: Path) -> None:
    with DurableIO().open(tmp_path / "a.log", create=True) as file:
        file.write_at(0, b"0123456789")
        file.write_at(4, b"xy")
        file.write_at(12, b"end")
        file.sync()
        assert file.size() == 15
        assert file.read_at(3, 4) == b"3xy6"
        assert file.read_at(8, 100) == b"89\0\0end"
        assert file.read_at(15, 1) == b""
        buffer = bytearray(5)
        assert file.read_into(12, memoryview(buffer)) == 3
        assert buffer == b"end\0\0"
        assert (file.next_data(0), file.next_data(15)) == (0, None)
        assert file.file_id() == (tmp_path / "a.log").stat().st_ino
    assert (tmp_path / "a.log").read_bytes() == b"0123xy6789\0\0end"


def test_truncate_cuts_and_extends(tmp_path: Path) -> None:
    with DurableIO().open(tmp_path / "a.index", create=True) as file:
        file.write_at(0, b"0123456789")
        file.truncate(4)
        file.truncate(6)
        assert file.read_at(0, 10) == b"0123\0\0"


def test_opening_to_create_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(OLD)
    with DurableIO().open(path, create=True) as file:
        assert file.read_at(0, 100) == OLD


def test_new_files_have_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        DurableIO().write_file(tmp_path / "a", b"")
        DurableIO().make_directory(tmp_path / "d")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abc")[1:], b"bc"),
        (np.array([1, 2], dtype=">i4").data, b"\0\0\0\1\0\0\0\2"),
        (np.array([], dtype=">i4").data, b""),
        (b"", b""),
    ],
)
def test_any_contiguous_bytes_can_be_written(
    tmp_path: Path, data: BytesLike, expected: bytes
) -> None:
    DurableIO().write_file(tmp_path / "a", data)
    assert (tmp_path / "a").read_bytes() == expected


def test_missing_file_has_vanished_unless_it_is_to_be_created(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError) as vanished:
        DurableIO().open(tmp_path / "a.log")
    assert vanished.value.path == str(tmp_path / "a.log")
    with pytest.raises(KafkaStorageError) as failed:
        DurableIO().open(tmp_path / "missing" / "a.log", create=True)
    assert failed.value.errno == errno.ENOENT


@pytest.mark.parametrize(
    ("change", "number", "text"),
    [
        (lambda io, d: io.replace(f"{d}/x", f"{d}/y"), errno.ENOENT, "rename the file to {d}/y"),
        (lambda io, d: io.remove(f"{d}/x"), errno.ENOENT, "cannot remove the file"),
        (lambda io, d: io.remove(d, missing_ok=True), errno.EISDIR, "cannot remove the file"),
        (lambda io, d: io.make_directory(d), errno.EEXIST, "cannot create the directory"),
        (lambda io, d: io.remove_directory(d), errno.ENOTEMPTY, "cannot remove the directory"),
        (lambda io, d: io.sync_directory(f"{d}/x"), errno.ENOENT, "cannot sync the directory"),
        (lambda io, d: io.sync_directory(f"{d}/file"), errno.ENOTDIR, "cannot sync the directory"),
    ],
)
def test_what_the_system_refuses_is_a_storage_error(
    tmp_path: Path, change: Callable[[DurableIO, Path], object], number: int, text: str
) -> None:
    (tmp_path / "file").write_bytes(OLD)
    with pytest.raises(KafkaStorageError) as caught:
        change(DurableIO(), tmp_path)
    assert caught.value.errno == number
    assert text.format(d=tmp_path) in str(caught.value)
    assert (tmp_path / "file").read_bytes() == OLD


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda io, d: io.open(d), "expected a regular file, found a directory"),
        (
            lambda io, d: io.make_directory(f"{d}/file", exist_ok=True),
            "expected a directory, found a regular file",
        ),
    ],
)
def test_what_is_of_another_kind_is_not_the_disk_failing(
    tmp_path: Path, change: Callable[[DurableIO, Path], object], text: str
) -> None:
    (tmp_path / "file").write_bytes(OLD)
    with pytest.raises(UnexpectedFileError, match=text):
        change(DurableIO(), tmp_path)
    assert (tmp_path / "file").read_bytes() == OLD


def test_removing_and_creating_return_whether_they_did_something(tmp_path: Path) -> None:
    io = DurableIO()
    assert io.make_directory(tmp_path / "d")
    assert not io.make_directory(tmp_path / "d", exist_ok=True)
    io.write_file(tmp_path / "d" / "a", NEW)
    assert io.remove(tmp_path / "d" / "a")
    assert not io.remove(tmp_path / "d" / "a", missing_ok=True)
    io.remove_directory(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("short_bytes", [1, 3, 7])
def test_write_of_which_the_system_takes_parts_is_continued(
    tmp_path: Path, short_bytes: int
) -> None:
    io = FaultyIO(Fault(kinds=WRITES, short_bytes=short_bytes, forever=True))
    with io.open(tmp_path / "a", create=True) as file:
        file.write_at(2, b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"\0\x000123456789"
    assert io.counts[Kind.WRITE] == -(-10 // short_bytes)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_disk_that_fails_after_a_part_is_named_with_position_and_errno(
    tmp_path: Path, number: int
) -> None:
    io = FaultyIO(
        Fault(kinds=WRITES, short_bytes=4), Fault(kinds=WRITES, at=2, error_number=number)
    )
    with io.open(tmp_path / "a", create=True) as file:
        with pytest.raises(KafkaStorageError) as caught:
            file.write_at(100, b"0123456789")
        assert file.size() == 104
    assert caught.value.errno == number
    assert caught.value.position == 104
    assert str(caught.value) == (
        f"{tmp_path}/a at byte 104: I/O error, cannot write 6 bytes: {os.strerror(number)}"
    )
    assert isinstance(caught.value.__cause__, OSError)


def test_disk_that_takes_nothing_is_an_error_and_not_an_endless_loop(tmp_path: Path) -> None:
    io = FaultyIO(Fault(kinds=WRITES, short_bytes=0))
    with (
        io.open(tmp_path / "a", create=True) as file,
        pytest.raises(KafkaStorageError, match="the system took none of them"),
    ):
        file.write_at(0, NEW)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's /dev/full")  # noqa: PTH110
def test_full_disk_of_the_system_itself_is_a_storage_error() -> None:
    full = os.open("/dev/full", os.O_RDWR)
    with (
        WritableFile(DurableIO(), "/dev/full", full) as file,
        pytest.raises(KafkaStorageError) as caught,
    ):
        file.write_at(0, NEW)
    assert caught.value.errno == errno.ENOSPC


def test_signals_do_not_disturb_a_write(tmp_path: Path) -> None:
    ticks = count()
    before = signal.signal(signal.SIGALRM, lambda *_: next(ticks))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    data = bytes(range(256)) * (64 * 1024)
    try:
        with DurableIO().open(tmp_path / "a", create=True) as file:
            file.write_at(0, data)
            file.sync()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert next(ticks) > 0
    assert (tmp_path / "a").read_bytes() == data


def test_failed_truncate_is_a_storage_error(tmp_path: Path) -> None:
    io = FaultyIO(Fault(kinds=frozenset({Kind.TRUNCATE}), error_number=errno.ENOSPC))
    with io.open(tmp_path / "a", create=True) as file:
        with pytest.raises(KafkaStorageError, match="make the file 10 bytes long") as caught:
            file.truncate(10)
        assert file.size() == 0
    assert caught.value.errno == errno.ENOSPC


def test_after_a_failed_sync_no_later_one_succeeds(tmp_path: Path) -> None:
    io = FaultyIO(Fault(kinds=SYNCS))
    with io.open(tmp_path / "a", create=True) as file:
        file.write_at(0, NEW)
        with pytest.raises(KafkaStorageError, match="Input/output error") as caught:
            file.sync()
        assert caught.value.errno == errno.EIO
        with pytest.raises(KafkaStorageError, match="an earlier sync of it failed"):
            file.sync()
    assert io.counts[Kind.SYNC] == 1


def test_closed_file_is_closed_once_and_refuses_all(tmp_path: Path) -> None:
    file = DurableIO().open(tmp_path / "a", create=True)
    number = file.descriptor
    file.close()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    uses: Sequence[Callable[[], object]] = [
        file.size,
        file.sync,
        lambda: file.descriptor,
        lambda: file.read_at(0, 1),
        lambda: file.write_at(0, b"x"),
        lambda: file.truncate(0),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="a is closed"):
            use()


def test_read_under_way_keeps_its_descriptor_when_the_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(OLD)
    file = DurableIO().open(tmp_path / "a")
    number = file.descriptor
    system_read = os.pread

    def read_after_close(descriptor: int, length: int, position: int) -> bytes:
        file.close()
        return system_read(descriptor, length, position)

    monkeypatch.setattr(os, "pread", read_after_close)
    assert file.read_at(0, 100) == OLD
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


@pytest.mark.parametrize("sync", [False, True])
def test_file_written_in_place_is_cut_first(tmp_path: Path, *, sync: bool) -> None:
    (tmp_path / "a").write_bytes(OLD)
    io = RecordingIO(tmp_path)
    io.write_file(tmp_path / "a", NEW, sync=sync)
    assert (tmp_path / "a").read_bytes() == NEW
    assert io.summary == ["truncate a 0", "write a 0+4", *(["sync a"] if sync else [])]


def test_atomic_write_syncs_the_file_before_the_rename_and_the_directory_after(
    tmp_path: Path,
) -> None:
    (tmp_path / "d").mkdir()
    io = RecordingIO(tmp_path)
    io.write_atomically(tmp_path / "d" / "a", NEW)
    assert io.summary == [
        "create d/a.tmp",
        "write d/a.tmp 0+4",
        "sync d/a.tmp",
        "replace d/a.tmp d/a",
        "sync-directory d",
    ]
    assert (tmp_path / "d" / "a").read_bytes() == NEW
    assert not (tmp_path / "d" / "a.tmp").exists()


def test_atomic_write_of_a_bare_name_syncs_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    io = RecordingIO(tmp_path)
    io.write_atomically("a", NEW)
    assert io.summary[-1] == "sync-directory ."


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize(
    ("at", "after"),
    [
        pytest.param(1, OLD, id="create"),
        pytest.param(2, OLD, id="write"),
        pytest.param(3, OLD, id="sync"),
        pytest.param(4, OLD, id="replace"),
        pytest.param(5, NEW, id="sync-directory"),
    ],
)
def test_atomic_write_that_fails_leaves_a_whole_file(
    tmp_path: Path, at: int, after: bytes, number: int
) -> None:
    path = tmp_path / "a"
    path.write_bytes(OLD)
    io = FaultyIO(Fault(at=at, error_number=number))
    with pytest.raises(KafkaStorageError) as caught:
        io.write_atomically(path, NEW)
    assert caught.value.errno == number
    assert path.read_bytes() == after
    io.write_atomically(path, NEW)
    assert path.read_bytes() == NEW
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_torn_temporary_file_never_reaches_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(OLD)
    io = FaultyIO(Fault(kinds=WRITES, short_bytes=2), Fault(kinds=WRITES, at=2))
    with pytest.raises(KafkaStorageError):
        io.write_atomically(path, NEW)
    assert path.read_bytes() == OLD
    assert (tmp_path / "a.tmp").read_bytes() == NEW[:2]


def test_longer_temporary_file_left_by_a_crash_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.tmp").write_bytes(OLD)
    DurableIO().write_atomically(tmp_path / "a", NEW)
    assert (tmp_path / "a").read_bytes() == NEW
