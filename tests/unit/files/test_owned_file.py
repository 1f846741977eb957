from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError, SegmentVanishedError
from pylog.files.durable_io import DurableIO, OwnedFile
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path


class TextFile(OwnedFile):
    """Reads and writes all of its content."""

    __slots__ = ()

    def read(self) -> bytes:
        return self._file.read_at(0, 100)

    def write(self, data: bytes) -> None:
        self._open(create=True).write_at(0, data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


@pytest.fixture
def file(path: Path) -> TextFile:
    return TextFile(path, DurableIO())


def test_nothing_is_opened_or_made_before_the_first_use(file: TextFile, path: Path) -> None:
    assert not file.exists_on_disk
    with pytest.raises(SegmentVanishedError):
        file.read()
    assert not path.exists()
    file.write(b"one")
    assert (file.exists_on_disk, file.read()) == (True, b"one")


def test_a_released_file_is_opened_again(file: TextFile, path: Path) -> None:
    file.write(b"one")
    file.release()
    path.unlink()
    path.write_bytes(b"another")
    file.release()
    assert file.read() == b"another"


def test_a_read_under_way_comes_to_its_end_after_a_release(file: TextFile) -> None:
    file.write(b"one")
    handle = file._file
    file.release()
    assert handle.read_at(0, 3) == b"one"


def test_a_closed_file_is_refused_and_stays_as_it_is(file: TextFile, path: Path) -> None:
    file.write(b"one")
    file.close()
    file.close()
    for use in (file.read, lambda: file.write(b"two")):
        with pytest.raises(ValueError, match=r"a\.log is closed$"):
            use()
    assert path.read_bytes() == b"one"


def test_a_deleted_file_is_not_made_again(file: TextFile, path: Path) -> None:
    file.write(b"one")
    assert file.delete_if_exists()
    assert not file.delete_if_exists()
    for use in (file.read, lambda: file.write(b"two")):
        with pytest.raises(ValueError, match=r"a\.log has been deleted$"):
            use()
    assert not path.exists()


def test_a_closed_file_can_be_deleted(file: TextFile, path: Path) -> None:
    file.write(b"one")
    file.close()
    assert file.delete_if_exists()
    assert not path.exists()


def test_a_renamed_file_stays_open_and_takes_the_place_of_another(
    file: TextFile, path: Path
) -> None:
    file.write(b"one")
    handle = file._file
    target = path.with_suffix(".swap")
    target.write_bytes(b"old")
    file.rename_to(target)
    assert file._file is handle
    assert (file.path, handle.path) == (str(target), str(target))
    assert (path.exists(), target.read_bytes()) == (False, b"one")


def test_a_file_that_is_not_there_is_renamed_only_if_it_may_be_missing(
    file: TextFile, path: Path
) -> None:
    target = path.with_suffix(".swap")
    with pytest.raises(KafkaStorageError, match="cannot rename"):
        file.rename_to(target)
    assert file.path == str(path)
    file.rename_to(target, missing_ok=True)
    assert not target.exists()
    file.write(b"one")
    assert target.read_bytes() == b"one"


def test_a_name_that_stays_is_not_changed_on_the_disk(tmp_path: Path, path: Path) -> None:
    io = RecordingIO(tmp_path)
    file = TextFile(path, io)
    file.write(b"one")
    file.rename_to(path)
    assert io.summary == ["create a.log", "write a.log 0+3"]
