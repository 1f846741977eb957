"""The system calls that change a disk: modes, refusals, signals."""

from __future__ import annotations

import errno
import os
import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError, SegmentVanishedError, UnexpectedFileError
from pylog.files.durable_io import DurableIO
from pylog.files.writable_file import WritableFile
from tests.unit.files.watched_io import NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_new_files_have_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        DurableIO().write_file(tmp_path / "a", b"")
        DurableIO().make_directory(tmp_path / "d")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o750


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
