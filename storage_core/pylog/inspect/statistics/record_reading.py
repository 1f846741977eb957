"""The records of windows that statistics ask for: data batches, any format, with hashes of keys."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.inspect.statistics.frequent_keys import FrequentKeys
from pylog.inspect.statistics.hot_keys import counted_hot_keys
from pylog.inspect.statistics.largest_records import LargestRecords
from pylog.record.append_rules import MAX_INT64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.cleaner.offset_map import HashKey
    from pylog.inspect.statistics.hot_keys import HotKey
    from pylog.inspect.statistics.largest_records import LargeRecord
    from pylog.reading.log_view import LogView
    from pylog.record.window import Window

_ALL_OFFSETS = range(MAX_INT64)


class DataRecords:
    """Reads the records of data batches; control batches are left out. One thread.

    Parameters
    ----------
    hash_key
        What keys are hashed with.
    """

    def __init__(self, hash_key: HashKey) -> None:
        self._hash_key = hash_key
        self._reader = KeyedRecordReader()

    def read(self, path: str, window: Window) -> Iterator[KeyedRecords]:
        """Yield the records of a window's batches, group by group.

        Raises
        ------
        CorruptRecordError, InvalidRecordError
            The records of a batch break the format.
        """
        headers = window.headers
        batches = np.flatnonzero(~headers.is_control & (headers.record_counts != 0))
        yield from self._reader.read(window, batches, self._hash_key, _ALL_OFFSETS)


class CountedRecords:
    """Counts all records of one partition: its keys, and its largest records. One thread.

    Parameters
    ----------
    hash_key
        What keys are hashed with; the same for all partitions that are to be merged.
    source
        Stands for the partition.
    most
        How many of the largest records are kept.
    """

    def __init__(self, hash_key: HashKey, source: int, most: int) -> None:
        self.keys = FrequentKeys()
        self.largest = LargestRecords(most)
        self._records = DataRecords(hash_key)
        self._source = source

    def read_window(self, view: LogView, index: int, window: Window) -> None:
        """Count the records of a window of a segment of the log; errors as of `DataRecords`."""
        for records in self._records.read(view.segments[index].file_path(), window):
            sizes = records.sizes_bytes
            self.keys.add(records.hashes, sizes, records.offsets, records.has_key, self._source)
            self.largest.add(sizes, records.offsets, self._source)

    def merge(self, other: CountedRecords) -> None:
        """Add all that was counted of another partition."""
        self.keys.merge(other.keys)
        self.largest.merge(other.largest)


class TopicCounts:
    """What is counted of a topic's partitions, added as each is done. Any number of threads.

    Of the keys nothing is kept but the most frequent ones, once all partitions have been added: so
    memory is bounded by how many topics are being read at a time.

    Parameters
    ----------
    partitions
        How many will be added.
    most
        How many keys are kept.

    Attributes
    ----------
    hot_keys, largest
        What was found; empty before all partitions have been added.
    """

    def __init__(self, partitions: int, most: int) -> None:
        self.hot_keys: list[HotKey] = []
        self.largest: list[LargeRecord] = []
        self._missing = partitions
        self._most = most
        self._sum: CountedRecords | None = None
        self._lock = threading.Lock()

    def add(self, counted: CountedRecords | None) -> None:
        """Add what was counted of a partition, None if it could not be read."""
        with self._lock:
            self._missing -= 1
            if self._sum is None:
                self._sum = counted
            elif counted is not None:
                self._sum.merge(counted)
            if self._missing == 0 and self._sum is not None:
                self.hot_keys = list(counted_hot_keys(self._sum.keys, self._most))
                self.largest = list(self._sum.largest)
                self._sum = None
