"""What a leader does with records before it appends them.

The cases are those of Kafka's LogValidatorTest. There is no target format but v2 here: where
Kafka's validator would keep v0 or v1, records of those formats become a v2 batch.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordValidationError,
)
from pylog.model import AppendOrigin, TimestampType
from pylog.validation.log_append_info import batches_of
from pylog.validation.log_validator import LogValidator, ValidationResult
from tests.support.batches import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Stored,
    batch_v2,
    batch_v2_of,
    marker,
    message_bytes,
    message_set,
    record_v2,
    wrapper_of,
)
from tests.support.codecs import CODEC_IDS, compress
from tests.unit.log.owned_log import COMMIT, NO_TIMESTAMP, NOW_MS, batches_in, of_magic, records_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.record.batch_header import BatchHeader

VALUES = (b"hello", b"there", b"beautiful")
OFFSET = 1_234_567
HOUR_MS = 3_600_000
LEGACY = ("gzip", "snappy", "lz4")


def records_at(
    *timestamps: int, key: bytes | None = None, values: Sequence[bytes] = VALUES
) -> list[Stored]:
    return [
        Stored(offset, timestamp, key, value)
        for offset, (timestamp, value) in enumerate(zip(timestamps, values, strict=False))
    ]


def same_time(timestamp: int = NOW_MS) -> list[Stored]:
    return records_at(timestamp, timestamp, timestamp)


def validated(
    data: bytes,
    *,
    topic: str = "producer",
    first_offset: int = 0,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    leader_epoch: int = 0,
    config: LogConfig | None = None,
    is_append_time: bool = False,
    is_compacted: bool = False,
    before_max_ms: int = 1000,
    after_max_ms: int = 1000,
) -> ValidationResult:
    config = config or LogConfig(
        compression_type=topic,
        message_timestamp_type=(
            TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
        ),
        message_timestamp_before_max_ms=before_max_ms,
        message_timestamp_after_max_ms=after_max_ms,
        cleanup_policy=frozenset({"compact" if is_compacted else "delete"}),
    )
    validator = LogValidator("topic-0", config, origin, now_ms=NOW_MS, leader_epoch=leader_epoch)
    view = memoryview(bytearray(data))
    return validator.validate_and_assign_offsets(view, batches_of(view), first_offset)


def only_header(result: ValidationResult) -> BatchHeader:
    """Return the header of the only batch, whose checksum is right."""
    (batch,) = batches_in(result.records)
    batch.ensure_valid()
    assert [found.header for found in result.batches] == [batch.header]
    return batch.header


def offsets_in(result: ValidationResult) -> list[int]:
    return [record.offset for record in records_in(result.records)]


# ---- how many batches, and of which format


def two_batches(magic: int, codec: str) -> bytes:
    first = [Stored(0, NOW_MS, b"1", b"a")]
    rest = [Stored(1, NOW_MS, b"2", b"b"), Stored(2, NOW_MS, b"3", b"c")]
    return of_magic(magic, first, codec) + of_magic(magic, rest, codec)


@pytest.mark.parametrize(
    ("magic", "source", "target"),
    [
        *((magic, "gzip", "uncompressed") for magic in (0, 1, 2)),
        *((magic, source, "gzip") for magic in (0, 1, 2) for source in LEGACY),
        (2, "none", "uncompressed"),
        (2, "none", "gzip"),
        (2, "zstd", "gzip"),
    ],
)
def test_an_append_holds_one_batch_if_it_is_v2_or_compressed(
    magic: int, source: str, target: str
) -> None:
    with pytest.raises(InvalidRecordError, match="only 1 may be"):
        validated(two_batches(magic, source), topic=target)


@pytest.mark.parametrize("target", ["uncompressed", "gzip"])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_plain_messages_may_be_many(magic: int, target: str) -> None:
    result = validated(two_batches(magic, "none"), topic=target, first_offset=OFFSET)
    assert offsets_in(result) == [OFFSET, OFFSET + 1, OFFSET + 2]
    assert only_header(result).codec_id == CODEC_IDS[target.replace("uncompressed", "none")]


def test_without_a_batch_there_is_nothing_to_validate() -> None:
    with pytest.raises(InvalidRecordError, match="no record batch"):
        validated(b"")


def test_batches_of_one_append_have_one_format() -> None:
    data = of_magic(0, records_at(NOW_MS)) + of_magic(1, records_at(NOW_MS))
    with pytest.raises(InvalidRecordError, match="v0 and v1"):
        validated(data)


@pytest.mark.parametrize("source", list(CODEC_IDS))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_has_records(source: str, target: str) -> None:
    data = batch_v2_of(
        b"",
        last_offset_delta=5,
        record_count=0,
        attributes=CODEC_IDS[source] | 0x10,
        leader_epoch=40,
        base_timestamp=-1,
        max_timestamp=NOW_MS,
        producer_id=1324,
        producer_epoch=10,
        base_sequence=984,
    )
    with pytest.raises(InvalidRecordError, match="counts 0 records"):
        validated(data, topic=target)


def inner_of(magic: int, count: int) -> list[bytes]:
    return [
        message_bytes(OFFSET + each, b"%d" % each, b"%d" % each, magic=magic)
        for each in range(count)
    ]


@pytest.mark.parametrize(("outer", "inner"), [(0, 1), (1, 0)])
def test_messages_in_a_wrapper_have_its_format(outer: int, inner: int) -> None:
    stream = compress("gzip", b"".join(inner_of(inner, 20)), outer)
    data = wrapper_of(stream, offset=OFFSET + 19, magic=outer, codec="gzip")
    with pytest.raises(RecordValidationError, match=f"v{inner}.*v{outer}") as caught:
        validated(data)
    assert [index for index, _ in caught.value.record_errors] == list(range(20))
    assert not isinstance(caught.value, InvalidTimestampError)


@pytest.mark.parametrize("codec", LEGACY)
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_in_a_wrapper_with_a_wrong_checksum_is_corrupt(magic: int, codec: str) -> None:
    inner = message_bytes(0, None, b"hello", magic=magic, timestamp=NOW_MS, crc=0)
    data = wrapper_of(compress(codec, inner, magic), offset=0, magic=magic, codec=codec)
    with pytest.raises(CorruptRecordError, match="CRC"):
        validated(data)


def test_a_message_in_a_wrapper_is_not_itself_compressed() -> None:
    inner = of_magic(1, same_time(), "gzip")
    data = wrapper_of(compress("gzip", inner), offset=2, magic=1, codec="gzip")
    with pytest.raises(InvalidRecordError, match="itself compressed"):
        validated(data)


# ---- counts and offsets


def batch_that_claims(last_offset_delta: int, count: int, codec: str = "none") -> bytes:
    """Return three records in a batch that says something else."""
    payload = b"".join(record_v2(0, index, None, value) for index, value in enumerate(VALUES))
    return batch_v2_of(
        compress(codec, payload),
        last_offset_delta=last_offset_delta,
        record_count=count,
        attributes=CODEC_IDS[codec],
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
    )


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("is_append_time", [False, True])
def test_count_and_offsets_that_agree_pass(codec: str, *, is_append_time: bool) -> None:
    result = validated(batch_that_claims(2, 3, codec), is_append_time=is_append_time)
    assert result.next_offset == 3


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize(
    ("last_offset_delta", "count"),
    [(0, 3), (15, 3), (-3, 3), (5, 6), (1, 2), (-1, 0), (2, -3)],
)
def test_count_and_offsets_that_disagree_are_refused(
    last_offset_delta: int, count: int, codec: str
) -> None:
    with pytest.raises(InvalidRecordError):
        validated(batch_that_claims(last_offset_delta, count, codec))


@pytest.mark.parametrize("magic", [0, 1])
def test_equal_offsets_in_a_wrapper_are_renumbered(magic: int) -> None:
    records = [Stored(0, NOW_MS, None, b"%d" % number) for number in range(20)]
    stream = compress("gzip", message_set(records, inner_magic=magic), magic)
    data = wrapper_of(stream, offset=0, magic=magic, codec="gzip", timestamp=NOW_MS)
    result = validated(data)
    assert offsets_in(result) == list(range(20))
    assert [record.value for record in records_in(result.records)] == [
        b"%d" % number for number in range(20)
    ]


@pytest.mark.parametrize("count", [3, 20])
def test_equal_offsets_in_a_batch_are_refused_by_its_count(count: int) -> None:
    payload = b"".join(record_v2(0, 0, None, b"v") for _ in range(count))
    data = batch_v2_of(
        compress("gzip", payload), last_offset_delta=0, record_count=count, attributes=1
    )
    with pytest.raises(InvalidRecordError, match="spans 1 offset "):
        validated(data)


@pytest.mark.parametrize("count", [3, 40])
def test_a_compressed_batch_whose_offsets_are_out_of_order_is_rewritten(count: int) -> None:
    deltas = [1, 0, *range(2, count)]
    payload = b"".join(record_v2(0, delta, None, b"%d" % delta) for delta in deltas)
    data = batch_v2_of(
        compress("gzip", payload),
        last_offset_delta=count - 1,
        record_count=count,
        attributes=1,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
    )
    result = validated(data, first_offset=OFFSET)
    assert result.message_size_maybe_changed
    assert offsets_in(result) == list(range(OFFSET, OFFSET + count))
    values = [record.value for record in records_in(result.records)]
    assert values == [b"%d" % delta for delta in deltas]


@pytest.mark.parametrize("is_append_time", [False, True])
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_records_get_the_offsets_of_the_log(
    magic: int, codec: str, *, is_append_time: bool
) -> None:
    timestamp = NO_TIMESTAMP if magic == 0 or is_append_time else NOW_MS
    data = of_magic(magic, same_time(timestamp), codec)
    assert [record.offset for record in records_in(data)] == [0, 1, 2]
    result = validated(data, first_offset=OFFSET, is_append_time=is_append_time)
    assert offsets_in(result) == [OFFSET, OFFSET + 1, OFFSET + 2]
    assert result.next_offset == OFFSET + 3
    assert only_header(result).offset == OFFSET
    assert result.message_size_maybe_changed is (magic < 2)


# ---- the three ways, for the time of the producer


@pytest.mark.parametrize(
    ("source", "target", "is_rebuilt"),
    [
        ("none", "producer", False),
        ("none", "uncompressed", False),
        ("gzip", "gzip", False),
        ("none", "gzip", True),
        ("gzip", "uncompressed", True),
        ("gzip", "lz4", True),
    ],
)
def test_a_batch_keeps_times_and_producer(source: str, target: str, *, is_rebuilt: bool) -> None:
    times = (NOW_MS - 1, NOW_MS + 1, NOW_MS)
    data = batch_v2(
        records_at(*times),
        codec=source,
        producer_id=1324,
        producer_epoch=10,
        base_sequence=984,
        is_transactional=True,
    ).data
    result = validated(data, topic=target, leader_epoch=40)
    header = only_header(result)
    assert (result.max_timestamp, result.message_size_maybe_changed) == (NOW_MS + 1, is_rebuilt)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS - 1, NOW_MS + 1)
    assert (int(header.timestamp_type), header.partition_leader_epoch) == (CREATE_TIME, 40)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1324, 10, 984)
    assert header.is_transactional
    assert [record.timestamp for record in records_in(result.records)] == list(times)
    assert [record.value for record in records_in(result.records)] == list(VALUES)
    if not is_rebuilt:
        assert bytes(result.records[21:]) == data[21:], "the checksum need not change"


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_old_messages_keep_their_times(codec: str) -> None:
    times = (NOW_MS - 1, NOW_MS + 1, NOW_MS)
    result = validated(of_magic(1, records_at(*times), codec), topic="gzip")
    header = only_header(result)
    assert (header.magic, header.codec_id, result.max_timestamp) == (2, 1, NOW_MS + 1)
    assert [record.timestamp for record in records_in(result.records)] == list(times)


@pytest.mark.parametrize(("magic", "timestamp"), [(0, NO_TIMESTAMP), (1, NOW_MS)])
def test_old_wrappers_become_one_batch_without_producer(magic: int, timestamp: int) -> None:
    result = validated(of_magic(magic, same_time(timestamp), "gzip"))
    header = only_header(result)
    assert (header.magic, header.codec_id) == (2, 1)
    assert (header.base_timestamp, header.max_timestamp) == (timestamp, timestamp)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert int(header.timestamp_type) == CREATE_TIME
    assert (result.max_timestamp, result.message_size_maybe_changed) == (timestamp, True)


def test_a_wrong_max_timestamp_in_the_header_is_set_right() -> None:
    payload = b"".join(record_v2(delta, delta, None, b"v") for delta in range(3))
    data = batch_v2_of(
        payload,
        last_offset_delta=2,
        record_count=3,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS + 999,
    )
    header = only_header(validated(data))
    assert header.max_timestamp == NOW_MS + 2


def test_the_level_of_the_topic_causes_no_recompression() -> None:
    payload = b"".join(
        record_v2(0, index, None, value * 256) for index, value in enumerate((b"some", b"data"))
    )
    levels = {}
    for level in (1, 9):
        stream = zlib.compressobj(level, zlib.DEFLATED, 31)
        levels[level] = batch_v2_of(
            stream.compress(payload) + stream.flush(),
            last_offset_delta=1,
            record_count=2,
            attributes=1,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=NO_TIMESTAMP,
        )
    assert levels[1] != levels[9]
    config = LogConfig(compression_type="gzip", compression_gzip_level=1)
    result = validated(levels[9], config=config)
    assert not result.message_size_maybe_changed
    assert bytes(result.records) == levels[9]


# ---- the time of the append


@pytest.mark.parametrize(
    ("magic", "source", "target", "is_rebuilt"),
    [
        (2, "none", "producer", False),
        (2, "gzip", "gzip", False),
        (2, "gzip", "lz4", True),
        (1, "none", "producer", True),
        (1, "gzip", "gzip", True),
        (0, "gzip", "gzip", True),
    ],
)
def test_the_time_of_the_append_takes_the_place_of_the_producers(
    magic: int, source: str, target: str, *, is_rebuilt: bool
) -> None:
    data = of_magic(magic, same_time(1234), source)
    result = validated(data, topic=target, is_append_time=True)
    header = only_header(result)
    assert (result.max_timestamp, result.message_size_maybe_changed) == (NOW_MS, is_rebuilt)
    assert (header.max_timestamp, int(header.timestamp_type)) == (NOW_MS, LOG_APPEND_TIME)
    # On disk the records keep their own times; all report that of the batch.
    assert header.base_timestamp == (1234 if magic else NO_TIMESTAMP)
    assert {record.timestamp for record in records_in(result.records)} == {NOW_MS}
    if not is_rebuilt:
        assert len(result.records) == len(data)


def test_a_topic_with_the_time_of_the_append_takes_any_time() -> None:
    data = batch_v2(records_at(0, NOW_MS * 2, NO_TIMESTAMP)).data
    assert validated(data, is_append_time=True).max_timestamp == NOW_MS


@pytest.mark.parametrize(
    ("timestamp", "is_append_time", "passes"),
    [
        (NOW_MS, False, True),  # and is rewritten
        (NO_TIMESTAMP, False, False),
        (NOW_MS, True, False),
    ],
)
def test_a_producer_does_not_say_that_it_is_the_broker(
    timestamp: int, *, is_append_time: bool, passes: bool
) -> None:
    data = batch_v2(same_time(timestamp), append_time=timestamp).data
    if passes:
        header = only_header(validated(data, is_append_time=is_append_time))
        assert (int(header.timestamp_type), header.max_timestamp) == (CREATE_TIME, NOW_MS)
    else:
        with pytest.raises(InvalidTimestampError, match="LogAppendTime"):
            validated(data, is_append_time=is_append_time)


# ---- times that are too far away


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("distance", [-1001, 1001])
def test_records_too_old_or_too_young_are_all_reported(
    magic: int, codec: str, distance: int, count: int
) -> None:
    records = [Stored(index, NOW_MS + distance, None, b"v") for index in range(count)]
    if magic == 1 and codec == "none":
        records = records[:1]  # each message is a batch of its own
    with pytest.raises(InvalidTimestampError, match="not in the range") as caught:
        validated(of_magic(magic, records, codec))
    assert [index for index, _ in caught.value.record_errors] == list(range(len(records)))


@pytest.mark.parametrize(
    ("distance_ms", "passes"),
    [(-24 * HOUR_MS, True), (-24 * HOUR_MS - 1, False), (HOUR_MS, True), (HOUR_MS + 1, False)],
)
def test_the_range_of_times_reaches_to_its_bounds(distance_ms: int, *, passes: bool) -> None:
    def validate() -> ValidationResult:
        data = batch_v2(same_time(NOW_MS + distance_ms), codec="gzip").data
        return validated(data, before_max_ms=24 * HOUR_MS, after_max_ms=HOUR_MS)

    if passes:
        assert validate().max_timestamp == NOW_MS + distance_ms
    else:
        with pytest.raises(InvalidTimestampError) as caught:
            validate()
        assert len(caught.value.record_errors) == 3


def test_records_without_time_are_never_too_old() -> None:
    data = batch_v2(records_at(NO_TIMESTAMP, NOW_MS, NO_TIMESTAMP)).data
    assert validated(data).max_timestamp == NOW_MS


def test_a_wrong_time_is_reported_before_other_errors() -> None:
    inner = message_bytes(0, None, b"timestamp", magic=1, timestamp=NOW_MS - 1200)
    inner += b"".join(
        message_bytes(30 * (index + 1), None, b"%d" % index, magic=0) for index in range(5)
    )
    data = wrapper_of(
        compress("gzip", inner), offset=150, magic=1, codec="gzip", timestamp=NOW_MS - 1200
    )
    with pytest.raises(InvalidTimestampError) as caught:
        validated(data)
    assert [index for index, _ in caught.value.record_errors] == [0, 1, 2, 3, 4, 5]


# ---- keys, sequences, control records


@pytest.mark.parametrize(
    ("magic", "codec"),
    [*((magic, codec) for magic in (0, 1, 2) for codec in LEGACY), (2, "zstd"), (2, "none")],
)
def test_records_of_a_compacted_topic_need_a_key(magic: int, codec: str) -> None:
    data = of_magic(magic, same_time(NO_TIMESTAMP), codec)
    with pytest.raises(RecordValidationError, match="needs a key") as caught:
        validated(data, is_compacted=True)
    assert [index for index, _ in caught.value.record_errors] == [0, 1, 2]
    assert validated(data).next_offset == 3


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", list(CODEC_IDS))
def test_a_producer_with_an_id_counts_its_batches(source: str, target: str) -> None:
    data = batch_v2(
        records_at(NOW_MS), codec=source, producer_id=1234, producer_epoch=0, base_sequence=-2
    ).data
    with pytest.raises(InvalidRecordError, match="base sequence -2"):
        validated(data, topic=target)


def test_the_first_producer_of_a_cluster_counts_its_batches() -> None:
    data = batch_v2(records_at(NOW_MS), producer_id=0, producer_epoch=0, base_sequence=-1).data
    with pytest.raises(InvalidRecordError, match="producer id 0 has base sequence -1"):
        validated(data)


def test_a_coordinator_need_not_count_its_batches() -> None:
    data = batch_v2(records_at(NOW_MS), producer_id=1, producer_epoch=0, base_sequence=-1).data
    assert validated(data, origin=AppendOrigin.COORDINATOR).next_offset == 1


def test_clients_write_no_control_records() -> None:
    data = marker(0, COMMIT, producer_id=23_423, producer_epoch=5, timestamp=NOW_MS).data
    with pytest.raises(InvalidRecordError, match="clients may not write control batches"):
        validated(data)


def test_control_records_are_never_compressed() -> None:
    data = marker(0, COMMIT, producer_id=23_423, producer_epoch=5, timestamp=NOW_MS).data
    result = validated(data, topic="snappy", origin=AppendOrigin.COORDINATOR, first_offset=OFFSET)
    header = only_header(result)
    assert (header.codec_id, header.is_control_batch, header.offset) == (0, True, OFFSET)
    assert not result.message_size_maybe_changed
    assert bytes(result.records[16:]) == data[16:]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: data[:-1], id="cut"),
        pytest.param(lambda data: data + b"\x00", id="more"),
        pytest.param(lambda data: b"\x7f" + data[1:], id="length"),
    ],
)
@pytest.mark.parametrize("count", [2, 40])
def test_records_that_break_their_format_are_refused(
    count: int, spoil: Callable[[bytes], bytes]
) -> None:
    payload = b"".join(record_v2(0, delta, None, b"value") for delta in range(count))
    data = batch_v2_of(
        spoil(payload),
        last_offset_delta=count - 1,
        record_count=count,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
    )
    with pytest.raises(InvalidRecordError):
        validated(data)
