"""Replicas of one partition held against each other, and clusters side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Built, Stored, batch_v2, plain_records, wrapper
from tests.support.log_files import mark_clean_shutdown, write_partition
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.results import Finding

ABOUT = ("replicas_differ", "replica_behind", "several_clusters")


def write_broker(
    directory: Path, node: int, batches: Sequence[Built], cluster: str = "Igo74ZAZCxWJ1lxdTzs-vQ"
) -> Path:
    write_partition(directory, {0: batches}, with_time_index=False)
    lines = ["version=1", f"node.id={node}", f"cluster.id={cluster}"]
    (directory / "meta.properties").write_text("\n".join(lines) + "\n", "utf-8")
    return directory


def batch(first: int, count: int, *, epoch: int = 0, value: bytes = b"v") -> Built:
    records = [Stored(first + at, 1_000 + at, b"k", value) for at in range(count)]
    return batch_v2(records, leader_epoch=epoch)


def cleaned(first: int, last: int) -> Built:
    """Return what a cleaner leaves of a batch: its first record alone, under both offsets."""
    return batch_v2([Stored(first, 1_000, b"k", b"v")], base_offset=first, last_offset=last)


def found(*directories: Path) -> list[Finding]:
    return [each for each in pylog.doctor(*directories).findings if each.code in ABOUT]


COMMON = [batch(0, 10), batch(10, 10)]


@pytest.mark.parametrize(
    ("one", "other", "offset", "what"),
    [
        ([batch(20, 5, epoch=3)], [batch(20, 9, epoch=2)], 20, "leader epoch is 3, and 2 in"),
        # The same offsets, and nothing else in common.
        ([batch(20, 5, value=b"x")], [batch(20, 5), batch(25, 5)], 20, "batch's checksum is"),
        # One epoch, and batches that end at other offsets.
        (
            [batch(20, 3), batch(23, 4, epoch=1)],
            [batch(20, 10), batch(30, 1)],
            20,
            "batch's last offset is 22, and 29 in",
        ),
        # Batches that begin at other offsets.
        (
            [cleaned(20, 22), batch(23, 4, epoch=1)],
            [batch(20, 10), batch(30, 1)],
            23,
            "leader epoch is 1, and 0 in",
        ),
    ],
)
def test_where_replicas_part_is_found(
    tmp_path: Path, one: list[Built], other: list[Built], offset: int, what: str
) -> None:
    first = write_broker(tmp_path / "a", 1, [*COMMON, *one])
    second = write_broker(tmp_path / "b", 2, [*COMMON, *other])
    for given in ((first, second), (second, first)):
        [finding] = found(*given)
        assert (str(finding.severity), finding.code) == ("error", "replicas_differ")
        assert finding.path == str(first / "orders-0")
        assert finding.next_offset == offset
        assert f"at offset {offset} the {what}" in finding.message
        assert f"node 2 in {second / 'orders-0'}" in finding.message
    [lost] = pylog.doctor(first, second).verdict.loses_records
    assert (lost.name, lost.from_offset) == ("orders-0", offset)


def test_what_a_cleaner_took_from_one_replica_is_no_difference(tmp_path: Path) -> None:
    whole = batch_v2([Stored(at, 1_000, b"k", b"v") for at in range(10)])
    first = write_broker(tmp_path / "a", 1, [whole, batch(10, 5)])
    second = write_broker(tmp_path / "b", 2, [cleaned(0, 9), batch(10, 5)])
    assert found(first, second) == []
    # A batch of which all is gone leaves no trace.
    third = write_broker(tmp_path / "c", 3, [batch(10, 5)])
    assert found(first, third) == []


def test_messages_of_old_formats_are_compared_by_their_checksums(tmp_path: Path) -> None:
    def stored(value: bytes) -> list[Built]:
        records = [Stored(at, 5_000, b"k", value) for at in range(4)]
        return [
            wrapper(records, magic=1, codec="gzip"),
            wrapper(plain_records(4, 2), magic=1, codec="gzip"),
        ]

    first = write_broker(tmp_path / "a", 1, stored(b"aaaa"))
    second = write_broker(tmp_path / "b", 2, stored(b"bbbb"))
    third = write_broker(tmp_path / "c", 3, stored(b"aaaa"))
    assert found(first, third) == []
    differing = found(first, second)
    assert [(each.code, each.next_offset) for each in differing] == [("replicas_differ", 3)]


def test_the_shorter_of_equal_histories_is_behind(tmp_path: Path) -> None:
    first = write_broker(tmp_path / "a", 1, COMMON[:1])
    second = write_broker(tmp_path / "b", 2, COMMON)
    [finding] = found(first, second)
    assert (str(finding.severity), finding.code) == ("info", "replica_behind")
    assert (finding.next_offset, finding.end_offset) == (10, 20)
    command = (
        f"pylog cat {second} --topic orders --partition 0 --start-offset 10 | pylog append DIR"
    )
    assert finding.message.endswith(command)
    verdict = pylog.doctor(first, second).verdict
    assert [(each.from_offset, each.to_offset) for each in verdict.behind] == [(10, 20)]
    assert verdict.loses_records == []
    assert command in verdict.reasons[-1]
    assert found(first) == []
    assert found(first, first) == []


def test_partitions_of_two_clusters_have_nothing_to_do_with_each_other(tmp_path: Path) -> None:
    first = write_broker(tmp_path / "a", 1, [batch(0, 10)])
    second = write_broker(tmp_path / "b", 1, [batch(0, 5, epoch=7)], cluster="other-cluster-of-two")
    [finding] = found(first, second)
    assert finding.code == "several_clusters"
    assert finding.path == str(second / "meta.properties")
    assert "cluster other-cluster-of-two" in finding.message
    assert "cluster Igo74ZAZCxWJ1lxdTzs-vQ" in finding.message


class TestWhoLeads:
    """A replica that is behind, may lead, and was stopped in order."""

    @staticmethod
    def severity(directory: Path, leader: int, *, is_clean: bool) -> str:
        """Return what is said of the shorter replica, of node 1."""
        first = write_broker(directory / "a", 1, COMMON[:1])
        second = write_broker(directory / "b", 2, COMMON)
        records = [topic_record("orders"), partition_record(0, leader, (leader,))]
        for each in (first, second):
            text = f"version: 0\ntopic_id: {TOPIC_ID_TEXT}"
            (each / "orders-0" / "partition.metadata").write_text(text)
            write_metadata_log(each, records, voters=(1, 2))
        if is_clean:
            mark_clean_shutdown(first)
        [finding] = [each for each in found(first, second) if each.code == "replica_behind"]
        loses = pylog.doctor(first, second).verdict.loses_records
        assert bool(loses) == (finding.severity == "warning")
        return str(finding.severity)

    @pytest.mark.parametrize(
        ("leader", "is_clean", "severity"),
        [(1, True, "warning"), (1, False, "info"), (2, True, "info")],
    )
    def test_it_lets_the_others_cut_off_what_they_have_more(
        self, tmp_path: Path, leader: int, severity: str, *, is_clean: bool
    ) -> None:
        assert self.severity(tmp_path, leader, is_clean=is_clean) == severity
