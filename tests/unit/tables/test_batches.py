"""Table `batches`, held against what Kafka's tool dumps."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from tests.golden.dumped_tables import LIVE, SERVED, STAMPS, batch_as_dumped
from tests.support.kafka_dump import Fields, dumped_batches, dumped_files, flag, has_batches, number
from tests.support.metadata_rows import Row, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.golden import GoldenPartition, GoldenRoot

OLD_CODECS = {
    "NoCompressionCodec": "none",
    "GZIPCompressionCodec": "gzip",
    "SnappyCompressionCodec": "snappy",
    "LZ4CompressionCodec": "lz4",
}


@pytest.mark.parametrize("partition_id", LIVE)
def test_batches_are_those_that_kafka_dumps(golden_root: GoldenRoot, partition_id: str) -> None:
    partition = golden_root.partition(partition_id)
    ours = table_of(partition, "batches", check_crc=True)
    if not has_batches(partition):
        ensure_same_as_dumped_records(ours, dumped_batches(partition))
        return
    kafkas = [
        batch_as_dumped(segment, fields)
        for segment, lines in dumped_batches(partition).items()
        for fields in lines
    ]
    assert (
        [{name: row[name] for name in kafkas[0]} for row in ours] == kafkas if kafkas else not ours
    )


def ensure_same_as_dumped_records(ours: Iterable[Row], dumped: Mapping[str, list[Fields]]) -> None:
    """Hold batches against lines of records, which tell the position of their batch."""
    records = defaultdict(list)
    for segment, lines in dumped.items():
        for fields in lines:
            records[segment, int(fields["position"])].append(fields)
    found = {(row["segment"], row["position"]): row for row in ours if row["records"] != 0}
    assert found.keys() == records.keys()
    for place, row in found.items():
        first, last = records[place][0], records[place][-1]
        assert row["magic"] == int(first["magic"]), place
        codec = first["compresscodec"]
        assert row["is_valid_crc"] == flag(first, "isvalid"), place
        if row["magic"] == 2:
            assert row["codec"] == codec.lower(), place
            assert row["records"] == len(records[place]), place
            assert row["base_offset"] <= int(first["offset"]), place
            assert row["last_offset"] >= int(last["offset"]), place
            assert row["producer_id"] == number(first, "producerId"), place
            assert row["is_transactional"] == flag(first, "isTransactional"), place
            assert row["is_control"] == ("endTxnMarker" in first), place
        elif row["base_offset"] is not None:  # one message
            assert row["codec"] == OLD_CODECS.get(codec, codec.lower()), place
            assert (row["last_offset"], row["records"]) == (int(first["offset"]), 1), place
            assert row["crc"] == int(first["crc"]), place
        else:
            assert row["last_offset"] == int(last["offset"]), place


def first_records(partition: GoldenPartition) -> dict[tuple[str, int], Fields]:
    """Return the first record's line of each batch, by file and position of the batch."""
    found: dict[tuple[str, int], Fields] = {}
    for name, lines in dumped_files(partition).items():
        position = -1
        for fields in lines if name.endswith(".log") else ():
            if "isRecord" in fields:
                found.setdefault((name, position), fields)
            else:
                position = int(fields["position"])
    return found


@pytest.mark.parametrize("partition_id", LIVE)
def test_base_timestamps_are_those_of_the_first_records_that_kafka_dumps(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    if not has_batches(partition):
        return
    records = first_records(partition)
    for row in table_of(partition, "batches"):
        first = records.get((row["segment"], row["position"]), {})
        is_v2 = row["magic"] == 2 and row["timestamp_type"] == STAMPS["CreateTime"]
        if (
            is_v2
            and row["delete_horizon"] is None
            and first.get("offset") == str(row["base_offset"])
        ):
            assert row["base_timestamp"] == int(first["CreateTime"])
        if row["delete_horizon"] is not None or row["magic"] == 0:
            assert row["base_timestamp"] is None


@pytest.mark.parametrize("partition_id", SERVED)
def test_first_and_last_timestamps_are_those_of_the_batches_that_kafka_dumps(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    if not has_batches(partition):
        return
    (row,) = table_of(partition, "partitions")
    batches = [
        batch_as_dumped(segment, fields)
        for segment, lines in dumped_batches(partition).items()
        for fields in lines
    ]
    assert row["last_timestamp"] == (batches[-1]["max_timestamp"] if batches else None)
    served = [each for each in batches if each["last_offset"] >= row["log_start_offset"]]
    if not served:
        assert row["first_timestamp"] is None
        return
    stamp = served[0]["max_timestamp"]
    first = first_records(partition).get((served[0]["segment"], served[0]["position"]))
    is_v2 = served[0]["magic"] == 2 and served[0]["timestamp_type"] == STAMPS["CreateTime"]
    if is_v2 and first is not None and served[0]["delete_horizon"] is None:
        stamp = int(first["CreateTime"])
        if first["offset"] != str(served[0]["base_offset"]):
            return  # the record that the header tells of has been compacted away
    assert row["first_timestamp"] == stamp
