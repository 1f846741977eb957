"""Parts of a plan that several threads read: what is given, when they stop, what stops them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

import pylog
from pylog.columnar.decode import RecordDecoder
from pylog.files.byte_source import LocalFile
from pylog.reading import parts
from tests.support.batches import (
    Built,
    batch_v2,
    batch_v2_of,
    joined,
    plain_records,
    record_v2,
)
from tests.support.codecs import CODEC_IDS
from tests.support.log_files import (
    offset_entries,
    offset_index_bytes,
    segment_path,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from pylog.record.batch_scan import Window

BATCHES = 200
WINDOW_BYTES = 1 << 12
THREADS = 3


def decoding_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("pylog-read")]


def is_worker() -> bool:
    return threading.current_thread().name.startswith("pylog-read")


def has_no_threads_soon() -> bool:
    for _ in range(200):
        if not decoding_threads():
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    batches = [
        batch_v2(plain_records(10 * place, 10, value_size=50), codec="zstd")
        for place in range(BATCHES)
    ]
    segments = {0: batches[:90], 900: batches[90:]}
    return write_partition(tmp_path, segments, with_time_index=False)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FIRST_PART_BYTES", 1 << 10)
    monkeypatch.setattr(parts, "MOST_DECODED_BYTES", 1 << 12)


def scan(directory: Path, threads: int = THREADS) -> pylog.results.Scan:
    return pylog.scan(directory, threads=threads, window_bytes=WINDOW_BYTES)


def test_rows_are_in_order_and_decoded_by_several_threads(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by: Counter[str] = Counter()
    decode = RecordDecoder.decode

    def noting(
        self: RecordDecoder, window: Window, start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        by[threading.current_thread().name] += 1
        time.sleep(0.001)
        yield from decode(self, window, start, end)

    monkeypatch.setattr(RecordDecoder, "decode", noting)
    table = scan(directory).to_table()
    assert table["offset"].to_pylist() == list(range(10 * BATCHES))
    assert by.pop(threading.current_thread().name) > 1  # the caller takes its share
    assert len(by) == THREADS - 1
    assert all(name.startswith("pylog-read") for name in by)


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_threads_read_ranges_of_the_file_from_index_entry_to_index_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    batches = [batch_v2(plain_records(10 * at, 10, value_size=90), codec=codec) for at in range(99)]
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    read_by: list[str] = []
    read_into = LocalFile.read_into

    def noting(self: LocalFile, position: int, buffer: memoryview) -> int:
        read_by.append(threading.current_thread().name)
        if not read_by[-1].startswith("pylog-read"):
            time.sleep(0.01)  # or this thread does all, where the others get no processor
        return read_into(self, position, buffer)

    monkeypatch.setattr(LocalFile, "read_into", noting)
    table = scan(directory).to_table()
    assert table["offset"].to_pylist() == list(range(990))
    by_threads = [name for name in read_by if name.startswith("pylog-read")]
    assert len(by_threads) > len(read_by) // THREADS


@pytest.mark.parametrize("lie", [-61, -1, 1, 61])
def test_an_index_that_lies_changes_nothing(tmp_path: Path, lie: int) -> None:
    batches = [batch_v2(plain_records(10 * at, 10, value_size=90)) for at in range(99)]
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    index = segment_path(directory, 0, ".index")
    truth = offset_entries(batches)
    assert len(truth) > 80
    for slot in range(20):  # of which some are where a range is cut off
        entries = list(truth)
        entries[slot] = truth[slot][0], truth[slot][1] + lie
        index.write_bytes(offset_index_bytes(entries, 0))
        assert scan(directory).to_table()["offset"].to_pylist() == list(range(990))


def test_small_partitions_are_read_side_by_side_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in range(12):
        batches = [batch_v2(plain_records(10 * at, 10, value_size=22_000)) for at in range(5)]
        write_partition(tmp_path, {0: batches}, name=f"t-{partition:02}")
    together = threading.Barrier(THREADS, timeout=30)
    calls = itertools.count()
    decode = RecordDecoder.decode

    def meeting(
        self: RecordDecoder, window: Window, start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        if decoding_threads() and next(calls) < THREADS:
            together.wait()  # breaks unless as many threads decode at a time
        yield from decode(self, window, start, end)

    monkeypatch.setattr(RecordDecoder, "decode", meeting)
    table = pylog.scan(tmp_path, threads=THREADS).to_table()
    assert table["partition"].to_pylist() == [number for number in range(12) for _ in range(50)]
    assert table["offset"].to_pylist() == 12 * list(range(50))
    assert has_no_threads_soon()


def test_tiny_partitions_are_read_by_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    for partition in range(12):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 10))]}, name=f"t-{partition:02}")
    read_by: set[str] = set()
    read_into = LocalFile.read_into

    def noting(self: LocalFile, position: int, buffer: memoryview) -> int:
        read_by.add(threading.current_thread().name)
        return read_into(self, position, buffer)

    monkeypatch.setattr(LocalFile, "read_into", noting)
    assert pylog.scan(tmp_path, threads=THREADS).to_table().num_rows == 120
    assert read_by == {threading.current_thread().name}


def test_the_threads_end_with_the_reader_that_is_closed_early(directory: Path) -> None:
    batches = scan(directory).to_batches()
    next(batches)
    next(batches)  # the first part is the caller's
    assert decoding_threads()
    batches.close()  # type: ignore[attr-defined]
    assert has_no_threads_soon()


def test_the_threads_end_with_the_last_row(directory: Path) -> None:
    assert scan(directory).to_table().num_rows == 10 * BATCHES
    assert has_no_threads_soon()


def test_what_fails_in_a_thread_has_its_own_traceback(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = RecordDecoder.decode

    def failing(*arguments: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - of decode
        if is_worker():
            raise ZeroDivisionError
        return decode(*arguments)

    monkeypatch.setattr(RecordDecoder, "decode", failing)
    with pytest.raises(ZeroDivisionError) as caught:
        scan(directory).to_table()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "failing"
    assert has_no_threads_soon()


def test_an_interrupt_ends_the_read_and_its_threads(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_self: object) -> Iterator[pa.RecordBatch]:
        raise KeyboardInterrupt

    batches = scan(directory).to_batches()
    next(batches)
    next(batches)
    monkeypatch.setattr("pylog.scheduling.worker_threads._Ahead.__iter__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(batches)
    assert has_no_threads_soon()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_reads_on_without_threads(directory: Path) -> None:
    script = """
