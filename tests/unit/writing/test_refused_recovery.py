"""Recovery that would drop intact records asks first; and a damaged log hinders no other one."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.config import RecoveryMode
from pylog.errors import (
    CorruptRecordError,
    LogStorageError,
    OffsetOutOfRangeError,
    RecoveryRefusedError,
)
from pylog.log.log_manager import LogManager
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    segment_path,
    write_high_watermarks,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ORDERS = pylog.TopicPartition("orders", 0)
EVENTS = pylog.TopicPartition("events", 0)
MARKER = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
SEGMENTS = {
    base: [batch_v2(plain_records(base + more, 10)) for more in (0, 10)] for base in (0, 20, 40)
}


def end_of(base: int, batches: int = 2) -> int:
    """Return where a segment's first batches end."""
    return sum(len(each.data) for each in SEGMENTS[base][:batches])


COMPACT = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
}
KEEP_ALL = {"cleanup.policy": "delete", "retention.ms": "-1"}


class Broken(NamedTuple):
    """What is done to ``orders-0``, and what is said of it.

    ``position`` is where it is damaged, in the segment with base offset ``segment``.
    """

    spoil: Callable[[Path], object]
    segment: int
    position: int
    batches: int
    reason: str


def write(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def zeros_between_segments(orders: Path) -> None:
    path = segment_path(orders, 0)
    path.write_bytes(path.read_bytes() + bytes(40))


def a_flipped_bit(orders: Path) -> None:
    write(segment_path(orders, 20), 70, b"\xff")


def a_torn_segment(orders: Path) -> None:
    path = segment_path(orders, 0)
    path.write_bytes(path.read_bytes()[:-1])


def a_zeroed_batch(orders: Path) -> None:
    write(segment_path(orders, 0), 0, bytes(end_of(0, 1)))


def an_offset_that_goes_back(orders: Path) -> None:
    write(segment_path(orders, 20), end_of(20, 1), (5).to_bytes(8, "big"))


def a_size_beyond_the_file(orders: Path) -> None:
    write(segment_path(orders, 40), 8, (1 << 20).to_bytes(4, "big"))


BROKEN = {
    "zeros between segments": Broken(zeros_between_segments, 0, end_of(0), 4, "zeros follow"),
    "a flipped bit": Broken(a_flipped_bit, 20, 0, 3, "CRC"),
    "a torn segment": Broken(a_torn_segment, 0, end_of(0, 1), 4, "cut short"),
    "a zeroed batch": Broken(a_zeroed_batch, 0, 0, 5, "size is 0"),
    "an offset that goes back": Broken(an_offset_that_goes_back, 20, end_of(20, 1), 3, "below"),
    "a size beyond the file": Broken(a_size_beyond_the_file, 40, 0, 1, "cut short"),
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two partitions of three segments with two batches of ten records each, not shut down."""
    for name in ("orders-0", "events-0"):
        write_partition(tmp_path, SEGMENTS, name=name)
    (tmp_path / RECOVERY_POINTS).write_text("0\n2\norders 0 0\nevents 0 0\n")
    write_high_watermarks(tmp_path, {ORDERS: 60, EVENTS: 60})
    return tmp_path


def content_of(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def append_to(logs: Path, topic: str) -> None:
    pylog.write_topic(logs, topic, [{"key": b"k", "value": b"v"}])


def commit_job(logs: Path, topic: str) -> None:
    job = pylog.jobs.WriteJob(str(logs), "job", topic=topic)
    with job.stage("task") as stage:
        import pyarrow as pa  # noqa: PLC0415 - only here

        stage.append(pa.record_batch({"key": [b"k"], "value": [b"v"]}))
    job.commit([stage.staged])


def named(action: Callable[..., object], **options: object) -> Callable[[Path, str], object]:
    return lambda logs, topic: action(logs, {pylog.TopicPartition(topic, 0): 0}, **options)


ACTIONS: dict[str, Callable[[Path, str], object]] = {
    "append": append_to,
    "delete-records": named(pylog.delete_records),
    "truncate": lambda logs, topic: pylog.truncate_log(logs, (topic, 0), 60),
    "create": lambda logs, topic: pylog.create_topic(logs, topic, 1),
    "alter": lambda logs, topic: pylog.alter_topic(logs, topic, partitions=2),
    "delete": pylog.delete_topic,
}


# ---- what is refused


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_write_that_needs_the_log_is_refused_and_changes_nothing(
    logs: Path, how: str, action: str
) -> None:
    broken = BROKEN[how]
    broken.spoil(logs / "orders-0")
    before = content_of(logs)
    with pytest.raises(RecoveryRefusedError) as raised:
        ACTIONS[action](logs, "orders")
    assert content_of(logs) == before
    text = str(raised.value)
    path = segment_path(logs / "orders-0", broken.segment)
    assert text.startswith(f"{path} at byte {broken.position}: ")
    assert broken.reason in text
    plural = "es" * (broken.batches != 1)
    assert f"drop {broken.batches} intact batch{plural} with {broken.batches * 10} rec" in text
    assert "pylog doctor --repair-to" in text
    assert "--recover-as-broker" in text


@pytest.mark.parametrize("how", BROKEN)
def test_cleanups_leave_the_log_alone_say_so_and_do_the_others(logs: Path, how: str) -> None:
    BROKEN[how].spoil(logs / "orders-0")
    before = content_of(logs / "orders-0")
    for run in (
        lambda: pylog.apply_retention(logs, config=KEEP_ALL),
        lambda: pylog.compact(logs, config=COMPACT),
        lambda: compact_by_job(logs),
    ):
        events, orders = run().partitions
        assert (events.topic_partition, events.failure) == (EVENTS, None)
        assert orders.topic_partition == ORDERS
        assert "A broker's recovery would drop" in str(orders.failure)
        logs_of_orders = (logs / "orders-0").glob("*.log")
        assert orders.size_bytes == sum(each.stat().st_size for each in logs_of_orders)
        assert content_of(logs / "orders-0") == before
        assert not (logs / MARKER).exists()
        assert "orders 0 0" in (logs / RECOVERY_POINTS).read_text()
        assert "events 0 60" in (logs / RECOVERY_POINTS).read_text()
        assert "orders 0 60" in (logs / "replication-offset-checkpoint").read_text()


def compact_by_job(logs: Path) -> pylog.results.CompactionSummary:
    with pylog.jobs.CompactionJob(logs, config=COMPACT) as job:
        return job.commit([task.run() for task in job.tasks])


@pytest.mark.parametrize("run", [pylog.compact, pylog.apply_retention])
def test_a_cleanup_of_that_log_alone_changes_nothing_at_all(
    logs: Path, run: Callable[..., pylog.results.CompactionSummary]
) -> None:
    a_flipped_bit(logs / "orders-0")
    (logs / MARKER).touch()
    segment_path(logs / "orders-0", 20, ".index").unlink()
    before = content_of(logs)
    config = COMPACT if run is pylog.compact else KEEP_ALL
    [orders] = run(logs, topics=["orders"], config=config).partitions
    assert orders.failure is not None
    assert content_of(logs) == before


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize(
    ("run", "config"), [(pylog.compact, COMPACT), (pylog.apply_retention, KEEP_ALL)]
)
def test_a_dry_run_of_a_cleanup_says_the_same(
    logs: Path, how: str, run: Callable[..., pylog.results.CompactionSummary], config: object
) -> None:
    BROKEN[how].spoil(logs / "orders-0")
    before = content_of(logs)
    planned = run(logs, config=config, dry_run=True)
    assert content_of(logs) == before
    done = run(logs, config=config)
    failures = [each.failure for each in planned.partitions]
    assert failures == [each.failure for each in done.partitions]
    assert any(failures)


@pytest.mark.parametrize("how", BROKEN)
def test_a_plan_of_a_removal_is_refused_where_the_removal_is(logs: Path, how: str) -> None:
    BROKEN[how].spoil(logs / "orders-0")
    before = content_of(logs)
    for plan, act in (
        (pylog.jobs.plan_truncation, pylog.truncate_log),
        (pylog.jobs.plan_record_deletion, pylog.delete_records),
    ):
        what = (ORDERS, 40) if act is pylog.truncate_log else ({ORDERS: 5},)
        with pytest.raises(RecoveryRefusedError) as planned:
            plan(logs, *what)
        with pytest.raises(RecoveryRefusedError) as done:
            act(logs, *what)
        assert str(planned.value) == str(done.value)
        assert content_of(logs) == before


@pytest.mark.parametrize("how", BROKEN)
def test_a_plan_recovers_as_a_broker_where_the_removal_does(logs: Path, how: str) -> None:
    BROKEN[how].spoil(logs / "orders-0")
    before = content_of(logs)
    planned = pylog.jobs.plan_record_deletion(logs, {ORDERS: None}, recover_as_broker=True)
    assert content_of(logs) == before
    done = pylog.delete_records(logs, {ORDERS: None}, recover_as_broker=True)
    assert planned[ORDERS][:2] == done[ORDERS][:2]


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("action", ["append", "job"])
def test_another_partition_is_written_to(logs: Path, how: str, action: str) -> None:
    BROKEN[how].spoil(logs / "orders-0")
    before = content_of(logs / "orders-0")
    (append_to if action == "append" else commit_job)(logs, "events")
    assert content_of(logs / "orders-0") == before
    assert pylog.open_directory(logs)["events", 0].log_end_offset == 61
    assert not (logs / MARKER).exists()


def test_a_job_whose_rows_go_to_the_log_is_refused_before_anything_is_changed(logs: Path) -> None:
    a_torn_segment(logs / "orders-0")
    before = content_of(logs)
    with pytest.raises(RecoveryRefusedError):
        commit_job(logs, "orders")
    after = content_of(logs)
    assert {name: data for name, data in after.items() if "staged" not in name} == before


def test_a_segment_without_index_is_looked_at_under_the_marker_of_a_clean_shutdown(
    logs: Path,
) -> None:
    a_flipped_bit(logs / "orders-0")
    segment_path(logs / "orders-0", 20, ".index").unlink()
    (logs / MARKER).touch()
    before = content_of(logs)
    with pytest.raises(RecoveryRefusedError, match="drop 1 intact batch with 10 records"):
        append_to(logs, "orders")
    assert content_of(logs) == before  # the marker among it
    append_to(logs, "events")
    assert not (logs / MARKER).exists()


def test_what_a_manager_is_asked_for_says_why_a_log_is_closed(logs: Path) -> None:
    a_flipped_bit(logs / "orders-0")
    with LogManager([logs]) as manager:
        assert list(manager.logs) == [EVENTS]
        assert list(manager.closed_logs) == [ORDERS]
        for ask in (manager.get_log, manager.get_or_create_log, manager.delete_log):
            with pytest.raises(RecoveryRefusedError):
                ask(ORDERS)


def test_a_refused_command_leaves_the_marker_as_it_was(logs: Path) -> None:
    a_flipped_bit(logs / "orders-0")
    segment_path(logs / "orders-0", 20, ".index").unlink()
    (logs / MARKER).write_text('{"version":0,"brokerEpoch":7}')
    with pytest.raises(RecoveryRefusedError), LogManager([logs]) as manager:
        manager.get_log(ORDERS)
    assert (logs / MARKER).read_text() == '{"version":0,"brokerEpoch":7}'


def test_a_commit_under_way_to_the_log_refuses_the_start(logs: Path) -> None:
    job = pylog.jobs.WriteJob(str(logs), "job", topic="orders")
    commit_job(logs, "events")
    assert job.is_committed()
    manifest = '{"version":1}'  # what a manifest says is read before anything is changed
    (logs / ".pylog-manifest").write_text(manifest)
    with pytest.raises(LogStorageError):
        append_to(logs, "events")


def test_the_error_survives_pickling(logs: Path) -> None:
    a_flipped_bit(logs / "orders-0")
    with pytest.raises(RecoveryRefusedError) as raised:
        append_to(logs, "orders")
    again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
    assert str(again) == str(raised.value)
    assert (again.intact_batches, again.intact_records) == (3, 30)


# ---- what is recovered


@pytest.mark.parametrize("how", BROKEN)
def test_as_a_broker_it_is_dropped(logs: Path, how: str) -> None:
    BROKEN[how].spoil(logs / "orders-0")
    pylog.write_topic(logs, "orders", [{"value": b"v"}], recover_as_broker=True)
    log = pylog.open_directory(logs)["orders", 0]
    assert log.log_end_offset < 61
    assert (logs / MARKER).exists()


@pytest.mark.parametrize("tail", [b"\0" * 17, b"\0" * 18, b"\0" * 5000, b"torn", bytes([1]) * 40])
@pytest.mark.parametrize("is_clean", [False, True])
def test_what_a_crash_leaves_is_recovered_and_said(
    logs: Path, tail: bytes, *, is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = segment_path(logs / "orders-0", 40)
    path.write_bytes(path.read_bytes() + tail)
    if is_clean:
        (logs / MARKER).touch()
    with caplog.at_level(logging.WARNING):
        append_to(logs, "events")
    assert path.stat().st_size == end_of(40)
    assert (logs / MARKER).exists()
    said = [each.getMessage() for each in caplog.records]
    assert any(
        f"truncating {len(tail)} bytes from position {end_of(40)} on" in each for each in said
    )
    assert is_clean == any("although the log directory was shut down cleanly" in e for e in said)
    append_to(logs, "orders")
    assert pylog.scan(logs, topics=["orders"]).count() == 61


@pytest.mark.parametrize("zeros", [17, 18])
def test_a_brokers_start_fails_at_18_zeros_and_not_at_17(logs: Path, zeros: int) -> None:
    path = segment_path(logs / "orders-0", 40)
    path.write_bytes(path.read_bytes() + bytes(zeros))
    (logs / MARKER).touch()
    manager = LogManager([logs], recovery_mode=RecoveryMode.BROKER_START)
    if zeros == 18:
        with pytest.raises(CorruptRecordError, match="size is 0"):
            manager.startup()
        return
    with manager:
        assert manager.get_log(ORDERS).log_end_offset == 60
    assert path.stat().st_size == end_of(40) + 17


def test_a_brokers_start_drops_what_a_broker_drops(logs: Path) -> None:
    a_torn_segment(logs / "orders-0")
    with LogManager([logs], recovery_mode=RecoveryMode.BROKER_START) as manager:
        assert manager.get_log(ORDERS).log_end_offset == 10
        assert not manager.closed_logs


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_that_ends_below_its_start_begins_there_and_keeps_its_segments(
    logs: Path, *, is_clean: bool
) -> None:
    # An interrupted truncation leaves this. A broker serves the same, and deletes the rest.
    write_log_start_offsets(logs, {ORDERS: 70})
    if is_clean:
        (logs / MARKER).touch()
    before = [segment_path(logs / "orders-0", base).read_bytes() for base in SEGMENTS]
    append_to(logs, "orders")
    assert [segment_path(logs / "orders-0", base).read_bytes() for base in SEGMENTS] == before
    log = pylog.open_directory(logs)["orders", 0]
    assert (log.log_start_offset, log.log_end_offset) == (70, 71)
    append_to(logs, "orders")
    assert pylog.scan(logs, topics=["orders"]).count() == 2
    pylog.apply_retention(logs, config=KEEP_ALL)
    assert sorted(path.name for path in (logs / "orders-0").glob("*.log")) == [f"{70:020}.log"]


def test_a_log_that_cannot_be_loaded_hinders_no_other_one(logs: Path) -> None:
    (logs / "orders-0" / "leader-epoch-checkpoint").write_text("nonsense\n")
    append_to(logs, "events")
    with pytest.raises(LogStorageError, match="leader-epoch-checkpoint"):
        append_to(logs, "orders")


def test_an_offset_that_was_never_there_is_still_out_of_range(logs: Path) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="out of range"):
        pylog.delete_records(logs, {ORDERS: 61})
