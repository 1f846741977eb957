"""Which announced batches a log holds: they are not appended again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import crcmod.predefined
import pytest

import pylog
from pylog.errors import KafkaStorageError
from pylog.files.file_names import MANIFEST
from tests.unit.staged_commit.interrupted import (
    IN_THE_SECOND_WRITE,
    expected,
    interrupt,
    job_in,
    open_and_close,
    values,
    with_manifest_aside,
)

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000


def test_what_was_appended_is_not_appended_again(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    assert (directory / "orders-0" / "00000000000000000000.log").stat().st_size > 0
    open_and_close(directory)
    assert values(directory) == expected()
    assert job_in(directory).is_committed()
    open_and_close(directory)
    assert values(directory) == expected()


def test_the_rest_goes_to_the_end_that_a_broker_has_left(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    pylog.write_topic(directory, "orders", [(None, "broker 1")])
    pylog.write_topic(directory, "orders", [(None, "broker 2")])
    shutil.move(aside, directory / MANIFEST)
    half = expected()[:20]
    assert values(directory) == [*half, "broker 1", "broker 2"]
    open_and_close(directory)
    assert values(directory) == [*half, "broker 1", "broker 2", *expected()[20:]]
    assert pylog.read_table(directory, "findings").num_rows == 0


def test_records_that_were_deleted_in_between_are_an_error(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    pylog.write_topic(directory, "orders", [(None, "broker")])
    with pylog.logs.LogManager([directory]) as manager:
        log = manager.get_log(pylog.TopicPartition("orders", 0))
        log.truncate_fully_and_start_at(log.log_end_offset)
    shutil.move(aside, directory / MANIFEST)
    with pytest.raises(KafkaStorageError, match="nobody can tell whether they were the commit's"):
        pylog.logs.LogManager([directory]).startup()
    (directory / MANIFEST).unlink()
    open_and_close(directory)


@pytest.mark.parametrize(("base_offset", "lost"), [(5, 0), (0, 2)])
def test_records_that_were_compacted_in_between_are_an_error(
    tmp_path: Path, base_offset: int, lost: int
) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    builder = pylog.logs.RecordBatchBuilder(base_offset=base_offset, partition_leader_epoch=0)
    for each in range(3):
        builder.append(NOW_MS, b"key", b"broker %d" % each)
    batch = bytearray(builder.build())
    batch[26] += lost  # the last offset delta: the batch once had more records
    batch[17:21] = crcmod.predefined.mkCrcFun("crc-32c")(bytes(batch[21:])).to_bytes(4, "big")
    with pylog.logs.LogManager([directory]) as manager:
        log = manager.get_log(pylog.TopicPartition("orders", 0))
        log.truncate_to(0)
        log.append_as_follower(bytes(batch), 0)
    shutil.move(aside, directory / MANIFEST)
    assert values(directory) == ["broker 0", "broker 1", "broker 2"]
    with pytest.raises(KafkaStorageError, match="nobody can tell whether they were the commit's"):
        pylog.logs.LogManager([directory]).startup()
