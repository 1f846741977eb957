from __future__ import annotations

import gzip
import json
import re
import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import UnknownTopicOrPartitionError
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_partition, write_topic_id
from tests.unit.admin.committed_offsets import CASE, commits, committed, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

# Before the offsets expired, and while a transaction was open whose commit came at 1795220321442.
BEFORE_EXPIRY = 1_795_220_381_770
IN_A_TRANSACTION = 1_795_220_321_441


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
        write_topic_id(directory / "orders-0", "AAECAwQFBgcICQoLDA0ODw")
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


def test_a_directory_without_groups_and_a_group_that_is_not_there_are_errors(
    tmp_path: Path,
) -> None:
    write_partition(tmp_path / "a", {0: [batch_v2(plain_records(0, 2))]}, name="orders-0")
    with pytest.raises(UnknownTopicOrPartitionError, match="no partition of __consumer_offsets"):
        pylog.groups(tmp_path / "a")
    written(tmp_path / "b", [commits((0, 0, 7))])
    with pytest.raises(UnknownTopicOrPartitionError, match="no group 'h' here; groups found: g"):
        pylog.groups(tmp_path / "b", groups=["h"])
