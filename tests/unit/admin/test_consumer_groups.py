from __future__ import annotations

import gzip
import json
import re
import struct
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import UnknownTopicOrPartitionError
from pylog.reading import group_records
from pylog.reading.producer_transactions import find_transactions
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    joined,
    marker,
    plain_records,
)
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.reading.log_view import LogView
    from pylog.reading.producer_transactions import Transaction
    from tests.support.golden import GoldenRoot

CASE = "4.3.0/internal-logdir"
# Before the offsets expired, and while a transaction was open whose commit came at 1795220321442.
BEFORE_EXPIRY = 1_795_220_381_770
IN_A_TRANSACTION = 1_795_220_321_441


def commit_key(group: str, topic: str, partition: int) -> bytes:
    texts = b"".join(struct.pack(">h", len(each)) + each.encode() for each in (group, topic))
    return b"\x00\x01" + texts + struct.pack(">i", partition)


def commit_value(offset: int, metadata: str = "") -> bytes:
    data = metadata.encode()
    head = struct.pack(">hqih", 3, offset, 5, len(data))
    return head + data + struct.pack(">q", 1000)


def commits(
    *records: tuple[int, int, int | None],
    **options: Any,  # noqa: ANN401 - as of batch_v2
) -> Built:
    """Return a batch of commits: offset in the log, partition of "orders", what is committed."""
    return batch_v2(
        [
            Stored(
                at,
                1000 * at,
                commit_key("g", "orders", partition),
                None if committed is None else commit_value(committed),
            )
            for at, partition, committed in records
        ],
        **options,
    )


def written(directory: Path, batches: list[Built]) -> Path:
    write_partition(directory, {batches[0].base_offset: batches}, name="__consumer_offsets-0")
    return directory


def committed(listing: pylog.results.GroupListing) -> dict[tuple[str, str, int], int | None]:
    return {
        (group.group_id, each.topic, each.partition): each.offset
        for group in listing.groups
        for each in group.offsets
    }


def committed_as_dumped(case: Path, at_ms: int) -> dict[tuple[str, str, int], int]:
    """Return what Kafka's own dump says had been committed by then."""
    found: dict[tuple[str, str, int], int | None] = {}
    for path in sorted(case.glob("dump-decoded.__consumer_offsets-*.txt.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        last: dict[tuple[str, str, int], tuple[int, int | None]] = {}
        pending: dict[str, dict[tuple[str, str, int], tuple[int, int | None]]] = {}
        producer = ""
        for line in text.split("\n"):
            if batch := re.search(r"producerId: (-?\d+).*isTransactional: (true|false)", line):
                producer = batch[1] if batch[2] == "true" else ""
                continue
            record = re.match(r"\| offset: (\d+) CreateTime: (\d+) ", line)
            if record is None or int(record[2]) > at_ms:
                continue
            if end := re.search(r"endTxnMarker: (\w+)", line):
                ended = pending.pop(producer, {})
                for key, each in ended.items() if end[1] == "COMMIT" else ():
                    last[key] = max(last.get(key, each), each, key=lambda pair: pair[0])
                continue
            parts = re.search(r'key: ({"type":"1".*?}}) payload: (.*)', line)
            if parts is None:
                continue
            key_fields = json.loads(parts[1])["data"]
            key = (key_fields["group"], key_fields["topic"], key_fields["partition"])
            value = None
            if parts[2] != "<DELETE>":
                value = json.loads(parts[2])["data"]["offset"]
            into = pending.setdefault(producer, {}) if producer else last
            into[key] = (int(record[1]), value)
        found |= {key: value for key, (_, value) in last.items()}
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize("at_ms", [None, BEFORE_EXPIRY, IN_A_TRANSACTION, 1_795_220_320_100])
def test_committed_offsets_are_those_of_kafkas_dump(
    golden_root: GoldenRoot, at_ms: int | None
) -> None:
    case = golden_root.case(CASE)
    expected = committed_as_dumped(case, 2**62 if at_ms is None else at_ms)
    assert len(expected) >= 3
    assert committed(pylog.groups(case, at_ms=at_ms)) == expected


def test_lag_is_counted_to_the_end_of_the_log_or_to_its_last_stable_offset(
    golden_root: GoldenRoot,
) -> None:
    case = golden_root.case(CASE)
    ends = json.loads((case / "offsets.json").read_text())["orders-1"]
    assert (ends["latest"], ends["latestReadCommitted"]) == (49, 45)
    for isolation, end in (("read_uncommitted", 49), ("read_committed", 45)):
        (group,) = pylog.groups(case, groups=["grp-late"], isolation=isolation).groups
        (offset,) = group.offsets
        assert (offset.offset, offset.log_end_offset, offset.lag) == (9, end, end - 9)


def test_members_of_a_classic_group_have_what_they_were_assigned(golden_root: GoldenRoot) -> None:
    at_ms = 1_795_220_320_290
    listing = pylog.groups(golden_root.case(CASE), groups=["grp-member"], at_ms=at_ms)
    (group,) = listing.groups
    assert (group.kind, group.state, group.epoch) == ("classic", "Stable", 1)
    assert (group.protocol_type, group.protocol) == ("consumer", "range")
    (member,) = group.members
    assert member.client_id == "member-grp-member"
    assert member.client_host == "/127.0.0.1"
    assert [str(each) for each in member.assigned] == ["orders-0", "orders-1"]
    assert {each.member_id for each in group.offsets} == {member.member_id}
    # And it has left since.
    (group,) = pylog.groups(golden_root.case(CASE), groups=["grp-member"]).groups
    assert (group.state, group.members, group.epoch) == ("Empty", (), 2)


def test_the_log_of_a_past_instant_ended_where_it_ended_then(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 0, 2))])
    records = batch_v2([*plain_records(0, 3, timestamp=10), *plain_records(3, 2, timestamp=9000)])
    write_partition(tmp_path, {0: [records]}, name="orders-0")
    for at_ms, end in ((None, 5), (12, 3), (8_999, 3), (9_000, 4)):
        ((offset,),) = (each.offsets for each in pylog.groups(tmp_path, at_ms=at_ms).groups)
        assert (offset.log_end_offset, offset.lag) == (end, end - 2)


