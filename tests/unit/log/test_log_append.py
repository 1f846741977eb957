"""What a log takes, as leader and as follower, and what it refuses.

The cases are those of Kafka's UnifiedLogTest and BrokerCompressionTest.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    KafkaStorageError,
    OffsetsOutOfOrderError,
    OutOfOrderSequenceError,
    RecordBatchTooLargeError,
    RecordValidationError,
    UnexpectedAppendOffsetError,
)
from pylog.files.leader_epochs import EpochEntry
from pylog.model import AppendOrigin
from tests.support.batches import LOG_APPEND_TIME, batch_v2
from tests.support.codecs import CODEC_IDS
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.log.idempotent_batches import ALL_FORMATS
from tests.unit.log.owned_log import (
    ABORT,
    LARGEST_LENGTH,
    NO_TIMESTAMP,
    NOW_MS,
    OwnedLog,
    Transactional,
    batches_in,
    of_magic,
    one_batch,
    records_in,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PRODUCER = 1


def idempotent(
    sequence: int, count: int = 1, *, producer_id: int = PRODUCER, epoch: int = 0, offset: int = 0
) -> bytes:
    return one_batch(
        *[b"value-%d" % (sequence + each) for each in range(count)],
        key=b"key",
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


# ---- offsets and epochs


def test_appends_get_the_next_offsets_also_after_a_roll(owned: OwnedLog) -> None:
    first = owned.append(b"a", b"b", b"c")
    second = owned.append(b"a", b"b", b"c")
    owned.log.roll()
    third = owned.append(b"a", b"b", b"c")
    assert [(each.first_offset, each.last_offset) for each in (first, second, third)] == [
        (0, 2),
        (3, 5),
        (6, 8),
    ]
    assert owned.base_offsets == [0, 6]


def test_a_quorum_leader_gives_offsets_itself_and_they_must_follow(owned: OwnedLog) -> None:
    leader = AppendOrigin.RAFT_LEADER
    owned.log.append_as_leader(one_batch(b"a", b"b", b"c"), 0, origin=leader)
    assert (owned.log.log_start_offset, owned.log.log_end_offset) == (0, 3)
    with pytest.raises(UnexpectedAppendOffsetError, match="begin at offset 1, expected 3"):
        owned.log.append_as_leader(one_batch(b"a", base_offset=1), 0, origin=leader)
    owned.log.append_as_leader(one_batch(b"a", b"b", b"c", base_offset=3), 0, origin=leader)
    assert owned.log.log_end_offset == 6
    with pytest.raises(InvalidRecordError, match="leader epoch 0, expected 1"):
        owned.log.append_as_leader(one_batch(b"a", base_offset=6), 1, origin=leader)


def test_a_leader_writes_its_epoch_into_the_batches(owned: OwnedLog) -> None:
    for number in range(50):
        owned.append(b"%d" % number, leader_epoch=72)
    assert {
        batches_in(owned.read(offset, 1).records)[0].header.partition_leader_epoch
        for offset in range(50)
    } == {72}


def test_a_follower_takes_over_epochs_from_the_batches(owned: OwnedLog) -> None:
    for number in range(50):
        owned.log.append_as_follower(one_batch(b"v", base_offset=number, leader_epoch=42))
    assert owned.log.latest_epoch == 42
    assert owned.log.leader_epochs.entries == (EpochEntry(42, 0),)


def test_a_follower_leaves_out_what_follows_a_batch_of_a_newer_epoch(owned: OwnedLog) -> None:
    epochs = (3, 4, 3)
    data = b"".join(
        one_batch(b"v", base_offset=offset, leader_epoch=epoch)
        for offset, epoch in enumerate(epochs)
    )
    info = owned.log.append_as_follower(data, leader_epoch=3)
    assert (info.last_offset, owned.log.log_end_offset, owned.log.latest_epoch) == (0, 1, 3)
    assert owned.log.append_as_follower(data, leader_epoch=2).valid_bytes == 0


def test_a_message_of_an_old_format_makes_all_leader_epochs_unknown(owned: OwnedLog) -> None:
    owned.append(b"foo", leader_epoch=5)
    assert owned.log.latest_epoch == 5
    owned.log.append_as_follower(of_magic(1, stored(b"foo", base_offset=1)))
    assert owned.log.latest_epoch is None


def test_a_null_value_is_stored_as_null(owned: OwnedLog) -> None:
    owned.append(None)
    record = owned.first_read(0)
    assert (record.offset, record.value) == (0, None)


def test_records_need_no_timestamp(owned: OwnedLog) -> None:
    info = owned.log.append_as_leader(one_batch(b"value", key=b"key", timestamp=NO_TIMESTAMP))
    assert (info.first_offset, info.max_timestamp) == (0, NO_TIMESTAMP)


def test_an_append_of_nothing_returns_the_logs_start(owned: OwnedLog) -> None:
    owned.append_numbers(3)
    owned.raise_high_watermark()
    owned.log.delete_records(2)
    assert owned.log.append_as_leader(b"").log_start_offset == 2


def test_an_append_returns_the_leader_epoch_that_its_batch_came_with(owned: OwnedLog) -> None:
    data = one_batch(b"v", leader_epoch=-1)
    assert owned.log.append_as_leader(data, 7).last_leader_epoch == -1
    assert owned.log.latest_epoch == 7
    data = one_batch(b"v", base_offset=1, leader_epoch=8)
    assert owned.log.append_as_follower(data).last_leader_epoch == 8


# ---- offsets of a follower


def test_offsets_of_a_quorums_leader_must_increase(owned: OwnedLog) -> None:
    data = b"".join(one_batch(b"v", b"v", base_offset=offset) for offset in (0, 1))
    with pytest.raises(OffsetsOutOfOrderError, match="ends at 1"):
        owned.log.append_as_leader(data, origin=AppendOrigin.RAFT_LEADER)
    assert owned.log.size_bytes == 0


def test_an_old_wrapper_that_begins_below_the_end_is_refused(owned: OwnedLog) -> None:
    owned.append_numbers(2)
    data = of_magic(1, stored(b"1", b"2", b"3", base_offset=1), "gzip")
    with pytest.raises(UnexpectedAppendOffsetError) as caught:
        owned.log.append_as_follower(data)
    assert (caught.value.first_offset, caught.value.last_offset) == (1, 3)


@pytest.mark.parametrize(("magic", "codec"), ALL_FORMATS)
def test_a_follower_never_appends_below_its_end(owned: OwnedLog, magic: int, codec: str) -> None:
    owned.append_numbers(2)
    with pytest.raises(UnexpectedAppendOffsetError):
        owned.log.append_as_follower(of_magic(magic, stored(b"1"), codec))


@pytest.mark.parametrize(("magic", "codec"), ALL_FORMATS)
def test_an_empty_log_takes_nothing_below_its_start(tmp_path: Path, magic: int, codec: str) -> None:
    partition = tmp_path / "topic-0"
    partition.mkdir()
    (partition / "00000000000000000007.log").touch()
    (partition / "00000000000000000007.index").touch()
    owned = OwnedLog(tmp_path)
    assert (owned.log.log_start_offset, owned.log.log_end_offset) == (7, 7)
    data = of_magic(magic, stored(b"v1", b"v2", b"v3", key=b"k", base_offset=4), codec)
    with pytest.raises(UnexpectedAppendOffsetError) as caught:
        owned.log.append_as_follower(data)
    assert (caught.value.first_offset, caught.value.last_offset) == (4, 6)


# ---- sizes


def test_what_fits_no_segment_is_refused(tmp_path: Path) -> None:
    data = one_batch(b"You", b"bethe")
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=len(data) - 1))
    with pytest.raises(RecordBatchTooLargeError, match=f"segment.bytes is {len(data) - 1}"):
        owned.log.append_as_leader(data)
    assert owned.base_offsets == [0]


@pytest.mark.parametrize(
    ("magic", "codec"),
    [*product([0, 1, 2], ["gzip", "snappy", "lz4"]), (2, "zstd")],
)
def test_a_record_above_max_decompressed_message_bytes_is_refused_if_it_is_compressed(
    tmp_path: Path, magic: int, codec: str
) -> None:
    # Beside a value of 100 bytes and no key: 14 and 22 bytes of v0 and v1, 7 of v2.
    largest = 100 + {0: 14, 1: 22, 2: 7}[magic]
    records = stored(b"small", b"x" * 100, b"small")
    data = of_magic(magic, records, codec)
    owned = OwnedLog(tmp_path, LogConfig(max_decompressed_message_bytes=largest - 1))
    owned.log.append_as_leader(of_magic(magic, records))
    end = owned.log.log_end_offset
    message = (
        f"record 1 of the batch has {largest} bytes, "
        rf"max\.decompressed\.message\.bytes is {largest - 1}: raise it"
    )
    for append in (owned.log.append_as_leader, owned.log.append_batches_as_leader):
        with pytest.raises(InvalidRecordError, match=message):
            append(data)
    assert owned.log.log_end_offset == end
    owned.log.update_config(LogConfig(max_decompressed_message_bytes=largest))
    owned.log.append_as_leader(data)
    assert owned.log.log_end_offset == end + 3


def test_of_many_batches_those_before_a_record_that_is_too_large_are_appended(
    tmp_path: Path,
) -> None:
    owned = OwnedLog(tmp_path, LogConfig(max_decompressed_message_bytes=100))
    fits, many_small, large = (
        one_batch(*values, codec="lz4") for values in ([b"a"], [b"b" * 20] * 50, [b"c", b"d" * 200])
    )
    with pytest.raises(InvalidRecordError, match="record 1 of the batch has 207 bytes"):
        owned.log.append_batches_as_leader(fits + many_small + large + fits)
    assert owned.log.log_end_offset == 51
    owned.log.append_as_follower(one_batch(b"d" * 200, codec="lz4", base_offset=51))
    assert owned.log.log_end_offset == 52


# ---- what a leader validates; test_log_validator.py has the rest


def test_a_compacted_topic_needs_keys(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(cleanup_policy=frozenset({"compact"})))
    keyed, unkeyed = stored(b"this has a key", key=b"key")[0], stored(b"this has none")[0]
    refused = [
        ([unkeyed, keyed._replace(offset=1)], "none", [0]),
        ([unkeyed], "none", [0]),
        ([keyed, unkeyed._replace(offset=1)], "gzip", [1]),
    ]
    for records, codec, wrong in refused:
        with pytest.raises(RecordValidationError, match="needs a key") as caught:
            owned.log.append_as_leader(batch_v2(records, codec=codec).data)
        assert [index for index, _ in caught.value.record_errors] == wrong
    owned.log.append_as_leader(batch_v2([keyed]).data)
    owned.log.append_as_leader(batch_v2([keyed, keyed._replace(offset=1, key=b"other")]).data)
    owned.log.append_as_leader(batch_v2([keyed], codec="gzip").data)
    assert owned.log.log_end_offset == 4


def test_a_client_counts_its_batches_from_offset_zero(owned: OwnedLog) -> None:
    with pytest.raises(InvalidRecordError, match="is 3, expected 0"):
        owned.log.append_as_leader(one_batch(b"value", base_offset=3))


@pytest.mark.parametrize("producer", list(CODEC_IDS))
@pytest.mark.parametrize("topic", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_stored_with_the_topics_codec(
    tmp_path: Path, topic: str, producer: str
) -> None:
    owned = OwnedLog(tmp_path, LogConfig(compression_type=topic))
    owned.log.append_as_leader(one_batch(b"hello", b"there", codec=producer))
    expected = {"producer": producer, "uncompressed": "none"}.get(topic, topic)
    batch = batches_in(owned.read(0, 4096).records)[0]
    assert batch.header.codec_id == CODEC_IDS[expected]
    assert [record.value for record in batch.records()] == [b"hello", b"there"]


# ---- idempotent producers


def test_a_gap_in_the_sequence_is_refused(owned: OwnedLog) -> None:
    owned.log.append_as_leader(idempotent(0))
    with pytest.raises(OutOfOrderSequenceError):
        owned.log.append_as_leader(idempotent(2))
    assert owned.log.log_end_offset == 1


def test_the_last_five_batches_may_be_repeated(owned: OwnedLog) -> None:
    for sequence in range(6):
        owned.log.append_as_leader(idempotent(sequence))
    tail = owned.log.append_as_leader(idempotent(6, 3))
    assert tail.record_count == 3

    repeated = owned.log.append_as_leader(idempotent(6, 3))
    assert (repeated.first_offset, repeated.last_offset, repeated.is_duplicate) == (6, 8, True)
    with pytest.raises(OutOfOrderSequenceError):  # part of the tail
        owned.log.append_as_leader(idempotent(7, 2))
    fourth = owned.log.append_as_leader(idempotent(2))  # 2, 3, 4, 5 and the tail are remembered
    assert (fourth.first_offset, fourth.last_offset) == (2, 2)
    with pytest.raises(OutOfOrderSequenceError):
        owned.log.append_as_leader(idempotent(1))

    single = owned.log.append_as_leader(idempotent(9))
    again = owned.log.append_as_leader(idempotent(9))
    assert (single.first_offset, single.is_duplicate) == (9, False)
    assert (again.first_offset, again.last_offset, again.is_duplicate) == (9, 9, True)
    assert owned.log.log_end_offset == 10


def test_an_old_epoch_of_a_producer_is_refused(owned: OwnedLog) -> None:
    owned.log.append_as_leader(idempotent(0, epoch=1))
    with pytest.raises(InvalidProducerEpochError):
        owned.log.append_as_leader(idempotent(0, epoch=0))


def test_a_follower_takes_duplicates_at_new_offsets(owned: OwnedLog) -> None:
    owned.log.append_as_follower(idempotent(0, 2, offset=0))
    owned.log.append_as_follower(idempotent(0, 2, offset=2))
    assert owned.log.log_end_offset == 4


def test_one_append_of_a_follower_may_hold_many_producers_and_duplicates(owned: OwnedLog) -> None:
    wanted = [(1, 0), (2, 0), (1, 1), (2, 1), (1, 1)]
    data = b"".join(
        batch_v2(
            stored(b"value", key=b"key", base_offset=offset),
            append_time=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        ).data
        for offset, (producer_id, sequence) in enumerate(wanted)
    )
    owned.log.append_as_follower(data)
    owned.log.flush()
    assert owned.log.log_end_offset == 5
    headers = [batch.header for batch in batches_in(owned.read(0, LARGEST_LENGTH).records)]
    assert [(each.producer_id, each.base_sequence) for each in headers] == wanted
    assert [each.offset for each in headers] == [0, 1, 2, 3, 4]
    assert {int(each.timestamp_type) for each in headers} == {LOG_APPEND_TIME}


def test_active_producers_have_sequence_transaction_and_coordinator(owned: OwnedLog) -> None:
    first = Transactional(owned, 1, epoch=5)
    first.append(5)
    entry = owned.log.producer_state.active_producers[1]
    assert (entry.producer_epoch, entry.last_sequence, entry.current_txn_first_offset) == (5, 4, 0)
    assert entry.coordinator_epoch == -1
    first.end(1, coordinator_epoch=15)
    entry = owned.log.producer_state.active_producers[1]
    assert (entry.last_sequence, entry.current_txn_first_offset) == (4, None)
    assert entry.coordinator_epoch == 15

    owned.log.append_as_leader(idempotent(0, 3, producer_id=2, epoch=5))
    entry = owned.log.producer_state.active_producers[2]
    assert (entry.producer_epoch, entry.last_sequence) == (5, 2)
    assert (entry.current_txn_first_offset, entry.coordinator_epoch) == (None, -1)


def test_producers_that_are_idle_too_long_are_forgotten(owned: OwnedLog) -> None:
    log = owned.open(producer_id_expiration_ms=200)
    log.append_as_leader(idempotent(0, producer_id=23))
    for known in (True, False):
        owned.clock.sleep(100)
        log.remove_expired_producers()
        assert (23 in log.producer_state.active_producers) is known


# ---- refused, with a disk that is well


def refusals(owned: OwnedLog) -> list[Callable[[], object]]:
    """Return operations that a log at offset 2 refuses, each for a reason of its own."""
    log = owned.log
    torn = bytearray(one_batch(b"v", base_offset=2))
    torn[-1] ^= 1
    far = one_batch(b"v", base_offset=2) + one_batch(b"v", base_offset=2**31 + 9)
    return [
        # After its roll: no part of the producer's open transaction.
        lambda: log.append_as_follower(
            one_batch(
                bytes(300), base_offset=10, producer_id=PRODUCER, producer_epoch=0, base_sequence=1
            )
        ),
        lambda: log.append_as_follower(bytes(torn)),
        lambda: log.append_as_follower(one_batch(b"v", base_offset=1)),
        lambda: log.append_as_follower(one_batch(b"v", base_offset=2) * 2),
        lambda: log.append_as_follower(far),
        lambda: log.append_as_leader(one_batch(bytes(1000))),
        lambda: log.append_as_leader(one_batch(bytes(500))),
        lambda: log.append_as_leader(one_batch(b"v", timestamp=NOW_MS + 2 * 3_600_000)),
        lambda: log.append_as_leader(idempotent(7)),
        lambda: log.truncate_to(-1),
        lambda: log.delete_records(3),
        lambda: log.read(3, 100),
    ]


def test_what_is_refused_is_not_a_failure_of_the_disk(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=400, max_message_bytes=700)
    owned = OwnedLog(tmp_path, config)
    Transactional(owned, PRODUCER).append(1)
    owned.append(bytes(250))
    for number, refused in enumerate(refusals(owned)):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - each has its own
            refused()
        assert not isinstance(caught.value, KafkaStorageError), number
        assert owned.log.log_end_offset == 2, number
    owned.append(b"v")
    assert owned.first_read(2).value == b"v"
    assert owned.base_offsets == [0, 2]


# ---- a disk that fails


def test_after_a_failed_write_the_log_refuses_changes_and_still_reads(tmp_path: Path) -> None:
    io = FaultyIO()
    owned = OwnedLog(tmp_path, io=io)
    owned.append(None)
    producer = Transactional(owned, PRODUCER)
    producer.append(10)
    io.faults.append(Fault(kinds=frozenset({Kind.CREATE}), path_end=".txnindex"))
    with pytest.raises(KafkaStorageError):
        producer.end(ABORT, coordinator_epoch=1)
    with pytest.raises(KafkaStorageError, match="offline"):
        owned.append(None)
    with pytest.raises(KafkaStorageError, match="offline"):
        owned.log.roll()
    # Kafka refuses reads, too; here whoever owns the log may still save what is in it.
    assert records_in(owned.read(0, 4096).records)[0].offset == 0


def test_a_log_that_was_closed_refuses_changes(owned: OwnedLog) -> None:
    owned.log.close_handlers()
    with pytest.raises(KafkaStorageError, match="closed"):
        owned.log.roll(1)
    with pytest.raises(KafkaStorageError, match="closed"):
        owned.append(b"value")
