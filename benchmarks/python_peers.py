"""The record parsers of aiokafka (Cython) and kafka-python, over bytes already in memory.

Both favours are theirs: no file is read inside the clock, and the four fields of a record are
fetched by one C-level `attrgetter`, not by Python statements.
"""

import collections
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import aiokafka.record.memory_records
import kafka.errors
import kafka.record

from benchmarks.batches import leading, spans
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import (
    NotHereError,
    Run,
    Tally,
    WrongAnswerError,
    ensure_equal,
    timed,
)

AIOKAFKA_RECORDS = 500_000  # a leading sample: rates compare, totals do not
KAFKA_PYTHON_RECORDS = 60_000

_fields = operator.attrgetter("key", "value", "offset", "timestamp")


class _Batch(Iterable[Any], Protocol):
    def validate_crc(self) -> bool: ...


class _MemoryRecords(Protocol):
    def has_next(self) -> bool: ...
    def next_batch(self) -> _Batch: ...


def _batches(memory_records: _MemoryRecords) -> Iterator[_Batch]:
    """Yield the batches, each after its CRC was checked."""
    while memory_records.has_next():
        batch = memory_records.next_batch()
        if not batch.validate_crc():
            raise WrongAnswerError("a sound batch failed its CRC")
        yield batch


class ParserReader:
    """One of the two parsers over the leading records of a data set."""

    def __init__(
        self,
        name: str,
        parser: Callable[[bytes], _MemoryRecords],
        bench: Bench,
        data_set: DataSet,
        limit: int,
    ) -> None:
        self.name = name
        self._parser = parser
        self._data_set = data_set
        data = bench.logs(data_set.name)[0].read_bytes()
        self._data = data if limit >= data_set.records else leading(data, limit)
        is_whole = len(self._data) == data_set.log_bytes
        self.records = (
            data_set.records if is_whole else sum(span.records for span in spans(self._data))
        )
        self.log_bytes = len(self._data)

    def check(self) -> None:
        """Compare the sums with what was written: all of them if this is the whole set."""
        tally = self.tally()
        written = self._data_set.tally
        if self.records == self._data_set.records:
            ensure_equal(self.name, tally, written)
        else:
            read = (tally.records, tally.value_bytes, tally.offsets)
            values = self.records * self._data_set.value_bytes
            offsets = self.records * (self.records - 1) // 2
            ensure_equal(self.name, read, (self.records, values, offsets))

    def tally(self) -> Tally:
        """Read everything and return its sums."""
        records = key_bytes = value_bytes = offsets = timestamps_ms = 0
        for batch in _batches(self._parser(self._data)):
            for key, value, offset, timestamp_ms in map(_fields, batch):
                records += 1
                key_bytes += len(key)
                value_bytes += len(value)
                offsets += offset
                timestamps_ms += -1 if timestamp_ms is None else timestamp_ms  # None in v0
        return Tally(records, key_bytes, value_bytes, offsets, timestamps_ms)

    def repeat(self) -> Run:
        """Parse everything and touch every field, counted."""
        return timed(self._drain)

    def _drain(self) -> None:
        for batch in _batches(self._parser(self._data)):
            collections.deque(map(_fields, batch), maxlen=0)


def aiokafka_reader(bench: Bench, data_set: DataSet, limit: int = AIOKAFKA_RECORDS) -> ParserReader:
    """Return aiokafka's reader; its Cython classes must be the ones in use."""
    parser = aiokafka.record.memory_records.MemoryRecords
    if "_crecords" not in parser.__module__:
        raise RuntimeError("aiokafka runs without its Cython extension")
    return ParserReader("aiokafka (Cython)", parser, bench, data_set, limit)


def kafka_python_reader(
    bench: Bench, data_set: DataSet, limit: int = KAFKA_PYTHON_RECORDS
) -> ParserReader:
    """Return kafka-python's reader, pure Python."""
    parser = kafka.record.MemoryRecords
    reader = ParserReader("kafka-python", parser, bench, data_set, limit)
    try:
        reader.check()
    except kafka.errors.UnsupportedCodecError as error:
        message = f"kafka-python on {data_set.codec}: it lacks its codec library"
        raise NotHereError(message) from error
    return reader