def test_offsets_of_a_transaction_count_once_it_is_committed(tmp_path: Path) -> None:
    transaction = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    batches = [
        commits((0, 0, 10), (1, 1, 10), (2, 2, 10), (3, 3, 10)),
        commits((4, 0, 20), producer_id=1, **transaction),
        commits((5, 1, 20), producer_id=2, **transaction),
        commits((6, 2, 20), producer_id=3, **transaction),
        marker(7, COMMIT, producer_id=1, timestamp=7000),
        marker(8, ABORT, producer_id=2, timestamp=8000),
        # A plain commit that comes after the transaction's, and before its marker, wins.
        commits((9, 3, 20), producer_id=4, **transaction),
        commits((10, 3, 30)),
        marker(11, COMMIT, producer_id=4, timestamp=11_000),
    ]
    written(tmp_path, batches)
    of_g = {("g", "orders", each): offset for each, offset in enumerate((20, 10, 10, 30))}
    assert committed(pylog.groups(tmp_path)) == of_g
    before = {("g", "orders", each): 10 for each in range(4)}
    assert committed(pylog.groups(tmp_path, at_ms=6_999)) == before


def test_transactions_of_a_partition_that_is_compacted_meanwhile_are_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    batches = [
        commits((0, 0, 10)),
        commits((1, 0, 20), producer_id=1, **transaction),
        marker(2, COMMIT, producer_id=1),
    ]
    path = segment_path(written(tmp_path, batches) / "__consumer_offsets-0", 0)
    compacted = [joined(batches[1:])]

    def compacted_first(view: LogView) -> Iterator[Transaction]:
        if compacted:
            swap = path.with_name(path.name + ".swap")
            swap.write_bytes(compacted.pop())
            path.rename(path.with_name(path.name + ".deleted"))
            swap.rename(path)
        return find_transactions(view)

    monkeypatch.setattr(group_records, "find_transactions", compacted_first)
    listing = pylog.groups(tmp_path)
    assert listing.errors == []
    assert committed(listing) == {("g", "orders", 0): 20}


def test_what_compaction_has_removed_is_not_known_of_a_past_instant(tmp_path: Path) -> None:
    # Offset 0 was a commit of partition 0, which the one at 5 replaced.
    written(tmp_path, [commits((1, 1, 7)), commits((5, 0, 9), (6, 2, 9))])
    assert committed(pylog.groups(tmp_path, at_ms=1500)) == {
        ("g", "orders", 0): None,
        ("g", "orders", 1): 7,
        ("g", "orders", 2): None,
    }


