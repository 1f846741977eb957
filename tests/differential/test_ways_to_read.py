"""All readers of a log give one answer: a scan, however it is cut, a server, doctor, statistics.

Compared two by two, on directories of real brokers, on what harms have left of a log, and on small
logs that are made here. What is right is held elsewhere; here two answers must not differ.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.errors import CorruptRecordError, InvalidRecordError, LogStorageError
from pylog.reading.damage import ReadMode
from pylog.record.record_batch import RecordBatch
from tests.support.batches import ABORT, Built, batch_v2, marker, plain_records, with_bad_crc
from tests.support.damage import with_base_offset
from tests.support.golden import golden_partitions
from tests.support.harms import PARTITION_HARMS, Harmed
from tests.support.log_files import write_partition
from tests.unit.server.followed import content, fetched, followed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.support.harms import Harm

Row = tuple[int, bytes | None, bytes | None]
_MOST_FETCHES = 2_000
_DAMAGE = ("damaged_batches", "repeated_batches", "misnamed_segment", "unreadable")


class Answer(NamedTuple):
    """The rows, and whether they end with an error."""

    rows: list[Row]
    has_failed: bool


def scanned(directory: Path, mode: str, **options: object) -> Answer:
    columns = ["offset", "key", "value"]
    rows: list[Row] = []
    try:
        scan = pylog.scan(directory, mode=mode, columns=columns, **options)  # type: ignore[arg-type]
        for batch in scan.to_batches():
            rows += zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    except LogStorageError:
        return Answer(rows, has_failed=True)
    return Answer(rows, has_failed=False)


def _records(data: bytes, position: int) -> Iterator[Row]:
    at = 0
    while at < len(data):
        batch = RecordBatch(memoryview(data)[at:])
        if not (batch.header.magic == 2 and batch.header.is_control_batch):
            for record in batch.records():
                if record.offset >= position:
                    yield record.offset, record.key, record.value
        at += batch.header.size_bytes


def consumed(directory: Path, mode: str) -> Answer:
    """Fetch as a consumer from the start does, each time from the offset after the last batch."""
    rows: list[Row] = []
    with followed(directory.parent, mode=ReadMode(mode)) as replicas:
        partition = replicas.partition("orders", 0)
        partition.load()
        position = 0 if partition.offsets is None else partition.offsets.log_start_offset
        for _ in range(_MOST_FETCHES):
            answer = fetched(replicas, position)
            if answer["errorCode"]:
                return Answer(rows, has_failed=True)
            data = content(answer)
            if not data:
                return Answer(rows, has_failed=False)
            try:
                for row in _records(data, position):
                    rows.append(row)
                    position = row[0] + 1
            except (CorruptRecordError, InvalidRecordError):
                return Answer(rows, has_failed=True)
            position = _end(data)
    raise AssertionError("the log has no end")


def _end(data: bytes) -> int:
    at, end = 0, 0
    while at < len(data):
        header = RecordBatch(memoryview(data)[at:]).header
        at, end = at + header.size_bytes, header.next_offset
    return end


def compare(directory: Path) -> None:
    """Compare all answers about one partition."""
    failfast = scanned(directory, "FAILFAST")
    dropping = pylog.scan(directory, mode="DROPMALFORMED")
    kept_rows = scanned(directory, "DROPMALFORMED").rows
    assert dropping.count() == len(kept_rows)
    damaged = {(each.path, each.position, each.end_position) for each in dropping.damage}
    # However a read is cut, it gives the same.
    for mode, whole in (("FAILFAST", failfast.rows), ("DROPMALFORMED", kept_rows)):
        for options in ({"max_partition_bytes": 500}, {"max_records_per_partition": 7}):
            cut = scanned(directory, mode, **options)
            assert cut.rows == whole[: len(cut.rows)]
            assert cut.has_failed or len(cut.rows) == len(whole)
    middle = kept_rows[len(kept_rows) // 2][0] if kept_rows else 0
    where = pylog.RecordFilter(min_offset=middle)
    filtered = scanned(directory, "DROPMALFORMED", where=where).rows
    assert filtered == [each for each in kept_rows if each[0] >= middle]
    # A consumer of the server
    served = consumed(directory, "FAILFAST")
    assert served.rows[: len(failfast.rows)] == failfast.rows
    assert failfast.has_failed or served.rows == failfast.rows
    if not served.has_failed:
        # No fetch arrives at what repeats the end of a segment.
        are_repeats = all((each.end_offset or 0) <= each.next_offset for each in dropping.damage)
        assert not failfast.has_failed or (are_repeats and served.rows == kept_rows)
    moved = [
        range(each.next_offset, each.end_offset or 0) for each in dropping.damage if each.is_kept
    ]
    sent = [row for row in kept_rows if not any(row[0] in each for each in moved)]
    rows, is_cut_short = consumed(directory, "DROPMALFORMED")  # by what a client cannot decode
    found_rows = [row for row in rows if row in sent]
    assert found_rows == (sent[: len(found_rows)] if is_cut_short else sent)
    # The doctor, and statistics
    (report,) = pylog.doctor(directory).partitions
    found = {
        (each.path, each.position, each.end_position)
        for each in report.findings
        if each.code in _DAMAGE
    }
    assert found == damaged
    assert report.offsets.records == len(kept_rows)
    if failfast.has_failed:
        return
    statistics = pylog.stats(directory, read="all")
    assert not statistics.problems
    assert statistics.tables["topics"]["records"].to_pylist() == [len(kept_rows)]


# ---- small logs


def run(first: int, end: int, value: bytes = b"", **options: object) -> list[Built]:
    """Return batches of ten offsets; ``value`` tells where they are from."""
    return [
        batch_v2(
            [
                each._replace(value=value + b"%d" % each.offset)
                for each in plain_records(at, min(10, end - at))
            ],
            **options,  # type: ignore[arg-type]
        )
        for at in range(first, end, 10)
    ]


LOGS: dict[str, Mapping[int, Sequence[Built]]] = {
    "one segment over the next": {0: run(0, 50, b"a"), 30: run(30, 80, b"b"), 80: run(80, 90)},
    "one inside another": {0: run(0, 50, b"a"), 10: run(10, 20, b"b"), 60: run(60, 70)},
    "three deep": {0: run(0, 50), 10: run(10, 60, b"b"), 20: run(20, 30, b"c"), 65: run(65, 70)},
    "equal ends": {0: run(0, 50), 30: run(30, 50, b"b"), 50: run(50, 60)},
    "batches that straddle": {
        0: run(0, 45, b"a", codec="gzip"),
        30: run(30, 75, b"b", codec="zstd"),
        75: run(75, 80),
    },
    "a batch above its segment": {0: [*run(0, 40), with_base_offset(run(40, 50)[0], 2**40)]},
    "a batch below its segment": {
        0: run(0, 50),
        50: [with_base_offset(run(50, 60)[0], 47), *run(60, 90)],
    },
    "a batch that repeats an offset": {
        0: [*run(0, 40), marker(40, ABORT, producer_id=5), *run(40, 60)],
        60: run(60, 80),
    },
    "a run twice": {0: [*run(0, 40), *run(20, 40), *run(40, 50)], 50: run(50, 60)},
    "a damaged batch": {
        0: [*run(0, 20), with_bad_crc(run(20, 30)[0]), *run(30, 40)],
        40: run(40, 60),
    },
    "a segment that is missing": {0: run(0, 20), 40: run(40, 60)},
}


@pytest.mark.parametrize("log", LOGS)
def test_all_readers_of_a_small_log_give_one_answer(tmp_path: Path, log: str) -> None:
    compare(write_partition(tmp_path, LOGS[log]))


# ---- directories of brokers


@pytest.mark.parametrize(
    "name", [each for each in golden_partitions() if each.split(":")[1][0] != "_"]
)
@pytest.mark.thorough(one_in=12)
def test_all_readers_of_a_brokers_log_give_one_answer(
    golden_root: GoldenRoot, tmp_path: Path, name: str
) -> None:
    source = golden_root.partition(name).directory
    directory = tmp_path / "orders-0"
    shutil.copytree(source, directory, copy_function=shutil.copyfile)
    directory.chmod(0o700)
    compare(directory)


# ---- harmed logs


@pytest.mark.parametrize("harm", PARTITION_HARMS, ids=lambda each: each[0])
@pytest.mark.thorough(one_in=5)
def test_all_readers_of_a_harmed_log_give_one_answer(tmp_path: Path, harm: Harm) -> None:
    segments = {
        base: run(base, base + 60, codec="gzip" if base else "none") for base in (0, 60, 120)
    }
    pair = []
    for name in ("orders-0", "orders-1"):
        directory = write_partition(tmp_path / name, segments, name=name)
        (directory / "00000000000000000180.snapshot").write_bytes(bytes(12))
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (directory / "partition.metadata").write_text(
            "version: 0\ntopic_id: Igo74ZAZCxWJ1lxdTzs-vA"
        )
        pair.append(directory)
    harm[1](Harmed(*pair))
    if list(pair[0].glob("*.log")):
        compare(pair[0])
