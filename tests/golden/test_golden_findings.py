"""Table ``findings`` over every golden partition: all its findings, with the reason of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.golden import golden_partitions
from tests.support.metadata_rows import table_of

if TYPE_CHECKING:
    from pylog.results import Finding
    from tests.support.golden import GoldenRoot

LIVE = [each for each in golden_partitions() if not each.endswith("-delete")]
Expected = dict[tuple[str, str], int]

# The time index came with 0.10.1.
_BEFORE_TIME_INDEXES = ("0.8.2.2/", "0.10.0.1/")

# Where bytes or files were taken away, or changed, and what a broker could not put back of it.
_HARMED = ("crash-corrupt-byte:", "crash-torn-tail:", "crash-no-index:before/")

# The oldest brokers had forced to disk, and acknowledged, what the crash test then took away; and
# they left the recovery point as it was when they cut the log.
_RECOVERY_POINT: Expected = {("warning", "recovery_point_above_log_end"): 1}
_LOST_END: Expected = {
    ("error", "high_watermark_above_log_end"): 1,
    ("error", "recovery_point_above_log_end"): 1,
}
_TORN: Expected = {("info", "torn_tail"): 1}
_TORN_RECORDS: Expected = {("error", "torn_tail"): 1}
_FLIPPED: Expected = {("error", "damaged_batches"): 1}
_ZEROS: Expected = {("info", "zero_tail"): 1}


def _empty_time_indexes(count: int) -> Expected:
    """Say of segments that a broker before 0.10.1 has written, and a later one opened."""
    return {("info", "empty_time_index"): count}


EXPECTED: dict[str, Expected] = {
    "0.10.0.1/crash-corrupt-byte:before/flip-0": _FLIPPED,
    "0.10.0.1/crash-corrupt-byte:after/flip-0": _RECOVERY_POINT,
    "0.10.0.1/crash-torn-tail:before/rip-0": _TORN_RECORDS | _LOST_END,
    "0.10.0.1/crash-torn-tail:after/rip-0": _RECOVERY_POINT,
    "0.8.2.2/crash-corrupt-byte:before/flip-0": _FLIPPED,
    "0.8.2.2/crash-corrupt-byte:after/flip-0": _RECOVERY_POINT,
    "0.8.2.2/crash-no-index:before/bare-0": {("warning", "missing_index"): 4},
    "0.8.2.2/crash-torn-tail:before/rip-0": _TORN_RECORDS | _LOST_END,
    "0.8.2.2/crash-torn-tail:after/rip-0": _RECOVERY_POINT,
    "2.8.2/mixed-magic-compacted:before/upgraded-kv-0": _empty_time_indexes(2),
    "2.8.2/mixed-magic-compacted:before/upgraded-kv-zip-0": _empty_time_indexes(2),
    "2.8.2/mixed-magic-compressed:upgraded-zip-0": _empty_time_indexes(2),
    "2.8.2/mixed-magic:upgraded-0": _empty_time_indexes(2),
    "3.9.1/crash-torn-tail:before/torn-0": _TORN,
    "4.3.0/crash-corrupt-byte:before/corrupt-0": _FLIPPED,
    # The three files of one segment that the cleaner was writing.
    "4.3.0/crash-mid-clean:before/mid-clean-0": {("info", "leftover_file"): 3},
    "4.3.0/crash-no-index:before/noindex-0": {
        ("warning", "missing_index"): 4,
        ("warning", "missing_time_index"): 4,
    },
    "4.3.0/crash-preallocated:before/prealloc-0": _ZEROS,
    "4.3.0/crash-preallocated:before/prealloc-zip-0": _ZEROS,
    "4.3.0/crash-torn-tail:before/torn-0": _TORN,
    # The delay after which a broker deletes such files was made huge.
    "4.3.0/leftovers:left-compaction-0": {("info", "leftover_file"): 9},
    "4.3.0/leftovers:left-retention-0": {("info", "leftover_file"): 3},
    # All but the last segment was uploaded, and deleted from the broker's disk.
    "4.3.0/tiered:archive-0": {("info", "remote_offsets"): 1},
    "4.3.0/tiered:archive-txn-0": {("info", "remote_offsets"): 1},
    # Copied from a controller that was working, whose index is not filled with zeros.
    "4.4.0/controller-logdir:__cluster_metadata-0": {
        **_empty_time_indexes(1),
        ("info", "waits_for_controllers"): 1,
    },
}


_KILLED = (
    "0.10.0.1/crash-kill:before/boom-0",
    "0.11.0.3/crash-kill:before/crash-0",
    "0.8.2.2/crash-kill:before/boom-0",
    "2.8.2/crash-kill:before/crash-0",
    "3.9.1/crash-kill:before/crash-0",
    "3.9.1/crash-torn-tail:before/torn-0",
    "3.9.1/replicas-diverged:broker-1/ledger-unclean-0",
    "4.3.0/crash-corrupt-byte:before/corrupt-0",
    "4.3.0/crash-kill:before/crash-0",
    "4.3.0/crash-no-index:before/noindex-0",
    "4.3.0/crash-preallocated:before/prealloc-0",
    "4.3.0/crash-preallocated:before/prealloc-zip-0",
    "4.3.0/crash-torn-tail:before/torn-0",
)
"""Of brokers that were killed before they had written the last high watermark."""

_GIVEN_UP = "4.4.0/compacted-max-decompressed:"  # by its cleaner
_CLEANED = ("4.3.0/crash-mid-clean:", "4.3.0/leftovers:left-compaction")


def was_cleaned(partition_id: str) -> bool:
    """Whether the broker's cleaner had been at the log when the directory was copied."""
    case, _, _ = partition_id.partition(":")
    is_cleaned = "compacted" in case and ":after" in partition_id
    is_cleaned = is_cleaned and not partition_id.startswith(_GIVEN_UP)
    return is_cleaned or partition_id.startswith(_CLEANED)


