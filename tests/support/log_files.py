"""Partition directories for tests: segments, indexes and checkpoints, written from scratch."""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING

from tests.support.batches import ABORT, Built, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
TRANSACTION_ENTRY = struct.Struct(">hqqqq")


def tree(directory: Path) -> dict[str, bytes]:
    """Return the contents of all files below a directory, by their paths in it."""
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in sorted(directory.rglob("*"))
        if each.is_file()
    }


def segment_path(directory: Path, base_offset: int, suffix: str = ".log") -> Path:
    return directory / f"{base_offset:020d}{suffix}"


def replace_with_same(path: Path) -> None:
    """Put another file with the same bytes in the place of one, as a compaction may."""
    new = path.with_suffix(".swap")
    new.write_bytes(path.read_bytes())
    new.rename(path)


def offset_entries(
    batches: Sequence[Built], *, every: int = 1, first_offsets: bool = False
) -> list[tuple[int, int]]:
    """Return (offset, position) of every n-th batch but the first, as a broker indexes them.

    Brokers up to 1.1 stored a batch's first offset, later ones its last.
    """
    entries, position = [], 0
    for place, built in enumerate(batches):
        if place and place % every == 0:
            entries.append((built.base_offset if first_offsets else built.last_offset, position))
        position += len(built.data)
    return entries


def time_entries(batches: Sequence[Built], *, every: int = 1) -> list[tuple[int, int]]:
    """Return (largest timestamp so far, last offset of its first batch), forced at the end."""
    entries: list[tuple[int, int]] = []
    highest, at = -1, 0
    for place, built in enumerate(batches):
        if built.max_timestamp > highest:
            highest, at = built.max_timestamp, built.last_offset
        is_due = (place and place % every == 0) or place == len(batches) - 1
        if is_due and highest > (entries[-1][0] if entries else -1):
            entries.append((highest, at))
    return entries


def offset_index_bytes(entries: Iterable[tuple[int, int]], base_offset: int) -> bytes:
    return b"".join(OFFSET_ENTRY.pack(offset - base_offset, at) for offset, at in entries)


def time_index_bytes(entries: Iterable[tuple[int, int]], base_offset: int) -> bytes:
    return b"".join(TIME_ENTRY.pack(stamp, offset - base_offset) for stamp, offset in entries)


def write_segment(
    directory: Path,
    base_offset: int,
    batches: Sequence[Built],
    *,
    with_index: bool = True,
    with_time_index: bool = True,
    tail: bytes = b"",
) -> Path:
    """Write one segment; ``tail`` follows the batches. Return the path of the ``.log``."""
    directory.mkdir(parents=True, exist_ok=True)
    path = segment_path(directory, base_offset)
    path.write_bytes(joined(batches) + tail)
    if with_index:
        entries = offset_index_bytes(offset_entries(batches), base_offset)
        segment_path(directory, base_offset, ".index").write_bytes(entries)
    if with_time_index:
        entries = time_index_bytes(time_entries(batches), base_offset)
        segment_path(directory, base_offset, ".timeindex").write_bytes(entries)
    return path


def write_partition(
    log_directory: Path,
    segments: Mapping[int, Sequence[Built]],
    *,
    name: str = "orders-0",
    with_index: bool = True,
    with_time_index: bool = True,
) -> Path:
    """Write the segments of a partition by base offset; return its directory."""
    directory = log_directory / name
    for base_offset, batches in segments.items():
        write_segment(
            directory,
            base_offset,
            batches,
            with_index=with_index,
            with_time_index=with_time_index,
        )
    return directory


def move_partition(directory: Path, log_directory: Path) -> Path:
    """Move a partition to another log directory as a broker does: first the copy is there."""
    copy = log_directory / f"{directory.name}.{2:032x}-future"
    shutil.copytree(directory, copy)
    moved = copy.rename(log_directory / directory.name)
    deleted = directory.rename(directory.with_name(f"{directory.name}.{1:032x}-delete"))
    shutil.rmtree(deleted)
    return moved


def write_meta_properties(log_directory: Path) -> None:
    """Write that a log directory is that of node 1 of cluster ``c``."""
    (log_directory / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")


def write_topic_id(partition: Path, topic_id: str) -> None:
    """Write the ``partition.metadata`` of a partition."""
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def mark_clean_shutdown(log_directory: Path) -> None:
    """Write the marker that a broker of those days left empty when it stopped in order."""
    (log_directory / ".kafka_cleanshutdown").write_bytes(b"")


def write_log_start_offsets(log_directory: Path, offsets: Mapping[tuple[str, int], int]) -> None:
    _write_checkpoint(log_directory / "log-start-offset-checkpoint", offsets)


def write_high_watermarks(log_directory: Path, offsets: Mapping[tuple[str, int], int]) -> None:
    _write_checkpoint(log_directory / "replication-offset-checkpoint", offsets)


def write_recovery_points(log_directory: Path, offsets: Mapping[tuple[str, int], int]) -> None:
    _write_checkpoint(log_directory / "recovery-point-offset-checkpoint", offsets)


def _write_checkpoint(path: Path, offsets: Mapping[tuple[str, int], int]) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    text = "\n".join(["0", str(len(lines)), *lines]) + "\n"
    path.write_text(text, "utf-8")


class Transactions:
    """What a broker knows of transactions after some batches: an oracle for isolation levels."""

    def __init__(self, batches: Sequence[Built]) -> None:
        self.open_since: dict[int, int] = {}
        self.aborted: list[tuple[int, int, int, int]] = []
        """(producer id, first offset, offset of the marker, last stable offset after it)"""
        for built in batches:
            self._add(built)

    def _add(self, built: Built) -> None:
        if not built.is_transactional:
            return
        if not built.is_control:
            self.open_since.setdefault(built.producer_id, built.base_offset)
            return
        first = self.open_since.pop(built.producer_id, None)
        if built.control_type == ABORT and first is not None:
            stable = min([built.last_offset + 1, *self.open_since.values()])
            self.aborted.append((built.producer_id, first, built.last_offset, stable))

    def last_stable_offset(self, log_end_offset: int) -> int:
        return min([log_end_offset, *self.open_since.values()])

    def drops(self, built: Built) -> bool:
        """Whether READ_COMMITTED leaves this batch out although it lies below the LSO."""
        return built.is_transactional and any(
            producer_id == built.producer_id and first <= built.base_offset <= last
            for producer_id, first, last, _ in self.aborted
        )

    def index_bytes(self, base_offset: int, next_base_offset: int) -> bytes:
        """Return the ``.txnindex`` of the segment with these markers."""
        return b"".join(
            TRANSACTION_ENTRY.pack(0, *entry)
            for entry in self.aborted
            if base_offset <= entry[2] < next_base_offset
        )