import os, sys, pylog
from pylog.reading import parts
parts.FIRST_PART_BYTES, parts.MOST_DECODED_BYTES = 1 << 10, 1 << 12
batches = pylog.scan(sys.argv[1], threads=3, window_bytes=4096).to_batches()
rows = next(batches).num_rows + next(batches).num_rows
child = os.fork()
rows += sum(batch.num_rows for batch in batches)
fresh = pylog.scan(sys.argv[1], threads=3, window_bytes=4096).to_table().num_rows
if child == 0:
    os._exit(0 if rows == fresh == 2000 else 1)
print(rows, fresh, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.split() == ["2000", "2000", "0"], done.stderr


def test_an_abandoned_reader_does_not_keep_the_process_alive(directory: Path) -> None:
    script = """
import sys, pylog
from pylog.reading import parts
parts.FIRST_PART_BYTES, parts.MOST_DECODED_BYTES = 1 << 10, 1 << 12
batches = pylog.scan(sys.argv[1], threads=3, window_bytes=4096).to_batches()
next(batches)
print(next(batches).num_rows > 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.split() == ["True"]


def test_records_that_are_much_larger_than_their_batches_are_all_given(tmp_path: Path) -> None:
    # More than a thread makes ahead: the rest is made by who asks for it.
    batches = [
        batch_v2(plain_records(10 * place, 10, value_size=200_000), codec="gzip")
        for place in range(24)
    ]
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    one, several = (pylog.scan(directory, threads=threads).to_table() for threads in (1, THREADS))
    assert several.num_rows == 240
    assert several.equals(one)


def test_sound_batches_before_one_that_breaks_its_format_are_given_before_the_error(
    tmp_path: Path,
) -> None:
    sound = [batch_v2(plain_records(10 * place, 10), codec="zstd") for place in range(5)]
    payload = zstandard.compress(b"".join(record_v2(0, at, b"k", b"v") for at in range(10)))
    data = batch_v2_of(
        payload,
        base_offset=50,
        last_offset_delta=9,
        record_count=9,  # of 10
        attributes=CODEC_IDS["zstd"],
    )
    miscounted = Built(data, (), 2, 50, 59, codec="zstd")
    directory = write_partition(
        tmp_path, {0: [*sound, miscounted]}, with_index=False, with_time_index=False
    )
    for threads in (1, THREADS):
        given: list[pa.RecordBatch] = []
        with pytest.raises(pylog.errors.InvalidRecordError, match="bytes remain"):
            given.extend(pylog.scan(directory, threads=threads).to_batches())
        offsets = [each for batch in given for each in batch.column("offset").to_pylist()]
        assert offsets == list(range(50))
    assert len(joined(sound)) < 1 << 18  # all in one window


def test_what_a_thread_has_read_before_the_filter_ends_the_read_is_given(tmp_path: Path) -> None:
    batches = [
        batch_v2(plain_records(10 * at, 10, value_size=90, timestamp=10 * at)) for at in range(99)
    ]
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    for highest in range(5, 990, 50):
        where = pylog.RecordFilter(max_timestamp=highest, timestamp_disorder=0)
        coming = pylog.scan(
            directory, threads=THREADS, window_bytes=WINDOW_BYTES, where=where
        ).to_batches()
        offsets = []
        for batch in coming:
            offsets += batch["offset"].to_pylist()
            time.sleep(0.001)  # the threads are done with the next parts
        assert offsets == list(range(highest + 1))


def test_a_file_that_is_gone_when_it_is_to_be_cut_is_left_to_its_reader(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def gone(cutter: object) -> LocalFile:
        asked.append(cutter)
        raise pylog.errors.SegmentVanishedError("gone", "")

    monkeypatch.setattr("pylog.reading.splitting._Cutter._opened", gone)
    assert scan(directory).to_table().num_rows == 10 * BATCHES
    assert asked
