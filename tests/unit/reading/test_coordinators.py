"""Who answers for a group or a transactional id, and what the other partitions are said to hold."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.reading.coordinators import java_hash, partition_for
from tests.support.batches import Built, Stored, batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.admin.committed_offsets import commit_key, commit_value, committed
from tests.unit.admin.coordinated import MINUTE, coordinated, data
from tests.unit.admin.test_transactions import NOW

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello", 99_162_322),
        ("polygenelubricants", -(1 << 31)),
        ("Ω", 937),
        ("😀", 1_772_899),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_least_hash_belongs_to_the_first_partition() -> None:
    assert partition_for("polygenelubricants", 50) == 0


@pytest.mark.parametrize("case", ["4.3.0/internal-logdir", "4.4.0/internal-logdir"])
def test_groups_are_where_a_coordinator_has_put_them(golden_root: GoldenRoot, case: str) -> None:
    directory = pylog.open_directory(golden_root.case(case))
    count = len(directory.topics["__consumer_offsets"])
    assert count > 1
    for view in directory.topics["__consumer_offsets"]:
        listing = pylog.groups(view.directory.path)
        assert {partition_for(each.group_id, count) for each in listing.groups} <= {view.partition}
    assert pylog.groups(golden_root.case(case)).stale == ()


def offsets(group: str, offset: int, at_ms: int = 1000) -> Built:
    value = commit_value(offset)[:-8] + struct.pack(">q", at_ms)
    return batch_v2([Stored(0, 1000, commit_key(group, "orders", 0), value)])


def write_groups(directory: Path, by_partition: dict[int, Built]) -> None:
    for number, batch in by_partition.items():
        write_partition(directory, {0: [batch]}, name=f"__consumer_offsets-{number}")


# "audit" has the hash 93,166,555: it belongs to partition 3 of 4, and to 0 of 5.
AUDIT = {3: offsets("audit", 100), 0: offsets("audit", 950)}


def test_the_audit_groups_hash() -> None:
    assert (partition_for("audit", 4), partition_for("audit", 5)) == (3, 0)


def test_with_all_partitions_the_hash_says_which_state_is_stale(tmp_path: Path) -> None:
    write_groups(tmp_path, AUDIT)
    for number in (1, 2, 4):
        write_partition(tmp_path, {0: []}, name=f"__consumer_offsets-{number}")
    listing = pylog.groups(tmp_path)
    assert committed(listing) == {("audit", "orders", 0): 950}
    (stale,) = listing.stale
    assert (stale.id, stale.partition, stale.coordinator, stale.used) == ("audit", 3, 0, 0)


def test_a_file_of_server_properties_tells_the_number(tmp_path: Path) -> None:
    write_groups(tmp_path / "logs", AUDIT)
    path = tmp_path / "server.properties"
    for count, expected, other in ((5, 950, 3), (4, 100, 0)):
        path.write_text(f"offsets.topic.num.partitions={count}\n", "utf-8")
        properties = pylog.ServerProperties.read(path)
        listing = pylog.groups(tmp_path / "logs", server_properties=properties)
        assert committed(listing) == {("audit", "orders", 0): expected}
        assert [each.partition for each in listing.stale] == [other]


def test_where_the_number_is_not_known_the_newer_state_counts_and_the_other_is_named(
    tmp_path: Path,
) -> None:
    for name, times, expected in (("a", (5, 9), 950), ("b", (9, 5), 100)):
        old, new = times
        write_groups(
            tmp_path / name, {3: offsets("audit", 100, old), 0: offsets("audit", 950, new)}
        )
        listing = pylog.groups(tmp_path / name)
        assert committed(listing) == {("audit", "orders", 0): expected}
        (other,) = listing.stale
        assert other.coordinator is None
        assert "is not known here" in str(other)


def test_an_incomplete_set_of_partitions_makes_nothing_stale(tmp_path: Path) -> None:
    # Of five, these three happen to be the first ones; "audit" contradicts three.
    write_groups(tmp_path, {1: offsets("audit", 100)})
    for number in (0, 2):
        write_partition(tmp_path, {0: []}, name=f"__consumer_offsets-{number}")
    listing = pylog.groups(tmp_path)
    assert committed(listing) == {("audit", "orders", 0): 100}
    assert listing.stale == ()


def test_a_group_whose_only_state_is_stale_is_none(tmp_path: Path) -> None:
    write_groups(tmp_path / "logs", {3: offsets("audit", 100)})
    path = tmp_path / "server.properties"
    path.write_text("offsets.topic.num.partitions=5\n", "utf-8")
    listing = pylog.groups(tmp_path / "logs", server_properties=pylog.ServerProperties.read(path))
    assert listing.groups == []
    assert [(each.partition, each.used) for each in listing.stale] == [(3, None)]


def group_key(type_id: int, group: str) -> bytes:
    return struct.pack(">hh", type_id, len(group)) + group.encode()


def classic_value(generation: int) -> bytes:
    protocol = struct.pack(">h", 8) + b"consumer"
    nulls = struct.pack(">hh", -1, -1)
    return (
        struct.pack(">h", 3)
        + protocol
        + struct.pack(">i", generation)
        + nulls
        + struct.pack(">qi", -1, 0)
    )


@pytest.mark.parametrize(
    ("classic_at", "consumer_at", "kind"), [(0, 1, "consumer"), (1, 0, "classic")]
)
def test_a_group_is_of_the_kind_that_it_was_last(
    tmp_path: Path, classic_at: int, consumer_at: int, kind: str
) -> None:
    records = {
        classic_at: (group_key(2, "g"), classic_value(7)),
        consumer_at: (group_key(3, "g"), struct.pack(">hi", 0, 9) + b"\x00"),
    }
    batch = batch_v2([Stored(at, 1000, *records[at]) for at in sorted(records)])
    write_partition(tmp_path, {0: [batch]}, name="__consumer_offsets-0")
    (group,) = pylog.groups(tmp_path).groups
    assert (group.kind, group.epoch) == (kind, 9 if kind == "consumer" else 7)


def test_what_lies_before_damage_counts(tmp_path: Path) -> None:
    good, bad = (
        offsets("g", 7),
        batch_v2([Stored(1, 1000, commit_key("h", "t", 0), commit_value(1))]),
    )
    directory = write_partition(tmp_path, {0: [good, bad]}, name="__consumer_offsets-0")
    log = directory / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    listing = pylog.groups(tmp_path)
    assert committed(listing) == {("g", "orders", 0): 7}
    assert len(listing.errors) == 1


def test_metadata_that_are_damaged_are_an_error_of_the_answer(tmp_path: Path) -> None:
    write_groups(tmp_path, {3: offsets("audit", 100)})
    write_partition(tmp_path, {0: [data(0, 2)]})
    assert pylog.groups(tmp_path).errors == []
    damaged = write_partition(tmp_path, {0: [offsets("x", 1)]}, name="__cluster_metadata-0")
    path = damaged / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    listing = pylog.groups(tmp_path)
    assert committed(listing) == {("audit", "orders", 0): 100}
    [of_groups], [of_transactions] = listing.errors, pylog.transactions(tmp_path).errors
    for error in (of_groups, of_transactions):
        assert str(error).startswith(str(path))


# ---- transactions


def write_states(directory: Path, by_partition: dict[int, list[Stored]]) -> None:
    for number in range(5):
        records = by_partition.get(number)
        batches = [batch_v2(records)] if records else []
        write_partition(directory, {0: batches}, name=f"__transaction_state-{number}")


def test_the_coordinator_in_the_partition_of_the_hash_answers(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [data(0, 2)]})
    stale = coordinated(0, "audit", 2, 1, 0, ("orders", 0))
    write_states(tmp_path, {3: [stale], 0: [coordinated(0, "audit", 2, 0, 0)]})
    listing = pylog.transactions(tmp_path, now_ms=NOW)
    (found,) = listing.transactions
    assert (found.coordinator_state, found.is_hanging) == ("Empty", True)
    assert [(each.id, each.partition, each.coordinator) for each in listing.stale] == [
        ("audit", 3, 0)
    ]


def test_of_two_ids_with_one_producer_the_one_with_the_partition_under_way_has_it(
    tmp_path: Path,
) -> None:
    write_partition(tmp_path, {0: [data(0, 2)]})
    under_way = coordinated(0, "one", 2, 1, 0, ("orders", 0))
    later = coordinated(1, "two", 2, 4, 5 * MINUTE)
    write_partition(tmp_path, {0: [batch_v2([under_way, later])]}, name="__transaction_state-0")
    (found,) = pylog.transactions(tmp_path, now_ms=NOW).transactions
    assert (found.transactional_id, found.is_hanging) == ("one", False)


def test_what_waits_behind_a_marker_that_was_decided_and_not_written(tmp_path: Path) -> None:
    batches = [data(0, 1), data(1, 2), batch_v2(plain_records(2, 48))]
    write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    decided = coordinated(0, "audit", 2, 2, 3 * MINUTE, ("orders", 0))
    write_partition(tmp_path, {0: [batch_v2([decided])]}, name="__transaction_state-0")
    found = {
        each.producer_id: each for each in pylog.transactions(tmp_path, now_ms=NOW).transactions
    }
    waiting = sum(len(each.data) for each in batches[1:])
    assert (found[2].coordinator_state, found[2].prepared_ms) == ("PrepareCommit", 3 * MINUTE)
    assert (found[2].waiting_records, found[2].waiting_bytes) == (49, waiting)
    assert (found[1].prepared_ms, found[1].waiting_records) == (None, None)


def test_commits_of_one_cluster_do_not_meet_the_logs_of_another(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        text = f"version=1\nnode.id=1\ncluster.id={name}\n"
        (tmp_path / name / "meta.properties").write_text(text, "utf-8")
    write_groups(tmp_path / "a", {0: offsets("g", 7)})
    write_partition(tmp_path / "b", {0: [batch_v2(plain_records(0, 9))]})
    for read in (pylog.groups, pylog.transactions):
        with pytest.raises(LogDirectoryError, match=r"is of cluster a, and .* of cluster b; read"):
            read(tmp_path / "a", tmp_path / "b")
