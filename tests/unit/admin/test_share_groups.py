from __future__ import annotations

import re
import struct
import tomllib
from typing import TYPE_CHECKING

import pylog
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.damage import flip
from tests.support.log_files import write_log_start_offsets, write_partition, write_topic_id

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

CASE = "4.4.0/internal-logdir"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ID_BYTES = bytes(15) + b"\x01"
SNAPSHOT, UPDATE = 0, 1


def key(partition: int, kind: int = SNAPSHOT, group: str = "billing") -> bytes:
    name = struct.pack(">hh", kind, len(group)) + group.encode()
    return name + ID_BYTES + struct.pack(">i", partition)


def tags(count: int | None) -> bytes:
    """Return the tagged fields: how many deliveries are complete, which only 4.2 and later have."""
    return b"\x00" if count is None else b"\x01\x00\x04" + struct.pack(">i", count)


def snapshot(
    start: int, count: int | None = 0, *, state_epoch: int = 2, leader_epoch: int = 7
) -> bytes:
    head = struct.pack(">hiiiqqq", 0, 0, state_epoch, leader_epoch, start, 1000, 1000)
    return head + b"\x01" + tags(count)


def update(start: int, count: int | None = 0, *, leader_epoch: int = 7) -> bytes:
    batch = struct.pack(">qqbhb", 5, 9, 2, 1, 0)
    return struct.pack(">hiiq", 0, 0, leader_epoch, start) + b"\x02" + batch + tags(count)


def write_states(
    directory: Path, *records: tuple[bytes, bytes | None], number: int = 0, first_ms: int = 1000
) -> Path:
    """Write a partition of ``__share_group_state``: a record each second."""
    stored = [
        Stored(at, first_ms + 1000 * at, name, value) for at, (name, value) in enumerate(records)
    ]
    batches = [batch_v2([each]) for each in stored]
    return write_partition(directory, {0: batches}, name=f"__share_group_state-{number}")


def write_group(
    directory: Path, group: str = "billing", *, number: int = 0, shared: tuple[int, ...] = ()
) -> None:
    """Write a share group's records in ``__consumer_offsets``, with what it has initialized."""
    name = struct.pack(">h", len(group)) + group.encode()
    records = [Stored(0, 1, b"\x00\x0b" + name, struct.pack(">hiq", 0, 4, 99) + b"\x00")]
    if shared:
        partitions = bytes([len(shared) + 1]) + struct.pack(f">{len(shared)}i", *shared)
        topic = ID_BYTES + b"\x07orders" + partitions + b"\x00"
        value = b"\x00\x00\x01\x02" + topic + b"\x01\x00"
        records.append(Stored(1, 1, b"\x00\x0f" + name, value))
    write_partition(directory, {0: [batch_v2(records)]}, name=f"__consumer_offsets-{number}")


def write_topic(directory: Path, end: int, *, partition: int = 0, topic_id: str = TOPIC_ID) -> None:
    path = write_partition(
        directory, {0: [batch_v2(plain_records(0, end))]}, name=f"orders-{partition}"
    )
    write_topic_id(path, topic_id)


Rows = dict[tuple[str, int], tuple[int | None, ...]]


def rows_of(listing: pylog.results.GroupListing, group_id: str = "billing") -> Rows:
    """Return epochs, start offset, complete deliveries and lag by topic and partition."""
    (group,) = (each for each in listing.groups if each.group_id == group_id)
    return {
        (row.topic, row.partition): (
            row.state_epoch,
            row.leader_epoch,
            row.start_offset,
            row.delivery_complete_count,
            row.lag,
        )
        for row in group.share_partitions
    }


def test_offsets_and_lag_are_those_of_kafkas_admin_client(golden_root: GoldenRoot) -> None:
    case = golden_root.case(CASE)
    notes = tomllib.loads((case / "case.toml").read_text())["notes"]
    seen = 0
    listing = pylog.groups(case)
    for note in notes:
        said = re.match(r"Kafka's listShareGroupOffsets (\S+): {(.*)}", note)
        if said is None:
            continue
        expected = {}
        entries = re.findall(
            r"([\w.-]+)-(\d+)=(null|\w+{startOffset=(\d+), leaderEpoch=(\d+), lag=(\d+)})", said[2]
        )
        for topic, partition, value, *numbers in entries:
            known = None if value == "null" else tuple(map(int, numbers))
            expected[topic, int(partition)] = known
        found = {}
        for place, (_, leader_epoch, start, _, lag) in rows_of(listing, said[1]).items():
            # The client has no value where the start offset is -1.
            found[place] = None if start == -1 else (start, leader_epoch, lag)
        assert found == expected
        seen += len(expected)
    assert seen == 6


