"""Golden directories in a bucket: the same rows, offsets and listing as of the local copy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.cli.main import run
from pylog.errors import LogDirectoryError
from pylog.reading.offset_resolution import find_max_timestamp, find_offset_for_timestamp
from tests.support.golden import Holds, golden_partitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.reading.log_view import LogView
    from tests.support.golden import GoldenPartition, GoldenRoot, Isolation
    from tests.support.s3_server import Bucket

CASES = (
    "0.8.2.2/codec-snappy",  # v0
    "0.8.2.2/plain",
    "0.10.0.1/codec-lz4",  # v1
    "0.10.0.1/compacted-compressed",
    "0.11.0.3/txn",  # the first v2
    "2.8.2/codec-zstd",
    "2.8.2/mixed-magic",
    "3.9.1/compacted-txn",
    "3.9.1/crash-torn-tail",
    "4.3.0/crash-preallocated",
    "4.3.0/delete-records",  # the log start offset was moved
    "4.3.0/extremes",
    "4.3.0/leftovers",
    "4.3.0/plain",  # several segments
    "4.3.0/txn",
)
PARTITIONS = [
    each
    for each in golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)
    if each.partition(":")[0] in CASES
]
FIRST_OF_CASE = list({each.partition(":")[0]: each for each in reversed(PARTITIONS)}.values())
SEVERAL_SEGMENTS = "4.3.0/plain:" + next(
    each.partition(":")[2] for each in PARTITIONS if each.startswith("4.3.0/plain:")
)

Place = tuple["GoldenPartition", str]


@pytest.fixture(scope="module")
def place_of(golden_root: GoldenRoot, bucket: Bucket) -> Callable[[str], Place]:
    """Give a partition and the URI of its log directory, uploaded when first asked for."""
    uploaded: dict[str, str] = {}

    def place(partition_id: str) -> Place:
        partition = golden_root.partition(partition_id)
        prefix = f"golden/{partition.broker}/{partition.scenario}/logs {partition.state}"
        if prefix not in uploaded:
            bucket.upload(partition.log_directory, prefix)
            uploaded[prefix] = bucket.uri(prefix)
        return partition, uploaded[prefix]

    return place


def table(path: object, partition: GoldenPartition, isolation: Isolation) -> pa.Table:
    return pylog.scan(
        path,  # type: ignore[arg-type]
        assign={partition.topic: [partition.partition]},
        isolation=f"read_{isolation}",  # type: ignore[arg-type]
        include_headers=True,
        include_batch_metadata=True,
        timestamp_unit="ms",
    ).to_table()


def view_of(path: object, partition: GoldenPartition) -> LogView:
    return pylog.open_directory(path)[partition.topic, partition.partition]  # type: ignore[arg-type]


@pytest.mark.thorough(one_in=9)
@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
@pytest.mark.parametrize("partition_id", PARTITIONS)
def test_a_scan_of_the_bucket_gives_the_rows_of_the_local_copy(
    place_of: Callable[[str], Place], partition_id: str, isolation: Isolation
) -> None:
    partition, uri = place_of(partition_id)
    local = table(partition.log_directory, partition, isolation)
    assert table(uri, partition, isolation).equals(local)
    if partition.expected_path(isolation) is not None:
        expected = partition.expected_path(isolation).read_text("utf-8")  # type: ignore[union-attr]
        assert local.num_rows == expected.count("\n")


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("partition_id", PARTITIONS)
def test_offsets_of_a_log_and_by_timestamp_are_those_of_the_local_copy(
    place_of: Callable[[str], Place], partition_id: str
) -> None:
    partition, uri = place_of(partition_id)
    local, remote = view_of(partition.log_directory, partition), view_of(uri, partition)
    assert len(remote.segments) == len(local.segments)
    assert remote.log_start_offset == local.log_start_offset
    assert remote.log_end_offset == local.log_end_offset
    assert remote.size_bytes == local.size_bytes
    assert remote.leader_epochs == local.leader_epochs
    assert remote.metadata == local.metadata
    latest = find_max_timestamp(local)
    assert find_max_timestamp(remote) == latest
    if latest is not None:
        for before in (0, 1, 1_000, 60_000, latest.timestamp, -1):
            asked = latest.timestamp - before
            found = find_offset_for_timestamp(local, asked)
            assert find_offset_for_timestamp(remote, asked) == found


def test_a_range_by_offset_or_time_is_that_of_the_local_copy(
    place_of: Callable[[str], Place],
) -> None:
    partition, uri = place_of(SEVERAL_SEGMENTS)
    whole = table(partition.log_directory, partition, "uncommitted")
    assign = {partition.topic: [partition.partition]}
    first, last = whole["offset"][10].as_py(), whole["offset"][-10].as_py()
    time = whole["timestamp"].cast(pa.int64())[whole.num_rows // 2].as_py()
    for start, end in ((first, last), (pylog.Timestamp(time), "latest"), ("earliest", first)):
        tables = [
            pylog.scan(path, assign=assign, start=start, end=end).to_table()
            for path in (partition.log_directory, uri)
        ]
        assert tables[0].num_rows > 0
        assert tables[1].equals(tables[0])


def test_a_partition_directory_in_a_bucket_is_a_path(place_of: Callable[[str], Place]) -> None:
    partition, uri = place_of("4.3.0/delete-records:after/del-recs-0")
    base, _, query = uri.partition("?")
    named = f"{base}/{partition.name}/?{query}"
    local = table(partition.directory, partition, "uncommitted")
    assert table(named, partition, "uncommitted").equals(local)
    # From the checkpoint in the directory above.
    assert view_of(named, partition).log_start_offset == partition.offsets["earliest"]  # type: ignore[index]


def test_local_and_remote_paths_are_read_together(place_of: Callable[[str], Place]) -> None:
    local, _ = place_of(SEVERAL_SEGMENTS)
    remote, uri = place_of("4.3.0/delete-records:after/del-recs-0")
    both = pylog.scan([local.log_directory, uri])
    assert {view.topic for view in both.partitions} >= {local.topic, remote.topic}
    assert both.count() == sum(pylog.scan(each.log_directory).count() for each in (local, remote))


def test_the_same_partition_in_two_places_is_refused(place_of: Callable[[str], Place]) -> None:
    partition, uri = place_of(SEVERAL_SEGMENTS)
    with pytest.raises(LogDirectoryError, match=r"lies both in .* and in s3://kafka/.*one node"):
        pylog.scan([partition.log_directory, uri])


def test_the_same_bucket_path_twice_is_read_once(place_of: Callable[[str], Place]) -> None:
    partition, uri = place_of(SEVERAL_SEGMENTS)
    assert pylog.scan([uri, uri]).count() == pylog.scan(partition.log_directory).count()


@pytest.mark.parametrize("partition_id", FIRST_OF_CASE)
@pytest.mark.thorough(one_in=3)
def test_ls_and_cat_say_of_a_bucket_what_they_say_of_the_local_copy(
    place_of: Callable[[str], Place], partition_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    partition, uri = place_of(partition_id)
    said = []
    for path in (str(partition.log_directory), uri):
        statuses = [run(["ls", "--json", path]), run(["cat", "--topic", partition.topic, path])]
        listed, _, printed = capsys.readouterr().out.partition("\n}\n")
        rows = json.loads(f"{listed}\n}}")["partitions"]
        for row in rows:
            del row["path"]
        said.append((statuses, rows, printed))
    assert said[1] == said[0]
    assert said[0][2].count("\n") > 0


def test_ls_names_a_bucket_without_its_query(
    place_of: Callable[[str], Place], capsys: pytest.CaptureFixture[str]
) -> None:
    partition, uri = place_of(SEVERAL_SEGMENTS)
    assert run(["ls", "--json", uri]) == 0
    rows = json.loads(capsys.readouterr().out)["partitions"]
    assert [row["path"] for row in rows] == [
        f"{uri.partition('?')[0]}/{row['topic']}-{row['partition']}" for row in rows
    ]
    assert run(["ls", uri]) == 0
    assert partition.topic in capsys.readouterr().out


@pytest.mark.parametrize("partition_id", [each for each in PARTITIONS if "compacted" in each])
def test_live_records_are_those_of_the_local_copy(
    place_of: Callable[[str], Place], partition_id: str
) -> None:
    partition, uri = place_of(partition_id)
    assign = {partition.topic: [partition.partition]}
    columns = ["segment", "records", "live_records", "dead_records", "live_bytes", "dead_bytes"]
    local, remote = (
        pylog.read_table(where, "cleaning", assign=assign, check_keys=True).select(columns)
        for where in (partition.directory, uri)
    )
    assert remote.to_pylist() == local.to_pylist()
    assert local["live_records"].null_count == 0


@pytest.mark.parametrize(
    "partition_id", ["4.3.0/txn:payments-0", "3.9.1/crash-torn-tail:before/torn-0"]
)
def test_doctor_finds_what_it_finds_in_the_local_copy(
    place_of: Callable[[str], Place], partition_id: str
) -> None:
    partition, uri = place_of(partition_id)
    local, remote = pylog.doctor(partition.log_directory), pylog.doctor(uri)
    assert [each.code for each in remote.findings] == [each.code for each in local.findings]
    assert remote.scanned_bytes == local.scanned_bytes
