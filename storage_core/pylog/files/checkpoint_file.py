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

import os
import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files import disk
from pylog.files.java_numbers import parse_integer, shorten
from pylog.files.storage import open_file
from pylog.locations import is_remote
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pylog.files.durable_io import DurableIO

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
    except FileNotFoundError:
        # Here, and not by reading: it is asked for again and again where it is not.
        return read_offset_checkpoint(path) if os.path.islink(path) else {}  # noqa: PTH114
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
