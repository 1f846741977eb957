"""Text checkpoints: a version, a count, and one entry a line.

::

    0                      version
    2                      how many entries follow
    web-events 0 8531      fields, separated by whitespace
    web-events 1 9106

UTF-8, lines ended by a newline. A broker replaces the file as a whole (``<file>.tmp``, fsync,
rename), so what is there is complete or not a checkpoint. An empty file, and one that ends after
the version, have no entries: brokers create empty ones. A wrong version, a line that does not
parse, and a count that is not the number of lines are errors.

Offset checkpoints (version 0, fields ``topic partition offset``) lie in the log directory, one
line a partition:

================================== ========================================================
recovery-point-offset-checkpoint   everything below the offset has been flushed
log-start-offset-checkpoint        first offset served; only where it is not a segment's base
cleaner-offset-checkpoint          first offset that was not compacted yet
replication-offset-checkpoint      high watermark
================================== ========================================================

Source: CheckpointFile, OffsetCheckpointFile (KIP-107 for the log start offset; Kafka 3.9, 4.3).
"""

from __future__ import annotations

import logging
import os
import re
import threading
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files import disk
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    META_PROPERTIES,
    ONLY_REPLICA,
)
from pylog.files.java_numbers import parse_integer, shorten
from pylog.files.storage import open_file
from pylog.locations import is_remote
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pylog.files.durable_io import DurableIO
    from pylog.files.log_dir_failure_channel import LogDirFailureChannel

    IsOnlyReplica = Callable[[TopicPartition], bool]


EntryT = TypeVar("EntryT")

OFFSET_CHECKPOINT_VERSION = 0
MAX_TEXT_FILE_BYTES = 64 * 1024 * 1024
# As Java's readLine and \s have them; str.splitlines and str.split know many more characters.
_LINE_END = re.compile(r"\r\n|\r|\n")
_WHITESPACE = re.compile(r"[ \t\n\x0b\f\r]+")


