"""Which batches of a segment get entries in its offset and its time index.

For each batch, in the order of the file:

1. its max timestamp is above all before: that is the *max timestamp so far*, with the batch's last
   offset;
2. more than ``index.interval.bytes`` lie between it and the last batch with an entry: it gets an
   offset entry (its last offset, its position) and a time entry (max timestamp so far and its
   offset, left out unless the timestamp is above the last entry's).

So the first batch of a segment is never indexed. After opening or cutting a segment the bytes are
counted again from where its content ends. Brokers up to 3.9.0 and 4.0.0 did this once for each set
of batches that was appended. When the segment is rolled or closed, a time entry of the max
timestamp so far is forced, for which one slot is reserved.

Source: LogSegment.append, LogSegment.recover (Kafka 4.3; KAFKA-17583 for entries by batch).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.model import NO_TIMESTAMP, TimestampOffset

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.indexes.offset_index import OffsetIndex
    from pylog.indexes.time_index import TimeIndex
    from pylog.log_file.file_records import FileRecords
    from pylog.record.batch_header import BatchHeader
    from pylog.record.batch_scan import BatchHeaders


class _NewEntries(NamedTuple):
    """What some batches add to the indexes; places count the batches that get an entry."""

    offset_entries: npt.NDArray[np.int64]  # rows of offset and position
    offset_places: npt.NDArray[np.int64]
    time_entries: npt.NDArray[np.int64]  # rows of timestamp and offset
    time_places: npt.NDArray[np.int64]
    bytes_since_last_entry: int
    max_timestamp_so_far: TimestampOffset


class IndexEntryWriter:
    """Writes the entries of one segment as its batches come. One thread."""

    __slots__ = (
        "_bytes_since_last_entry",
        "_interval",
        "_marked",
        "_max_timestamp_so_far",
        "_offset_index",
        "_time_index",
    )

    def __init__(
        self, offset_index: OffsetIndex, time_index: TimeIndex, index_interval_bytes: int
    ) -> None:
        self._offset_index = offset_index
        self._time_index = time_index
        self._interval = index_interval_bytes
        self._bytes_since_last_entry = 0
        self._max_timestamp_so_far: TimestampOffset | None = None
        self._marked: tuple[TimestampOffset | None, int] = None, 0

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch that carries it."""
        if self._max_timestamp_so_far is None:
            self._max_timestamp_so_far = self._time_index.last_entry
        return self._max_timestamp_so_far

    def add(self, header: BatchHeader, position: int) -> None:
        """Take a batch into account that has been written at ``position``."""
        so_far = self._max_timestamp_so_far
        if so_far is None:
            so_far = self.max_timestamp_so_far
        if header.max_timestamp > so_far.timestamp:
            so_far = TimestampOffset(header.max_timestamp, header.last_offset)
            self._max_timestamp_so_far = so_far
        if self._bytes_since_last_entry > self._interval:
            self._offset_index.append(header.last_offset, position)
            self._time_index.maybe_append(*so_far)
            self._bytes_since_last_entry = 0
        self._bytes_since_last_entry += header.size_bytes

    def add_all(self, headers: BatchHeaders, file_position: int) -> None:
        """Take batches into account that follow those before without a gap, as `add` does.

        Differs from Kafka, which cannot open a log whose index is full by its configuration: the
        entries for which there is no room are left out. An index says nothing about what follows.
        """
        new = self._new_entries(headers, file_position)
        room = self._offset_index.max_entries - self._offset_index.entries
        self._offset_index.append_all(new.offset_entries[:room])
        room = self._time_index.max_entries - self._time_index.entries - 1
        self._time_index.append_all(new.time_entries[: max(0, room)])
        self._bytes_since_last_entry = new.bytes_since_last_entry
        if new.max_timestamp_so_far.timestamp > self.max_timestamp_so_far.timestamp:
            self._max_timestamp_so_far = new.max_timestamp_so_far

    def count_until_full(self, headers: BatchHeaders, file_position: int) -> int:
        """Return how many batches can be added before an index has no more room, at least 1."""
        count = len(headers)
        offset_room = self._offset_index.max_entries - self._offset_index.entries
        time_room = self._time_index.max_entries - self._time_index.entries - 1
        if min(offset_room, time_room) >= count:  # enough for an entry of each
            return count
        if min(offset_room, time_room) < 1:
            return 1
        new = self._new_entries(headers, file_position)
        lasts = [
            int(places[room - 1])
            for places, room in ((new.offset_places, offset_room), (new.time_places, time_room))
            if room <= len(places)
        ]
        return min([count, *(last + 1 for last in lasts)])

    def count_with_room(self, headers: BatchHeaders, file_position: int) -> int:
        """Return how many batches can be added before an entry is due that has no room."""
        count = len(headers)
        offset_room = self._offset_index.max_entries - self._offset_index.entries
        time_room = self._time_index.max_entries - self._time_index.entries - 1
        if min(offset_room, time_room) >= count:
            return count
        new = self._new_entries(headers, file_position)
        firsts = [
            int(places[max(0, room)])
            for places, room in ((new.offset_places, offset_room), (new.time_places, time_room))
            if max(0, room) < len(places)
        ]
        return min([count, *firsts])

    def _new_entries(self, headers: BatchHeaders, file_position: int) -> _NewEntries:
        so_far = self.max_timestamp_so_far
        highest = np.maximum.accumulate(headers.max_timestamps)
        carriers = headers.last_offsets[_first_carriers(headers.max_timestamps, highest)]
        positions = headers.positions + file_position
        places, last_indexed = self._places(positions.tolist())
        is_higher = highest[places] > so_far.timestamp
        timestamps = np.where(is_higher, highest[places], so_far.timestamp)
        offsets = np.where(is_higher, carriers[places], so_far.offset)
        # A time entry is written, and takes room, only where the timestamp rises.
        last_written = self._time_index.last_entry.timestamp
        is_new = timestamps > np.maximum(last_written, np.append(last_written, timestamps[:-1]))
        return _NewEntries(
            np.stack((headers.last_offsets[places], positions[places]), axis=1),
            places,
            np.stack((timestamps, offsets), axis=1)[is_new],
            places[is_new],
            int(positions[-1] + headers.sizes_bytes[-1]) - last_indexed,
            TimestampOffset(int(highest[-1]), int(carriers[-1])),
        )

    def _places(self, positions: list[int]) -> tuple[npt.NDArray[np.int64], int]:
        """Return which batches get an offset entry, and the position of the last one indexed."""
        places = []
        last_indexed = positions[0] - self._bytes_since_last_entry
        place = bisect_right(positions, last_indexed + self._interval)
        while place < len(positions):
            places.append(place)
            last_indexed = positions[place]
            place = bisect_right(positions, last_indexed + self._interval, place + 1)
        return np.array(places, np.int64), last_indexed

    def mark(self) -> None:
        """Keep in mind what `take_back` is to return to."""
        self._marked = self._max_timestamp_so_far, self._bytes_since_last_entry

    def take_back(self) -> None:
        """Forget the batches since `mark`; their entries are for the caller to remove."""
        self._max_timestamp_so_far, self._bytes_since_last_entry = self._marked

    def restart_byte_count(self) -> None:
        """Count the bytes between entries from here on, as after opening the segment."""
        self._bytes_since_last_entry = 0

    def reset(self) -> None:
        """Remove all entries and forget all batches."""
        self._offset_index.reset()
        self._time_index.reset()
        self._max_timestamp_so_far = TimestampOffset(NO_TIMESTAMP, self._time_index.base_offset)
        self.restart_byte_count()

    def load_max_timestamp(self, log: FileRecords) -> None:
        """Read on after the last time entry for a larger timestamp.

        Differs from Kafka, which does not where truncation empties the time index of a segment
        whose largest timestamp nobody has asked for since it was opened: look-ups by time would
        pass over the segment.
        """
        largest = self._time_index.last_entry
        position = self._offset_index.lookup(largest.offset).position
        for batch in log.batches_from(position):
            if batch.header.max_timestamp > largest.timestamp:
                largest = TimestampOffset(batch.header.max_timestamp, batch.header.last_offset)
        self._max_timestamp_so_far = largest

    def force_last_time_entry(self) -> None:
        """Write the max timestamp so far to the time index, unless the index has it already."""
        self._time_index.maybe_append(*self.max_timestamp_so_far, skip_full_check=True)

    def maybe_force_last_time_entry(self) -> None:
        """Do so if any timestamp has been asked for or come since the segment was opened."""
        if self._max_timestamp_so_far is not None:
            self.force_last_time_entry()


def _first_carriers(
    timestamps: npt.NDArray[np.int64], highest: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return for each batch the index of the first one that carries the highest timestamp yet."""
    is_new = np.ones(timestamps.size, dtype=np.bool_)
    is_new[1:] = timestamps[1:] > highest[:-1]
    carriers: npt.NDArray[np.int64] = np.maximum.accumulate(
        np.where(is_new, np.arange(timestamps.size), 0)
    )
    return carriers
