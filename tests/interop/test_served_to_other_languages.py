"""Clients in Go, JavaScript and Java read what `pylog.serve` serves."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, get_args

import pytest

import pylog
from tests.interop.test_served_groups import (
    CASE,
    ENDS,
    PARTITIONS,
    SNAPSHOT_GROUP,
    SNAPSHOT_OFFSETS,
    TOPIC,
    Member,
    served,
    share_and_resume,
)
from tests.interop.test_served_records import OLD_LZ4, SERVED, what_differs
from tests.support.foreign_clients import (
    GO_CLIENTS,
    GROUP_CLIENTS,
    JAVA_CLIENTS,
    ForeignClientNotFoundError,
    member_command,
)
from tests.support.golden import Isolation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import ForeignReaders
    from tests.support.golden import GoldenRoot

# They take the time of the messages in a wrapper, where the broker's own is in the wrapper.
OLD_APPEND_TIME = "0.10.0.1/log-append-time:lat-old-gz-0"
# Go's clients overflow at differences of 292 years.
FAR_TIMES = "4.3.0/extremes:extremes-0"
GO_LIMITS = {*OLD_LZ4, OLD_APPEND_TIME, FAR_TIMES}
# What they cannot read of a broker, either: Kafka 4.4.0 was tried with the same files.
LIMITS = {
    **dict.fromkeys(GO_CLIENTS, GO_LIMITS),
    "kafkajs": {
        OLD_APPEND_TIME,
        # Messages of format 1 after batches of format 2, as after a downgrade.
        "2.8.2/message-format-version:fmt-switch-0",
        # The package for LZ4 does not decompress frames of aiokafka's.
        "4.3.0/foreign-aiokafka:aio-lz4-0",
        # It asks for the same offset for ever after a response of empty batches.
        "4.3.0/compacted-empty-batches:after/empty-batches-0",
    },
}
# kafkajs shows records of aborted transactions where several were open: it takes the list of them
# in the order of their first offsets, one a record. Of a broker it gets the same wrong records.
INTERLEAVED = "txn:payments-0"

CASES = [
    pytest.param(client, each, marks=[pytest.mark.broker] if client in JAVA_CLIENTS else [])
    for client in (*GROUP_CLIENTS, *JAVA_CLIENTS)
    for each in SERVED
    if each not in LIMITS.get(client, ())
]


@pytest.mark.thorough
@pytest.mark.parametrize(("client", "partition_id"), CASES)
def test_a_client_reads_what_the_broker_served(
    golden_root: GoldenRoot, foreign_readers: ForeignReaders, client: str, partition_id: str
) -> None:
    partition, reader = golden_root.partition(partition_id), foreign_readers(client)
    # kafkajs takes no topic that lacks a partition.
    path = partition.log_directory if client == "kafkajs" else partition.directory
    with pylog.serve(path, topics=[partition.topic]) as server:
        for isolation in get_args(Isolation):
            if client == "kafkajs" and isolation == "committed" and INTERLEAVED in partition_id:
                continue
            problems = what_differs(
                reader.read,
                server.address,
                partition,
                isolation,
                keeps_header_order=client != "kafkajs",  # it has the values of each name
            )
            assert problems == []


def member(client: str, address: str, group: str) -> Member:
    """Start a member; skip the test where the client cannot be run."""
    try:
        return Member(member_command(client, address, group, TOPIC))
    except ForeignClientNotFoundError as error:
        pytest.skip(f"{client}: {error}")


@pytest.mark.thorough
@pytest.mark.parametrize("client", GROUP_CLIENTS)
def test_members_share_are_killed_and_resume_after_a_restart(
    golden_root: GoldenRoot, tmp_path: Path, client: str
) -> None:
    share_and_resume(
        golden_root.case(CASE), tmp_path / "offsets", lambda where: member(client, where, "story")
    )


@pytest.mark.thorough
@pytest.mark.parametrize("client", GROUP_CLIENTS)
def test_a_group_of_the_snapshot_resumes_where_it_was(golden_root: GoldenRoot, client: str) -> None:
    with served(golden_root.case(CASE)) as address, ExitStack() as stack:
        alone = stack.enter_context(member(client, address, SNAPSHOT_GROUP))
        alone.wait_until(lambda each: each.next_offsets == ENDS)
        assert alone.assigned == PARTITIONS
        firsts = {name: first for name, (first, _) in alone.read.items()}
        assert firsts == {"orders-0": 0, **SNAPSHOT_OFFSETS}
