"""What a Spark user reads when something is wrong: the last line says what, and what to do.

Spark ships an error's text and not its type, below a traceback; " SQLSTATE: …" may follow.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import segment_path, write_partition
from tests.support.spark_session import NEEDS_SPARK, PLANS_ONCE, last_line, load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

HOST = f"host {socket.gethostname()}: "


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Give orders-0 with offsets 0 to 5 in three segments."""
    batches = [batch_v2([Stored(offset, 0, b"k", b"v")]) for offset in range(6)]
    return write_partition(tmp_path, {0: batches[:2], 2: batches[2:4], 4: batches[4:]})


@pytest.fixture(autouse=True)
def session_is_usable_afterwards(spark: SparkSession, orders: Path) -> Iterator[None]:
    yield
    assert spark.range(3).count() == 3
    sound = orders.parent / "sound"
    write_partition(sound, {0: [batch_v2([Stored(0, 0, None, b"v")])]})
    assert load(spark, sound).count() == 1


def test_a_path_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    message = last_line(lambda: load(spark, tmp_path / "nope"))
    assert message == (
        f"pylog.errors.LogDirectoryError: {HOST}{tmp_path}/nope: no such directory (is it "
        "mounted on this host?)"
    )


def test_a_user_s_schema_puts_errors_off_to_the_first_action(
    spark: SparkSession, tmp_path: Path
) -> None:
    reader = spark.read.format("pylog").schema("offset BIGINT")
    wrong_path = reader.load(str(tmp_path / "nope"))
    assert "no such directory" in last_line(wrong_path.count)
    wrong_option = reader.option("subscrib", "orders").load(str(tmp_path))
    assert "did you mean 'subscribe'?" in last_line(wrong_option.count)


def test_a_damaged_segment(spark: SparkSession, orders: Path) -> None:
    path = segment_path(orders, 2)
    content = bytearray(path.read_bytes())
    position = len(content) // 2
    content[-1] ^= 0x10
    path.write_bytes(content)
    message = last_line(load(spark, orders).collect)
    assert message.startswith(
        f"pylog.errors.CorruptRecordError: {HOST}{path} at byte {position}: batch CRC stored 0x"
    )
    assert message.endswith(
        "; read another replica, or what is intact: option mode=DROPMALFORMED leaves out exactly "
        "the damaged bytes, mode=PERMISSIVE gives a row of nulls in their place, startingOffsets "
        "and endingOffsets leave out a range"
    )
    # The advice is good.
    assert load(spark, orders, mode="DROPMALFORMED").count() == 5
    assert load(spark, orders, mode="PERMISSIVE").count() == 6
    around = [
        load(spark, orders, endingOffsets='{"orders":3}'),
        load(spark, orders, startingOffsets='{"orders":4}'),
    ]
    read = [row.offset for frame in around for row in frame.select("offset").collect()]
    assert read == [0, 1, 2, 4, 5]


def test_a_segment_that_vanished_between_two_actions(spark: SparkSession, orders: Path) -> None:
    frame = load(spark, orders)
    assert frame.count() == 6
    path = segment_path(orders, 0)
    path.unlink()  # as retention does
    if not PLANS_ONCE:
        assert frame.count() == 4  # each action reads what is there
        return
    message = last_line(frame.collect)
    assert message == (
        f"pylog.errors.SegmentVanishedError: {HOST}{path}: file is gone (deleted or renamed since "
        "the directory was listed); records of orders-0 are lost, offsets 0 to 1; "
        "the log holds offsets 2 to 5 now; if retention deleted it since the DataFrame's first "
        "action, load() again, else make the directory visible on this host"
    )
    assert load(spark, orders).count() == 4  # the advice is good


def test_a_segment_that_was_truncated_between_two_actions(
    spark: SparkSession, orders: Path
) -> None:
    frame = load(spark, orders)
    assert frame.count() == 6
    path = segment_path(orders, 4)
    os.truncate(path, 40)
    if not PLANS_ONCE:
        assert frame.count() == 4  # each action reads what is there
        return
    message = last_line(frame.collect)
    assert message.startswith(
        f"pylog.errors.SegmentVanishedError: {HOST}{path}: file ends here, it was planned to be "
        "read up to byte "
    )
    assert "; records of orders-0 are lost, offsets 4 to 5; the log holds " in message
    assert " now; if retention deleted it" in message
