"""Many threads append to one log while others read it."""

from __future__ import annotations

import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import pylog
from pylog.columnar.encode import RecordEncoder
from pylog.config import LogConfig
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.log.log_segment import FetchIsolation
from pylog.model import TopicPartition
from pylog.native.checksum import crc32c
from pylog.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog

NOW_MS = 1_700_000_000_000
WRITERS = 8
READERS = 2
RECORDS = 1_000_000
BATCH_RECORDS = 1_000
BATCHES_A_WRITER = RECORDS // WRITERS // BATCH_RECORDS
FETCH_BYTES = 300_000
PARTITION = TopicPartition("orders", 0)

# Of a v2 batch: base offset, length of what follows, (epoch, magic), CRC, (attributes), last delta.
HEADER = struct.Struct(">qi5xI2xi")
CHECKED_FROM = 21
COUNT_POSITION = 57


class Run(NamedTuple):
    """One log, the moment in which all threads begin, and whether one of them has failed."""

    log: UnifiedLog
    start: threading.Barrier
    failed: threading.Event


class Appended(NamedTuple):
    """The offsets that one append returned."""

    first_offset: int
    last_offset: int


def batch_of(writer: int, number: int) -> bytes:
    """Return a batch whose values are 16 bytes each: the writer, and a count of its records."""
    first = number * BATCH_RECORDS
    values = np.empty((BATCH_RECORDS, 2), dtype=">i8")
    values[:, 0] = writer
    values[:, 1] = np.arange(first, first + BATCH_RECORDS)
    value = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), BATCH_RECORDS, [None, pa.py_buffer(values.tobytes())]
    )
    key = pa.nulls(BATCH_RECORDS, pa.binary())
    timestamp = pa.array([NOW_MS] * BATCH_RECORDS, pa.int64())
    rows = pa.RecordBatch.from_arrays([key, value, timestamp], ["key", "value", "timestamp"])
    encoder = RecordEncoder(batch_size_bytes=1 << 20, max_records=BATCH_RECORDS)
    [batch] = [bytes(encoded.data) for encoded in encoder.encode(rows)]
    return batch


def append_all(run: Run, writer: int) -> list[Appended]:
    """Append one writer's batches, in order; return the offsets that each append returned."""
    run.start.wait()
    appended = []
    try:
        for number in range(BATCHES_A_WRITER):
            info = run.log.append_as_leader(batch_of(writer, number))
            appended.append(Appended(info.first_offset, info.last_offset))
    except BaseException:
        run.failed.set()
        raise
    return appended


def follow(run: Run) -> int:
    """Read until the last record, looking at every batch; return how many reads gave something."""
    run.start.wait()
    offset = reads = 0
    while offset < RECORDS and not run.failed.is_set():
        end = run.log.log_end_offset
        data = run.log.read(offset, FETCH_BYTES, FetchIsolation.LOG_END).records
        assert data or offset >= end, f"nothing at {offset}, though the log ends at {end}"
        reads += bool(data)
        offset = check_batches(data, offset)
    return reads


def check_batches(data: bytes, offset: int) -> int:
    """Check all whole batches, which must continue at ``offset``; return the offset after them."""
    position = 0
    while position + CHECKED_FROM + HEADER.size <= len(data):
        base_offset, length, crc, last_delta = HEADER.unpack_from(data, position)
        end = position + 12 + length
        assert base_offset == offset, f"batch {base_offset} is read where {offset} is due"
        if end > len(data):
            break
        assert crc32c(data[position + CHECKED_FROM : end]) == crc, f"half a batch at {offset}"
        assert struct.unpack_from(">i", data, position + COUNT_POSITION) == (last_delta + 1,)
        offset += last_delta + 1
        position = end
    return offset


@pytest.mark.thorough
def test_eight_threads_append_a_million_records_each_of_which_is_there_once(
    tmp_path: Path,
) -> None:
    config = LogConfig(segment_bytes=4_000_000)
    manager = LogManager([tmp_path], config, context=LogContext(clock=ManualClock(NOW_MS)))
    with manager, ThreadPoolExecutor(WRITERS + READERS) as pool:
        log = manager.get_or_create_log(PARTITION)
        run = Run(log, threading.Barrier(WRITERS + READERS), threading.Event())
        readers = [pool.submit(follow, run) for _ in range(READERS)]
        writers = [pool.submit(append_all, run, each) for each in range(WRITERS)]
        appended = [writer.result() for writer in writers]
        reads = [reader.result() for reader in readers]
        assert (log.log_start_offset, log.log_end_offset) == (0, RECORDS)
        assert len(log.segments) > 3
    assert min(reads) > 1
    every = sorted(each for appends in appended for each in appends)
    assert every == [
        (first, first + BATCH_RECORDS - 1) for first in range(0, RECORDS, BATCH_RECORDS)
    ]
    check_stored(tmp_path, appended)


def check_stored(directory: Path, appended: list[list[Appended]]) -> None:
    """Check what is read from the files against the offsets that the appends returned."""
    scan = pylog.scan(directory, columns=["offset", "value"])
    table = pa.Table.from_batches(scan.to_batches())
    offsets = table["offset"].to_numpy()
    assert np.array_equal(offsets, np.arange(RECORDS))
    values = b"".join(table["value"].to_pylist())
    stored = np.frombuffer(values, dtype=">i8").reshape(RECORDS, 2)
    for writer, appends in enumerate(appended):
        mine = stored[:, 0] == writer
        assert np.array_equal(stored[mine, 1], np.arange(RECORDS // WRITERS)), f"writer {writer}"
        expected = np.concatenate([np.arange(each[0], each[1] + 1) for each in appends])
        assert np.array_equal(offsets[mine], expected), f"writer {writer}"
