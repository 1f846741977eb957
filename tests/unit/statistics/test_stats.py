"""`pylog.stats` against what whoever wrote the logs knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    plain_records,
    with_bad_crc,
)
from tests.support.log_files import write_partition
from tests.unit.statistics.random_topics import NOW_MS, rows

if TYPE_CHECKING:
    from pathlib import Path


def test_damage_is_named_and_everything_sound_is_counted(tmp_path: Path) -> None:
    sound = [batch_v2(plain_records(5 * place, 5)) for place in range(4)]
    broken = bytearray(sound[1].data)
    broken[16] = 7  # no magic
    batches = [sound[0], Built(bytes(broken), (), 2, 5, 9), *sound[2:]]
    write_partition(tmp_path, {0: batches, 20: [batch_v2(plain_records(20, 5))]})
    write_partition(tmp_path, {0: sound}, name="orders-1")
    found = pylog.stats(tmp_path)
    assert rows(found, "partitions", "partition", "records") == [(0, 20), (1, 20)]
    [problem] = found.problems
    assert "5 records may be missing, offsets 5 to 9" in problem
    assert found.document()["partitions"][0]["problems"] == [problem]


def test_a_wrong_checksum_is_seen_where_records_are_read(tmp_path: Path) -> None:
    sound = [batch_v2(plain_records(5 * place, 5)) for place in range(3)]
    write_partition(tmp_path, {0: [sound[0], with_bad_crc(sound[1]), sound[2]]})
    assert pylog.stats(tmp_path).problems == []
    found = pylog.stats(tmp_path, read="all")
    assert rows(found, "topics", "records") == [(10,)]
    assert len(found.problems) == 1
    [problem] = pylog.stats(tmp_path, read="sample").problems
    assert "batch CRC stored" in problem


def test_topics_and_partitions_are_chosen(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "users-0", "__consumer_offsets-3"):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=name)
    everything = pylog.stats(tmp_path)
    assert rows(everything, "topics", "topic") == [("__consumer_offsets",), ("orders",), ("users",)]
    assert rows(
        pylog.stats(tmp_path, topics=["orders"], partitions=[1]), "partitions", "topic", "partition"
    ) == [("orders", 1)]
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic has a partition 7 here"):
        pylog.stats(tmp_path, partitions=[7])
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'order' here"):
        pylog.stats(tmp_path, topics=["order"])


def test_where_no_partition_is_live_the_error_says_so(tmp_path: Path) -> None:
    name = "orders-0.0123456789abcdef0123456789abcdef-delete"
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=name)
    with pytest.raises(LogDirectoryError, match="no live partition here"):
        pylog.stats(tmp_path)


def test_progress_ends_with_all_bytes(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    calls: list[tuple[int, int]] = []
    pylog.stats(tmp_path, progress=lambda done, total: calls.append((done, total)))
    size = len(batch_v2(plain_records(0, 2)).data)
    assert calls[-1] == (size, size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"read": "some"}, "read is 'some', expected one of 'headers', 'sample', 'all'"),
        ({"sample_bytes": 0}, "sample_bytes is 0, expected 1 or more"),
        ({"most": 0}, "most is 0, expected 1 or more"),
        ({"threads": 0}, "threads is 0, expected 1 or more"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    with pytest.raises(ValueError, match=message):
        pylog.stats(tmp_path, **arguments)


def test_of_a_compacted_topic_it_says_what_is_live(tmp_path: Path) -> None:
    batches = [batch_v2([Stored(place, NOW_MS, b"k", b"v" * 40)]) for place in range(10)]
    write_partition(tmp_path, {0: batches})
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    [topic] = pylog.stats(tmp_path, read="all").document()["topics"]
    size = len(batches[0].data)
    assert (topic["isCompacted"], topic["liveBytes"], topic["deadBytes"]) == (True, size, 9 * size)
    assert pylog.stats(tmp_path).document()["topics"][0]["liveBytes"] is None


def test_all_files_on_the_disk_are_counted(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]}, name="orders-0")
    (tmp_path / "orders-0" / "00000000000000000000.log.deleted").write_bytes(b"x" * 99)
    (tmp_path / "notes").write_bytes(b"x" * 7)
    found = pylog.stats(tmp_path)
    rows = {row["kind"]: row["size_in_bytes"] for row in found.tables["disk"].to_pylist()}
    assert (rows["deleted"], rows["beside"]) == (99, 7)
    total = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert sum(rows.values()) == total == found.document()["summary"]["diskBytes"]
