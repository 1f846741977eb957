"""Kafka clients read golden directories from `pylog.serve` as they were read from a broker."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, get_args

import pytest

import pylog
from tests.golden.test_golden_partitions import kafkas_answers, stops_too_early
from tests.support.golden import (
    GoldenRoot,
    Holds,
    Isolation,
    differences,
    golden_partitions,
    read_expected,
)
from tests.support.served_clients import (
    READERS,
    Wanted,
    kafka_python_offsets_for_times,
)

if TYPE_CHECKING:
    from tests.support.golden import GoldenPartition
    from tests.support.served_clients import Line, Reader

SERVED = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)
# aiokafka reads LZ4 of v2 batches alone.
OLD_LZ4 = {
    "0.8.2.2/codec-lz4:u-lz4-0",
    "2.8.2/message-format-version:fmt0-lz4-0",
    "2.8.2/message-format-version:fmt-switch-0",
    "2.8.2/mixed-magic-compacted:before/upgraded-kv-zip-0",
    "2.8.2/mixed-magic-compressed:upgraded-zip-0",
}
CASES = [
    (client, each)
    for client in READERS
    for each in SERVED
    if not (client == "aiokafka" and each in OLD_LZ4)
]


@pytest.mark.thorough(one_in=13)
@pytest.mark.parametrize(("client", "partition_id"), CASES)
def test_a_client_reads_what_the_broker_served(
    golden_root: GoldenRoot, client: str, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    with pylog.serve(partition.directory) as server:
        for isolation in get_args(Isolation):
            assert what_differs(READERS[client], server.address, partition, isolation) == []


@pytest.mark.thorough(one_in=13)
@pytest.mark.parametrize("partition_id", SERVED)
def test_a_client_finds_the_offsets_by_time_that_the_broker_told(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    view = pylog.open_directory(partition.directory)[partition.topic, partition.partition]
    with pylog.serve(partition.directory) as server:
        for isolation in get_args(Isolation):
            told = kafkas_answers(partition, isolation)
            found = kafka_python_offsets_for_times(
                server.address,
                partition.topic,
                partition.partition,
                f"read_{isolation}",
                list(told),
            )
            for (stamp, kafkas), ours in zip(told.items(), found, strict=True):
                if ours != kafkas:  # brokers look into one segment, which may be the wrong one
                    assert kafkas is None, (isolation, stamp)
                    assert ours is not None
                    assert stops_too_early(view, stamp, answer=ours[1]), (isolation, stamp)


def what_differs(
    read: Reader,
    address: str,
    partition: GoldenPartition,
    isolation: Isolation,
    *,
    keeps_header_order: bool = True,
) -> list[str]:
    """Return what a client gets that is not what the broker served."""
    path = partition.expected_path(isolation)
    assert path is not None
    expected = read_expected(path)
    start = pylog.open_directory(partition.directory)[
        partition.topic, partition.partition
    ].log_start_offset
    end = max((line["offset"] + 1 for line in expected), default=start)
    lines: list[Line] = []
    read(
        address,
        Wanted(partition.topic, partition.partition, start, end),
        f"read_{isolation}",
        lines,
    )
    shown = [_as_shown(line, lines) for line in expected]
    if not keeps_header_order:
        for line in (*shown, *lines):
            if "headers" in line:
                line["headers"] = sorted(line["headers"], key=itemgetter(0))
    return differences(shown, lines)


def _as_shown(expected: Line, lines: list[Line]) -> Line:
    """Return the fields that the client tells; librdkafka has epoch 0 for messages without one."""
    shown = {**expected, "leaderEpoch": expected.get("leaderEpoch") or 0}
    told = {"offset", *(lines[0] if lines else ())}
    return {
        name: value for name, value in shown.items() if name in told or name.startswith("value")
    }
