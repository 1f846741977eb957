from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.terminal import in_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

CASE = "4.3.0/internal-logdir"


def test_lines_are_those_of_kafkas_tool(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    case = golden_root.case(CASE)
    done = pylog_run("topics", case, "--topic", "orders,short-lived")
    assert done.status == 0
    configs = (
        "index.interval.bytes=300,internal.segment.bytes=4000,max.message.bytes=1000011,"
        "retention.ms=-1,segment.index.bytes=4096,segment.ms=1000000000000"
    )
    counts = "TopicId: RVsaA6ukRsm1uW_Met5mHQ\tPartitionCount: 2\tReplicationFactor: 1"
    rest = "Leader: none\tReplicas: 1\tIsr: \tElr: 1\tLastKnownElr: 1"
    assert done.lines == [
        f"Topic: orders\t{counts}\tConfigs: {configs}",
        f"\tTopic: orders\tPartition: 0\t{rest}",
        f"\tTopic: orders\tPartition: 1\t{rest}",
        "Deleted topic: short-lived\tTopicId: wCn3KIGXQXSPD9BAqwUMPQ\tPartitionCount: 1",
    ]
    assert done.error == (
        f"pylog: note: from {case}/__cluster_metadata-0, records below offset 236\n"
    )


def test_a_terminal_gets_tables_that_fit(golden_root: GoldenRoot) -> None:
    case = golden_root.case(CASE)
    lines = in_terminal(80, "topics", case, "--topic", "orders,short-lived").splitlines()
    assert [line.rstrip() for line in lines] == [
        "orders  RVsaA6ukRsm1uW_Met5mHQ  2 partitions, replication factor 1",
        "  index.interval.bytes=300, internal.segment.bytes=4000,",
        "  max.message.bytes=1000011, retention.ms=-1, segment.index.bytes=4096,",
        "  segment.ms=1000000000000",
        "  PARTITION          LEADER  REPLICAS  ISR  ELR  LASTKNOWNELR",
        "          0  none (stopped)  1         -    1    1",
        "          1  none (stopped)  1         -    1    1",
        "short-lived  wCn3KIGXQXSPD9BAqwUMPQ  1 partition, deleted",
    ]


def test_a_terminal_is_told_which_topics_the_metadata_lack(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    logs = shutil.copytree(golden_root.case(CASE), tmp_path / "logs")
    write_partition(logs, {0: [batch_v2(plain_records(0, 2))]}, name="stranger-7")
    printed = " ".join(in_terminal(60, "topics", logs, "--topic", "stranger").split())
    assert printed.startswith(
        "stranger - 1 partition, replication factor -, not in the cluster's metadata - PARTITION"
    )
    assert max(map(len, in_terminal(60, "topics", logs).splitlines())) <= 60


def test_what_directories_do_not_tell_is_a_dash(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name="orders-1")
    done = pylog_run("topics", tmp_path)
    assert done.lines == [
        "Topic: orders\tTopicId: -\tPartitionCount: 1\tReplicationFactor: -\tConfigs: -",
        "\tTopic: orders\tPartition: 1\tLeader: -\tReplicas: -\tIsr: -\tElr: -\tLastKnownElr: -",
    ]
    assert "no __cluster_metadata-0 is here" in done.error


def test_json_has_partitions_and_configs(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("topics", golden_root.case(CASE), "--pattern", "^inv", "--json")
    document = json.loads(done.output)
    (topic,) = document["topics"]
    assert (topic["topic"], topic["isInMetadata"]) == ("invoices-eu", True)
    assert topic["partitions"][0]["eligibleLeaderReplicas"] == [1]
    assert document["metadataEndOffset"] == 236


def test_a_record_that_is_not_understood_is_a_finding(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="__cluster_metadata-0")
    done = pylog_run("topics", tmp_path)
    assert done.status == 1
    assert "a record is not understood and left out" in done.error
