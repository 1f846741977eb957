from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import pylog
from pylog.errors import KafkaStorageError, SegmentVanishedError
from pylog.files import owned_file
from pylog.files.durable_io import DurableIO
from pylog.files.owned_file import OwnedFile
from pylog.files.transaction_index import TransactionIndexEntry
from pylog.indexes.transaction_index import TransactionIndex
from pylog.log_file.file_records import FileRecords
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO


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


# ---- more files than descriptors

SEGMENTS = 60


def open_descriptors(path: Path) -> int:
    """Return how many descriptors of this process lead into a directory."""
    links = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            links.append(each.readlink())
    return sum(link.is_relative_to(path) for link in links)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TextFile]:
    monkeypatch.setattr(owned_file, "open_files", owned_file.OpenFiles(2))
    found = [TextFile(tmp_path / f"{number}.log", DurableIO()) for number in range(5)]
    for number, file in enumerate(found):
        file.write(b"%d" % number)
    return found


def test_no_more_files_are_open_than_may_be_and_all_are_used_as_if_they_were(
    files: list[TextFile], tmp_path: Path
) -> None:
    assert open_descriptors(tmp_path) == 2
    for number, file in enumerate(files):
        file.rename_to(tmp_path / f"{number}.index")
        assert file.read() == b"%d" % number
        file.write(b"new")
        assert open_descriptors(tmp_path) == 2
    assert [file.read() for file in files] == [b"new"] * 5
    for file in files[:3]:
        assert file.delete_if_exists()
    files[4].close()
    with pytest.raises(ValueError, match="is closed"):
        files[4].read()
    assert files[3].read() == b"new"


def test_a_file_that_is_busy_stays_open(files: list[TextFile], tmp_path: Path) -> None:
    oldest = files[3]
    with ThreadPoolExecutor(1) as other, oldest._lock:
        other.submit(files[0].read).result()
        other.submit(files[1].read).result()
        assert oldest._handle is not None
    assert open_descriptors(tmp_path) >= 2
    assert oldest.read() == b"3"


def test_a_file_whose_sync_has_failed_keeps_the_descriptor_that_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_file, "open_files", owned_file.OpenFiles(1))
    io = FaultyIO(Fault(kinds=frozenset({Kind.SYNC})))
    lost = TextFile(tmp_path / "lost.log", io)
    lost.write(b"one")
    with pytest.raises(KafkaStorageError):
        lost._file.sync()
    TextFile(tmp_path / "other.log", io).write(b"two")
    with pytest.raises(KafkaStorageError, match="an earlier sync of it failed"):
        lost._file.sync()


def test_what_was_written_before_the_descriptor_was_given_back_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_file, "open_files", owned_file.OpenFiles(1))
    io = RecordingIO(tmp_path)
    index = TransactionIndex(tmp_path / "a.txnindex", 0, io)
    index.append(TransactionIndexEntry(0, 1, 0, 5, 6))
    log = FileRecords(io, str(tmp_path / "a.log"), is_new=True, preallocated_bytes=4096)
    log.append(b"0123")
    TextFile(tmp_path / "other.log", io).write(b"two")
    assert not index._handle
    io.operations.clear()
    index.flush()
    assert io.summary == ["sync a.txnindex"]
    assert log.trim()
    assert (tmp_path / "a.log").stat().st_size == 4


def test_64_descriptors_are_enough_for_any_number_of_segments(tmp_path: Path) -> None:
    code = (
        "import resource, sys, pylog\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "from pylog.config import LogConfig\n"
        "config = {'segment.ms': '1', 'cleanup.policy': sys.argv[2], 'retention.ms': '1',\n"
        "          'delete.retention.ms': '1', 'min.compaction.lag.ms': '0'}\n"
        "from pylog.cli.main import run\n"
        "command = 'compact' if sys.argv[2] == 'compact' else 'retention'\n"
        "given = [x for name in config for x in ('--config', f'{name}={config[name]}')]\n"
        "given += ['--high-watermark', 'log-end']\n"
        "raise SystemExit(run([command, sys.argv[1], *given, *sys.argv[3:]]))\n"
    )
    for policy in ("compact", "delete"):
        logs = tmp_path / policy
        segments = {
            at: [batch_v2([Stored(at, 1 + at, b"k%d" % (at % 9), b"v")])] for at in range(SEGMENTS)
        }
        write_partition(logs, segments)
        for options in (["--dry-run"], []):
            done = subprocess.run(
                [sys.executable, "-c", code, str(logs), policy, *options],
                check=False,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
    kept = pylog.scan(tmp_path / "compact").to_table()["offset"].to_pylist()
    assert kept == list(range(SEGMENTS - 10, SEGMENTS))  # the active one is not cleaned
    assert pylog.scan(tmp_path / "delete").count() == 0
