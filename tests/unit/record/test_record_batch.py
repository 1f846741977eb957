"""v2 batches by the plain-Python reference, rule by rule."""

from __future__ import annotations

import pytest

from pylog.errors import CorruptRecordError, InvalidRecordError, UnsupportedCodecError
from pylog.model import ControlRecordType
from pylog.native.checksum import crc32c as our_crc32c
from pylog.record.control_record import EndTransactionMarker, parse_end_transaction_marker
from pylog.record.record_batch import RecordBatch
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    crc32c,
    empty_batch_v2,
    marker,
    plain_records,
    record_v2,
    varint,
    with_bad_crc,
)
from tests.support.codecs import CODEC_IDS, CODECS, compress, lz4_frame
from tests.support.reading import stored

# From kafka-python's tests: a real broker's bytes.
GOLDEN_123 = bytes.fromhex(
    "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063c"
    "ffffffffffffffffffffffffffff0000000112000000010631323300"
)
GOLDEN_TWO_EMPTY = bytes.fromhex(
    "0000000000000001000000400000000202c85cbd230000000000010000015dff7cdd6c0000015dff7cde14"
    "ffffffffffffffffffffffffffff000000020c0000000100000e00d00202010000"
)
GOLDEN_HEADER = bytes.fromhex(
    "00000000000000000000004500000000025cd8ef520000000000000000016585b6f3c10000016585b6f3c1"
    "ffffffffffffffffffffffffffff000000012600000001066864720208686b6579086876616c"
)
GOLDEN_COMMIT = bytes.fromhex(
    "00000000000000050000004200000000023db9319500300000000000000000000003e800000000000003e8"
    "00000000000000010000ffffffff000000012000000008000000010c00000000000000"
)


def read(data: bytes | Built) -> list[Stored]:
    batch = RecordBatch(data if isinstance(data, bytes) else data.data)
    batch.ensure_valid()
    return stored(batch.records())


def test_a_brokers_batch_of_one_record() -> None:
    assert read(GOLDEN_123) == [Stored(0, 1503229838908, None, b"123")]
    header = RecordBatch(GOLDEN_123).header
    assert (header.partition_leader_epoch, header.producer_id) == (1, -1)


def test_a_brokers_batch_of_two_empty_values() -> None:
    base = 1503229959532
    assert read(GOLDEN_TWO_EMPTY) == [Stored(1, base, None, b""), Stored(2, base + 168, None, b"")]
    header = RecordBatch(GOLDEN_TWO_EMPTY).header
    assert (header.offset, header.last_offset, header.max_timestamp) == (1, 2, base + 168)


def test_a_brokers_record_with_a_header() -> None:
    expected = Stored(0, 1535546684353, None, b"hdr", (("hkey", b"hval"),))
    assert read(GOLDEN_HEADER) == [expected]


def test_a_commit_marker() -> None:
    assert marker(5, COMMIT).data == GOLDEN_COMMIT
    batch = RecordBatch(GOLDEN_COMMIT)
    batch.ensure_valid()
    assert batch.control_type() is ControlRecordType.COMMIT
    (record,) = batch.records()
    assert parse_end_transaction_marker(record.key, record.value) == EndTransactionMarker(
        ControlRecordType.COMMIT, 0
    )


@pytest.mark.parametrize(
    ("text", "crc"),
    [(b"123456789", 0xE3069283), (b"Some String", 608512271), (b"a", 0xC1D04330), (b"", 0)],
)
def test_crc32c_has_kafkas_vectors(text: bytes, crc: int) -> None:
    assert our_crc32c(text) == crc32c(text) == crc


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_back(codec: str) -> None:
    built = batch_v2(plain_records(10, 50, value_size=400), codec=codec)
    assert read(built) == list(built.records)


def test_a_batch_may_have_fewer_records_than_its_offsets_span() -> None:
    records = [Stored(12, 1, b"a", None), Stored(19, 2, None, b"")]
    built = batch_v2(records, base_offset=10, last_offset=30)
    assert read(built) == records
    assert RecordBatch(built.data).header.next_offset == 31


def test_the_record_times_of_a_delete_horizon_batch_are_true() -> None:
    records = plain_records(0, 3, timestamp=1_000)
    built = batch_v2(records, delete_horizon=5_000_000)
    assert read(built) == records


def test_every_record_of_an_append_time_batch_reports_its_max_timestamp() -> None:
    built = batch_v2(plain_records(0, 3, timestamp=1_000), append_time=7_777)
    assert [record.timestamp for record in read(built)] == [7_777] * 3
    assert [record.timestamp_type for record in read(built)] == [1] * 3


@pytest.mark.parametrize("stamps", [(2**63 - 1, -(2**63)), (-(2**63), 2**63 - 1), (0, 2**63 - 1)])
def test_timestamps_wrap_as_in_java(stamps: tuple[int, int]) -> None:
    records = [Stored(offset, stamp, None, None) for offset, stamp in enumerate(stamps)]
    assert read(batch_v2(records)) == records


