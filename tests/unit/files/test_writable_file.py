"""A file that is written by position: parts of writes, failed syncs, closing."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.errors import KafkaStorageError
from pylog.files.byte_source import LocalFile
from pylog.files.durable_io import DurableIO
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.files.watched_io import NEW, OLD, WRITES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pylog.files.writable_file import BytesLike

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


def test_a_clone_has_all_bytes_until_one_changes_or_the_system_cannot_make_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").write_bytes(OLD)
    with LocalFile(tmp_path / "a") as source, DurableIO().open(tmp_path / "b", create=True) as to:
        is_shared = to.clone(source)  # XFS and Btrfs can
        assert (tmp_path / "b").read_bytes() == (OLD if is_shared else b"")
        to.write_at(0, b"x")
    assert (tmp_path / "a").read_bytes() == OLD


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EXDEV, errno.EIO])
def test_that_a_file_system_shares_nothing_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def ioctl(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.ioctl", ioctl)
    (tmp_path / "a").write_bytes(OLD)
    with LocalFile(tmp_path / "a") as source, DurableIO().open(tmp_path / "b", create=True) as to:
        if number != errno.EIO:
            assert not to.clone(source)
            return
        with pytest.raises(KafkaStorageError, match=r"cannot share the bytes of .*/a"):
            to.clone(source)
