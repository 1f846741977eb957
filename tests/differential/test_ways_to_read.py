"""All readers give one answer: a scan, however it is cut, Spark's source, a server, doctor, stats.

In each mode and isolation level. Compared two by two, on directories of real brokers, on what
harms have left of a log, and on small logs that are made here, some as people have reported them.
What is right is held elsewhere; here two answers must not differ.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.differential.readers import by_data_source, consumed, scanned
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    marker,
    message,
    message_bytes,
    plain_records,
    with_bad_crc,
    wrapper,
    wrapper_of,
)
from tests.support.damage import with_base_offset
from tests.support.faults.partitions import PARTITION_HARMS, Harmed
from tests.support.golden import golden_partitions
from tests.support.log_files import write_partition, write_topic_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pylog.model import IsolationName
    from tests.support.faults.partitions import Harm
    from tests.support.golden import GoldenRoot

_DAMAGE = ("damaged_batches", "repeated_batches", "misnamed_segment", "unreadable")
LEVELS = ("read_uncommitted", "read_committed")


def compare(directory: Path) -> None:
    """Compare all answers about one partition."""
    for isolation in LEVELS:
        compare_rows(directory, isolation)  # type: ignore[arg-type]
    dropping = pylog.scan(directory, mode="DROPMALFORMED")
    count = dropping.count()
    damaged = {(each.path, each.position, each.end_position) for each in dropping.damage}
    # The doctor, and statistics
    (report,) = pylog.doctor(directory).partitions
    found = {
        (each.path, each.position, each.end_position)
        for each in report.findings
        if each.code in _DAMAGE
    }
    assert found == damaged
    assert report.offsets.records == count
    if damaged:
        return
    statistics = pylog.stats(directory, read="all")
    assert not statistics.problems
    assert statistics.tables["topics"]["records"].to_pylist() == [count]


def compare_rows(directory: Path, isolation: IsolationName) -> None:
    """Compare what readers of one isolation level get."""
    failfast = scanned(directory, "FAILFAST", isolation)
    dropping = pylog.scan(directory, mode="DROPMALFORMED", isolation=isolation)
    kept_rows = scanned(directory, "DROPMALFORMED", isolation).rows
    assert dropping.count() == len(kept_rows)
    permissive = scanned(directory, "PERMISSIVE", isolation)
    assert permissive.rows == kept_rows
    # However a read is cut, it gives the same.
    last = kept_rows[-1][0] if kept_rows else 0
    # Where compaction has left few records of many offsets, each task may have more of them.
    most = max(7, (last - min(int(each.stem) for each in directory.glob("*.log"))) // 50)
    cuts = {"max_partition_bytes": 500}, {"max_records_per_partition": most}
    for mode, whole in (("FAILFAST", failfast.rows), ("DROPMALFORMED", kept_rows)):
        for options in cuts:
            cut = scanned(directory, mode, isolation, **options)  # type: ignore[arg-type]
            assert cut.rows == whole[: len(cut.rows)]
            assert cut.has_failed or len(cut.rows) == len(whole)
    # Spark's source reads in tasks, of which one may come to damage before another.
    by_source = by_data_source(directory, "FAILFAST", isolation)
    assert by_source.has_failed == failfast.has_failed
    assert by_source.rows == failfast.rows[: len(by_source.rows)]
    assert by_source.has_failed or by_source.rows == failfast.rows
    assert by_data_source(directory, "DROPMALFORMED", isolation).rows == kept_rows
    assert by_data_source(directory, "PERMISSIVE", isolation) == permissive
    middle = kept_rows[len(kept_rows) // 2][0] if kept_rows else 0
    where = pylog.RecordFilter(min_offset=middle)
    filtered = scanned(directory, "DROPMALFORMED", isolation, where=where).rows
    assert filtered == [each for each in kept_rows if each[0] >= middle]
    # A consumer of the server
    served = consumed(directory, "FAILFAST", isolation)
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
    # By what a client cannot decode it is cut short.
    rows, is_cut_short, _ = consumed(directory, "DROPMALFORMED", isolation)
    found_rows = [row for row in rows if row in sent]
    assert found_rows == (sent[: len(found_rows)] if is_cut_short else sent)
    assert consumed(directory, "PERMISSIVE", isolation).rows == rows


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


def transaction(first: int, end: int, producer_id: int = 5) -> list[Built]:
    return run(first, end, b"t", producer_id=producer_id, producer_epoch=0, is_transactional=True)


def stored(data: bytes, offset: int) -> Built:
    """Return bytes in the place of a batch."""
    return Built(data, (), 2, offset, offset)


_LZ4_CONTROL = 0x23
_FAR = 2**31 + 5
_MICROSECONDS = 1_764_547_200_000_000
_WRAPPED = [Stored(offset, 1, b"k%d" % offset, b"v") for offset in (100, 102, 105, 109)]


def _wrong_inner_crc() -> Built:
    inner = message_bytes(0, b"a", b"1", magic=1) + message_bytes(1, b"b", b"2", magic=1, crc=7)
    return stored(wrapper_of(inner, offset=21, magic=1, codec="gzip"), 21)


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
    "transactions": {
        0: [*transaction(0, 20), *run(20, 30), marker(30, ABORT, producer_id=5)],
        31: [*transaction(31, 40), marker(40, COMMIT, producer_id=5), *run(41, 50)],
    },
    "an open transaction": {0: [*run(0, 20), *transaction(20, 40), *run(40, 50)]},
    "a marker in a missing segment": {
        0: [*run(0, 10), *transaction(10, 20)],
        31: [*transaction(31, 40, 6), marker(40, COMMIT, producer_id=6), *run(41, 50)],
    },
    "a marker in a missing segment, and another transaction of the producer": {
        0: [*run(0, 10), *transaction(10, 20)],
        31: [*transaction(31, 40), marker(40, ABORT, producer_id=5), *run(41, 50)],
    },
    "a marker in a damaged batch": {
        0: [*transaction(0, 20), with_bad_crc(marker(20, ABORT, producer_id=5)), *run(21, 30)],
        30: run(30, 40),
    },
    "an abort in one segment, a commit in the one over it": {
        0: [*transaction(0, 20), marker(20, ABORT, producer_id=5), *run(21, 40)],
        10: [*transaction(10, 20), marker(20, COMMIT, producer_id=5), *run(21, 50)],
    },
    "zeros between segments": {0: [*run(0, 20), stored(bytes(100), 20)], 20: run(20, 40)},
    "a few zeros between segments": {0: [*run(0, 20), stored(bytes(5), 20)], 20: run(20, 40)},
    "zeros at the end": {0: run(0, 20), 20: [*run(20, 40), stored(bytes(5_000), 40)]},
    "a torn end": {0: run(0, 20), 20: [*run(20, 40), stored(run(40, 50)[0].data[:-3], 40)]},
    "a marker without content that is said to be compressed": {
        0: [*run(0, 20), stored(batch_v2_of(b"", base_offset=20, attributes=_LZ4_CONTROL), 20)]
    },
    "a wrapper with gaps": {
        0: [message(Stored(0, 1, b"s", b"s"), magic=1)],
        90: [wrapper(_WRAPPED, magic=1, codec="gzip", first_offset=95)],
        110: [message(Stored(110, 1, b"s", b"s"), magic=1)],
    },
    "a wrong checksum inside a wrapper": {
        0: [*run(0, 20), _wrong_inner_crc(), *run(22, 30)],
        30: run(30, 40),
    },
    "empty segments far apart": {0: [], _FAR: [], 2 * _FAR: run(2 * _FAR, 2 * _FAR + 20)},
    "times far away": {
        0: [batch_v2(plain_records(0, 5, timestamp=_MICROSECONDS)), *run(5, 20)],
        20: [batch_v2(plain_records(20, 5, timestamp=_MICROSECONDS))],
    },
}


@pytest.mark.parametrize("log", LOGS)
def test_all_readers_of_a_small_log_give_one_answer(tmp_path: Path, log: str) -> None:
    compare(write_partition(tmp_path, LOGS[log]))


# ---- directories of brokers


@pytest.mark.parametrize(
    "name", [each for each in golden_partitions() if "__cluster_metadata" not in each]
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
        write_topic_id(directory, "Igo74ZAZCxWJ1lxdTzs-vA")
        pair.append(directory)
    harm[1](Harmed(*pair))
    if list(pair[0].glob("*.log")):
        compare(pair[0])