def test_the_dead_letter_topic_is_what_the_groups_configuration_names(
    golden_root: GoldenRoot,
) -> None:
    groups = pylog.groups(golden_root.case(CASE)).groups
    assert {each.group_id: each.dead_letter_topic for each in groups if each.kind == "share"} == {
        "grp-sh": "dlq.jobs",
        "grp-sh2": "dlq.auto",
        "grp-sh3": None,
    }


def test_an_update_changes_what_it_says_and_counts_anew(tmp_path: Path) -> None:
    write_group(tmp_path)
    write_topic(tmp_path, 50)
    write_states(
        tmp_path,
        (key(0), snapshot(3, 1)),
        (key(0, UPDATE), update(10, 4)),
        (key(0, UPDATE), update(-1, 6, leader_epoch=-1)),
    )
    assert rows_of(pylog.groups(tmp_path)) == {("orders", 0): (2, 7, 10, 6, 34)}


def test_a_later_snapshot_replaces_all_and_a_tombstone_removes(tmp_path: Path) -> None:
    write_group(tmp_path)
    write_states(
        tmp_path,
        (key(0), snapshot(3, 1)),
        (key(0, UPDATE), update(10, 4)),
        (key(0), snapshot(12, 0, state_epoch=5, leader_epoch=8)),
        (key(1), snapshot(1)),
        (key(1, UPDATE), update(2)),
        (key(1), None),
    )
    assert rows_of(pylog.groups(tmp_path)) == {(TOPIC_ID, 0): (5, 8, 12, 0, None)}


def test_before_kafka_4_2_there_is_no_count_and_no_lag(tmp_path: Path) -> None:
    write_group(tmp_path)
    write_topic(tmp_path, 50)
    write_states(tmp_path, (key(0), snapshot(3, None)), (key(0, UPDATE), update(10, None)))
    assert rows_of(pylog.groups(tmp_path)) == {("orders", 0): (2, 7, 10, None, None)}
    # And an update without a count leaves none, whatever was before it.
    write_states(tmp_path, (key(0), snapshot(3, 2)), (key(0, UPDATE), update(10, None)))
    assert rows_of(pylog.groups(tmp_path)) == {("orders", 0): (2, 7, 10, None, None)}


def test_what_kafka_4_0_wrote_is_counted_and_no_row_is_made_of_it(tmp_path: Path) -> None:
    write_group(tmp_path)
    batch = struct.pack(">qqbhb", 5, 9, 2, 1, 0)
    first = struct.pack(">hHiiq", 0, 0, 2, 7, 3) + b"\x02" + batch + b"\x00"
    second = struct.pack(">hHiq", 0, 0, 7, 10) + b"\x02" + batch + b"\x00"
    write_states(tmp_path, (key(0), first), (key(0, UPDATE), second), (key(1), snapshot(4)))
    listing = pylog.groups(tmp_path)
    assert listing.unreadable_share_records == 2
    assert rows_of(listing) == {
        (TOPIC_ID, 0): (None, None, None, None, None),
        (TOPIC_ID, 1): (2, 7, 4, 0, None),
    }


def test_records_of_no_known_type_change_nothing_and_are_counted(tmp_path: Path) -> None:
    write_group(tmp_path)
    write_states(
        tmp_path, (key(0), snapshot(3)), (key(0, 9), b"\x00\x00"), (b"", b"x"), (b"\x00", b"x")
    )
    listing = pylog.groups(tmp_path)
    assert listing.unreadable_share_records == 3
    assert rows_of(listing) == {(TOPIC_ID, 0): (2, 7, 3, 0, None)}


# By java.lang.String: of 2 partitions, 1 answers for "billing:AAA...AQ:0" and 0 for "...:1".
def test_the_state_in_the_partition_of_the_hash_counts_and_the_other_is_named(
    tmp_path: Path,
) -> None:
    write_group(tmp_path)
    write_states(tmp_path, (key(0), snapshot(3)), (key(1), snapshot(4)))
    write_states(tmp_path, (key(0), snapshot(9)), number=1)
    listing = pylog.groups(tmp_path)
    assert rows_of(listing) == {
        (TOPIC_ID, 0): (2, 7, 9, 0, None),
        (TOPIC_ID, 1): (2, 7, 4, 0, None),
    }
    (stale,) = listing.stale
    assert (stale.topic, stale.id) == ("__share_group_state", f"billing:{TOPIC_ID}:0")
    assert (stale.partition, stale.coordinator, stale.used) == (0, 1, 1)
    assert pylog.groups(tmp_path, groups=["billing"]).stale == (stale,)


