from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError
from tests.support.batches import ABORT, Stored, batch_v2, marker, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.mirror_records import heartbeat

if TYPE_CHECKING:
    from pathlib import Path


def stored(record: tuple[bytes, bytes], offset: int = 0) -> list[Stored]:
    return [Stored(offset, 1000, *record)]


def test_topics_of_other_names_have_no_rows(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(stored(heartbeat("a", "b", 1)))]}, name="orders-0")
    assert pylog.read_table(tmp_path, "mm2_heartbeats").num_rows == 0


def test_aborted_records_have_no_rows(tmp_path: Path) -> None:
    options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    aborted = batch_v2(stored(heartbeat("a", "b", 1)), **options)  # type: ignore[arg-type]
    committed = batch_v2(stored(heartbeat("a", "b", 2), offset=2))
    batches = [aborted, marker(1, ABORT, producer_id=7, producer_epoch=0), committed]
    write_partition(tmp_path, {0: batches}, name="heartbeats-0")
    rows = pylog.read_table(tmp_path, "mm2_heartbeats").to_pylist()
    assert [each["offset"] for each in rows] == [2]


def test_damage_is_an_error_or_left_out(tmp_path: Path) -> None:
    batches = [
        with_bad_crc(batch_v2(stored(heartbeat("a", "b", 1)))),
        batch_v2(stored(heartbeat("a", "b", 2), offset=1)),
    ]
    write_partition(tmp_path, {0: batches}, name="heartbeats-0")
    with pytest.raises(CorruptRecordError):
        pylog.read_table(tmp_path, "mm2_heartbeats")
    left = pylog.read_table(tmp_path, "mm2_heartbeats", mode="DROPMALFORMED")
    assert left["offset"].to_pylist() == [1]
