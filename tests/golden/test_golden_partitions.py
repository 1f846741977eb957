"""Every golden partition through the library equals what Kafka itself served of it."""

from __future__ import annotations

import base64
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.files.time_index import TimeIndexEntries
from pylog.reading.offset_resolution import find_max_timestamp, find_offset_for_timestamp
from pylog.reading.transactions import find_last_stable_offset
from pylog.record.record_batch import RecordBatch
from tests.support.golden import (
    GoldenPartition,
    GoldenRoot,
    Holds,
    Isolation,
    differences,
    golden_partitions,
    read_expected,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pylog.model import TimestampOffset
    from pylog.reading.log_view import LogView

ISOLATIONS: tuple[Isolation, ...] = get_args(Isolation)
SERVED = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)
Line = dict[str, Any]

# What else lies in a partition directory, and makes reading faster at the most.
HELPERS = {
    "transaction indexes": (".txnindex",),
    "offset and time indexes": (".index", ".timeindex"),
    "producer snapshots": (".snapshot",),
}


def encoded(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


def lines_of(batch: pa.RecordBatch) -> Iterator[Line]:
    stamps = batch.column("timestamp").cast("int64").to_pylist()
    for row, stamp in zip(batch.drop_columns(["timestamp"]).to_pylist(), stamps, strict=True):
        yield {
            "offset": row["offset"],
            "timestamp": stamp,
            "timestampType": row["timestampType"],
            "leaderEpoch": row["batch"]["leaderEpoch"],
            "key": encoded(row["key"]),
            "value": encoded(row["value"]),
            "headers": [[each["key"], encoded(each["value"])] for each in row["headers"] or ()],
        }


def read_lines(
    directory: Path | list[Path],
    topic: str,
    isolation: Isolation,
    **options: Any,  # noqa: ANN401 - of pylog.scan
) -> list[Line]:
    """Return what the library reads of a partition, as lines of an expected file."""
    scan = pylog.scan(
        directory,
        topics=[topic],
        isolation=f"read_{isolation}",  # type: ignore[arg-type]
        timestamp_unit="ms",
        include_headers=True,
        include_batch_metadata=True,
        **options,
    )
    lines = [line for batch in scan.to_batches() for line in lines_of(batch)]
    assert scan.count() == len(lines)
    return lines


def read(partition: GoldenPartition, isolation: Isolation, **options: Any) -> list[Line]:  # noqa: ANN401
    return read_lines(partition.directory, partition.topic, isolation, **options)


def expected_lines(partition: GoldenPartition, isolation: Isolation) -> list[Line]:
    path = partition.expected_path(isolation)
    assert path is not None
    return read_expected(path)


@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
@pytest.mark.parametrize(
    ("case", "topic", "partitions"),
    [("replicas", "ledger", 2), ("replicas-diverged", "ledger-unclean", 1)],
)
def test_of_the_disks_of_three_nodes_what_the_last_leader_served_is_read(
    golden_root: GoldenRoot, case: str, topic: str, partitions: int, isolation: Isolation
) -> None:
    found = [
        golden_root.partition(f"3.9.1/{case}:broker-1/{topic}-{number}")
        for number in range(partitions)
    ]
    brokers = sorted(found[0].case_directory.glob("broker-*"))
    assert len(brokers) == 3
    for given in (brokers, brokers[::-1]):
        for each in found:
            where = pylog.RecordFilter(partitions=frozenset({each.partition}))
            lines = read_lines(given, topic, isolation, where=where)
            assert differences(expected_lines(each, isolation), lines) == []


def view_of(partition: GoldenPartition, directory: Path | None = None) -> LogView:
    return pylog.open_directory(directory or partition.directory)[
        partition.topic, partition.partition
    ]


Answers = dict[int, tuple[int, int] | None]
"""(timestamp, offset) by the timestamp that was asked for."""


def kafkas_answers(partition: GoldenPartition, isolation: Isolation = "uncommitted") -> Answers:
    """Return what Kafka answered; brokers up to 0.10.0 could not, and some times it refused."""
    assert partition.offsets is not None
    what = "offsetsForTimes" if isolation == "uncommitted" else "offsetsForTimesReadCommitted"
    return {
        int(stamp): None if answer is None else (answer["timestamp"], answer["offset"])
        for stamp, answer in (partition.offsets.get(what) or {}).items()
        if answer is None or "error" not in answer
    }


def linear_answer(view: LogView, stamp: int) -> tuple[int, int] | None:
    """Return the definition's answer: of all records, the first that is late enough."""
    start = view.log_start_offset
    late = (time for time in all_times(view) if time[0] >= stamp and time[1] >= start)
    return next(late, None)


def all_times(view: LogView) -> Iterator[tuple[int, int]]:
    """Yield timestamp and offset of every record in the files, control records included."""
    for segment in view.segments:
        with segment.open_log() as source:
            content, position = source.read_at(0, source.size()), 0
        while len(content) - position >= 17:
            size = 12 + int.from_bytes(content[position + 8 : position + 12], "big")
            if size == 12 or position + size > len(content):  # preallocated, torn
                break
            batch = RecordBatch(content[position : position + size])
            yield from ((record.timestamp, record.offset) for record in batch.records())
            position += size


def stops_too_early(view: LogView, stamp: int, answer: int) -> bool:
    """Whether Kafka's search ends in a segment before the one that holds the answer.

    It looks into the first segment whose largest timestamp is late enough, and no further. That is
    the last entry of the time index, which may tell of records that compaction has removed, and
    the file's modification time where there is no entry: of a segment that is empty, or has format
    v0.
    """
    for index, segment in enumerate(view.segments):
        with TimeIndexEntries.open(
            segment.file_path(".timeindex"), segment.base_offset
        ) as time_index:
            last = time_index.last_entry()
        modified_ms = Path(segment.file_path()).stat().st_mtime_ns // 1_000_000
        largest = modified_ms if last is None else last.timestamp
        if largest >= stamp:
            following = view.next_base_offset(index)
            return following is not None and following <= answer
    return False


def as_pair(found: TimestampOffset | None) -> tuple[int, int] | None:
    return None if found is None else (found.timestamp, found.offset)


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition_id", SERVED)
def test_records_are_those_kafkas_consumer_was_given(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    partition = golden_root.partition(partition_id)
    assert not differences(expected_lines(partition, isolation), read(partition, isolation))


def test_two_threads_at_once_read_what_kafkas_consumer_was_given(golden_root: GoldenRoot) -> None:
    partitions = [golden_root.partition(each) for each in SERVED]
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(lambda each: read(each, "committed"), [*partitions, *partitions])
        for partition, lines in zip([*partitions, *partitions], found, strict=True):
            assert not differences(expected_lines(partition, "committed"), lines)


@pytest.mark.parametrize("partition_id", SERVED)
def test_ends_and_last_stable_offset_are_kafkas(golden_root: GoldenRoot, partition_id: str) -> None:
    partition = golden_root.partition(partition_id)
    view, stated = view_of(partition), partition.offsets
    assert stated is not None
    assert (view.log_start_offset, view.log_end_offset) == (stated["earliest"], stated["latest"])
    if stated.get("latestReadCommitted") is not None:
        assert find_last_stable_offset(view) == stated["latestReadCommitted"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition_id", SERVED)
@pytest.mark.thorough(one_in=3)
def test_offsets_by_timestamp_are_kafkas_unless_it_stops_too_early(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    partition = golden_root.partition(partition_id)
    view = view_of(partition)
    latest = view.log_end_offset if isolation == "uncommitted" else find_last_stable_offset(view)
    for stamp, kafkas in kafkas_answers(partition, isolation).items():
        ours = as_pair(find_offset_for_timestamp(view, stamp))
        assert ours == linear_answer(view, stamp), stamp
        if ours is not None and ours[1] >= latest:
            ours = None  # a broker does not tell of what it does not serve
        if ours != kafkas:
            assert kafkas is None, stamp
            assert ours is not None
            assert stops_too_early(view, stamp, answer=ours[1]), stamp


def test_kafka_was_asked_for_many_times(golden_root: GoldenRoot) -> None:
    asked = {each: kafkas_answers(golden_root.partition(each)) for each in SERVED}
    assert sum(len(answers) for answers in asked.values()) > 1_500
    unasked = [each for each, answers in asked.items() if not answers]
    unable = [each for each in unasked if each.startswith(("0.8.2.2/", "0.10.0.1/"))]
    assert [each for each in unasked if each not in unable] == [
        "4.3.0/retention-all:after/ret-all-0",  # there is nothing left to ask for
        "4.4.0/internal-logdir:lagged-0",  # nor here
    ]


@pytest.mark.parametrize("partition_id", SERVED)
def test_the_max_timestamp_is_kafkas(golden_root: GoldenRoot, partition_id: str) -> None:
    partition = golden_root.partition(partition_id)
    view = view_of(partition)
    times = [time for time in all_times(view) if time[0] >= 0]
    highest = max(times, key=lambda time: (time[0], -time[1]), default=None)
    ours = as_pair(find_max_timestamp(view))
    assert ours == highest
    assert partition.offsets is not None
    stated = partition.offsets.get("maxTimestamp")
    if stated is not None and "error" not in stated:
        kafkas = None if stated["offset"] < 0 else (stated["timestamp"], stated["offset"])
        assert ours == kafkas


@pytest.mark.parametrize("partition_id", SERVED)
@pytest.mark.thorough(one_in=5)
def test_nothing_changes_without_the_files_that_only_help(
    golden_root: GoldenRoot, partition_id: str, tmp_path: Path
) -> None:
    partition = golden_root.partition(partition_id)
    whole = view_of(partition)
    for what, suffixes in HELPERS.items():
        helpers = [p for p in partition.directory.iterdir() if p.name.endswith(suffixes)]
        if not helpers:
            continue
        directory = copied(partition, tmp_path / what, without=suffixes)
        for isolation in ISOLATIONS:
            lines = read_lines(directory, partition.topic, isolation)
            assert not differences(expected_lines(partition, isolation), lines), what
        view = view_of(partition, directory)
        assert view.log_end_offset == whole.log_end_offset, what
        assert find_last_stable_offset(view) == find_last_stable_offset(whole), what
        assert find_max_timestamp(view) == find_max_timestamp(whole), what
        for stamp in kafkas_answers(partition):
            assert find_offset_for_timestamp(view, stamp) == find_offset_for_timestamp(
                whole, stamp
            ), what


def copied(partition: GoldenPartition, log_directory: Path, *, without: tuple[str, ...]) -> Path:
    """Copy a partition and the log directory's checkpoints; return the partition's directory."""
    log_directory.mkdir()
    for path in partition.log_directory.glob("*-checkpoint"):
        shutil.copy2(path, log_directory)
    directory = log_directory / partition.name
    directory.mkdir()
    for path in partition.directory.iterdir():
        if not path.name.endswith(without):
            shutil.copy2(path, directory)
    return directory


def test_the_helpers_that_are_left_out_are_really_there(golden_root: GoldenRoot) -> None:
    found = {
        what: sum(
            path.name.endswith(suffixes)
            for partition_id in SERVED
            for path in golden_root.partition(partition_id).directory.iterdir()
        )
        for what, suffixes in HELPERS.items()
    }
    assert all(count > 30 for count in found.values()), found


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition_id", golden_partitions(Holds.ONLY_THE_END))
def test_a_tiered_partition_has_the_local_part(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    partition = golden_root.partition(partition_id)
    first = view_of(partition).log_start_offset
    expected = expected_lines(partition, isolation)
    local = [line for line in expected if line["offset"] >= first]
    assert len(local) < len(expected)
    assert not differences(local, read(partition, isolation))


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition_id", golden_partitions(Holds.ONLY_THE_START))
def test_a_replica_that_stopped_early_has_the_first_part(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    partition = golden_root.partition(partition_id)
    end = view_of(partition).log_end_offset
    expected = expected_lines(partition, isolation)
    present = [line for line in expected if line["offset"] < end]
    assert 0 < len(present) < len(expected)
    assert not differences(present, read(partition, isolation))


@pytest.mark.parametrize("partition_id", golden_partitions(Holds.OTHER_RECORDS))
def test_a_replica_that_diverged_has_records_of_its_own(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    lines = read(partition, "uncommitted")
    leaders = {line["offset"]: line for line in expected_lines(partition, "uncommitted")}
    shared = [line for line in lines if leaders.get(line["offset"]) == line]
    assert 0 < len(shared) < len(lines)
    assert [line["offset"] for line in lines] == list(range(len(lines)))


# What was found after a crash and was never served: Kafka recovered it at its next start, and what
# it served then is the case's state "after".
CRASHED = [each for each in golden_partitions(Holds.UNKNOWN) if ":before/" in each]
FLIPPED = [each for each in CRASHED if "corrupt-byte" in each]
WHOLE = [each for each in CRASHED if each not in FLIPPED]


def recovered(golden_root: GoldenRoot, partition_id: str) -> GoldenPartition:
    return golden_root.partition(partition_id.replace(":before/", ":after/"))


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition_id", WHOLE)
def test_a_crashed_log_reads_as_kafka_recovers_it(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    after = recovered(golden_root, partition_id)
    before = golden_root.partition(partition_id)
    assert not differences(expected_lines(after, isolation), read(before, isolation))


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition_id", FLIPPED)
def test_a_flipped_byte_is_damage_at_the_batch_where_kafka_cuts(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    before = golden_root.partition(partition_id)
    kept = expected_lines(recovered(golden_root, partition_id), isolation)
    with pytest.raises(CorruptRecordError, match=r"\.log at byte \d+: batch CRC stored 0x"):
        read(before, isolation)
    # All that Kafka keeps can be read; it drops what comes after.
    cut = kept[-1]["offset"] + 1
    assert not differences(kept, read(before, isolation, end=cut))
    with pytest.raises(CorruptRecordError) as caught:
        read(before, isolation, end=cut + 1)
    after_log = recovered(golden_root, partition_id).directory
    assert caught.value.path is not None
    name = str(caught.value.path).rpartition("/")[2]
    assert caught.value.position == (after_log / name).stat().st_size


@cache
def _unserved() -> list[str]:
    return [each for each in golden_partitions(Holds.UNKNOWN) if each not in CRASHED]


def test_the_other_unserved_partitions_are_these(golden_root: GoldenRoot) -> None:
    found = {}
    for partition_id in _unserved():
        partition = golden_root.partition(partition_id)
        found[partition_id] = (
            "not live"
            if partition.name.endswith("-delete")
            else len(read(partition, "uncommitted"))
        )
    assert found == {
        "4.3.0/internal-logdir:__cluster_metadata-0": 233,
        "4.3.0/leftovers:left-deleted-topic-0.6f44d6d0d6e640da886b8b62a6ed4a6c-delete": "not live",
        "4.3.0/tiered:__remote_log_metadata-0": 16,
        "4.4.0/controller-logdir:__cluster_metadata-0": 44,
        "4.4.0/internal-logdir:__cluster_metadata-0": 487,
    }


def test_comparisons_can_fail(golden_root: GoldenRoot) -> None:
    partition = golden_root.partition("4.3.0/txn:payments-0")
    committed: Iterable[Line] = expected_lines(partition, "committed")
    assert differences(list(committed), read(partition, "uncommitted"))
