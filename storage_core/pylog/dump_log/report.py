"""What is wrong with a file that was dumped, as values, as Kafka's words and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pylog.dump_log.lines import json_line
from pylog.errors import LogDirectoryError, LogStorageError, SegmentVanishedError
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


Pairs = list[tuple[int, int]]

MOST_PAIRS = 100_000
"""So many gaps of a file are kept; how many more there are is counted."""


@dataclass(slots=True)
class FileReport:
    """The faults that a dump has found in one file.

    Attributes
    ----------
    path
        As it is printed.
    absolute_path
        As the tool prints it where it lists what is wrong.
    errors
        What could not be read, or ended the dump of the file.
    index_mismatches
        Offset in the index, last offset of the batch there.
    timestamp_mismatches
        Timestamp in the index, largest timestamp of the records there.
    timestamps_out_of_order
        Timestamp in the index, the one before it.
    offsets_not_found
        Offset in the index, last offset of the first batch from there on; -1 if there is none.
    offset_gaps
        Offsets of consecutive records that are not one apart. Nothing is wrong about these where
        records were compacted, or belong to transactions.
    more_offset_gaps
        How many there are besides.
    invalid_batches
        How many batches have a wrong checksum.
    has_ended
        Whether an error has ended the dump of the file.
    is_unreadable
        Whether that was because there is no such file, or it cannot be read.
    """

    path: str
    absolute_path: str
    errors: list[str] = field(default_factory=list)
    index_mismatches: Pairs = field(default_factory=list)
    timestamp_mismatches: Pairs = field(default_factory=list)
    timestamps_out_of_order: Pairs = field(default_factory=list)
    offsets_not_found: Pairs = field(default_factory=list)
    offset_gaps: Pairs = field(default_factory=list)
    more_offset_gaps: int = 0
    invalid_batches: int = 0
    has_ended: bool = False
    is_unreadable: bool = False

    def end(self, error: LogStorageError) -> None:
        """Note what has ended the dump of the file."""
        self.errors.append("; ".join([str(error), *getattr(error, "__notes__", ())]))
        self.has_ended = True
        self.is_unreadable = isinstance(error, LogDirectoryError | SegmentVanishedError)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; see `offset_gaps`."""
        return not (self.errors or self.compares_badly or self.invalid_batches)

    @property
    def compares_badly(self) -> bool:
        """Whether an index does not agree with its log."""
        return any(self._comparison)

    @property
    def _comparison(self) -> tuple[Pairs, ...]:
        return (
            self.index_mismatches,
            self.timestamp_mismatches,
            self.timestamps_out_of_order,
            self.offsets_not_found,
        )

    def take_back_comparison(self) -> None:
        """Forget how an index compares with its log: they were not of the same moment."""
        for each in self._comparison:
            each.clear()

    def index_texts(self) -> Iterator[str]:
        """Yield what the tool says of an offset index."""
        if self.index_mismatches:
            yield f"Mismatches in :{self.absolute_path}"
            for indexed, found in reversed(self.index_mismatches):
                yield f"  Index offset: {indexed}, log offset: {found}"

    def time_index_texts(self, version: KafkaVersion = LATEST_KAFKA_VERSION) -> Iterator[str]:
        """Yield what the tool says of a time index."""
        if self.timestamp_mismatches:
            yield f"Found timestamp mismatch in :{self.absolute_path}"
            for indexed, found in self.timestamp_mismatches:
                yield f"  Index timestamp: {indexed}, log timestamp: {found}"
        if self.timestamps_out_of_order:
            yield f"Found out of order timestamp in :{self.absolute_path}"
            for indexed, before in self.timestamps_out_of_order:
                yield f"  Index timestamp: {indexed}, Previously indexed timestamp: {before}"
        if self.offsets_not_found:
            is_named = version >= KafkaVersion.V4_3
            where = f"in :{self.absolute_path}" if is_named else "in the log."
            yield f"The following indexed offsets are not found {where}"
            for indexed, found in self.offsets_not_found:
                yield f"Indexed offset: {indexed}, found log offset: {found}"

    def log_texts(self, version: KafkaVersion = LATEST_KAFKA_VERSION) -> Iterator[str]:
        """Yield what the tool says of the offsets in a log."""
        if not self.offset_gaps:
            return
        yield f"Non-consecutive offsets in {self.absolute_path}"
        # Up to 4.2 a list to whose head each pair was added, since then a sorted map.
        is_sorted = version >= KafkaVersion.V4_3
        pairs = sorted(dict(self.offset_gaps).items()) if is_sorted else self.offset_gaps[::-1]
        for before, after in pairs:
            yield f"  {before} is followed by {after}"
        if self.more_offset_gaps:
            yield f"  and {self.more_offset_gaps} more"

    def json_lines(self) -> Iterator[str]:
        """Yield a JSON object for each thing that was found."""
        for reason in self.errors:
            yield json_line({"type": "error", "path": self.path, "reason": reason})
        for names, pairs in (
            ("indexMismatch indexOffset logOffset", self.index_mismatches),
            ("timestampMismatch indexTimestamp logTimestamp", self.timestamp_mismatches),
            ("timestampOutOfOrder indexTimestamp previousTimestamp", self.timestamps_out_of_order),
            ("offsetNotFound indexOffset logOffset", self.offsets_not_found),
            ("offsetGap offset nextOffset", self.offset_gaps),
        ):
            kind, first, second = names.split()
            for one, other in pairs:
                yield json_line({"type": kind, "path": self.path, first: one, second: other})


@dataclass(slots=True)
class OffsetGaps:
    """Offsets of consecutive records that are not one apart, as the tool lists them of every log.

    Up to 4.2 the first record sets the start. Since 4.3 the offset before a segment's first record
    is -1, so that every segment that does not begin with offset 0 has a gap.
    """

    last: int | None = None
    first: int | None = None
    pairs: Pairs = field(default_factory=list)
    more: int = 0

    def note(self, offsets: npt.NDArray[np.int64]) -> None:
        """Take in the offsets of the next records."""
        if offsets.size:
            places = np.flatnonzero(np.diff(offsets) != 1)
            kept = places[:MOST_PAIRS]
            pairs = list(zip(offsets[kept].tolist(), offsets[kept + 1].tolist(), strict=True))
            first, last = int(offsets[0]), int(offsets[-1])
            self.join(OffsetGaps(last, first, pairs, places.size - kept.size))

    def join(self, following: OffsetGaps) -> None:
        """Take in what was noted elsewhere of the next records."""
        if following.first is None:
            return
        pairs = following.pairs
        if self.last is not None and following.first != self.last + 1:
            pairs = [(self.last, following.first), *pairs]
        room = MOST_PAIRS - len(self.pairs)
        self.pairs += pairs[:room]
        self.more += following.more + max(0, len(pairs) - room)
        self.first = following.first if self.first is None else self.first
        self.last = following.last
