"""One revision's answers to `benchmarks.against`: a program of its own, one task a line.

Run with that revision's packages on the path and nothing else of its tree, so it uses only what
every revision has: public names, the encoder, and what runs a command. Each line on stdin is
``TASK DIRECTORY …``; the answer is a line of JSON: seconds, seconds of processor time, and what the
work came to, which must be the same for both revisions.
"""

import argparse
import gc
import json
import mmap
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import pylog
from pylog.cli.main import run
from pylog.columnar.encode import RecordEncoder

LOOK_UPS = 200
FIRST_TIMESTAMP_MS = 1_700_000_000_000
_ANY_TIME_MS = 2**62
_LOGS = getattr(pylog, "logs", pylog)  # older revisions have the names at the top


_COUNTED_BYTES = 1 << 22


def _drain(scan: "pylog.results.Scan") -> int:
    return sum(batch.num_rows for batch in scan.to_reader())


def read(directory: Path) -> Callable[[], int]:
    """Read every record, every column."""
    return lambda: _drain(pylog.scan(directory))


def read_sparsely(directory: Path) -> Callable[[], int]:
    """Read offsets and timestamps of every record."""
    return lambda: _drain(pylog.scan(directory, columns=["offset", "timestamp"]))


def read_filtered(directory: Path) -> Callable[[], int]:
    """Read the records that have the first one's key."""
    first = pylog.scan(directory, columns=["key"], start=0, end=1).to_table()
    where = pylog.RecordFilter(keys=frozenset(first.column(0).to_pylist()))
    return lambda: _drain(pylog.scan(directory, where=where))


def skip_damage(directory: Path) -> Callable[[], int]:
    """Read every record that is intact, in the mode that skips damage."""
    return lambda: _drain(pylog.scan(directory, mode="DROPMALFORMED"))


def count(directory: Path) -> Callable[[], int]:
    """Count the records from headers, several times."""
    return lambda: sum(int(pylog.scan(directory).count()) for _ in range(10))


def _end(directory: Path) -> int:
    (log,) = pylog.open_directory(directory)
    return int(log.log_end_offset)


def look_up_ends(directory: Path) -> Callable[[], int]:
    """Find the log's end, again and again."""
    return lambda: sum(_end(directory) for _ in range(LOOK_UPS))


def look_up_offsets(directory: Path) -> Callable[[], int]:
    """Read single offsets of the whole log."""
    end = _end(directory)

    def one(number: int) -> int:
        offset = number * (end - 1) // LOOK_UPS
        return int(pylog.scan(directory, start=offset, end=offset + 1).to_table().num_rows)

    return lambda: sum(map(one, range(LOOK_UPS)))


def look_up_timestamps(directory: Path) -> Callable[[], int]:
    """Find the offsets of timestamps of the whole log; nothing is read."""
    first, last = (
        pylog.scan(
            directory, columns=["timestamp"], start=start, end=start + 1, timestamp_unit="ms"
        )
        .to_table()
        .column(0)[0]
        .as_py()
        .timestamp()
        for start in (0, _end(directory) - 1)
    )

    def one(number: int) -> int:
        wanted = int(1000 * (first + (last - first) * number / LOOK_UPS))
        (task,) = pylog.scan(directory, start=pylog.Timestamp(wanted)).plan()
        return int(task.start_offset)

    return lambda: sum(map(one, range(LOOK_UPS)))


def _leading_columns(directory: Path) -> pa.RecordBatch:
    table = pylog.scan(directory).to_table()
    some = table.slice(0, table.num_rows // 2).select(["key", "value", "timestamp"])
    (batch,) = some.combine_chunks().to_batches()
    return batch


def encode(directory: Path) -> Callable[[], int]:
    """Encode half of the records into batches of 16 KB."""
    columns = _leading_columns(directory)
    encoder = RecordEncoder(batch_size_bytes=16_384)
    return lambda: sum(batch.size_bytes for batch in encoder.encode(columns))


def _append(directory: Path, batch_bytes: int) -> Callable[[], int]:
    columns = _leading_columns(directory)
    encoder = RecordEncoder(batch_size_bytes=batch_bytes)
    batches = [bytearray(each.data) for each in encoder.encode(columns)]
    settings = pylog.LogConfig(
        max_message_bytes=2 << 20, message_timestamp_after_max_ms=_ANY_TIME_MS
    )
    target = directory.parent / "against-append"

    def work() -> int:
        shutil.rmtree(target, ignore_errors=True)
        for batch in batches:
            batch[:8] = bytes(8)  # appending writes the base offset into the batch
        with _LOGS.LogManager([target], settings) as manager:
            log = manager.get_or_create_log(pylog.TopicPartition("against", 0))
            for batch in batches:
                log.append_as_leader(batch)
            return int(log.log_end_offset)

    return work


def append_small(directory: Path) -> Callable[[], int]:
    """Append half of the records, in batches of 16 KB; the log is opened and closed."""
    return _append(directory, 16_384)


def append_large(directory: Path) -> Callable[[], int]:
    """Append half of the records, in batches of 1 MiB; the log is opened and closed."""
    return _append(directory, 1 << 20)


def doctor(directory: Path) -> Callable[[], int]:
    """Look for all that is wrong with the logs."""
    return lambda: sum(
        int(each.offsets.records) for each in pylog.doctor(directory, threads=1).partitions
    )


def plan(directory: Path) -> Callable[[], int]:
    """Open the directory and plan a read of it."""
    return lambda: len(pylog.scan(directory).plan())


def cat(directory: Path) -> Callable[[], int]:
    """Print all records as lines of JSON, with the command line, and count the lines."""

    def work() -> int:
        sys.stdout.flush()
        with tempfile.TemporaryFile() as file:
            answers = os.dup(1)
            os.dup2(file.fileno(), 1)
            try:
                status = run(["cat", str(directory), "--format", "jsonl"])
                sys.stdout.flush()
            finally:
                os.dup2(answers, 1)
                os.close(answers)
            # Revisions differ in how they spell values; the count costs each the same.
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
                lines = sum(
                    text[at : at + _COUNTED_BYTES].count(b"\n")
                    for at in range(0, len(text), _COUNTED_BYTES)
                )
            return lines if status == 0 else -status

    return work


TASKS = {
    each.__name__.replace("_", "-"): each
    for each in (
        read,
        read_sparsely,
        read_filtered,
        skip_damage,
        count,
        look_up_ends,
        look_up_offsets,
        look_up_timestamps,
        encode,
        append_small,
        append_large,
        plan,
        doctor,
        cat,
    )
}


def _use_level(level: str) -> None:
    """Have kernels of another level; older revisions have no levels, and are not asked for one."""
    from pylog.native import library  # noqa: PLC0415

    library.these_levels = lambda: [level]  # type: ignore[assignment]
    assert library.this_library().level == level


def main() -> None:
    """Answer until there are no more lines."""
    parser = argparse.ArgumentParser(prog="against_peer.py", description=__doc__)
    parser.add_argument("--level", help="of the kernels; by default this processor's highest")
    level = parser.parse_args().level
    if level is not None:
        _use_level(level)
    ready: dict[str, Callable[[], int]] = {}
    for line in sys.stdin:
        task, _, directory = line.strip().partition(" ")
        if line not in ready:
            ready[line] = TASKS[task](Path(directory))
            ready[line]()  # compiles kernels and fills the page cache
        gc.collect()
        cpu_started, started = time.process_time(), time.perf_counter()
        answer = ready[line]()
        figures = time.perf_counter() - started, time.process_time() - cpu_started, answer
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
