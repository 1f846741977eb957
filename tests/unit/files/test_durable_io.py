from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError
from pylog.files.durable_io import DurableIO
from tests.support.recording_io import Fault, FaultyIO, RecordingIO
from tests.unit.files.watched_io import NEW, OLD, WRITES

if TYPE_CHECKING:
    from pathlib import Path


def test_opening_to_create_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(OLD)
    with DurableIO().open(path, create=True) as file:
        assert file.read_at(0, 100) == OLD


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