def read_text_file(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """Return the whole text of a small local file."""
    with open_file(path) as file:
        size = file.size()
        if size > MAX_TEXT_FILE_BYTES:
            reason = f"text file has {size} bytes, expected at most {MAX_TEXT_FILE_BYTES}"
            raise CorruptCheckpointError(reason, path)
        data = file.read_at(0, size)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        reason = f"text file is not {encoding}: {error.reason}"
        raise CorruptCheckpointError(reason, path, error.start) from error


def split_lines(text: str) -> list[str]:
    r"""Return the lines of ``text`` without their ends, which are ``\n``, ``\r`` or ``\r\n``."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


class CheckpointNumberError(CorruptCheckpointError):
    """A line of a checkpoint has a number that is none, or does not fit: no I/O error to Kafka."""


def parse_checkpoint(
    text: str,
    path: str | os.PathLike[str],
    version: int,
    field_count: int,
    parse_fields: Callable[[list[str]], EntryT],
) -> list[EntryT]:
    """Return the entries of a checkpoint's ``text``, in file order."""
    lines = split_lines(text)
    if lines:
        stored = _parse_header(lines, 0, "version", path)
        if stored != version:
            reason = f"checkpoint has version {stored}, expected {version}"
            raise CorruptCheckpointError(reason, path)
    if len(lines) < 2:
        return []
    count = _parse_header(lines, 1, "entry count", path)
    if count < 0:
        reason = f"checkpoint has a negative number of entries in its second line: {count}"
        raise CheckpointNumberError(reason, path)
    entries: list[EntryT] = []
    for number, line in enumerate(lines[2:], start=3):
        where = f"checkpoint line {number}, {shorten(line)}, is malformed"
        try:
            fields = _split_fields(line, field_count)
        except ValueError as error:
            reason = f"{where}: {error}"
            raise CorruptCheckpointError(reason, path) from error
        try:
            entries.append(parse_fields(fields))
        except ValueError as error:
            reason = f"{where}: {error}"
            raise CheckpointNumberError(reason, path) from error
    if len(entries) != count:
        reason = f"checkpoint has {len(entries)} entries, its second line says {count}"
        raise CorruptCheckpointError(reason, path)
    return entries


def read_checkpoint(
    path: str | os.PathLike[str],
    version: int,
    field_count: int,
    parse_fields: Callable[[list[str]], EntryT],
) -> list[EntryT]:
    """Return the entries of a checkpoint file, none if there is no such file."""
    try:
        text = read_text_file(path)
    except SegmentVanishedError:
        return []
    return parse_checkpoint(text, path, version, field_count, parse_fields)


def read_offset_checkpoint(path: str | os.PathLike[str]) -> dict[TopicPartition, int]:
    """Return the offset of every partition in an offset checkpoint, {} if there is no such file.

    Reads recovery point, log start, cleaner and replication (high watermark) checkpoints. Where a
    partition occurs twice, its last line counts, as in Kafka.
    """
    return dict(read_checkpoint(path, OFFSET_CHECKPOINT_VERSION, 3, _parse_offset_entry))


def known_offset_checkpoint(path: str) -> Mapping[TopicPartition, int]:
    """Return what `read_offset_checkpoint` does, read once for as long as the file stays as it is.

    For whoever asks for each of thousands of partitions: the file has a line for each of them.
    """
    if is_remote(path):
        return read_offset_checkpoint(path)
    try:
        status = disk.stat(path)
    except OSError:
        return read_offset_checkpoint(path)
    return _known_offsets(path, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=32)
def _known_offsets(path: str, _identity: tuple[int, int, int]) -> Mapping[TopicPartition, int]:
    return MappingProxyType(read_offset_checkpoint(path))


def write_checkpoint(
    io: DurableIO, path: str | os.PathLike[str], version: int, lines: Sequence[str]
) -> None:
    """Replace a checkpoint file as a whole, and return when it is on the disk."""
    text = "".join(f"{line}\n" for line in (version, len(lines), *lines))
    io.write_atomically(path, text.encode())


def write_offset_checkpoint(
    io: DurableIO, path: str | os.PathLike[str], offsets: Mapping[TopicPartition, int]
) -> None:
    """Replace an offset checkpoint by one of ``offsets``, in their order."""
    lines = []
    for (topic, partition), offset in offsets.items():
        if not topic or _WHITESPACE.search(topic):
            msg = f"topic {shorten(topic)} cannot stand in a checkpoint"
            raise ValueError(msg)
        lines.append(f"{topic} {partition} {offset}")
    write_checkpoint(io, path, OFFSET_CHECKPOINT_VERSION, lines)


def _split_fields(line: str, field_count: int) -> list[str]:
    # Java's split drops empty fields at the end of a line, not at its beginning.
    fields = _WHITESPACE.split(line.rstrip(" \t\x0b\f"))
    if len(fields) != field_count:
        msg = f"it has {len(fields)} fields, expected {field_count}"
        raise ValueError(msg)
    return fields


def _parse_offset_entry(fields: list[str]) -> tuple[TopicPartition, int]:
    topic, partition, offset = fields
    if not topic:
        msg = "the topic is empty"
        raise ValueError(msg)
    return TopicPartition(topic, parse_integer(partition, 32)), parse_integer(offset, 64)


def _parse_header(lines: list[str], index: int, what: str, path: str | os.PathLike[str]) -> int:
    try:
        return parse_integer(lines[index], 32)
    except ValueError as error:
        reason = f"checkpoint {what} in line {index + 1} is malformed: {error}"
        raise CorruptCheckpointError(reason, path) from error


# The ``cleaner-offset-checkpoint`` of a log directory that we own: how far each log is clean.
#
# Below its entry a log has been cleaned. An entry that is too low costs work; one that lies above
# records that were never cleaned loses the deletion of keys: their tombstones would be taken for
# clean and dropped, and older records of these keys would come back. So entries are brought down
# *before* a log's end goes back, and removed before a partition of the same name is made, whether
# or not a cleaner runs.
#
# Source: LogCleanerManager.updateCheckpoints, maybeTruncateCheckpoint (Kafka 4.3). Differs from
# Kafka, which lowers entries after the truncation, and only while a cleaner runs.


_LOGGER = logging.getLogger(__name__)


class CleanerCheckpoint:
    """The checkpoint of one log directory. Any number of threads may read and change it.

    Its lock is held while the file is written; whoever holds it waits for no log.
    """

    def __init__(
        self,
        log_directory: str,
        io: DurableIO,
        failures: LogDirFailureChannel,
        partitions: Callable[[], Collection[TopicPartition]],
    ) -> None:
        self._log_directory = log_directory
        self._path = os.path.join(log_directory, CLEANER_OFFSET_CHECKPOINT)  # noqa: PTH118
        self._io = io
        self._failures = failures
        self._partitions = partitions
        self._offsets: dict[TopicPartition, int] = {}
        self._lock = threading.Lock()
        self._is_held_back = self._is_behind = False

    def load(self) -> None:
        """Read the file. One that does not follow the format counts as empty: all is dirty then."""
        try:
            self._offsets = read_offset_checkpoint(self._path)
        except CorruptCheckpointError as error:
            _LOGGER.log(self._io.warning_level, "taking a checkpoint for empty: %s", error)
            self._offsets = {}

    def offsets(self) -> dict[TopicPartition, int]:
        """Return the first dirty offset of each log that has been cleaned; a copy."""
        with self._lock:
            return dict(self._offsets)

    def find(self, topic_partition: TopicPartition) -> int | None:
        """Return the first dirty offset of a log, None if it has no entry."""
        return self._offsets.get(topic_partition)

    def offset(self, topic_partition: TopicPartition) -> int:
        """Return the first dirty offset of a log, 0 if it has no entry."""
        return self._offsets.get(topic_partition, 0)

    def hold_back(self) -> None:
        """Keep changes in memory until `write`: for whoever cleans thousands of logs in a row.

        After a crash these logs count as dirty again, which they may at any time.
        """
        self._is_held_back = True

    def write(self) -> None:
        """Write what was held back."""
        with self._changing():
            if self._is_behind:
                self._is_held_back = False
                self._write(self._offsets)

    def update(self, topic_partition: TopicPartition, offset: int) -> None:
        """Note that a log is clean below ``offset``, and return when that is on the disk."""
        with self._changing():
            if self._offsets.get(topic_partition) != offset:
                self._write({**self._offsets, topic_partition: offset})

    def lower(self, topic_partition: TopicPartition, offset: int) -> None:
        """Bring a log's entry down to ``offset`` if it is higher; errors as of `update`."""
        with self._changing():
            if self._offsets.get(topic_partition, offset) > offset:
                self._write({**self._offsets, topic_partition: offset})

    def remove(self, topic_partition: TopicPartition) -> None:
        """Remove a log's entry if there is one; errors as of `update`."""
        with self._changing():
            if topic_partition in self._offsets:
                kept = {each: at for each, at in self._offsets.items() if each != topic_partition}
                self._write(kept)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._io.ensure_own_process(self._path)  # a fork may have copied a lock that is held
        with self._lock:
            yield

    def _write(self, offsets: dict[TopicPartition, int]) -> None:
        self._is_behind = self._is_held_back
        if self._is_held_back:
            self._offsets = offsets
            return
        present = set(self._partitions())
        offsets = {each: at for each, at in offsets.items() if each in present}
        with self._failures.watching(self._log_directory):
            write_offset_checkpoint(self._io, self._path, offsets)
        self._offsets = offsets


# Where the high watermark of each log in a log directory starts.
#
# * Has the checkpoint an entry for the log: at that offset, or as near as the log's start and end
#   allow.
# * Has it none, or is there no checkpoint: at the log's start, since Kafka takes a missing entry as
#   0 (OffsetCheckpoints.fetch, Partition.createLog).
# * Is the directory the log's only replica: at the log's end, since a leader without other replicas
#   raises it as soon as it leads (Partition.maybeIncrementLeaderHW).
#
# A log has no other replica where the cluster's metadata says so, where the user does, and in a
# directory of pylog's own. That is one in which pylog made the first log: it has a file
# ``.pylog-only-replica``, which counts as long as no broker has taken the directory over. Every
# broker since 0.8.2 writes ``meta.properties`` before it makes or opens a log.
#
# So a crash of pylog in a directory of its own, which leaves a checkpoint that is behind the log's
# end, holds nothing back. In a broker's directory it does: there the checkpoint is all that tells
# what the other replicas have.
#
# Source: Partition, UnifiedLog.updateHighWatermark (Kafka 4.3).


HIGH_WATERMARKS = ("checkpoint", "log-end")
"""Where a high watermark may start: as said above, or at the log's end."""
_CONTENT = b"pylog made this log directory: its logs have no other replicas, until a broker runs\n"


def is_own_directory(log_directory: str) -> bool:
    """Whether pylog made the first log in a directory, and no broker has taken it over."""
    return _has(log_directory, ONLY_REPLICA) and not _has(log_directory, META_PROPERTIES)


def is_known_to_a_broker(log_directory: str) -> bool:
    """Whether a broker has opened a directory, or it is formatted for one."""
    return _has(log_directory, META_PROPERTIES) or _has(log_directory, HIGH_WATERMARK_CHECKPOINT)


def mark_as_own(io: DurableIO, log_directory: str) -> None:
    """Note for good that pylog makes the first log in a directory."""
    path = os.path.join(log_directory, ONLY_REPLICA)  # noqa: PTH118 - kept as text
    io.write_file(path, _CONTENT, sync=True)
    io.sync_directory(log_directory)


def _has(log_directory: str, name: str) -> bool:
    return disk.lexists(os.path.join(log_directory, name))  # noqa: PTH118 - kept as text


class HighWatermarks(NamedTuple):
    """The start of the high watermark of each log in one log directory."""

    checkpoint: Mapping[TopicPartition, int]
    is_only_replica: IsOnlyReplica

    @classmethod
    def read(cls, log_directory: str, is_only_replica: IsOnlyReplica) -> HighWatermarks:
        """Return those of a directory; a checkpoint that cannot be parsed counts as empty."""
        path = os.path.join(log_directory, HIGH_WATERMARK_CHECKPOINT)  # noqa: PTH118
        try:
            checkpoint = read_offset_checkpoint(path)
        except CorruptCheckpointError:
            checkpoint = {}
        is_own = is_own_directory(log_directory)
        return cls(checkpoint, (lambda _: True) if is_own else is_only_replica)

    def start_of(
        self, topic_partition: TopicPartition, log_start_offset: int, log_end_offset: int
    ) -> int:
        """Return where a log's high watermark starts, in ``[log start, log end]``."""
        checkpoint = self.checkpoint.get(topic_partition, 0)
        if checkpoint >= log_end_offset or self.is_only_replica(topic_partition):
            return log_end_offset
        return max(log_start_offset, checkpoint)
