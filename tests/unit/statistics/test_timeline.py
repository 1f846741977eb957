"""A topic along its offsets, against directories that brokers wrote and logs with known gaps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import UnknownTopicOrPartitionError
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot


@pytest.fixture
def logs(golden_root: GoldenRoot) -> Path:
    return golden_root.case("4.3.0/internal-logdir")


@pytest.mark.parametrize("topic", ["orders", "__consumer_offsets"])
def test_sums_are_those_of_the_tables(logs: Path, topic: str) -> None:
    found = pylog.timeline(logs, topic)
    batches = pylog.read_table(logs, "batches", topics=topic).to_pylist()
    transactions = pylog.read_table(logs, "transactions", topics=topic).to_pylist()
    epochs = pylog.read_table(logs, "leader_epochs", topics=topic).to_pylist()
    assert len(found.partitions) == 2
    for each in found.partitions:
        own = [row for row in batches if row["partition"] == each.partition]
        assert sum(each.records) == sum(row["records"] for row in own)
        assert sum(each.size_bytes) == sum(row["size_in_bytes"] for row in own)
        assert max(each.latest) == max(int(1000 * row["max_timestamp"].timestamp()) for row in own)
        assert sum(each.missing) == each.end_offset - each.start_offset - sum(each.records)
        assert [one.what for one in each.transactions] == [
            row["state"] for row in transactions if row["partition"] == each.partition
        ]
        assert [int(one.what) for one in each.epochs] == [
            row["epoch"] for row in epochs if row["partition"] == each.partition
        ]
        assert each.problem == ""


def test_a_transaction_reaches_to_its_marker_and_an_open_one_to_the_end(logs: Path) -> None:
    closed, still_open = pylog.timeline(logs, "orders").partitions
    assert [each[:2] for each in closed.transactions] == [(45, 50), (50, 55), (55, 60)]
    assert [each[:2] for each in still_open.transactions] == [(45, 49)]


def test_a_gap_is_where_it_is_and_a_large_log_is_a_bounded_number_of_steps(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(100 * n, 100)) for n in range(100) if not 40 <= n < 60]
    write_partition(tmp_path, {0: batches})
    [found] = pylog.timeline(tmp_path, "orders").partitions
    assert (found.start_offset, found.end_offset) == (0, 10_000)
    assert len(found.records) <= 160
    gaps = [place for place, missed in enumerate(found.missing) if missed == found.step]
    assert gaps[0] * found.step == pytest.approx(4000, abs=found.step)
    assert (gaps[-1] + 1) * found.step == pytest.approx(6000, abs=found.step)
    assert sum(found.records) == 8000
    assert sum(found.missing) == 2000


def test_a_damaged_log_is_shown_as_far_as_it_can_be_read(golden_root: GoldenRoot) -> None:
    damaged = golden_root.case("4.3.0/crash-corrupt-byte") / "before"
    [found] = pylog.timeline(damaged, "corrupt").partitions
    assert found.problem == ""  # a checksum is not looked at
    assert sum(found.records) > 100


def test_an_unknown_topic_is_an_error(logs: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="nowhere"):
        pylog.timeline(logs, "nowhere")


def test_the_page_shows_each_partition_and_escapes_what_comes_from_disk(
    logs: Path, tmp_path: Path
) -> None:
    page = pylog.timeline(logs, "orders").html()
    assert re.findall(r"<h3>(.*?)</h3>", page) == ["Partition 0", "Partition 1"]
    assert "committed: 45 to" in page
    assert "<script" not in page
    assert "http" not in page
    strange = tmp_path / "<b>"
    strange.mkdir()
    write_partition(strange, {0: [batch_v2(plain_records(0, 1))]}, name="t-0")
    assert "<b>" not in pylog.timeline(strange, "t").html().partition("<body>")[2].split("<h3>")[0]


def test_an_empty_partition_is_shown(tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "t", 1)
    assert "No offset is there" in pylog.timeline(tmp_path, "t").html()


def test_a_time_after_those_that_python_knows_is_a_time(tmp_path: Path) -> None:
    far = 1_700_000_000_000_000  # microseconds that a producer took for milliseconds
    write_partition(tmp_path, {0: [batch_v2([Stored(0, far, b"k", b"v")])]})
    found = pylog.timeline(tmp_path, "orders")
    assert found.partitions[0].latest == [far]
    assert f"until {far} ms UTC" in found.html()
    assert "orders" in pylog.stats(tmp_path)._repr_html_()