def test_without_compaction_a_later_commit_is_no_commit_of_earlier(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 1, 7)), commits((1, 0, 9))])
    assert committed(pylog.groups(tmp_path, at_ms=500)) == {("g", "orders", 1): 7}


def test_a_tombstone_removes_an_offset(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 0, 7), (1, 1, 8), (2, 0, None))])
    assert committed(pylog.groups(tmp_path)) == {("g", "orders", 1): 8}


def text(value: str) -> bytes:
    """Return a string of a flexible version."""
    return bytes([len(value) + 1]) + value.encode()


def test_a_group_whose_broker_assigns_partitions_has_a_state_and_members(tmp_path: Path) -> None:
    topic_id = bytes(range(16))
    group = b"\x00\x02cg"
    member = group + b"\x00\x01m"
    strings = b"\x00\x00" + text("client") + text("/host") + b"\x02" + text("orders") + b"\x00"
    partitions = b"\x02" + topic_id + b"\x03" + struct.pack(">ii", 0, 2) + b"\x00"

    def records(member_epoch: int) -> list[Stored]:
        pairs = [
            (b"\x00\x03" + group, b"\x00\x00" + struct.pack(">i", 4) + b"\x00"),
            (b"\x00\x06" + group, b"\x00\x00" + struct.pack(">i", 4) + b"\x00"),
            (b"\x00\x05" + member, b"\x00\x00" + strings + struct.pack(">i", -1) + b"\x00\x00"),
            (
                b"\x00\x08" + member,
                b"\x00\x00" + struct.pack(">iib", member_epoch, 3, 0) + partitions + b"\x01\x00",
            ),
        ]
        return [Stored(at, 1, key, value) for at, (key, value) in enumerate(pairs)]

    for member_epoch, state in ((4, "Stable"), (3, "Reconciling")):
        directory = tmp_path / state
        write_partition(
            directory, {0: [batch_v2(records(member_epoch))]}, name="__consumer_offsets-0"
        )
        write_partition(directory, {0: [batch_v2(plain_records(0, 2))]}, name="orders-0")
        (directory / "orders-0" / "partition.metadata").write_text(
            "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
        )
        (found,) = pylog.groups(directory).groups
        assert (found.group_id, found.kind, found.state, found.epoch) == (
            "cg",
            "consumer",
            state,
            4,
        )
        (one,) = found.members
        assert (one.member_id, one.client_id, one.client_host) == ("m", "client", "/host")
        assert [str(each) for each in one.assigned] == ["orders-0", "orders-2"]
        # Nothing committed yet, and only one of the logs is here.
        assert [(each.offset, each.log_end_offset) for each in found.offsets] == [
            (None, 2),
            (None, None),
        ]


@pytest.mark.parametrize(
    ("topology", "validated", "state"),
    [(7, 7, "Stable"), (7, 6, "NotReady"), (7, None, "NotReady"), (None, None, "NotReady")],
)
def test_a_streams_group_is_not_ready_before_the_topics_of_its_topology_exist(
    tmp_path: Path, topology: int | None, validated: int | None, state: str
) -> None:
    group = b"\x00\x02sg"
    member = group + b"\x00\x01m"
    validated_field = (
        b"\x00" if validated is None else b"\x01\x00\x04" + struct.pack(">i", validated)
    )
    strings = b"\x00\x00" + text("client") + text("/host")
    of_member = strings + struct.pack(">ii", -1, 7) + text("process") + b"\xff\x01\x00"
    pairs = [
        (b"\x00\x11" + group, b"\x00\x00" + struct.pack(">iq", 4, 0) + validated_field),
        (b"\x00\x14" + group, b"\x00\x00" + struct.pack(">i", 4) + b"\x00"),
        (b"\x00\x13" + member, b"\x00\x00" + of_member),
        (
            b"\x00\x16" + member,
            b"\x00\x00" + struct.pack(">iib", 4, 3, 0) + b"\x01" * 6 + b"\x00",
        ),
    ]
    if topology is not None:
        pairs.append((b"\x00\x17" + group, b"\x00\x00" + struct.pack(">i", topology) + b"\x01\x00"))
    records = [Stored(at, 1, key, value) for at, (key, value) in enumerate(pairs)]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="__consumer_offsets-0")
    [found] = pylog.groups(tmp_path).groups
    assert (found.group_id, found.kind, found.state) == ("sg", "streams", state)