@pytest.mark.parametrize("partition_id", LIVE)
def test_findings_are_what_was_done_to_a_partition(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    rows = table_of(partition, "findings")
    expected = dict(EXPECTED.get(partition_id, {}))
    if partition_id.startswith(_BEFORE_TIME_INDEXES):
        expected["info", "no_time_indexes"] = 1
    if partition_id in _KILLED:
        expected["info", "high_watermark_below_log_end"] = 1
    if was_cleaned(partition_id):
        expected["info", "compacted_offsets"] = 1
    assert Counter((row["severity"], row["code"]) for row in rows) == expected
    assert {row["message"] == "" for row in rows} <= {False}


@pytest.mark.parametrize(
    "partition_id", [each for each in LIVE if not each.split("/", 1)[1].startswith(_HARMED)]
)
def test_no_log_that_a_broker_left_sound_has_anything_wrong(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    rows = table_of(golden_root.partition(partition_id), "findings")
    assert [row for row in rows if row["severity"] != "info"] == []


def test_the_batch_with_the_flipped_byte_is_reported(golden_root: GoldenRoot) -> None:
    partition = golden_root.partition("4.3.0/crash-corrupt-byte:before/corrupt-0")
    (row,) = (each for each in table_of(partition, "findings") if each["severity"] == "error")
    path = partition.directory / "00000000000000000123.log"
    assert (row["path"], row["position"], row["end_position"]) == (str(path), 1567, 1844)
    assert (row["next_offset"], row["end_offset"]) == (137, 139)


def findings_of_replicas(golden_root: GoldenRoot, case: str, topic: str) -> list[Finding]:
    found = golden_root.partition(f"3.9.1/{case}:broker-1/{topic}-0").case_directory
    brokers = sorted(found.glob("broker-*"))
    assert len(brokers) == 3
    report = pylog.doctor(*brokers, topics=[topic])
    about = ("replicas_differ", "replica_behind")
    return [
        finding
        for partition in report.partitions
        for finding in partition.findings
        if finding.code in about
    ]


def test_replicas_that_two_leaders_have_written_differ_from_where_they_part(
    golden_root: GoldenRoot,
) -> None:
    behind, forked = findings_of_replicas(golden_root, "replicas-diverged", "ledger-unclean")
    assert (behind.code, behind.next_offset, behind.end_offset) == ("replica_behind", 69, 78)
    assert (forked.code, forked.next_offset, forked.end_offset) == ("replicas_differ", 30, 63)
    assert "broker-3" in forked.path
    assert "at offset 30 the leader epoch is 4, and 0 in that of node 1" in forked.message


def test_a_replica_that_was_stopped_earlier_is_behind_and_does_not_differ(
    golden_root: GoldenRoot,
) -> None:
    found = findings_of_replicas(golden_root, "replicas", "ledger")
    assert [(each.code, each.next_offset, each.end_offset) for each in found] == [
        ("replica_behind", 35, 110),
        ("replica_behind", 25, 47),
    ]


def test_findings_of_a_mode_are_those_of_any(golden_root: GoldenRoot) -> None:
    partition = golden_root.partition("4.3.0/crash-corrupt-byte:before/corrupt-0")
    rows = table_of(partition, "findings")
    assert table_of(partition, "findings", mode="DROPMALFORMED") == rows
