"""Options that choose records, and what is said of those outside."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2, joined, plain_records
from tests.support.images import chain, holding
from tests.support.log_files import offset_index_bytes, segment_path, write_partition
from tests.unit.cli.commands.printed_records import partitions_and_offsets, records_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


def test_offsets_bound_every_partition(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--start-offset", 4, "--end-offset", 6)
    assert partitions_and_offsets(done) == [(0, 4), (0, 5), (1, 4), (1, 5)]


def test_an_offset_outside_one_partition_names_it_and_its_range(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--start-offset", 1)
    assert done.status == 2
    assert done.error == (
        "pylog: error: offset 1 of orders-1 is out of range: the log holds offsets 3 to 23 "
        "(exclusive)\n"
    )
    assert pylog_run("cat", log_directory, "--end-offset", 2**63).status == 2


def test_timestamps_are_looked_up_and_late_partitions_are_empty(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", log_directory, "--start-timestamp", 1_018, "--end-timestamp", 5_005)
    assert partitions_and_offsets(done) == [(0, 18), (0, 19), (1, 3), (1, 4)]
    assert partitions_and_offsets(pylog_run("cat", log_directory, "--start-timestamp", 5_021)) == [
        (1, 21),
        (1, 22),
    ]
    nothing = pylog_run("cat", log_directory, "--start-timestamp", 2**62)
    assert (nothing.status, nothing.output) == (0, b"")


@pytest.mark.parametrize(
    "topics", [["--topic", "web", "--topic", "orders"], ["--topic", "web,orders"]]
)
def test_topics_may_be_repeated_or_listed_with_commas(
    topics: list[str], log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for name in ("web-0", "web-1", "others-0"):
        write_partition(log_directory, {0: [batch_v2(plain_records(0, 1))]}, name=name)
    found = records_of(pylog_run("cat", log_directory, *topics))
    counts = Counter((record["topic"], record["partition"]) for record in found)
    assert counts == {("orders", 0): 20, ("orders", 1): 20, ("web", 0): 1, ("web", 1): 1}


def test_topics_may_be_chosen_by_a_pattern(
    log_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(log_directory, {0: [batch_v2(plain_records(0, 1))]}, name="web-0")
    found = records_of(pylog_run("cat", log_directory, "--pattern", "^w"))
    assert [record["topic"] for record in found] == ["web"]


def test_times_may_be_dates_and_a_while_ago(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    now = int(time.time() * 1000)
    stamps = [1_709_251_200_000, now - 5 * 3_600_000, now - 3_600_000]
    records = [Stored(at, stamp, None, b"") for at, stamp in enumerate(stamps)]
    directory = write_partition(tmp_path, {0: [batch_v2([record]) for record in records]})

    def offsets(*arguments: str) -> list[int]:
        return [
            offset for _, offset in partitions_and_offsets(pylog_run("cat", directory, *arguments))
        ]

    assert offsets("--start-timestamp", "-2h") == [2]
    assert offsets("--start-timestamp", "2024-03-01", "--end-timestamp", "-2h") == [0, 1]
    assert offsets("--start-timestamp", "2024-03-01T00:00:00.001Z") == [1, 2]
    assert offsets("--end-timestamp", "2024-03-01T01:00:00+01:00") == []


def test_the_limit_on_a_batchs_size_is_an_option(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    large = batch_v2(plain_records(1, 1, value_size=9_000), codec="gzip")
    batches = [batch_v2(plain_records(0, 1)), large, batch_v2(plain_records(2, 1))]
    directory = write_partition(tmp_path, {0: batches})
    done = pylog_run("cat", directory, "--mode", "DROPMALFORMED", "--max-decompressed-bytes", 9_000)
    assert done.status == 1
    assert [json.loads(line)["offset"] for line in done.lines] == [0, 2]
    assert "limit of 9000 bytes" in done.error
    assert "--max-decompressed-bytes" in done.error
    assert len(pylog_run("cat", directory).lines) == 3


def test_index_files_that_were_forged_may_be_ignored(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    images = chain(7, 200)
    outer = holding(plain_records(3, 3), images, to_the_end=True)
    batches = [batch_v2(plain_records(0, 3)), outer, batch_v2(plain_records(300, 1))]
    path = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    at = joined(batches).index(images[0].data)
    size = len(images[0].data)
    lies = [(7 + place, at + place * size) for place in range(200)]
    segment_path(path, 0, ".index").write_bytes(offset_index_bytes(lies, 0))
    done = pylog_run("cat", tmp_path, "--start-offset", "190", "--ignore-indexes")
    assert partitions_and_offsets(done) == [(0, 300)]


def test_the_last_offsets_are_those_before_the_end_that_is_read(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    """With read_committed, nothing from the first open transaction on."""
    opened = batch_v2(plain_records(10, 5), producer_id=7, is_transactional=True)
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 10)), opened]})
    for isolation, offsets in (("read_committed", [8, 9]), ("read_uncommitted", [13, 14])):
        done = pylog_run("cat", tmp_path, "-o", "-2", "--isolation", isolation, "-f", r"%o\n")
        assert [int(line) for line in done.lines] == offsets


def test_a_range_by_time_says_which_of_its_records_are_earlier(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    times = [1000, 3000, 2000, 9000, 4000, 9500]
    records = [Stored(offset, time_ms, None, b"v") for offset, time_ms in enumerate(times)]
    write_partition(tmp_path, {0: [batch_v2(records)]})
    done = pylog_run("cat", tmp_path, "--start-timestamp", "3000")
    assert [json.loads(line)["offset"] for line in done.lines] == [1, 2, 3, 4, 5]
    assert done.error == (
        "pylog: note: 1 record is earlier than --start-timestamp: timestamps are out of order, and "
        "a time only looks up an offset; --min-timestamp filters\n"
    )
    done = pylog_run("cat", tmp_path, "--start-timestamp", "1000", "--end-timestamp", "4000")
    assert [json.loads(line)["offset"] for line in done.lines] == [0, 1, 2]
    assert done.error == ""
    for ordered in ("1000", "9500"):
        assert pylog_run("cat", tmp_path, "--start-timestamp", ordered).error == ""


@pytest.mark.parametrize("command", ["cat", "search"])
def test_a_range_in_a_missing_segment_is_not_called_empty(
    command: str, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    segments = {0: [batch_v2(plain_records(0, 10))], 20: [batch_v2(plain_records(20, 10))]}
    write_partition(tmp_path, segments)
    chosen = (tmp_path, "--topic", "orders", *(["--key-contains", "e"] * (command == "search")))
    done = pylog_run(command, *chosen, "--start-offset", 12, "--end-offset", 18)
    assert done.output == b""
    absent = "orders-0 has no segment with offsets 12 to 17: one is missing, or compaction"
    assert absent in done.error
    assert "empty" not in done.error
    for start, end in ((8, 18), (12, 21), (5, 5), (20, 25)):
        other = pylog_run(command, *chosen, "--start-offset", start, "--end-offset", end)
        assert "no segment" not in other.error
