"""`pylog.compact`: what stays, what is said of it, and what an end in the middle leaves."""

from __future__ import annotations

import errno
import hashlib
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import (
    KafkaStorageError,
    LogLockedError,
    UnexpectedFileError,
    UnknownTopicConfigError,
    UnknownTopicOrPartitionError,
)
from tests.support.damage import flip
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.cleaner.compacted_logs import FOO, checkpointed

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000
COMPACT = {"cleanup.policy": "compact", "segment.bytes": "2000"}
Rows = list[tuple[int, bytes | None, bytes | None]]


def make_topic(
    directory: Path, topic: str, count: int, *, keys: int = 7, **properties: str
) -> None:
    """Write ``count`` records with ``keys`` different keys, in segments of some twenty."""
    with_points = {name.replace("_", "."): value for name, value in properties.items()}
    pylog.create_topic(directory, topic, 1, properties=COMPACT | with_points)
    table = pa.table(
        {
            "key": [b"%d" % (number % keys) for number in range(count)],
            "value": [None if number % 13 == 5 else b"v%d" % number for number in range(count)],
            "timestamp": pa.array([NOW_MS] * count, pa.timestamp("ms", "UTC")),
        }
    )
    pylog.write_topic(directory, topic, table, batch_size=100)


def rows(directory: Path, topic: str = "foo") -> Rows:
    table = pylog.scan(directory, topics=[topic], columns=["offset", "key", "value"]).to_table()
    return [(row["offset"], row["key"], row["value"]) for row in table.to_pylist()]


def latest(of: Rows) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {key: (offset, value) for offset, key, value in of}