def test_sequences_wrap_to_zero() -> None:
    built = batch_v2(plain_records(0, 3), producer_id=1, base_sequence=2**31 - 2)
    sequences = [record.sequence for record in RecordBatch(built.data).records()]
    assert sequences == [2**31 - 2, 2**31 - 1, 0]
    unset = RecordBatch(batch_v2(plain_records(0, 2)).data).records()
    assert [record.sequence for record in unset] == [-1, -1]


def test_an_empty_batch_gives_nothing_even_with_bytes_left() -> None:
    assert read(empty_batch_v2(3, 9)) == []
    assert read(batch_v2_of(b"leftover", record_count=0)) == []


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_the_stream_of_an_empty_batch_is_opened_and_holds_nothing(codec: str) -> None:
    # As Kafka's consumer does (DefaultRecordBatch.streamingIterator, not its iterator).
    attributes = CODEC_IDS[codec]
    assert read(batch_v2_of(compress(codec, b""), record_count=0, attributes=attributes)) == []
    for stream in (b"no stream", compress(codec, b"leftover")):
        with pytest.raises((CorruptRecordError, InvalidRecordError)):
            read(batch_v2_of(stream, record_count=0, attributes=attributes))


def test_what_follows_the_batch_is_not_looked_at() -> None:
    assert read(GOLDEN_123 + b"\xff" * 100) == read(GOLDEN_123)


def invalid(payload: bytes, *, count: int, codec: str = "none") -> str:
    data = batch_v2_of(compress(codec, payload), record_count=count, attributes=CODEC_IDS[codec])
    with pytest.raises(InvalidRecordError) as caught:
        read(data)
    return str(caught.value)


ONE = record_v2(0, 0, b"k", b"v")


@pytest.mark.parametrize("codec", CODECS)
def test_a_count_that_is_too_low_is_invalid(codec: str) -> None:
    text = invalid(ONE + ONE, count=1, codec=codec)
    assert text == f"{len(ONE)} bytes left after the batch's 1 record"


@pytest.mark.parametrize("codec", CODECS)
def test_a_count_that_is_too_high_is_invalid(codec: str) -> None:
    assert "runs past the end" in invalid(ONE, count=2, codec=codec)


def test_a_negative_count_is_invalid() -> None:
    assert invalid(ONE, count=-1) == "record count is -1"


def test_an_lz4_stream_without_end_mark_is_invalid_even_if_all_records_are_there() -> None:
    data = batch_v2_of(lz4_frame(ONE)[:-4], attributes=CODEC_IDS["lz4"])
    with pytest.raises(InvalidRecordError, match="no end mark"):
        read(data)


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused(codec_id: int) -> None:
    with pytest.raises(UnsupportedCodecError, match=f"codec id {codec_id}"):
        read(batch_v2_of(ONE, attributes=codec_id))


def test_a_wrong_checksum_is_corrupt_and_both_values_are_reported() -> None:
    built = batch_v2(plain_records(0, 1))
    right = crc32c(built.data[21:])
    with pytest.raises(CorruptRecordError) as caught:
        RecordBatch(with_bad_crc(built).data).ensure_valid()
    stored_crc = right ^ 0x01000000
    assert str(caught.value) == f"batch CRC stored {stored_crc:#010x}, computed {right:#010x}"


def test_base_offset_and_leader_epoch_lie_outside_the_checksum_and_nothing_else_does() -> None:
    data = batch_v2(plain_records(0, 2)).data
    for at in range(len(data)):
        if at in range(8, 12) or at == 16:  # size and magic: another batch altogether
            continue
        changed = bytearray(data)
        changed[at] ^= 0x10
        is_covered = at >= 17
        if is_covered:
            with pytest.raises(CorruptRecordError, match="batch CRC"):
                RecordBatch(bytes(changed)).ensure_valid()
        else:
            RecordBatch(bytes(changed)).ensure_valid()


def test_a_batch_cut_short_is_corrupt() -> None:
    for length in range(len(GOLDEN_123)):
        with pytest.raises(CorruptRecordError):
            RecordBatch(GOLDEN_123[:length])


def test_only_control_batches_have_a_control_type() -> None:
    assert RecordBatch(GOLDEN_123).control_type() is None
    assert RecordBatch(marker(0, ABORT).data).control_type() is ControlRecordType.ABORT
    empty_control = batch_v2_of(b"", record_count=0, attributes=0x30)
    assert RecordBatch(empty_control).control_type() is None


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_control_batch_far_larger_than_control_records_are_is_refused(codec: str) -> None:
    headers = b"\x00\x01" * (1 << 20)  # of 2 bytes each; as Python objects they take 100 times that
    body = b"\x00" * 3 + varint(4) + b"\x00\x00\x00\x00" + varint(-1) + varint(1 << 20) + headers
    attributes = CODEC_IDS[codec] | 0x20
    data = batch_v2_of(compress(codec, varint(len(body)) + body), attributes=attributes)
    with pytest.raises(InvalidRecordError, match=r"more than the limit of 1048576 bytes$"):
        RecordBatch(data).control_type()
