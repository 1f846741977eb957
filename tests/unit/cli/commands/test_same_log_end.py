"""Where a log ends is the same for everybody, also where its last batch has no record."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    plain_records,
    with_bad_crc,
)
from tests.support.corruption import resealed
from tests.support.log_files import write_partition
from tests.unit.admin.committed_offsets import commit_key, commit_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

DATA = batch_v2(plain_records(0, 10))
EMPTY = empty_batch_v2(10, 14)


def marker_without_bytes() -> Built:
    """Return a control batch of no record whose codec is lz4: no reader can read it."""
    data = bytearray(empty_batch_v2(10, 14, is_transactional=True).data)
    struct.pack_into(">h", data, 21, 0x33)
    return replace(EMPTY, data=resealed(bytes(data)))


LOGS: dict[str, dict[int, list[Built]]] = {
    "after records": {0: [DATA, EMPTY]},
    "after a gap": {0: [DATA, empty_batch_v2(12, 14)]},
    "alone": {10: [EMPTY]},
    "in a segment of its own": {0: [DATA], 10: [EMPTY]},
    "twice": {0: [DATA, empty_batch_v2(10, 11), empty_batch_v2(12, 14)]},
    "of a transaction": {0: [DATA, empty_batch_v2(10, 14, is_transactional=True)]},
    "that cannot be read": {0: [DATA, marker_without_bytes()]},
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_ends_in_an_empty_batch_ends_after_its_last_offset(
    name: str, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, LOGS[name])
    commit = batch_v2([Stored(0, 1, commit_key("g", "orders", 0), commit_value(4))])
    write_partition(tmp_path, {0: [commit]}, name="__consumer_offsets-0")

    def document(*arguments: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(pylog_run(*arguments, "--json").output)
        return found

    logs = str(tmp_path)
    [view] = pylog.open_directory(tmp_path).topics["orders"]
    [followed] = pylog.follow(tmp_path, topics=["orders"]).refresh().values()
    [report] = [
        each for each in pylog.doctor(tmp_path).partitions if each.topic_partition.topic == "orders"
    ]
    [(committed,)] = [group.offsets for group in pylog.groups(tmp_path).groups]
    listed = pylog_run("ls", logs, "--topic", "orders").lines[1].split()
    ends = {
        "view": view.log_end_offset,
        "follow": followed.end_offset,
        "ls": int(listed[3]),
        "doctor": report.end_offset,
        "groups": committed.log_end_offset,
    }
    for read in ("headers", "sample", "all"):
        found = pylog.stats(tmp_path, topics=["orders"], read=read).document()
        ends[f"stats {read}"] = found["partitions"][0]["endOffset"]
        ends[f"segments {read}"] = found["segments"][-1]["nextOffset"]
    for table, column in (("partitions", "log_end_offset"), ("segments", "next_offset")):
        rows = pylog.read_table(tmp_path, table).to_pylist()  # type: ignore[arg-type]
        ends[table] = [row for row in rows if row["topic"] == "orders"][-1][column]
    query = "SELECT log_end_offset FROM partitions WHERE topic = 'orders'"
    ends["sql"] = int(pylog_run("sql", logs, query).lines[1])
    assert ends == dict.fromkeys(ends, 15)
    assert sum(report.offsets) == 15 - report.start_offset


def test_it_is_the_same_after_damage_that_is_skipped(tmp_path: Path) -> None:
    damaged = with_bad_crc(DATA)
    write_partition(tmp_path, {0: [damaged, EMPTY]})
    [report] = pylog.doctor(tmp_path).partitions
    [partition] = pylog.stats(tmp_path, read="all").document()["partitions"]
    assert (report.end_offset, partition["endOffset"]) == (15, 15)
    assert tuple(report.offsets) == (0, 0, 5, 0, 10)


def test_no_offset_is_left_of_it_where_records_are_read(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [DATA, EMPTY]})
    done = pylog_run("cat", tmp_path)
    assert [json.loads(line)["offset"] for line in done.lines] == list(range(10))
    done = pylog_run("cat", tmp_path, "--start-offset", "12")
    assert (done.status, done.lines) == (0, [])
