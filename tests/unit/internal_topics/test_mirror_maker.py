from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pylog.errors import InvalidRecordError
from pylog.internal_topics.mirror_maker import (
    CHECKPOINTS,
    HEARTBEATS,
    OFFSET_SYNCS,
    GroupCheckpoint,
    Heartbeat,
    MirrorMakerDecoder,
    OffsetSync,
    read_checkpoint,
    read_heartbeat,
    read_offset_sync,
)
from tests.support.mirror_records import checkpoint, heartbeat, offset_sync

if TYPE_CHECKING:
    from collections.abc import Callable


# The texts are those of Kafka's formatters: tests/broker/test_mirror_maker.py has them print some.


def test_a_sync_is_read_and_printed_as_kafkas_formatter_does() -> None:
    sync = read_offset_sync(*offset_sync("ö", 3, 7, 5))
    assert sync == OffsetSync("ö", 3, 7, 5)
    assert str(sync) == "OffsetSync{topicPartition=ö-3, upstreamOffset=7, downstreamOffset=5}"


def test_a_checkpoint_is_read_and_printed_as_kafkas_formatter_does() -> None:
    found = read_checkpoint(*checkpoint("pay", "a.orders", 1, 30, 12, metadata="m"))
    assert found == GroupCheckpoint("pay", "a.orders", 1, 30, 12, "m")
    assert str(found) == (
        "Checkpoint{consumerGroupId=pay, topicPartition=a.orders-1, upstreamOffset=30, "
        "downstreamOffset=12, metadata=m}"
    )


def test_a_heartbeat_is_read_and_printed_as_kafkas_formatter_does() -> None:
    found = read_heartbeat(*heartbeat("a", "b", 1_700_000_000_000))
    assert found == Heartbeat("a", "b", 1_700_000_000_000)
    assert str(found) == (
        "Heartbeat{sourceClusterAlias=a, targetClusterAlias=b, timestamp=1700000000000}"
    )


READERS: list[tuple[Callable[..., Any], tuple[bytes, bytes]]] = [
    (read_checkpoint, checkpoint("g", "t", 0, 1, 1)),
    (read_offset_sync, offset_sync("t", 0, 1, 1)),
    (read_heartbeat, heartbeat("a", "b", 1)),
]


@pytest.mark.parametrize(("read", "record"), READERS)
def test_a_tombstone_is_nothing(read: Callable[..., Any], record: tuple[bytes, bytes]) -> None:
    assert read(record[0], None) is None
    assert MirrorMakerDecoder(read).decode(record[0], None, 0) == (None, "<DELETE>")
    assert MirrorMakerDecoder(read).decode(*record, 0) == (None, str(read(*record)))


@pytest.mark.parametrize(("read", "record"), READERS)
def test_what_is_no_such_record_is_told(
    read: Callable[..., Any], record: tuple[bytes, bytes]
) -> None:
    key, value = record
    for broken in (
        (None, value),
        (b"\0", value),
        (key[:-1], value),
        (key + b"\0", value),
        (b"\xff\xff" + key[2:], value),
        (key, value[:-1]),
        (key, value + b"\0"),
        (key, b""),
    ):
        with pytest.raises(InvalidRecordError, match=r"of MirrorMaker 2: its (key|value)"):
            read(*broken, "log")


@pytest.mark.parametrize(
    ("read", "record"),
    [
        (read_checkpoint, checkpoint("g", "t", 0, 1, 1, version=1)),
        (read_heartbeat, heartbeat("a", "b", 1, version=1)),
    ],
)
def test_a_version_that_is_not_known_is_refused(
    read: Callable[..., Any], record: tuple[bytes, bytes]
) -> None:
    with pytest.raises(InvalidRecordError, match="has version 1, expected 0"):
        read(*record)


def test_topics_are_known_by_their_names() -> None:
    names = {
        "mm2-offset-syncs.old.internal": OFFSET_SYNCS,
        "mm2-offset-syncs_us-west_internal": OFFSET_SYNCS,
        "old.checkpoints.internal": CHECKPOINTS,
        "us-west_checkpoints_internal": CHECKPOINTS,
        "heartbeats": HEARTBEATS,
        "old.heartbeats": HEARTBEATS,
    }
    for name, expected in names.items():
        found = [each for each in (OFFSET_SYNCS, CHECKPOINTS, HEARTBEATS) if each.fullmatch(name)]
        assert found == [expected], name
    assert OFFSET_SYNCS.fullmatch("mm2-offset-syncs_us-west_internal")["cluster"] == "us-west"  # type: ignore[index]
    assert CHECKPOINTS.fullmatch("us-west.checkpoints.internal")["cluster"] == "us-west"  # type: ignore[index]
