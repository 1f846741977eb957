"""A partition of 1 TB, almost all of it holes: what one look-up reads and opens.

1,024 segments of 1 GiB. Each holds three clusters of real batches, at its head, in its middle and
near its end, as offset and time index know them; what lies between is a hole. A look-up that walked
through a segment would come upon it. The batches before and after an entry prove it, so a cluster
is larger than the walks to and from it.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pylog
from benchmarks.data_sets import Bench
from benchmarks.measuring import ensure_equal
from pylog.files.byte_source import LocalFile
from tests.support.batches import Built, Stored, batch_v2
from tests.support.log_files import OFFSET_ENTRY, TIME_ENTRY, segment_path

if TYPE_CHECKING:
    from pylog.model import OffsetSpecs

SEGMENTS = 1_024
SEGMENT_BYTES = 1 << 30
_CLUSTERS = (0, SEGMENT_BYTES // 2, SEGMENT_BYTES - (1 << 20))
_BATCHES, _RECORDS = 64, 5
_VALUE = b"value" * 12
_OFFSETS = len(_CLUSTERS) * _BATCHES * _RECORDS
_FIRST_TIMESTAMP = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class LookUpFigure:
    """One look-up: bytes read, ``.log`` files opened, files of any kind opened."""

    name: str
    read_bytes: int
    logs_opened: int
    files_opened: int


@dataclass(slots=True)
class _Counted:
    read_bytes: int = 0
    logs: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


@contextmanager
def _counting() -> Iterator[_Counted]:
    """Count what `LocalFile` opens and reads."""
    counted = _Counted()
    opened, read_at, read_into = LocalFile.__init__, LocalFile.read_at, LocalFile.read_into

    def note_open(self: LocalFile, path: str) -> None:
        opened(self, path)
        counted.files.add(self.path)
        if self.path.endswith(".log"):
            counted.logs.add(self.path)

    def note_read_at(self: LocalFile, position: int, length: int) -> bytes:
        data = read_at(self, position, length)
        counted.read_bytes += len(data)
        return data

    def note_read_into(self: LocalFile, position: int, buffer: memoryview) -> int:
        count = read_into(self, position, buffer)
        counted.read_bytes += count
        return count

    with (
        mock.patch.object(LocalFile, "__init__", note_open),
        mock.patch.object(LocalFile, "read_at", note_read_at),
        mock.patch.object(LocalFile, "read_into", note_read_into),
    ):
        yield counted


def _cluster(offset: int) -> list[Built]:
    return [
        batch_v2([Stored(at, _FIRST_TIMESTAMP + at, b"key", _VALUE) for at in range(low, high)])
        for low, high in (
            (offset + n * _RECORDS, offset + (n + 1) * _RECORDS) for n in range(_BATCHES)
        )
    ]


def _write_segment(directory: Path, base: int) -> None:
    offset, index, time_index = base, b"", b""
    path = segment_path(directory, base)
    with path.open("wb") as log:
        for position in _CLUSTERS:
            log.seek(position)
            for built in _cluster(offset):
                if log.tell():
                    index += OFFSET_ENTRY.pack(built.last_offset - base, log.tell())
                time_index += TIME_ENTRY.pack(built.max_timestamp, built.last_offset - base)
                log.write(built.data)
                offset = built.last_offset + 1
        # Cut after the last batch: its end is the segment's.
        log.truncate()
    segment_path(directory, base, ".index").write_bytes(index)
    segment_path(directory, base, ".timeindex").write_bytes(time_index)


def _directory(bench: Bench) -> Path:
    directory = bench.root / f"sparse-{_BATCHES}" / "sparse-0"
    if not (directory.parent / "done").exists():
        shutil.rmtree(directory.parent, ignore_errors=True)
        directory.mkdir(parents=True)
        for number in range(SEGMENTS):
            _write_segment(directory, number * _OFFSETS)
        (directory.parent / "done").touch()
    return directory


def look_up_in_sparse_log(bench: Bench, say: Callable[[str], None]) -> list[LookUpFigure]:
    """Return what looking up one offset and one timestamp costs, planning and record included."""
    say("looking up in 1 TB of holes")
    directory = _directory(bench)
    apparent = sum(path.stat().st_size for path in directory.glob("*.log"))
    assert apparent > SEGMENTS * (SEGMENT_BYTES - (2 << 20)), apparent
    wanted = SEGMENTS // 2 * _OFFSETS + _OFFSETS // 2 + 3
    starts: dict[str, OffsetSpecs] = {
        "one offset": wanted,
        "one timestamp": pylog.Timestamp(_FIRST_TIMESTAMP + wanted),
    }
    figures = []
    for name, start in starts.items():
        with _counting() as counted:
            scan = pylog.scan(directory, start=start, end=wanted + 1)
            ensure_equal(name, scan.to_table().column("offset").to_pylist(), [wanted])
        figures.append(
            LookUpFigure(name, counted.read_bytes, len(counted.logs), len(counted.files))
        )
    return figures