def digests(directory: Path) -> dict[str, tuple[str, int]]:
    """Return content and time of every file."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    make_topic(tmp_path / "logs", "foo", 200)
    return tmp_path / "logs"


def test_the_last_record_of_each_key_stays_and_the_active_segment(logs: Path) -> None:
    before = rows(logs)
    active = max(int(path.stem) for path in logs.glob("foo-0/*.log"))
    summary = pylog.compact(logs, now_ms=NOW_MS)
    last = {key: offset for offset, key, _ in before if offset < active}
    expected = [row for row in before if row[0] >= active or row[0] == last[row[1]]]
    assert rows(logs) == expected
    [partition] = summary.partitions
    assert partition.topic_partition == FOO
    assert (partition.rounds, partition.is_complete, partition.failure) == (1, True, None)
    assert partition.records == len(before) - len(expected)
    assert partition.size_bytes == sum(path.stat().st_size for path in logs.glob("foo-0/*.log"))
    assert checkpointed(logs) == {"foo-0": active}
    assert not [path.name for path in logs.rglob("*") if path.suffix == ".deleted"]
    assert (logs / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("is_crashed", [False, True])
def test_a_dry_run_says_what_a_run_does_and_changes_nothing(
    logs: Path, *, is_crashed: bool
) -> None:
    make_topic(logs, "bar", 100, keys=100)  # of which nothing goes
    make_topic(logs, "plain", 100, cleanup_policy="delete")
    if is_crashed:
        (logs / ".kafka_cleanshutdown").unlink()
        log = max(logs.glob("foo-0/*.log"))
        log.write_bytes(log.read_bytes()[:-3])
    before = digests(logs)
    planned = pylog.compact(logs, now_ms=NOW_MS, dry_run=True)
    assert digests(logs) == before
    done = pylog.compact(logs, now_ms=NOW_MS)
    assert (planned.is_dry_run, done.is_dry_run) == (True, False)
    assert [each.topic_partition.topic for each in done.partitions] == ["bar", "foo"]
    for one, other in zip(planned.partitions, done.partitions, strict=True):
        assert one.topic_partition == other.topic_partition
        assert (one.records, one.removed_bytes) == (other.records, other.removed_bytes)
        assert (one.rounds, one.size_bytes) == (other.rounds, other.size_bytes)
        assert one.segments == other.segments
    assert planned.totals.records == done.totals.records > 100


def test_a_dry_run_does_not_need_the_lock(logs: Path) -> None:
    with pylog.logs.own_log_directory(logs):
        assert pylog.compact(logs, dry_run=True).totals.records > 0
        with pytest.raises(LogLockedError):
            pylog.compact(logs)


def test_a_second_run_has_nothing_to_do(logs: Path) -> None:
    pylog.compact(logs)
    after = rows(logs)
    summary = pylog.compact(logs)
    assert (summary.totals.cleaned_partitions, summary.totals.records) == (0, 0)
    assert summary.totals.is_complete
    assert rows(logs) == after


def test_once_cleans_what_a_broker_would(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    make_topic(directory, "dirty", 200)
    make_topic(directory, "lagging", 200, min_compaction_lag_ms="3600000")
    make_topic(directory, "patient", 200, min_cleanable_dirty_ratio="1.0")
    make_topic(
        directory, "late", 200, min_cleanable_dirty_ratio="1.0", max_compaction_lag_ms="3600000"
    )

    def cleaned(now_ms: int, *, once: bool) -> list[str]:
        summary = pylog.compact(directory, now_ms=now_ms, once=once, dry_run=True)
        return [each.topic_partition.topic for each in summary.partitions if each.rounds]

    assert cleaned(NOW_MS, once=True) == ["dirty"]
    assert cleaned(NOW_MS + 3_600_001, once=True) == ["dirty", "lagging", "late"]
    assert cleaned(NOW_MS, once=False) == ["dirty", "late", "patient"]


def test_keys_that_do_not_fit_into_the_buffer_take_several_rounds(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(
        directory, "foo", 1, properties={"cleanup.policy": "compact", "segment.bytes": "100000"}
    )
    count = 100_000
    keys = [b"%d" % (number % 50_000) for number in range(count)]
    pylog.write_topic(directory, "foo", pa.table({"key": keys, "value": keys}))
    (tmp_path / "server.properties").write_text("log.cleaner.dedupe.buffer.size=1048600\n")
    properties = pylog.ServerProperties.read(tmp_path / "server.properties")
    planned = pylog.compact(directory, server_properties=properties, dry_run=True)
    assert not planned.partitions[0].is_complete
    done = pylog.compact(directory, server_properties=properties)
    [partition] = done.partitions
    assert partition.rounds > 1
    assert partition.is_complete
    assert 0 <= planned.partitions[0].records < partition.records
    shutil.rmtree(directory)
    pylog.create_topic(
        directory, "foo", 1, properties={"cleanup.policy": "compact", "segment.bytes": "100000"}
    )
    pylog.write_topic(directory, "foo", pa.table({"key": keys, "value": keys}))
    assert pylog.compact(directory).partitions[0].records == partition.records


def test_topics_of_unknown_configuration_are_refused_and_nothing_is_changed(
    tmp_path: Path, logs: Path
) -> None:
    shutil.copytree(logs / "foo-0", logs / "copied-0")
    before = digests(logs)
    with pytest.raises(UnknownTopicConfigError) as caught:
        pylog.compact(logs)
    assert caught.value.topics == ("copied",)
    assert digests(logs) == before
    assert pylog.compact(logs, topics=["foo"]).totals.records > 0
    summary = pylog.compact(logs, topics=["copied"], config={"cleanup.policy": "compact"})
    assert summary.totals.cleaned_partitions == 1


def test_topics_that_are_not_compacted_or_not_there_are_refused(logs: Path) -> None:
    make_topic(logs, "plain", 10, cleanup_policy="delete")
    with pytest.raises(ValueError, match=r"topic plain is not compacted: its cleanup\.policy is d"):
        pylog.compact(logs, topics=["plain"])
    with pytest.raises(UnknownTopicOrPartitionError):
        pylog.compact(logs, topics=["nowhere"])


def test_damage_in_one_log_leaves_it_and_the_others_are_cleaned(logs: Path) -> None:
    make_topic(logs, "bar", 200)
    damaged = sorted(logs.glob("bar-0/*.log"))[2]
    flip(damaged, 70)
    for dry_run in (True, False):
        bar, foo = pylog.compact(logs, dry_run=dry_run).partitions
        assert bar.failure is not None
        assert bar.failure.startswith(str(damaged))
        assert damaged.name in bar.failure
        assert (bar.rounds, bar.is_complete) == (0, False)
        assert (foo.failure, foo.rounds) == (None, 1)


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_the_progress_raises_ends_the_run_between_two_steps(
    logs: Path, *, dry_run: bool
) -> None:
    before = latest(rows(logs))
    seen: list[tuple[int, int]] = []
    pylog.compact(logs, dry_run=True, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    for stop in range(1, len(seen) + 1):
        copy = logs.parent / f"stopped-{stop}"
        shutil.copytree(logs, copy)
        calls: list[int] = []

        def stop_there(done: int, _total: int, stop: int = stop, calls: list[int] = calls) -> None:
            calls.append(done)
            if len(calls) == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pylog.compact(copy, dry_run=dry_run, progress=stop_there)
        assert len(calls) == stop
        assert latest(rows(copy)) == before
        assert (copy / ".kafka_cleanshutdown").exists()
        left = {path.suffix for path in copy.glob("foo-0/*")}
        assert not {".cleaned", ".swap", ".deleted"} & left
        assert pylog.compact(copy).totals.is_complete
        assert latest(rows(copy)) == before


@pytest.mark.parametrize("kind", [Kind.CREATE, Kind.WRITE, Kind.SYNC, Kind.REPLACE])
def test_a_disk_that_is_full_leaves_the_log_as_it_was(logs: Path, kind: Kind) -> None:
    before = rows(logs)
    io = FaultyIO(
        Fault(
            kinds=frozenset({kind}),
            path_end=".log.cleaned",
            forever=True,
            error_number=errno.ENOSPC,
        )
    )
    with pytest.raises(KafkaStorageError):
        pylog.compact(logs, context=pylog.logs.LogContext(io=io))
    # Groups of segments before may have been cleaned: each is, or is as it was.
    assert set(rows(logs)) <= set(before)
    assert latest(rows(logs)) == latest(before)
    assert pylog.compact(logs).totals.records > 0
    assert latest(rows(logs)) == latest(before)


def test_a_dry_run_announces_no_removal(logs: Path, caplog: pytest.LogCaptureFixture) -> None:
    lost = max(logs.glob("foo-0/*.log"))
    index = lost.with_name(f"{int(lost.stem) + 1:020}.index")
    index.write_bytes(b"")
    before = digests(logs)
    pylog.compact(logs, dry_run=True)
    assert digests(logs) == before
    [warning] = [each.getMessage() for each in caplog.records if str(index) in each.getMessage()]
    assert warning == f"{index} is an index without a .log of its name, and does not count"


def test_a_log_file_that_is_a_link_is_refused_by_a_dry_run_as_by_a_run(
    logs: Path, tmp_path: Path
) -> None:
    victim = min(logs.glob("foo-0/*.log"))
    victim.symlink_to(victim.rename(tmp_path / "elsewhere.log"))
    for dry_run in (True, False):
        with pytest.raises(UnexpectedFileError, match="expected a regular file, found a symbolic"):
            pylog.compact(logs, dry_run=dry_run)
