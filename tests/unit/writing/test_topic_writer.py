"""From rows to a topic's logs: the partition of each, batches, appends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import pylog
from pylog.config import LogConfig
from pylog.model import CompressionType, TopicPartition
from pylog.writing.partitioner import murmur2
from tests.unit.writing.written_topics import rows, table

if TYPE_CHECKING:
    from pathlib import Path


def test_more_records_than_are_held_at_once_keep_their_order(tmp_path: Path) -> None:
    count = 40_000
    given = ((None, b"%d" % number) for number in range(count))
    assert pylog.write_topic(tmp_path, "t", given).records == count
    assert rows(tmp_path, "value") == [(b"%d" % number,) for number in range(count)]


def test_keys_go_where_kafka_sends_them(tmp_path: Path) -> None:
    given = table(200)
    summary = pylog.write_topic(tmp_path, "t", given, partitions=3)
    expected: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for key in given["key"].to_pylist():
        expected[(murmur2(key) & 0x7FFFFFFF) % 3].append(key)
    assert summary.end_offsets == {number: len(keys) for number, keys in expected.items()}
    found: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for partition, key in rows(tmp_path, "partition", "key"):
        found[partition].append(key)
    assert found == expected


@pytest.mark.parametrize(
    ("partitioner", "expected"),
    [
        ("round_robin", [0, 1, 2, 0]),
        ("integer_key", [1, 1, 2, 0]),
        (lambda batch: np.full(batch.num_rows, 2), [2, 2, 2, 2]),
        (lambda batch: [len(key) % 3 for key in batch.column("key").to_pylist()], [1, 2, 2, 1]),
    ],
)
def test_other_partitioners_may_be_named_or_given(
    partitioner: Any,  # noqa: ANN401 - a name or a function
    expected: list[int],
    tmp_path: Path,
) -> None:
    keys = ["1", "10", "-1", "3"]
    given = pa.table({"key": keys, "value": keys})
    pylog.write_topic(tmp_path, "t", given, partitions=3, partitioner=partitioner)
    found = dict(rows(tmp_path, "key", "partition"))
    assert [found[key.encode()] for key in keys] == expected


def test_records_without_key_are_spread(tmp_path: Path) -> None:
    given = pa.table({"value": [b"v" * 1_000] * 2_000})
    ends = pylog.write_topic(tmp_path, "t", given, partitions=3).end_offsets
    assert sum(ends.values()) == 2_000
    assert min(ends.values()) > 0


@pytest.mark.parametrize("codec", list(CompressionType))
def test_every_codec_may_be_chosen_by_name(codec: CompressionType, tmp_path: Path) -> None:
    given = pa.table({"value": [b"v" * 100] * 500})
    summary = pylog.write_topic(tmp_path, "t", given, compression=codec.label.upper())
    batches = pylog.read_table(tmp_path, "batches").to_pylist()
    assert {batch["codec"] for batch in batches} == {codec.label}
    assert sum(batch["size_in_bytes"] for batch in batches) == summary.size_bytes
    assert rows(tmp_path, "value") == [(b"v" * 100,)] * 500


def test_batches_are_not_larger_than_asked_for_nor_than_the_topic_allows(tmp_path: Path) -> None:
    given = pa.table({"value": [b"v" * 100] * 500})
    pylog.write_topic(tmp_path / "a", "t", given, batch_size=1_000)
    config = {"max.message.bytes": "600"}
    pylog.write_topic(tmp_path / "b", "t", given, config=config)
    for directory, most in ((tmp_path / "a", 1_000), (tmp_path / "b", 600)):
        batches = pylog.read_table(directory, "batches").to_pylist()
        sizes = [batch["size_in_bytes"] for batch in batches]
        assert most - 110 < max(sizes) <= most


def test_the_topics_own_codec_wins(tmp_path: Path) -> None:
    config = LogConfig(compression_type="gzip", compression_gzip_level=9)
    pylog.write_topic(tmp_path, "t", table(), config=config, compression="zstd", level=1)
    batches = pylog.read_table(tmp_path, "batches").to_pylist()
    assert {batch["codec"] for batch in batches} == {"gzip"}
    # It is stored, so the next writer has it, too.
    pylog.write_topic(tmp_path, "t", table())
    batches = pylog.read_table(tmp_path, "batches").to_pylist()
    assert {batch["codec"] for batch in batches} == {"gzip"}
    with pytest.raises(ValueError, match="'t' already exists with another configuration"):
        pylog.write_topic(tmp_path, "t", table(), config=LogConfig())


def test_records_follow_the_newest_leader_epoch(tmp_path: Path) -> None:
    pylog.write_topic(tmp_path, "t", table(1))
    batch = pylog.logs.RecordBatchBuilder()
    batch.append(1_000, None, b"v")
    with pylog.logs.LogManager([tmp_path]) as manager:
        log = manager.get_log(TopicPartition("t", 0))
        log.append_as_leader(batch.build(), leader_epoch=7)
    pylog.write_topic(tmp_path, "t", table(1))
    found = pylog.read_table(tmp_path, "batches").to_pylist()
    assert [each["partition_leader_epoch"] for each in found] == [0, 7, 7]