def test_a_file_of_server_properties_tells_how_many_partitions_there_are(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_group(logs)
    write_states(logs, (key(0), snapshot(3)), number=3)
    write_states(logs, (key(0), snapshot(9)), number=2, first_ms=9000)
    path = tmp_path / "server.properties"
    # Of 4, and of 5 partitions, 3 answers; of 3 it is 2.
    for count, start, other in ((4, 3, 2), (3, 9, 3)):
        path.write_text(f"share.coordinator.state.topic.num.partitions={count}\n", "utf-8")
        listing = pylog.groups(logs, server_properties=pylog.ServerProperties.read(path))
        assert rows_of(listing) == {(TOPIC_ID, 0): (2, 7, start, 0, None)}
        assert [(each.partition, each.coordinator) for each in listing.stale] == [
            (other, 3 if other == 2 else 2)
        ]
    (stale,) = pylog.groups(logs).stale  # the newer one counts
    assert (stale.partition, stale.coordinator, stale.used) == (3, None, 2)


def test_what_is_initialized_and_has_its_state_elsewhere_is_a_row(tmp_path: Path) -> None:
    write_group(tmp_path, shared=(0, 1))
    write_topic(tmp_path, 50)
    write_states(tmp_path, (key(1), snapshot(4)))
    assert rows_of(pylog.groups(tmp_path)) == {
        ("orders", 0): (None, None, None, None, None),
        ("orders", 1): (2, 7, 4, 0, None),
    }


def test_another_topic_of_that_name_is_not_the_one_of_the_id(tmp_path: Path) -> None:
    write_group(tmp_path, shared=(0,))
    write_topic(tmp_path, 50, topic_id="sjhcX-UcQSKqZ9r7sV6gLw")
    write_states(tmp_path, (key(0), snapshot(4)))
    (group,) = pylog.groups(tmp_path).groups
    (row,) = group.share_partitions
    assert (row.topic, row.topic_id, row.log_end_offset) == (TOPIC_ID, TOPIC_ID, None)


def test_a_group_of_which_only_share_state_is_here_is_dead_or_unknown(tmp_path: Path) -> None:
    write_states(tmp_path, (key(0), snapshot(4)))
    (group,) = pylog.groups(tmp_path).groups
    assert (group.group_id, group.kind, group.state) == ("billing", "share", "Unknown")
    # Of 2 partitions of __consumer_offsets, 1 answers for "billing".
    for number in (0, 1):
        write_partition(tmp_path, {0: []}, name=f"__consumer_offsets-{number}")
    (group,) = pylog.groups(tmp_path).groups
    assert (group.kind, group.state) == ("share", "Dead")


def test_the_state_of_a_past_instant_is_what_was_written_by_then(tmp_path: Path) -> None:
    write_group(tmp_path)
    path = write_states(
        tmp_path, (key(0), snapshot(3)), (key(0, UPDATE), update(10, 4)), (key(1), snapshot(8))
    )
    assert rows_of(pylog.groups(tmp_path, at_ms=1500)) == {(TOPIC_ID, 0): (2, 7, 3, 0, None)}
    assert rows_of(pylog.groups(tmp_path, at_ms=2000)) == {(TOPIC_ID, 0): (2, 7, 10, 4, None)}
    # Where a broker has removed what was before it, nobody knows what that was.
    write_log_start_offsets(tmp_path, {("__share_group_state", 0): 2})
    unknown = {(TOPIC_ID, 1): (None,) * 5}
    assert rows_of(pylog.groups(tmp_path, at_ms=1500)) == unknown
    assert path.is_dir()


def test_what_is_before_damage_counts_and_the_damage_is_named(tmp_path: Path) -> None:
    write_group(tmp_path)
    path = write_states(tmp_path, (key(0), snapshot(3)), (key(0, UPDATE), update(10)))
    log = path / f"{0:020d}.log"
    flip(log, -1)
    listing = pylog.groups(tmp_path)
    assert rows_of(listing) == {(TOPIC_ID, 0): (2, 7, 3, 0, None)}
    (error,) = listing.errors
    assert str(log) in str(error)
