"""What is remembered of bytes that were proved, for as long as a log is served."""

from __future__ import annotations

import os
import time
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import TopicChoice
from pylog.server.replica_manager import ReplicaManager, ServedLogs
from pylog.server.segment_proof import BatchCache, Batches, SegmentProof
from tests.support.batches import joined
from tests.support.log_files import segment_path, write_partition
from tests.support.raw_client import RawClient
from tests.unit.server.followed import CONTEXT, content, fetched, followed
from tests.unit.server.test_partition import batches
from tests.unit.server.test_replica_manager import CORRUPT_MESSAGE, fetch

if TYPE_CHECKING:
    from pathlib import Path

ALL = TopicChoice()


def only_proof(replicas: ReplicaManager) -> SegmentProof:
    (proof,) = replicas._proofs._kept.values()
    return proof


@pytest.mark.parametrize("forgets", [False, True])
def test_what_is_appended_batch_by_batch_is_remembered_as_one_window(
    tmp_path: Path, *, forgets: bool
) -> None:
    data = batches(*range(40))
    log = segment_path(write_partition(tmp_path, {0: data[:1]}), 0)
    with followed(tmp_path) as replicas:
        for end in range(1, 40):
            assert content(fetched(replicas, end - 1)) == data[end - 1].data
            with log.open("ab") as file:
                file.write(data[end].data)
            replicas.refresh()
            if forgets:
                replicas._proofs._batches._kept.clear()
        for offset in (39, 0, 17):
            assert content(fetched(replicas, offset)) == joined(data[offset:])
        assert len(only_proof(replicas).windows) == 1


def test_damage_after_a_window_that_was_joined_is_found_where_it_is(tmp_path: Path) -> None:
    data = batches(*range(4))
    log = segment_path(write_partition(tmp_path, {0: data[:1]}), 0)
    damaged = bytearray(data[2].data)
    damaged[70] ^= 1
    with followed(tmp_path) as replicas:
        assert content(fetched(replicas, 0)) == data[0].data
        with log.open("ab") as file:
            file.write(data[1].data + damaged + data[3].data)
        replicas.refresh()
        assert content(fetched(replicas, 1)) == data[1].data
        assert content(fetched(replicas, 0)) == joined(data[:2])
        assert fetched(replicas, 2)["errorCode"] == CORRUPT_MESSAGE
        assert content(fetched(replicas, 3)) == data[3].data


@pytest.mark.parametrize("wrong", [0, 40])
@pytest.mark.parametrize("forgets", [False, True])
def test_a_batch_is_served_under_the_offsets_that_its_neighbours_prove(
    tmp_path: Path, *, forgets: bool, wrong: int
) -> None:
    data = batches(*range(6))
    moved = wrong.to_bytes(8) + data[2].data[8:]
    log = segment_path(write_partition(tmp_path, {0: data}), 0)
    log.write_bytes(joined(data[:2]) + moved + joined(data[3:]))
    with followed(tmp_path, mode=ReadMode.DROPMALFORMED) as replicas:
        for _ in range(2):
            assert content(fetched(replicas, 0)) == joined(data[:2])
            assert content(fetched(replicas, 2)) == data[2].data
            assert content(fetched(replicas, 2, max_bytes=10)) == data[2].data
            assert content(fetched(replicas, 3)) == joined(data[3:])
            if forgets:
                replicas._proofs._batches._kept.clear()
    with followed(tmp_path) as replicas:
        assert content(fetched(replicas, 0)) == joined(data[:2])
        assert fetched(replicas, 2)["errorCode"] == CORRUPT_MESSAGE


def test_windows_of_single_batches_count_as_what_they_take(tmp_path: Path) -> None:
    cache = BatchCache(max_batches=1_000)
    for at in range(1_000):
        cache.put((0, at), Batches(array("q", [at]), array("q", [at])))
    assert len(cache._kept) < 50


def is_open(file: os.stat_result) -> bool:
    """Whether this process holds a file open."""
    for descriptor in os.listdir("/dev/fd"):  # noqa: PTH208 - one of them is the listing's own
        with suppress(OSError):
            if os.path.samestat(os.fstat(int(descriptor)), file):
                return True
    return False


