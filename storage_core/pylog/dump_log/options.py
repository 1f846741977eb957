"""What is asked of a dump: the options of ``kafka-dump-log``, and ranges of records."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pylog.errors import LogDirectoryError
from pylog.files.file_names import find_segment_file_name, is_partition_file
from pylog.files.storage import list_directory
from pylog.locations import is_remote, join, name_of, parent_of, parse_location, printable_location
from pylog.reading.log_directory import choose_partitions, open_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from pylog.internal_topics.decoders import DumpDecoder
    from pylog.internal_topics.versions import KafkaVersion

    Int64Array = npt.NDArray[np.int64]


DEFAULT_MAX_MESSAGE_BYTES = 5 << 20
"""Kafka's default of --max-message-size."""


class RecordRange(NamedTuple):
    """The records that are wanted: starts are inclusive, ends exclusive, None is no end."""

    start_offset: int | None
    end_offset: int | None
    start_timestamp: int | None
    end_timestamp: int | None

    @property
    def is_restricted(self) -> bool:
        """Whether a bound on offsets or timestamps is given."""
        return any(each is not None for each in self)

    def has_offsets(
        self, firsts: Int64Array, lasts: Int64Array | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return of each offset, or range of offsets up to its last one, whether any is wanted."""
        return _is_within(firsts, lasts, self.start_offset, self.end_offset)

    def has_timestamps(
        self, firsts: Int64Array, lasts: Int64Array | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return the same of timestamps."""
        return _is_within(firsts, lasts, self.start_timestamp, self.end_timestamp)


def _is_within(
    firsts: Int64Array, lasts: Int64Array | None, start: int | None, end: int | None
) -> npt.NDArray[np.bool_]:
    is_in = np.ones(firsts.size, dtype=np.bool_)
    if start is not None:
        is_in &= (firsts if lasts is None else lasts) >= start
    if end is not None:
        is_in &= firsts < end
    return is_in


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """Options of a dump; see `pylog.dump`."""

    is_deep: bool  # records are looked at
    prints_data: bool  # and their keys and values printed
    skips_record_metadata: bool
    max_bytes: int | None
    max_message_bytes: int
    only_verifies_indexes: bool
    only_checks_sanity: bool
    decoder: DumpDecoder | None
    kafka_version: KafkaVersion
    is_json: bool
    values: Literal["text", "base64"]
    wanted: RecordRange
    max_decompressed_bytes: int


# ".checkpoint" is of a snapshot of the metadata log; other checkpoints have no dot in their names.
_SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".snapshot", ".txnindex")


class DumpFile(NamedTuple):
    """A file to dump: where it lies, and how that is printed, without credentials."""

    location: str
    path: str

    @classmethod
    def at(cls, location: str) -> DumpFile:
        """Return the file at a location."""
        return cls(location, printable_location(location))

    @property
    def absolute_path(self) -> str:
        """The path as the tool prints it where it lists what is wrong."""
        if is_remote(self.location):
            return self.path
        return os.path.abspath(self.path)  # noqa: PTH100 - links are not followed

    @property
    def name(self) -> str:
        """The last component."""
        return name_of(self.location)

    @property
    def suffix(self) -> str:
        """What the name ends in, from its last dot on; empty if there is none."""
        _, dot, rest = self.name.rpartition(".")
        return dot + rest

    @property
    def log(self) -> str:
        """Where the ``.log`` of the same segment lies."""
        return join(parent_of(self.location), self.name.partition(".")[0] + ".log")

    @property
    def base_offset(self) -> int:
        """The offset in the name; `LogDirectoryError` if there is none."""
        digits = self.name.partition(".")[0]
        if not (digits.isascii() and digits.isdecimal()):
            reason = "the name does not begin with the base offset of a segment"
            raise LogDirectoryError(reason, self.location)
        return int(digits)


def dump_files(
    paths: Iterable[str], topics: Sequence[str], partitions: Sequence[int], wanted: RecordRange
) -> Iterator[DumpFile]:
    """Yield the files that paths name, and those of the partitions that they lead to."""
    for text in paths:
        location = parse_location(text)
        if _is_file(location):
            yield DumpFile.at(location)
            continue
        for directory in _partition_directories(location, topics, partitions):
            yield from _files_of_partition(directory, wanted)


def _is_file(location: str) -> bool:
    if is_remote(location):
        return DumpFile.at(location).suffix in _SUFFIXES
    if os.path.isdir(location):  # noqa: PTH112 - kept as text
        return False
    if DumpFile.at(location).suffix in _SUFFIXES or os.path.lexists(location):
        return True
    reason = "no such file or directory"
    raise LogDirectoryError(reason, location)


def _partition_directories(
    location: str, topics: Sequence[str], partitions: Sequence[int]
) -> Iterator[str]:
    is_partition = any(is_partition_file(entry.name) for entry in list_directory(location))
    if is_partition and not topics and not partitions:
        yield location
        return
    directory = open_directory(location)
    for topic, numbers in choose_partitions(directory, topics, partitions).items():
        for partition in numbers:
            yield location if is_partition else directory[topic, partition].directory.path


def _files_of_partition(directory: str, wanted: RecordRange) -> Iterator[DumpFile]:
    names = [entry.name for entry in list_directory(directory)]
    found = {name: find_segment_file_name(name) for name in names}
    bases = {name: each.base_offset for name, each in found.items() if each and not each.state}
    logs = {name: base for name, base in bases.items() if name.endswith(".log")}
    ends = dict(pairwise(sorted(set(logs.values()))))
    for name in names:
        if wanted.is_restricted:
            start, end = wanted.start_offset, wanted.end_offset
            is_dumped = (
                name in logs
                and (start is None or logs[name] not in ends or ends[logs[name]] > start)
                and (end is None or logs[name] < end)
            )
        else:
            is_dumped = name in bases or name.endswith(".checkpoint")
        if is_dumped:
            yield DumpFile.at(join(directory, name))
