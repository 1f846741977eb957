"""Kafka clients read golden directories from `pylog.serve` as they were read from a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

import pylog
from tests.support.golden import (
    GoldenRoot,
    Holds,
    Isolation,
    differences,
    golden_partitions,
    read_expected,
)
from tests.support.served_clients import READERS, Wanted

if TYPE_CHECKING:
    from tests.support.golden import GoldenPartition
    from tests.support.served_clients import Line

SERVED = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)


def _expected(partition: GoldenPartition, isolation: Isolation) -> list[Line]:
    path = partition.expected_path(isolation)
    assert path is not None
    return read_expected(path)


@pytest.mark.thorough(one_in=9)
@pytest.mark.parametrize("partition_id", SERVED)
@pytest.mark.parametrize("client", READERS)
def test_a_client_reads_what_the_broker_served(
    golden_root: GoldenRoot, client: str, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    with pylog.serve(partition.directory) as server:
        for isolation in get_args(Isolation):
            view = pylog.open_directory(partition.directory)[partition.topic, partition.partition]
            expected = _expected(partition, isolation)
            end = max((line["offset"] + 1 for line in expected), default=view.log_start_offset)
            wanted = Wanted(partition.topic, partition.partition, view.log_start_offset, end)
            lines = READERS[client](server.address, wanted, f"read_{isolation}")
            shown = set(lines[0]) if lines else set()
            known = [{key: line[key] for key in line if key in shown or key[:5] == "value"}
                     for line in expected]
            assert differences(known, lines) == []