def test_a_topic_that_was_made_again_has_no_lag(tmp_path: Path) -> None:
    topic_id = bytes(range(16))
    value = b"\x00\x04" + struct.pack(">qi", 1, 0) + b"\x01" + struct.pack(">q", 5)
    value += b"\x01\x00\x10" + topic_id
    record = Stored(0, 1, commit_key("g", "orders", 0), value)
    written(tmp_path, [batch_v2([record])])
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name="orders-0")
    for text_of_id, end in (("AAECAwQFBgcICQoLDA0ODw", 2), ("sjhcX-UcQSKqZ9r7sV6gLw", None)):
        (tmp_path / "orders-0" / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {text_of_id}"
        )
        ((offset,),) = (each.offsets for each in pylog.groups(tmp_path).groups)
        assert (offset.offset, offset.log_end_offset) == (1, end)


def test_records_that_are_not_understood_are_counted(tmp_path: Path) -> None:
    odd = [Stored(1, 1, b"\x00\x63", b"x"), Stored(2, 1, commit_key("g", "t", 0), b"\x00")]
    written(tmp_path, [commits((0, 0, 7)), batch_v2(odd)])
    listing = pylog.groups(tmp_path)
    assert listing.unreadable_records == 2
    assert committed(listing) == {("g", "orders", 0): 7}


def test_records_of_a_type_that_only_an_earlier_kafka_has_are_ignored(tmp_path: Path) -> None:
    share_partitions = b"\x00\x09" + struct.pack(">h", 1) + b"g"  # of 4.0 alone
    records = [Stored(1, 1, share_partitions, b"\x00\x00\x01\x00")]
    written(tmp_path, [commits((0, 0, 7)), batch_v2(records)])
    listing = pylog.groups(tmp_path)
    assert (listing.unreadable_records, listing.ignored_records) == (0, 1)
    assert committed(listing) == {("g", "orders", 0): 7}


def test_a_damaged_partition_does_not_hide_the_groups_of_others(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 0, 7))])
    damaged = write_partition(tmp_path, {0: [commits((0, 0, 8))]}, name="__consumer_offsets-1")
    log = damaged / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    listing = pylog.groups(tmp_path)
    assert committed(listing) == {("g", "orders", 0): 7}
    (error,) = listing.errors
    assert str(log) in str(error)


def test_a_directory_without_groups_and_a_group_that_is_not_there_are_errors(
    tmp_path: Path,
) -> None:
    write_partition(tmp_path / "a", {0: [batch_v2(plain_records(0, 2))]}, name="orders-0")
    with pytest.raises(UnknownTopicOrPartitionError, match="no partition of __consumer_offsets"):
        pylog.groups(tmp_path / "a")
    written(tmp_path / "b", [commits((0, 0, 7))])
    with pytest.raises(UnknownTopicOrPartitionError, match="no group 'h' here; groups found: g"):
        pylog.groups(tmp_path / "b", groups=["h"])


def test_partitions_read_side_by_side_give_the_same(tmp_path: Path) -> None:
    for number in range(5):
        key = commit_key(f"g{number}", "orders", 0)
        batch = batch_v2([Stored(0, 1000, key, commit_value(10 * number))])
        write_partition(tmp_path, {0: [batch]}, name=f"__consumer_offsets-{number}")
    (log,) = (tmp_path / "__consumer_offsets-3").glob("*.log")
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(data)
    one = pylog.groups(tmp_path, threads=1)
    assert list(committed(one).values()) == [0, 10, 20, 40]
    assert [str(log) in str(error) for error in one.errors] == [True]
    for threads in (2, 3, 8):
        passed: list[int] = []

        def progress(done: int, total: int, passed: list[int] = passed) -> None:
            passed[:] = [done, total]

        several = pylog.groups(tmp_path, threads=threads, progress=progress)
        assert several.groups == one.groups
        assert list(map(str, several.errors)) == list(map(str, one.errors))
        size = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
        assert passed == [size, size]
