"""Topics made and deleted, by path and through a manager."""

from __future__ import annotations

import errno
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
import pytest

import pylog
from pylog.errors import (
    KafkaStorageError,
    LogDirectoryError,
    LogLockedError,
    UnknownTopicOrPartitionError,
)
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOPIC_ID = UUID("01234567-89ab-cdef-0123-456789abcdef")
CONFIGS = "pylog-topic-configs.json"


def directories(logs: Path) -> list[str]:
    return sorted(each.name for each in logs.iterdir() if each.is_dir())


def ids_of(logs: Path) -> list[UUID | None]:
    return [view.metadata and view.metadata.topic_id for view in pylog.open_directory(logs)]


@contextmanager
def manager_with(logs: Path, io: FaultyIO) -> Iterator[pylog.logs.LogManager]:
    """Give a manager whose disk fails; it is left as after a crash."""
    manager = pylog.logs.LogManager([logs], context=pylog.logs.LogContext(io=io))
    try:
        manager.startup()
        yield manager
    finally:
        manager.abandon()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give topics ``orders``, with a record in each of two partitions, and ``payments``."""
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 2, properties={"retention.ms": "5000"})
    pylog.create_topic(directory, "payments", 1, properties={"segment.ms": "7000"})
    for partition in (0, 1):
        rows = [{"value": b"v", "p": partition}]
        pylog.write_topic(directory, "orders", rows, partition="p")
    return directory


def test_a_topic_is_made_in_a_directory_that_is_not_there(tmp_path: Path) -> None:
    made = pylog.create_topic(tmp_path / "new", "orders", 3, topic_id=TOPIC_ID)
    assert made == TOPIC_ID
    assert directories(tmp_path / "new") == ["orders-0", "orders-1", "orders-2"]
    views = list(pylog.open_directory(tmp_path / "new"))
    assert [view.metadata.topic_id for view in views if view.metadata] == [TOPIC_ID] * 3
    assert [(view.log_start_offset, view.log_end_offset) for view in views] == [(0, 0)] * 3


def test_a_manager_stays_open_and_has_the_topics_logs(tmp_path: Path) -> None:
    with pylog.logs.LogManager([tmp_path]) as manager:
        pylog.create_topic(manager, "orders", 2)
        assert list(manager.logs) == [("orders", 0), ("orders", 1)]


def test_a_topic_that_is_there_is_not_made_again(logs: Path) -> None:
    with pytest.raises(ValueError, match="'orders' already exists, with partitions 0, 1"):
        pylog.create_topic(logs, "orders", 4)
    assert directories(logs) == ["orders-0", "orders-1", "payments-0"]


def test_a_name_that_kafka_does_not_allow_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'or/ders' is not a topic name"):
        pylog.create_topic(tmp_path / "new", "or/ders", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_topic_is_gone_at_once_and_the_others_are_as_they_were(logs: Path) -> None:
    pylog.delete_topic(logs, "orders")
    assert directories(logs) == ["payments-0"]
    stored = (logs / CONFIGS).read_text()
    assert "payments" in stored
    assert "orders" not in stored
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert "orders" not in (logs / checkpoint).read_text()


def test_a_deleted_topic_can_be_made_anew_and_is_empty(logs: Path) -> None:
    pylog.delete_topic(logs, "orders")
    pylog.create_topic(logs, "orders", 1, topic_id=TOPIC_ID)
    view = pylog.open_directory(logs)["orders", 0]
    assert view.metadata is not None
    assert (view.metadata.topic_id, view.log_end_offset) == (TOPIC_ID, 0)


def test_a_manager_renames_at_once_and_removes_later(logs: Path) -> None:
    with pylog.logs.LogManager([logs]) as manager:
        pylog.delete_topic(manager, "orders")
        assert list(manager.logs) == [("payments", 0)]
        renamed = [name for name in directories(logs) if name.startswith("orders")]
        assert [name.partition(".")[0] for name in renamed] == ["orders-0", "orders-1"]
        assert all(name.endswith("-delete") for name in renamed)


def test_a_topic_that_is_not_there_is_told_with_the_nearest_name(logs: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=r"no topic 'order' .* mean 'orders'"):
        pylog.delete_topic(logs, "order")
    assert directories(logs) == ["orders-0", "orders-1", "payments-0"]


def test_deleting_makes_no_directory(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError):
        pylog.delete_topic(tmp_path / "nowhere", "orders")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_somebody_has_open_is_left_alone(logs: Path) -> None:
    with pylog.logs.LogManager([logs]):
        with pytest.raises(LogLockedError):
            pylog.delete_topic(logs, "orders")
        with pytest.raises(LogLockedError):
            pylog.create_topic(logs, "new", 1)
    assert directories(logs) == ["orders-0", "orders-1", "payments-0"]


def _create(directory: Path) -> None:
    pylog.create_topic(directory, "orders", 1)


def _write(directory: Path) -> None:
    pylog.write_topic(directory, "orders", [(b"k", b"v")])


def _append(directory: Path) -> None:
    with pylog.logs.own_log_directory(directory) as manager:
        pylog.jobs.LineAppender(manager, source="lines", topic="orders").append(
            [b'{"value": "YQ=="}']
        )


def _commit(directory: Path) -> None:
    job = pylog.jobs.WriteJob(str(directory), "nightly", topic="orders")
    with job.stage("task") as stage:
        stage.append(pa.record_batch({"value": ["a"]}))
    job.commit([stage.staged])


def unconfigured(directory: Path) -> list[str]:
    with pylog.logs.LogManager([directory]) as manager:
        return manager.unconfigured_topics(topic for topic, _ in manager.logs)


MAKERS = [_create, _write, _append, _commit]


@pytest.mark.parametrize("make", MAKERS)
def test_a_topic_that_is_made_here_is_known_to_have_no_properties(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    assert unconfigured(tmp_path) == []
    pylog.delete_topic(tmp_path, "orders")
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="orders-0")
    assert unconfigured(tmp_path) == ["orders"], "a copy of a topic with the name of a deleted one"


@pytest.mark.parametrize("make", MAKERS[1:])
def test_records_in_a_copied_topic_do_not_make_its_configuration_known(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="orders-0")
    make(tmp_path)
    assert pylog.scan(tmp_path).count() == 2
    assert unconfigured(tmp_path) == ["orders"]


def test_server_properties_configure_what_is_written(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.segment.bytes=200\n")
    found = pylog.ServerProperties.read(file)
    logs = tmp_path / "logs"
    for value in (b"a" * 60, b"b" * 60):
        pylog.write_topic(logs, "orders", [(b"k", value)], server_properties=found)
    assert directories(logs) == ["orders-0", "orders-1", "orders-2"]
    assert len(list(logs.glob("orders-*/*.log"))) == 4, "a segment was rolled"


@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.CREATE])
def test_a_full_disk_leaves_whole_partitions_and_the_topic_can_be_completed(
    tmp_path: Path, kind: Kind
) -> None:
    whole = FaultyIO()
    with manager_with(tmp_path / "whole", whole) as manager:
        pylog.create_topic(manager, "orders", 3)
        calls = whole.counts[kind]
    outcomes: set[int] = set()
    for number in range(1, calls + 1):
        logs = tmp_path / f"{number}"
        io = FaultyIO(
            Fault(kinds=frozenset({kind}), at=number, forever=True, error_number=errno.ENOSPC)
        )
        with suppress(KafkaStorageError), manager_with(logs, io) as manager:
            pylog.create_topic(manager, "orders", 3, topic_id=TOPIC_ID)
        made = [name for name in directories(logs) if name.startswith("orders-")]
        outcomes.add(len(made))
        assert all((logs / name / "partition.metadata").exists() for name in made)
        if 0 < len(made) < 3:
            pylog.alter_topic(logs, "orders", partitions=3)
            assert ids_of(logs) == [TOPIC_ID] * 3
    assert {0, 1, 2} <= outcomes


def test_a_failed_creation_says_what_is_there_and_how_to_go_on(tmp_path: Path) -> None:
    io = FaultyIO(
        Fault(
            kinds=frozenset({Kind.WRITE}),
            path_end="orders-2/partition.metadata.tmp",
            error_number=errno.ENOSPC,
        )
    )
    with (
        pytest.raises(KafkaStorageError) as refused,
        manager_with(tmp_path, io) as manager,
    ):
        pylog.create_topic(manager, "orders", 4)
    assert "partitions 0 to 1 have been created" in refused.value.__notes__[0]
    assert directories(tmp_path) == ["orders-0", "orders-1"]


def test_a_topic_from_before_there_were_ids_gets_partitions_without_one(logs: Path) -> None:
    for name in ("orders-0", "orders-1"):
        (logs / name / "partition.metadata").unlink()
    pylog.alter_topic(logs, "orders", partitions=4)
    assert directories(logs)[:4] == ["orders-0", "orders-1", "orders-2", "orders-3"]
    assert not list(logs.glob("orders-*/partition.metadata"))