def ensure_closed(file: os.stat_result) -> None:
    """Assert that a file is closed once threads have put away what they were asked for."""
    deadline = time.monotonic() + 10
    while is_open(file):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_files_of_deleted_segments_are_closed(tmp_path: Path) -> None:
    data = batches(*range(10))
    log = segment_path(write_partition(tmp_path, {0: data[:5], 5: data[5:]}), 0)
    file = log.stat()
    with followed(tmp_path) as replicas:
        answer = fetched(replicas, 0)
        assert content(fetched(replicas, 5)) == joined(data[5:])
        log.unlink()
        replicas.refresh()
        assert content(answer) == joined(data[:5])  # it is being sent
        del answer
        ensure_closed(file)
        assert only_proof(replicas).windows  # of the other segment


def test_files_of_deleted_topics_are_closed(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    directory = write_partition(logs, {0: batches(*range(5))})
    write_partition(logs, {0: batches(0)}, name="more-0")
    file = segment_path(directory, 0).stat()
    with followed(logs) as replicas:
        assert fetched(replicas, 0)["records"]
        assert is_open(file)
        directory.rename(tmp_path / "deleted")
        replicas.refresh()
        ensure_closed(file)


def open_segments(directory: Path) -> int:
    """Return how many files of a directory this process holds open."""
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names, not paths
        with suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(directory))  # noqa: PTH115
    return count


def all_of(count: int) -> dict[str, Any]:
    """Return a fetch of so many partitions of ``orders``."""
    asked = [
        {
            "partition": number,
            "fetchOffset": 0,
            "currentLeaderEpoch": -1,
            "lastFetchedEpoch": -1,
            "partitionMaxBytes": 1 << 20,
        }
        for number in range(count)
    ]
    topics = [{"topic": "orders", "topicId": None, "partitions": asked}]
    replica = {"replicaId": -1, "replicaState": {"replicaId": -1}}
    return {**replica, "isolationLevel": 0, "maxBytes": 1 << 30, "minBytes": 1, "topics": topics}


def test_one_fetch_reads_more_partitions_than_files_may_be_open(tmp_path: Path) -> None:
    count, most = 300, 20
    data = batches(0)[0].data
    for number in range(count):
        write_partition(tmp_path, {0: batches(0)}, name=f"orders-{number}")
    replicas = ReplicaManager(ServedLogs(paths=(tmp_path,), choice=ALL), max_files=most)
    try:
        for _ in range(3):  # the files that were given back are opened again
            answer = replicas._fetch(all_of(count), CONTEXT, may_look=True).message
            (topic,) = answer["responses"]
            assert [each["errorCode"] for each in topic["partitions"]] == [0] * count
            assert {content(each) for each in topic["partitions"]} == {data}
            assert open_segments(tmp_path) <= most
    finally:
        replicas.close()


def test_one_response_holds_a_bounded_number_of_files(tmp_path: Path) -> None:
    value = batches(0, size=10_000)
    for number in range(100):
        write_partition(tmp_path, {0: value}, name=f"orders-{number}")
    replicas = ReplicaManager(ServedLogs(paths=(tmp_path,), choice=ALL), max_files=20)
    try:
        answer = replicas._fetch(all_of(100), CONTEXT, may_look=True).message
        sizes = [len(content(each)) for each in answer["responses"][0]["partitions"]]
        assert sizes == [len(value[0].data)] * 64 + [0] * 36
        assert {each["errorCode"] for each in answer["responses"][0]["partitions"]} == {0}
    finally:
        replicas.close()


def test_bytes_after_those_of_a_fetch_are_proved_before_they_are_asked_for(
    tmp_path: Path,
) -> None:
    values = [bytes(1_000)] * 12_000
    pylog.write_topic(tmp_path, "orders", pa.table({"value": values}), partitions=1)
    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        offset = 0
        while offset < len(values):
            answer = fetch(client, offset)
            assert answer["records"]
            offset = end_offset(answer["records"])
            (proof,) = server._replicas._proofs._kept.values()
            deadline = time.monotonic() + 10
            while offset < len(values) and proof.windows[-1].next_offset <= offset:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert len(proof.windows) > 2
        # Later, nobody looks for them again.
        response = server._replicas._fetch(all_of(1), CONTEXT, may_look=False)
        assert not response.next_reads


def end_offset(records: bytes) -> int:
    """Return the offset after the last whole batch."""
    offset = position = 0
    while position + 61 <= len(records):
        size = 12 + int.from_bytes(records[position + 8 : position + 12])
        if position + size > len(records):
            break
        base = int.from_bytes(records[position : position + 8])
        offset = base + int.from_bytes(records[position + 23 : position + 27]) + 1
        position += size
    return offset
