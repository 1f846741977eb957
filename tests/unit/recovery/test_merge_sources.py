"""Which replicas paths lead to, and what metadata beside them say of the last leader."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from pylog.comparison.lineage import LastLeader
from pylog.errors import LogDirectoryError, LogLockedError, UnknownTopicOrPartitionError
from pylog.files.directory_lock import DirectoryLock
from pylog.files.partition_metadata import format_uuid
from pylog.model import TopicPartition
from pylog.recovery.merge_sources import (
    find_sources,
    merge_partitions,
    metadata_beside,
    topic_id_of,
)
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition, write_topic_id
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID,
    TOPIC_ID_TEXT,
    config_record,
    feature_record,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

OTHER_ID = "BBECAwQFBgcICQoLDA0ODw"


def partition(log_directory: Path, name: str = "t-0", topic_id: str | None = None) -> Path:
    path = write_partition(log_directory, {0: [batch_v2(plain_records(0, 3))]}, name=name)
    if topic_id is not None:
        write_topic_id(path, topic_id)
    return path


def test_paths_are_log_directories_or_partitions_and_each_one_counts_once(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    for directory in (one, two):
        for name in ("t-0", "t-1", "u-0"):
            partition(directory, name)
    write_metadata_log(one, [])
    partition(one, "u-1.0123456789abcdef0123456789abcdef-delete")
    partition(one, "u-2.0123456789abcdef0123456789abcdef-stray")
    found = find_sources([two, one / "t-0", one], None, None)
    t0, t1, u0 = (TopicPartition(*each) for each in (("t", 0), ("t", 1), ("u", 0)))
    assert {place: len(each) for place, each in found.replicas.items()} == {t0: 2, t1: 2, u0: 2}
    assert list(found.replicas) == [t0, t1, u0]
    paths = [each.path for each in found.replicas[t0]]
    assert paths == [str(two / "t-0"), str(one / "t-0")]
    assert [found.paths[each] for each in paths] == [0, 1]
    assert found.paths[str(one / "u-0")] == 2
    assert list(find_sources([one], ["t"], [1]).replicas) == [t1]
    with DirectoryLock(str(one)), pytest.raises(LogLockedError):
        find_sources([two, one / "t-0"], None, None)
    for topics, partitions in ((["x"], None), (["t"], [7]), (None, [7]), ([], None)):
        with pytest.raises(UnknownTopicOrPartitionError):
            find_sources([one], topics, partitions)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((None, None), None),
        ((TOPIC_ID_TEXT, None), uuid.UUID(bytes=TOPIC_ID)),
        ((TOPIC_ID_TEXT, TOPIC_ID_TEXT), uuid.UUID(bytes=TOPIC_ID)),
    ],
)
def test_replicas_have_one_topic_id(
    ids: tuple[str | None, ...], expected: uuid.UUID | None, tmp_path: Path
) -> None:
    paths = [partition(tmp_path / str(at), topic_id=each) for at, each in enumerate(ids)]
    [replicas] = find_sources(paths, None, None).replicas.values()
    assert topic_id_of(replicas) == expected
    other = partition(tmp_path / "other", topic_id=OTHER_ID)
    if expected is not None:
        with pytest.raises(LogDirectoryError, match="of 2 topics of one name: AAEC"):
            find_sources([*paths, other], None, None)


def change(number: int, leader: int, isr: tuple[int, ...]) -> bytes:
    """Return a PartitionChangeRecord with two tagged fields: ISR, and leader."""
    head = b"\x01\x05\x00" + number.to_bytes(4, "big") + TOPIC_ID + b"\x02"
    ids = bytes([len(isr) + 1]) + b"".join(each.to_bytes(4, "big") for each in isr)
    fields = b"\x00" + bytes([len(ids)]) + ids
    return head + fields + b"\x01\x04" + leader.to_bytes(4, "big", signed=True)


@pytest.mark.parametrize(
    ("leader", "isr", "expected"),
    [
        (2, (1, 2), LastLeader(2, 5)),
        (-1, (3,), LastLeader(3, 6)),  # the only one that was in sync
        (-1, (1, 3), None),  # any of two
    ],
)
def test_the_last_leader_is_who_leads_or_who_alone_was_in_sync(
    leader: int, isr: tuple[int, ...], expected: LastLeader | None, tmp_path: Path
) -> None:
    values = [
        feature_record(10),
        topic_record("t"),
        partition_record(0, 2, (1, 2, 3), leader_epoch=5),
    ]
    if leader < 0:
        values.append(change(0, leader, isr))
    values.append(config_record(2, "t", "cleanup.policy", "compact,delete"))
    write_metadata_log(tmp_path, values)
    for given in (tmp_path, tmp_path / METADATA):
        found = metadata_beside([], given)
        assert found is not None
        place, known = TopicPartition("t", 0), uuid.UUID(bytes=TOPIC_ID)
        assert found.last_leader(place, known) == found.last_leader(place, None) == expected
        # Another topic of the name, one that is not there, and a number that it has not.
        assert found.last_leader(place, uuid.UUID(int=1)) is None
        assert found.last_leader(TopicPartition("u", 0), None) is None
        assert found.last_leader(TopicPartition("t", 1), known) is None
        assert (found.is_compacted("t"), found.is_compacted("u")) == (True, False)


def test_metadata_are_those_that_were_given_or_beside_a_replica(tmp_path: Path) -> None:
    path = partition(tmp_path / "1")
    assert metadata_beside([path], None) is None
    with pytest.raises(LogDirectoryError, match="no log of the cluster's metadata is here"):
        metadata_beside([path], tmp_path / "1")
    write_metadata_log(tmp_path / "1", [feature_record(10)])
    for each in (path, tmp_path / "1", f"{path}/"):
        found = metadata_beside([each], None)
        assert found is not None
        assert found.path == str(tmp_path / "1" / METADATA)


def node(path: Path, node_id: int, directory_id: int) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    name = format_uuid(uuid.UUID(int=directory_id))
    text = f"version=1\ncluster.id=c\nnode.id={node_id}\ndirectory.id={name}\n"
    (path / "meta.properties").write_text(text)
    return path


def directory_bytes(*ids: int) -> tuple[bytes, ...]:
    return tuple(each.to_bytes(16) for each in ids)


def test_partitions_that_no_disk_has_are_known_from_the_metadata(tmp_path: Path) -> None:
    one, two = node(tmp_path / "1", 1, 1001), node(tmp_path / "2", 2, 1002)
    records = [
        topic_record("t"),
        partition_record(0, 1, (1, 2), directory_bytes(1001, 1002)),
        partition_record(1, 1, (1, 2), directory_bytes(1001, 1002)),
        partition_record(2, 3, (3,), directory_bytes(1003)),  # of a node that was not given
        partition_record(3, 2, (2,), directory_bytes(1009)),  # of a disk that was not given
        partition_record(4, 2, (2,), directory_bytes(0)),  # wherever
        partition_record(5, 2, (2,)),
    ]
    write_metadata_log(one, records)
    partition(two, "t-0")
    found = find_sources([one, two], None, None, metadata_beside([one, two], None))
    assert [(str(place), len(each)) for place, each in found.replicas.items()] == [
        *(("t-0", 1), ("t-1", 2), ("t-4", 1), ("t-5", 1))
    ]
    assert merge_partitions(one, two) == list(found.replicas)
    assert merge_partitions(one, two, partitions=[1, 2]) == [TopicPartition("t", 1)]
    assert list(find_sources([one, two], None, None).replicas) == [TopicPartition("t", 0)]


def test_a_topic_that_is_nowhere_is_an_error_beside_one_that_is(tmp_path: Path) -> None:
    partition(tmp_path / "1", "t-0")
    with pytest.raises(UnknownTopicOrPartitionError, match="topic u that is wanted"):
        find_sources([tmp_path / "1"], ["t", "u"], None)
