"""Where a key is: the partitioners of Kafka's clients and of librdkafka, and a search by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.admin.key_partitions import KeyPartitions, partitions_of_keys
from pylog.errors import CorruptRecordError, UnknownTopicOrPartitionError
from pylog.writing import KEY_PARTITIONER_NAMES
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.metadata_log import partition_record, topic_record, write_metadata_log

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEYS = [b"a", b"user-7", "größe".encode(), b"123456789", b"\x00\xff" * 40]
# Of rd_kafka_msg_partitioner_…, of librdkafka 2.16.1, for 1,000 partitions.
MURMUR2 = [524, 364, 84, 566, 402]
CRC32 = [907, 745, 153, 262, 473]
FNV1A = [76, 34, 382, 740, 325]
OF_EMPTY_KEY = {"murmur2": 681, "consistent": 0, "fnv1a": 35}


def topic_of(tmp_path: Path, numbers: Iterable[int], topic: str = "orders") -> Path:
    """Write partitions with the same keys, so that the order of matches is that of reading."""
    for number in numbers:
        records = [Stored(0, 1, b"user-7", b"%d" % number), Stored(1, 1, b"a", b"v")]
        write_partition(tmp_path, {0: [batch_v2(records)]}, name=f"{topic}-{number}")
    return tmp_path


def wide(tmp_path: Path, count: int) -> Path:
    """Write metadata of a topic with so many partitions, of which one is here."""
    partitions = [partition_record(number, 1, (1,)) for number in range(count)]
    write_metadata_log(tmp_path, [topic_record("orders"), *partitions])
    return topic_of(tmp_path, [0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default", MURMUR2),
        ("murmur2", MURMUR2),
        ("murmur2_random", MURMUR2),
        ("consistent", CRC32),
        ("consistent_random", CRC32),
        ("fnv1a", FNV1A),
        ("fnv1a_random", FNV1A),
    ],
)
def test_keys_are_where_librdkafka_puts_them(
    tmp_path: Path, name: str, expected: list[int]
) -> None:
    directory = pylog.open_directory(wide(tmp_path, 1_000))
    for key, partition in zip(KEYS, expected, strict=True):
        place = KeyPartitions.of(directory, "orders", [key], name)
        assert place == ("orders", (partition,), 1_000), key


@pytest.mark.parametrize(("name", "partition"), OF_EMPTY_KEY.items())
def test_an_empty_key_is_hashed(tmp_path: Path, name: str, partition: int) -> None:
    directory = pylog.open_directory(wide(tmp_path, 1_000))
    assert KeyPartitions.of(directory, "orders", [b""], name) == ("orders", (partition,), 1_000)


def test_an_empty_key_is_anywhere_by_librdkafkas_default(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="consistent_random puts an empty key anywhere"):
        pylog.search(topic_of(tmp_path, range(8)), key="", partitioner="consistent_random")


def test_an_integer_key_is_modulo_the_number_of_partitions(tmp_path: Path) -> None:
    directory = pylog.open_directory(topic_of(tmp_path, range(8)))
    place = KeyPartitions.of(directory, "orders", [b"-1", b"12"], "integer_key")
    assert place == ("orders", (4, 7), 8)
    with pytest.raises(ValueError, match="key b'user-7' is not a decimal number"):
        pylog.search(directory, key="user-7", partitioner="integer_key")


def values(found: pylog.results.Search) -> list[int]:
    return [int(value) for batch in found for value in batch["value"].to_pylist()]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_partition_of_the_key_is_searched_first(tmp_path: Path, threads: int) -> None:
    topic_of(tmp_path, range(8))
    found = pylog.search(tmp_path, key="user-7", threads=threads)
    assert values(found) == [4, 0, 1, 2, 3, 5, 6, 7]
    assert values(pylog.search(tmp_path, key="user-7", limit=1)) == [4]
    assert values(pylog.search(tmp_path, key="user-7", partitions=[1, 4, 6])) == [4, 1, 6]
    assert values(pylog.search(tmp_path, key=["user-7", "x"])) == [4, 6, 0, 1, 2, 3, 5, 7]
    assert found.summary.key_partitions == ()


def test_that_of_each_topic_comes_before_all_others(tmp_path: Path) -> None:
    topic_of(tmp_path, range(8))
    topic_of(tmp_path, range(2), topic="web")
    found = pylog.search(tmp_path, key="user-7")
    order = [
        (topic, partition)
        for batch in found
        for topic, partition in zip(
            batch["topic"].to_pylist(), batch["partition"].to_pylist(), strict=True
        )
    ]
    assert order == [
        ("orders", 4),
        ("web", 0),
        *(("orders", number) for number in (0, 1, 2, 3, 5, 6, 7)),
        ("web", 1),
    ]


def test_the_metadata_know_the_number_of_partitions(tmp_path: Path) -> None:
    wide(tmp_path, 7)
    topic_of(tmp_path, range(4))
    # librdkafka puts the key into partition 2 of 7, and 0 of 4.
    assert values(pylog.search(tmp_path, key="user-7", topics=["orders"])) == [2, 0, 1, 3]


def test_where_the_number_is_not_known_partitions_come_in_their_order(tmp_path: Path) -> None:
    topic_of(tmp_path, [0, 1, 4])
    assert values(pylog.search(tmp_path, key="user-7")) == [0, 1, 4]


@pytest.mark.parametrize(
    ("partitioner", "partition"),
    [("default", 4), ("consistent_random", 1), ("fnv1a_random", 2)],
)
def test_a_partitioner_leaves_out_all_other_partitions(
    tmp_path: Path, partitioner: str, partition: int
) -> None:
    found = pylog.search(topic_of(tmp_path, range(8)), key="user-7", partitioner=partitioner)
    assert values(found) == [partition]
    assert found.summary.partitions == 1
    assert found.summary.key_partitions == (("orders", (partition,), 8),)
    assert "keyPartitions" not in found.summary.document()


def test_a_partitioner_is_refused_where_the_metadata_are_damaged(tmp_path: Path) -> None:
    wide(tmp_path, 7)
    topic_of(tmp_path, range(4))
    [path] = (tmp_path / "__cluster_metadata-0").glob("*.log")
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(CorruptRecordError, match="__cluster_metadata-0"):
        pylog.search(tmp_path, key="user-7", partitioner="default", topics=["orders"])
    assert values(pylog.search(tmp_path, key="user-7", topics=["orders"])) == [0, 1, 2, 3]


def test_a_partitioner_is_refused_where_the_number_of_partitions_is_not_known(
    tmp_path: Path,
) -> None:
    topic_of(tmp_path, [0, 1, 4])
    with pytest.raises(
        ValueError,
        match=r"it is not known how many partitions topic 'orders' has.*0, 1, 4 are here.*"
        r"Give the log directories of all brokers, or leave the partitioner out",
    ):
        pylog.search(tmp_path, key="user-7", partitioner="default")


def test_a_partition_that_is_not_here_is_named(tmp_path: Path) -> None:
    wide(tmp_path, 8)
    with pytest.raises(
        UnknownTopicOrPartitionError,
        match="partition 4 of topic 'orders', where partitioner default puts the key, is not here; "
        "found 0 of 8",
    ):
        pylog.search(tmp_path, key="user-7", topics=["orders"], partitioner="default")


@pytest.mark.parametrize("options", [{}, {"key": "k", "partitions": [0]}])
def test_a_partitioner_is_for_keys_alone(tmp_path: Path, options: dict[str, object]) -> None:
    topic_of(tmp_path, range(2))
    with pytest.raises(ValueError, match="give a key, and neither partitions nor"):
        pylog.search(tmp_path, value_contains="v", partitioner="default", **options)  # type: ignore[arg-type]


def test_there_are_no_other_partitioners(tmp_path: Path) -> None:
    directory = pylog.open_directory(topic_of(tmp_path, range(2)))
    for name in KEY_PARTITIONER_NAMES:
        assert partitions_of_keys(directory, {"orders": [0, 1]}, [b"1"], name)
    with pytest.raises(ValueError, match="partitioner 'sticky' is none of default, integer_key, "):
        pylog.search(directory, key="1", partitioner="sticky")
