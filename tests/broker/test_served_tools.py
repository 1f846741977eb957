"""Kafka's own tools and its Java consumer on golden directories that are served."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, get_args

import pytest

import pylog
from tests.support.golden import Isolation, read_expected, stored_of
from tests.support.kafka_broker_tools import console_consume, console_line, run_tool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_is_here")]

TOOLS = "org.apache.kafka.tools."
PARTITIONS = (
    "4.3.0/txn:payments-0",
    "4.3.0/plain:orders-0",
    "4.3.0/log-append-time:events-lat-gz-0",
    "2.8.2/mixed-magic-compressed:upgraded-zip-0",
)


@pytest.mark.thorough(one_in=8)
@pytest.mark.parametrize("isolation", get_args(Isolation))
@pytest.mark.parametrize("partition_id", PARTITIONS)
def test_the_java_consumer_reads_what_the_broker_served(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    partition = golden_root.partition(partition_id)
    path = partition.expected_path(isolation)
    assert path is not None
    expected = [console_line(stored_of(line)) for line in read_expected(path)]
    with pylog.serve(partition.log_directory) as server:
        read = console_consume(
            server.address,
            [partition.topic],
            f"read_{isolation}",
            len(expected),
            partition=partition.partition,
        )
    assert read == expected


def _offsets(case: Path) -> dict[str, dict[str, int]]:
    return {
        name: json.loads((case / "offsets.json").read_text("utf-8"))[name]
        for name in ("payments-0", "payments-1")
    }


def test_tools_describe_what_is_served(golden_root: GoldenRoot) -> None:
    case = golden_root.case("4.3.0/txn")
    expected = _offsets(case)
    with pylog.serve(case) as server:
        where = ("--bootstrap-server", server.address)
        latest = run_tool(f"{TOOLS}GetOffsetShell", *where).split()
        assert latest == [
            f"payments:{each}:{expected[f'payments-{each}']['latest']}" for each in (0, 1)
        ]
        described = run_tool(f"{TOOLS}TopicCommand", *where, "--describe")
        assert described.count("Leader: ") == 2
        sizes = run_tool(f"{TOOLS}LogDirsCommand", *where, "--describe")
        document = json.loads(sizes.splitlines()[-1])
        assert {
            each["partition"]: each["size"]
            for directory in document["brokers"][0]["logDirs"]
            for each in directory["partitions"]
        } == {
            name: sum(path.stat().st_size for path in (case / name).glob("*.log"))
            for name in expected
        }


@pytest.mark.thorough
def test_tools_that_change_something_are_told_why_they_cannot(golden_root: GoldenRoot) -> None:
    with pylog.serve(golden_root.case("4.3.0/txn")) as server:
        where = ("--bootstrap-server", server.address)
        for arguments in (("--create", "--topic", "new"), ("--delete", "--topic", "payments")):
            with pytest.raises(subprocess.CalledProcessError) as failure:
                run_tool(f"{TOOLS}TopicCommand", *where, *arguments)
            assert b"pylog serve is read-only" in failure.value.stdout
