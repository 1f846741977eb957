"""A repaired copy has every intact batch in its place, and what it lacks is named."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.corruption import entries
from tests.support.damage import with_base_offset
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    write_meta_properties,
    write_partition,
)
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.results import RepairedPartition, RepairSummary

BATCHES = [batch_v2(plain_records(base, 5)) for base in range(0, 30, 5)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_partition(tmp_path / "logs", {0: BATCHES[:2], 10: BATCHES[2:4], 20: BATCHES[4:]})
    checkpoint = "0\n1\norders 0 30\n"
    (tmp_path / "logs" / "recovery-point-offset-checkpoint").write_text(checkpoint)
    return tmp_path / "logs"


def repaired(source: Path) -> tuple[RepairSummary, RepairedPartition]:
    target = source.parent / "copy"
    shutil.rmtree(target, ignore_errors=True)
    summary = pylog.repair_copy(source, target)
    return summary, summary.partitions[0]


def offsets(source: Path) -> list[int]:
    _, partition = repaired(source)
    found = pylog.scan(partition.path, columns=["offset"]).to_table()
    return [int(each) for each in found[0].to_pylist()]


def rewrite(source: Path, base: int, content: Sequence[bytes]) -> None:
    segment_path(source / "orders-0", base).write_bytes(b"".join(content))


def test_segments_that_have_each_others_names_are_put_in_place(source: Path) -> None:
    rewrite(source, 0, [each.data for each in BATCHES[2:4]])
    rewrite(source, 10, [each.data for each in BATCHES[:2]])
    assert offsets(source) == list(range(30))
    summary, partition = repaired(source)
    assert partition.missing == []
    assert summary.is_complete


@pytest.mark.parametrize("name", [12, 27])
def test_a_first_segment_that_has_a_later_name_is_first_again(source: Path, name: int) -> None:
    segment_path(source / "orders-0", 0).rename(segment_path(source / "orders-0", name))
    assert offsets(source) == list(range(30))


@pytest.mark.parametrize(
    "order",
    [[2, 3, 3], [2, 2, 3], [3, 2], [2, 3, 2, 3]],
    ids=["the last twice", "the first twice", "in wrong order", "all twice"],
)
def test_batches_in_a_wrong_order_are_sorted_and_each_is_kept_once(
    source: Path, order: list[int]
) -> None:
    rewrite(source, 10, [BATCHES[each].data for each in order])
    assert offsets(source) == list(range(30))


def test_a_batch_whose_own_offset_is_wrong_gets_that_of_its_place(source: Path) -> None:
    # 22 to 26 are free, since their own batch is damaged; the one that says 22 stood at 10.
    spoiled = bytearray(joined(BATCHES[4:]))
    spoiled[70] ^= 1
    rewrite(source, 20, [bytes(spoiled)])
    rewrite(source, 10, [with_base_offset(BATCHES[2], 20).data, BATCHES[3].data])
    summary, partition = repaired(source)
    assert offsets(source) == [*range(20), *range(25, 30)]
    assert partition.missing == [(20, 25)]
    assert not summary.is_complete


def test_an_offset_that_never_was_in_the_log_is_not_taken(source: Path) -> None:
    rewrite(source, 10, [with_base_offset(BATCHES[2], 2**40).data, BATCHES[3].data])
    assert offsets(source) == list(range(30))


def test_what_was_renamed_for_deletion_fills_what_is_gone(source: Path) -> None:
    path = segment_path(source / "orders-0", 10)
    path.rename(f"{path}.deleted")
    assert offsets(source) == list(range(30))
    path = segment_path(source / "orders-0", 20)
    path.rename(f"{path}.deleted")
    assert offsets(source) == list(range(30))


@pytest.mark.parametrize("base", [0, 10, 20])
@pytest.mark.parametrize("what", ["empty", "half", "damaged"])
@pytest.mark.parametrize("knows_end", [True, False])
def test_what_a_broken_swap_file_would_replace_is_kept(
    source: Path, base: int, what: str, *, knows_end: bool
) -> None:
    if not knows_end:
        (source / "recovery-point-offset-checkpoint").unlink()
    path = segment_path(source / "orders-0", base)
    content = path.read_bytes()
    spoiled = content[:70] + bytes([content[70] ^ 1]) + content[71:]
    broken = {"empty": b"", "half": content[: len(content) * 2 // 3], "damaged": spoiled}[what]
    path.with_name(f"{path.name}.swap").write_bytes(broken)
    assert offsets(source) == list(range(30))
    _, partition = repaired(source)
    assert partition.missing == []


def test_what_a_compaction_removed_stays_removed(source: Path) -> None:
    swap = segment_path(source / "orders-0", 0, ".log.swap")
    swap.write_bytes(joined([BATCHES[0], BATCHES[3]]))
    assert offsets(source) == [*range(5), *range(15, 30)]


def test_what_retention_deleted_stays_deleted(source: Path) -> None:
    path = segment_path(source / "orders-0", 0)
    path.rename(f"{path}.deleted")
    assert offsets(source) == list(range(10, 30))


def test_the_end_that_checkpoints_knew_is_missed(source: Path) -> None:
    segment_path(source / "orders-0", 20).write_bytes(BATCHES[4].data)
    summary, partition = repaired(source)
    assert (partition.end_offset, partition.missing) == (25, [(25, 30)])
    assert not summary.is_complete


@pytest.mark.parametrize(("is_clean", "severity"), [(True, "error"), (False, "warning")])
def test_a_lost_first_segment_is_a_loss(source: Path, *, is_clean: bool, severity: str) -> None:
    (source / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    path = segment_path(source / "orders-0", 0)
    path.rename(f"{path}.deleted")
    if is_clean:
        mark_clean_shutdown(source)
    [finding] = [each for each in pylog.doctor(source).findings if each.code == "missing_segment"]
    assert (finding.severity, finding.next_offset, finding.end_offset) == (severity, 0, 10)
    assert finding.message.endswith(f"; {path.name}.deleted may hold what is missing")
    assert offsets(source) == list(range(30))
    (source / "remote-log-index-cache").mkdir()
    codes = [each.code for each in pylog.doctor(source).findings]
    assert (
        codes == ["remote_offsets", "leftover_file", "missing_log"][:2] or "remote_offsets" in codes
    )


class TestOfANode:
    """The copy of a KRaft node's directory."""

    @pytest.fixture
    def source(self, source: Path) -> Path:
        write_partition(source, {0: BATCHES[:1]}, name="orders-1")
        for number in range(2):
            text = f"version: 0\ntopic_id: {TOPIC_ID_TEXT}"
            (source / f"orders-{number}" / "partition.metadata").write_text(text)
        write_meta_properties(source)
        return source

    @pytest.mark.parametrize(
        "content", [None, "", "version: 0\n", "version: 0\ntopic_id: " + "A" * 22]
    )
    @pytest.mark.parametrize("knower", ["metadata", "sibling", "nobody"])
    def test_the_topic_id_comes_from_wherever_it_is_known(
        self, source: Path, content: str | None, knower: str
    ) -> None:
        for number in range(1 if knower == "sibling" else 2):
            path = source / f"orders-{number}" / "partition.metadata"
            path.unlink()
            if content is not None:
                path.write_text(content)
        if knower == "metadata":
            records = [
                topic_record("orders"),
                partition_record(0, 1, (1,)),
                partition_record(1, 1, (1,)),
            ]
            write_metadata_log(source, records)
        summary, partition = repaired(source)
        found = [each.code for each in summary.copy.findings if each.code == "stray_partition"]
        if knower == "nobody":
            assert (partition.topic_id, found) == (None, ["stray_partition"] * 2)
        else:
            assert (partition.topic_id, found) == (TOPIC_ID_TEXT, [])

    @pytest.mark.parametrize("voters", [(1,), (1, 2, 3)], ids=["only", "of three"])
    def test_the_metadata_of_an_only_controller_come_along(
        self, source: Path, voters: tuple[int, ...]
    ) -> None:
        records = [
            topic_record("orders"),
            partition_record(0, 1, (1,)),
            partition_record(1, 1, (1,)),
        ]
        log = segment_path(write_metadata_log(source, records, voters=voters), 0)
        summary, _ = repaired(source)
        copied = segment_path(source.parent / "copy" / METADATA, 0)
        if len(voters) == 1:
            assert copied.read_bytes() == log.read_bytes()
            assert summary.is_complete
        else:
            assert summary.left_out == [pylog.TopicPartition("__cluster_metadata", 0)]
            assert not copied.exists()
            assert not summary.is_complete


def test_a_partition_that_is_being_deleted_becomes_a_live_one(source: Path) -> None:
    place = (source / "orders-0").rename(source / f"orders-0.{1:032x}-delete")
    path = segment_path(place, 0)
    path.rename(f"{path}.deleted")
    (place / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    target = source.parent / "copy"
    [partition] = pylog.repair_copy(place, target).partitions
    assert (partition.missing, partition.left_out_bytes) == ([], 0)
    assert pylog.scan(target / "orders-0").count() == 30


def test_intact_batches_of_a_copy_are_those_of_the_source(source: Path) -> None:
    repaired(source)
    copy = source.parent / "copy" / "orders-0"
    for base in (0, 10, 20):
        assert entries(segment_path(copy, base).read_bytes()) == entries(
            segment_path(source / "orders-0", base).read_bytes()
        )
