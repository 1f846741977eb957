"""File systems that a caller gives, of fsspec and Arrow: the rows of the local copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.fs as pa_fs
import pytest

import pylog
from pylog.errors import LogDirectoryError, SegmentReplacedError, SegmentVanishedError
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

fsspec: Any = pytest.importorskip("fsspec", reason="fsspec is not installed")
MemoryFileSystem: Any = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem

RECORDS = 400
SECRET = "planted-secret-of-a-library"  # noqa: S105 - planted, to be looked for


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    segments = {
        first: [batch_v2(plain_records(first + 10 * n, 10, value_size=1_000)) for n in range(20)]
        for first in (0, 200)
    }
    write_partition(tmp_path / "logs", segments)
    return tmp_path / "logs"


class LibraryError(Exception):
    """What a library raises that is no error of the operating system."""


class WatchedFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory, with entity tags; it notes what is asked of it."""

    cachable = False
    protocol = ("memory", "m")

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.ranges: list[tuple[str, int, int]] = []
        self.failure: Exception | None = None
        self.versions: dict[str, int] = {}

    def upload(self, directory: Path, prefix: str) -> None:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.put_content(f"{prefix}/{path.relative_to(directory)}", path.read_bytes())

    def put_content(self, key: str, content: bytes) -> None:
        self.versions[key] = self.versions.get(key, 0) + 1
        self.pipe_file(key, content)

    def info(self, path: str, **options: object) -> dict[str, Any]:
        found: dict[str, Any] = super().info(path, **options)
        return {**found, "ETag": f"version {self.versions.get(found['name'], 0)}"}

    def cat_file(self, path: str, start: int = 0, end: int = 0, **options: object) -> bytes:
        if self.failure is not None:
            raise self.failure
        self.ranges.append((path, start, end))
        content: bytes = super().cat_file(path, start=start, end=end, **options)
        return content


@pytest.fixture
def watched(logs: Path) -> WatchedFileSystem:
    file_system = WatchedFileSystem()
    file_system.upload(logs, "/bucket/logs")
    return file_system


@pytest.mark.parametrize("path", ["/bucket/logs", "bucket/logs/", "memory://bucket/logs"])
def test_a_file_system_of_fsspec_gives_the_rows_of_the_local_copy(
    logs: Path, watched: WatchedFileSystem, path: str
) -> None:
    local = pylog.scan(logs).to_table()
    scan = pylog.scan(path, filesystem=watched)
    assert scan.to_table().equals(local)
    assert local.num_rows == RECORDS
    wrapped = pa_fs.PyFileSystem(pa_fs.FSSpecHandler(watched))
    assert pylog.scan(path, filesystem=wrapped).to_table().equals(local)
    assert repr(scan).startswith("Scan('memory:///bucket/logs'")


def test_ranges_of_a_file_of_fsspec_are_no_longer_than_needed(
    logs: Path, watched: WatchedFileSystem
) -> None:
    scan = pylog.scan("/bucket/logs", filesystem=watched, start=100, end=110)
    assert scan.count() == 10
    read = sum(end - start for path, start, end in watched.ranges if path.endswith(".log"))
    batch_bytes = len(batch_v2(plain_records(100, 10, value_size=1_000)).data)
    assert read <= 2 * batch_bytes + (1 << 16)
    sizes = {
        f"/bucket/logs/{path.relative_to(logs)}": path.stat().st_size
        for path in logs.rglob("*")
        if path.is_file()
    }
    assert all(end <= sizes[path] for path, _, end in watched.ranges)


def test_what_comes_later_is_seen_though_fsspec_keeps_listings(
    logs: Path, watched: WatchedFileSystem
) -> None:
    assert pylog.scan("/bucket/logs", filesystem=watched).count() == RECORDS
    watched.dircache["/bucket/logs"] = []
    more = batch_v2(plain_records(400, 10))
    write_partition(logs / "more", {400: [more]})
    watched.upload(logs / "more", "/bucket/logs")
    assert pylog.scan("/bucket/logs", filesystem=watched).count() == RECORDS + 10


def test_a_file_of_fsspec_that_is_replaced_or_gone_is_an_error(watched: WatchedFileSystem) -> None:
    name = "/bucket/logs/orders-0/00000000000000000000.log"
    for error in (SegmentReplacedError, SegmentVanishedError):
        batches = pylog.scan("/bucket/logs", filesystem=watched, window_bytes=1 << 16).to_batches()
        next(batches)
        if error is SegmentReplacedError:
            watched.put_content(name, watched.cat_file(name, 0, 1 << 30))
        else:
            watched.rm_file(name)
        with pytest.raises(error):
            list(batches)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (LibraryError(SECRET), f"{__name__}.LibraryError from the file system"),
        (
            PermissionError(13, SECRET),
            "PermissionError from the file system; are the credentials right?",
        ),
        (TimeoutError(SECRET), "TimeoutError from the file system"),
    ],
)
def test_what_a_library_raises_is_named_and_its_text_is_not_shown(
    watched: WatchedFileSystem, failure: Exception, reason: str
) -> None:
    scan = pylog.scan("/bucket/logs", filesystem=watched)
    scan.plan()
    watched.failure = failure
    with pytest.raises(LogDirectoryError) as caught:
        pylog.scan("/bucket/logs", filesystem=watched, use_indexes=False).to_table()
    assert reason in str(caught.value)
    for text in (str(caught.value), repr(caught.value), repr(caught.value.__cause__)):
        assert SECRET not in text


def test_a_directory_of_fsspec_that_is_not_there_is_reported(watched: WatchedFileSystem) -> None:
    with pytest.raises(LogDirectoryError, match="no such directory"):
        pylog.open_directory("/bucket/none", filesystem=watched)
    with pytest.raises(LogDirectoryError, match="no such bucket or container: nowhere"):
        pylog.open_directory("/nowhere/logs", filesystem=watched)


def test_local_file_systems_are_read_as_local_paths(logs: Path) -> None:
    for file_system in (pa_fs.LocalFileSystem(), fsspec.filesystem("file")):
        assert pylog.location(logs, filesystem=file_system) == str(logs)
        assert pylog.scan(logs, filesystem=file_system).count() == RECORDS


def test_part_of_a_file_system_is_read(logs: Path) -> None:
    part = pa_fs.SubTreeFileSystem(str(logs), pa_fs.LocalFileSystem())
    assert pylog.scan("orders-0", filesystem=part).count() == RECORDS


def test_the_same_path_in_two_file_systems_is_two_places(
    logs: Path, watched: WatchedFileSystem
) -> None:
    other = WatchedFileSystem()
    other.upload(logs, "/bucket/logs")
    places = [pylog.location("/bucket/logs", filesystem=each) for each in (watched, other)]
    assert places[0] != places[1]
    assert len(pylog.open_directory(*places)) == 1  # taken for two replicas
