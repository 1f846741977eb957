"""The logs that groups read: lag, past instants, topics that were made again."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pylog
from pylog.errors import SegmentVanishedError
from pylog.reading.group_records import LastRecords, last_group_records
from pylog.reading.offset_resolution import find_offset_for_timestamp
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition, write_topic_id
from tests.unit.admin.committed_offsets import CASE, commit_key, commits, written

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pylog.reading.log_view import LogView
    from tests.support.golden import GoldenRoot


def test_lag_is_counted_to_the_end_of_the_log_or_to_its_last_stable_offset(
    golden_root: GoldenRoot,
) -> None:
    case = golden_root.case(CASE)
    ends = json.loads((case / "offsets.json").read_text())["orders-1"]
    assert (ends["latest"], ends["latestReadCommitted"]) == (49, 45)
    for isolation, end in (("read_uncommitted", 49), ("read_committed", 45)):
        (group,) = pylog.groups(case, groups=["grp-late"], isolation=isolation).groups  # type: ignore[arg-type]
        (offset,) = group.offsets
        assert (offset.offset, offset.log_end_offset, offset.lag) == (9, end, end - 9)


def test_the_log_of_a_past_instant_ended_where_it_ended_then(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 0, 2))])
    records = batch_v2([*plain_records(0, 3, timestamp=10), *plain_records(3, 2, timestamp=9000)])
    write_partition(tmp_path, {0: [records]}, name="orders-0")
    for at_ms, end in ((None, 5), (12, 3), (8_999, 3), (9_000, 4)):
        ((offset,),) = (each.offsets for each in pylog.groups(tmp_path, at_ms=at_ms).groups)
        assert (offset.log_end_offset, offset.lag) == (end, end - 2)


def test_a_log_whose_file_a_broker_removes_meanwhile_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [SegmentVanishedError("file is gone", "00000000000000000000.log")]

    def find_offset(view: LogView, timestamp: int) -> object:
        if gone:
            raise gone.pop()
        return find_offset_for_timestamp(view, timestamp)

    monkeypatch.setattr("pylog.admin.group_logs.find_offset_for_timestamp", find_offset)
    written(tmp_path, [commits((0, 0, 2))])
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]}, name="orders-0")
    found = pylog.groups(tmp_path, at_ms=2**40)
    assert (gone, found.errors) == ([], [])
    ((offset,),) = (each.offsets for each in found.groups)
    assert (offset.log_end_offset, offset.lag) == (5, 3)


def test_what_a_group_has_read_meanwhile_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append_and_read(view: LogView, at_ms: int | None) -> LastRecords:
        segment_path(log, 0).write_bytes(batch_v2(plain_records(0, 9)).data)
        return last_group_records(view, at_ms)

    monkeypatch.setattr("pylog.admin.consumer_groups.last_group_records", append_and_read)
    written(tmp_path, [commits((0, 0, 8))])
    log = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]}, name="orders-0")
    found = pylog.groups(tmp_path)
    ((offset,),) = (each.offsets for each in found.groups)
    assert (offset.offset, offset.log_end_offset, offset.lag) == (8, 9, 1)
    assert offset.will_reset is False


def test_a_topic_that_was_made_again_has_no_lag(tmp_path: Path) -> None:
    topic_id = bytes(range(16))
    value = b"\x00\x04" + struct.pack(">qi", 1, 0) + b"\x01" + struct.pack(">q", 5)
    value += b"\x01\x00\x10" + topic_id
    record = Stored(0, 1, commit_key("g", "orders", 0), value)
    written(tmp_path, [batch_v2([record])])
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name="orders-0")
    for text_of_id, end in (("AAECAwQFBgcICQoLDA0ODw", 2), ("sjhcX-UcQSKqZ9r7sV6gLw", None)):
        write_topic_id(tmp_path / "orders-0", text_of_id)
        ((offset,),) = (each.offsets for each in pylog.groups(tmp_path).groups)
        assert (offset.offset, offset.log_end_offset) == (1, end)
