"""Arrow to batches: kafka-python's bytes, kafka-python as a reader, and round trips."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.columnar.encode import CHUNK_BYTES, EncodedBatch, OpenBatch, RecordEncoder
from pylog.columnar.encode_input import Columns, columns_of
from pylog.model import CompressionType
from tests.support import strategies
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.codecs import CODECS
from tests.support.decoding import kernel_batches, kernel_records, reference_records
from tests.support.peers import PEERS, V2_BUILDERS, build_v2, peer_batches, peer_records
from tests.unit.columnar.encoded import batch_of, encoded

if TYPE_CHECKING:
    from collections.abc import Sequence

BYTES_TYPES = (pa.binary(), pa.large_binary())
LARGE_HEADERS = pa.large_list(
    pa.struct([("value", pa.large_binary()), ("key", pa.large_string())])  # the other way round
)
MAX_BATCH = 1 << 24
LEADER_EPOCHS = {"aiokafka": -1, "kafka-python": 0}  # what their producers send


def header_rows(records: Sequence[Stored]) -> list[list[dict[str, Any]] | None]:
    return [
        [{"key": name, "value": content} for name, content in record.headers] or None
        for record in records
    ]


def arrow(
    records: Sequence[Stored],
    *,
    kind: pa.DataType | None = None,
    headers: pa.DataType = HEADERS_TYPE,
    timestamp: pa.DataType | None = None,
) -> pa.RecordBatch:
    kind = pa.binary() if kind is None else kind
    stamps = pa.array([record.timestamp for record in records], pa.int64())
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.key for record in records], kind),
            pa.array([record.value for record in records], kind),
            stamps if timestamp is None else stamps.cast(timestamp),
            pa.array(header_rows(records), headers),
        ],
        ["key", "value", "timestamp", "headers"],
    )


VARIED = [
    Stored(0, 1_700_000_000_000, b"k", b"v"),
    Stored(1, 1_700_000_000_003, None, b"v" * 70, (("h", b"1"), ("h", None), ("ü", b""))),
    Stored(2, 1_699_999_999_000, b"", None),
    Stored(3, -1, b"k" * 64, b"v" * 9_000),
    Stored(4, 1_700_000_100_000, b"k" * 63, b""),
    Stored(5, 2**62, None, None, (("", b"x" * 200),)),
]


# A broker's bytes, found in kafka-python's own tests.
def test_the_bytes_are_those_of_a_broker_for_one_record() -> None:
    data = batch_of(value=pa.array([b"123"]), timestamp=pa.array([1503229838908]))
    assert encoded(data, partition_leader_epoch=1).hex() == (
        "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063c"
        "ffffffffffffffffffffffffffff0000000112000000010631323300"
    )


def test_the_bytes_are_those_of_a_broker_for_two_records() -> None:
    data = batch_of(
        value=pa.array([b"", b""]), timestamp=pa.array([0x15DFF7CDD6C, 0x15DFF7CDD6C + 168])
    )
    assert encoded(data, base_offset=1).hex() == (
        "0000000000000001000000400000000002c85cbd230000000000010000015dff7cdd6c0000015dff7cde14"
        "ffffffffffffffffffffffffffff000000020c0000000100000e00d00202010000"
    )


def test_the_bytes_are_those_of_a_broker_for_headers() -> None:
    data = batch_of(
        value=pa.array([b"hdr"]),
        timestamp=pa.array([0x16585B6F3C1], pa.timestamp("ms", tz="UTC")),
        headers=pa.array([[{"key": "hkey", "value": b"hval"}]], HEADERS_TYPE),
    )
    assert encoded(data).hex() == (
        "00000000000000000000004500000000025cd8ef520000000000000000016585b6f3c10000016585b6f3c1"
        "ffffffffffffffffffffffffffff000000012600000001066864720208686b6579086876616c"
    )


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("kind", BYTES_TYPES)
@pytest.mark.parametrize("headers", [HEADERS_TYPE, LARGE_HEADERS])
def test_the_bytes_are_those_of_the_peers_builder(
    peer: str, kind: pa.DataType, headers: pa.DataType
) -> None:
    data = arrow(VARIED, kind=kind, headers=headers)
    epoch = LEADER_EPOCHS[peer]
    ours = encoded(data, batch_size_bytes=MAX_BATCH, partition_leader_epoch=epoch)
    assert ours == build_v2(peer, VARIED, "none")


@pytest.mark.parametrize("size", [300, 1_000, 16_384])
def test_batches_are_cut_where_kafka_pythons_producer_cuts_them(size: int) -> None:
    records = [*plain_records(0, 400), *VARIED, *plain_records(406, 200, value_size=100)]
    whole, base = b"", 0
    builder: Any = None
    for place, record in enumerate(records):
        added = builder and append(builder, place - base, record)
        if not added:
            whole += moved(builder, base)
            base = place
            builder = V2_BUILDERS["kafka-python"](
                magic=2,
                compression_type=0,
                is_transactional=0,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                batch_size=size,
            )
            assert append(builder, 0, record)
    whole += moved(builder, base)
    assert encoded(arrow(records), batch_size_bytes=size) == whole


def append(builder: Any, delta: int, record: Stored) -> object:  # noqa: ANN401 - a peer's class
    return builder.append(
        delta,
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=list(record.headers),
    )


def moved(builder: Any, base_offset: int) -> bytes:  # noqa: ANN401 - a peer's class
    """Return the builder's batch at its place in the log, which no checksum covers."""
    return b"" if builder is None else struct.pack(">q", base_offset) + bytes(builder.build())[8:]


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("codec", CODECS)
def test_the_peers_read_every_codec(peer: str, codec: str) -> None:
    records = [*VARIED, *plain_records(6, 500, value_size=300)]
    data = encoded(arrow(records), compression=CompressionType[codec.upper()])
    assert peer_records(peer, data) == records
    codecs = {batch.compression_type for batch in peer_batches(peer, data)}
    assert codecs == {CompressionType[codec.upper()]}


def test_a_level_of_the_codec_is_used() -> None:
    records = plain_records(0, 2_000)
    sizes = [
        len(
            encoded(
                arrow(records),
                compression=CompressionType.GZIP,
                level=level,
                batch_size_bytes=MAX_BATCH,
            )
        )
        for level in (1, 9)
    ]
    assert sizes[1] < sizes[0]


def test_a_level_that_the_codec_does_not_have_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="level"):
        RecordEncoder(compression=CompressionType.GZIP, level=10)


RECORDS = st.lists(strategies.bodies(strategies.MILLISECONDS | st.just(-1)), max_size=12).map(
    lambda bodies: [
        Stored(offset, body.timestamp, body.key, body.value, body.headers)
        for offset, body in enumerate(bodies)
    ]
)


@given(
    RECORDS,
    st.sampled_from(CODECS),
    st.sampled_from(BYTES_TYPES),
    st.sampled_from((HEADERS_TYPE, LARGE_HEADERS)),
    st.integers(61, 30_000),
    st.integers(1, 12),
)
def test_what_is_written_is_read(
    records: list[Stored],
    codec: str,
    kind: pa.DataType,
    headers: pa.DataType,
    batch_size_bytes: int,
    max_records: int,
) -> None:
    data = encoded(
        arrow(records, kind=kind, headers=headers),
        compression=CompressionType[codec.upper()],
        batch_size_bytes=batch_size_bytes,
        max_records=max_records,
    )
    assert kernel_records(data) == records
    assert reference_records(data) == records


@given(RECORDS, st.data())
def test_a_slice_is_written_as_its_rows(records: list[Stored], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(records)))
    count = data.draw(st.integers(0, len(records)))
    kind = data.draw(st.sampled_from(BYTES_TYPES))
    taken = [
        record._replace(offset=offset)
        for offset, record in enumerate(records[first : first + count])
    ]
    whole = arrow(records, kind=kind)
    assert kernel_records(encoded(whole.slice(first, count))) == taken
    pieces = pa.Table.from_batches([whole.slice(0, first), whole.slice(first)])
    assert kernel_records(encoded(pieces)) == records


def test_records_that_were_read_are_written_again() -> None:
    data = encoded(arrow(VARIED[:5]), batch_size_bytes=MAX_BATCH)
    for unit in ("ms", "us"):
        (read,) = kernel_batches(data)
        place = read.schema.get_field_index("timestamp")
        stamps = read.column("timestamp").cast(pa.timestamp(unit, tz="UTC"))
        read = read.set_column(place, "timestamp", stamps)
        assert encoded(read, batch_size_bytes=MAX_BATCH) == data


def test_pieces_of_a_table_end_batches_and_offsets_go_on() -> None:
    records = plain_records(0, 10)
    table = pa.Table.from_batches([arrow(records[:4]), arrow(records[4:])])
    assert encoded(table) == batch_bytes(records[:4]) + batch_bytes(records[4:])


def batch_bytes(records: Sequence[Stored], **options: Any) -> bytes:  # noqa: ANN401
    return batch_v2(records, **options).data


def test_calls_go_on_where_the_last_one_ended() -> None:
    encoder = RecordEncoder(
        base_offset=5,
        partition_leader_epoch=2,
        max_records=2,
    )
    records = plain_records(5, 5)
    found = [
        bytes(batch.data)
        for piece in (records[:3], records[3:])
        for batch in encoder.encode(arrow(piece))
    ]
    cuts = [(0, 2), (2, 3), (3, 5)]
    assert found == [batch_bytes(records[start:end], leader_epoch=2) for start, end in cuts]
    assert encoder.next_offset == 10


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_says_what_is_in_it(codec: str) -> None:
    stamps = (50, 40, 70, 60)
    records = [Stored(10 + i, stamp, None, b"v" * 50) for i, stamp in enumerate(stamps)]
    encoder = RecordEncoder(
        base_offset=10, max_records=3, compression=CompressionType[codec.upper()]
    )
    found = list(encoder.encode(arrow(records)))
    sizes = [batch.size_bytes for batch in found]
    assert [batch[1:5] for batch in found] == [(3, 2, 50, 70), (1, 0, 60, 60)]
    assert [batch.base_offset for batch in found] == [10, 13]
    assert sizes == [len(batch.data) for batch in found]
    assert isinstance(found[0], EncodedBatch)


def test_rows_count_on_over_the_pieces_of_a_table() -> None:
    good = batch_of(timestamp=pa.array([1, 2, 3]))
    bad = batch_of(timestamp=pa.array([1, -5]))
    with pytest.raises(ValueError, match="row 4: timestamp -5 ms"):
        encoded(pa.Table.from_batches([good, bad]))


def test_a_record_that_fits_no_batch_is_refused_with_its_row() -> None:
    data = pa.py_buffer(np.zeros(2**31, dtype=np.uint8))  # memory that nobody touches
    ends = pa.py_buffer(np.array([0, 1, 2**31], dtype=np.int64))
    value = pa.Array.from_buffers(pa.large_binary(), 2, [None, ends, data])
    with pytest.raises(ValueError, match=r"^row 1: the record does not fit a batch of 2147483647"):
        encoded(batch_of(value=value))


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_more_than_a_chunk_is_written(codec: str) -> None:
    records = plain_records(0, 3_000, value_size=1_000)
    data = encoded(arrow(records), compression=CompressionType[codec.upper()])
    assert kernel_records(data) == records


def test_more_batches_than_one_call_writes_are_written() -> None:
    records = plain_records(0, 10_000, value_size=1)
    data = encoded(arrow(records), max_records=1)
    assert kernel_records(data) == records


@pytest.mark.parametrize(
    ("batch_size_bytes", "counts"),
    [
        (1, [1] * 907),
        (3 * CHUNK_BYTES, [6, 1 + 130, 391, 379]),
        (100 * CHUNK_BYTES, [907]),
    ],
)
def test_batches_larger_than_a_chunk_are_written(batch_size_bytes: int, counts: list[int]) -> None:
    small = plain_records(0, 5)
    large = plain_records(5, 2, value_size=2 * CHUNK_BYTES)
    many = plain_records(7, 900, value_size=4_000)
    records = [*small, *large, *many]
    encoder = RecordEncoder(batch_size_bytes=batch_size_bytes)
    found = [(bytes(b.data), b.record_count) for b in encoder.encode(arrow(records))]
    assert [count for _, count in found] == counts
    assert kernel_records(b"".join(data for data, _ in found), 1 << 28) == records


def test_an_encoder_that_was_left_half_way_continues_after_what_it_gave() -> None:
    records = plain_records(0, 6)
    encoder = RecordEncoder(max_records=2, partition_leader_epoch=0)
    next(encoder.encode(arrow(records)))
    assert encoder.next_offset == 2
    rest = b"".join(bytes(batch.data) for batch in encoder.encode(arrow(records[2:])))
    assert kernel_records(rest) == records[2:]


@pytest.mark.parametrize("codec", CODECS)
def test_chunks_hold_the_same_batches_one_after_the_other(codec: str) -> None:
    values = [b"%06d" % number * 9 for number in range(40_000)]
    rows = pa.RecordBatch.from_arrays([pa.array(values)], ["value"])
    compression = CompressionType[codec.upper()]
    single = RecordEncoder(compression=compression).encode(rows, timestamp_ms=5)
    batches = [(bytes(each.data), each.record_count) for each in single]
    position = 0
    encoder = RecordEncoder(compression=compression)
    for chunk in encoder.encode_chunks(rows, timestamp_ms=5):
        here = [batches.pop(0) for _ in chunk.record_counts]
        assert len(here) > 1
        assert bytes(chunk.data) == b"".join(data for data, _ in here)
        assert chunk.record_counts.tolist() == [count for _, count in here]
        position = 0
        for (data, _), start, end in zip(here, chunk.positions, chunk.ends, strict=True):
            assert (start, end) == (position, position + len(data))
            position = int(end)
    assert not batches
    assert encoder.next_offset == 40_000


def columns_from(values: Sequence[bytes]) -> Columns:
    rows = pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], ["value"])
    return columns_of(rows, 5, 0)


@pytest.mark.parametrize("codec", CODECS)
def test_rows_of_many_partitions_fill_batches_of_their_own(codec: str) -> None:
    values = [b"%06d" % number * 9 for number in range(60_000)]
    compression = CompressionType[codec.upper()]
    encoder = RecordEncoder(compression=compression)
    opened = [OpenBatch() for _ in range(3)]
    found: list[list[bytes]] = [[] for _ in opened]
    for start in range(0, len(values), 17_001):
        part = values[start : start + 17_001]
        for partition, batch in enumerate(opened):
            first = (partition - start) % 3
            for chunk in encoder.encode_selected(
                columns_from(part), np.arange(first, len(part), 3), batch
            ):
                ends = zip(chunk.positions.tolist(), chunk.ends.tolist(), strict=True)
                found[partition] += [bytes(chunk.data[at:end]) for at, end in ends]
    for partition, batch in enumerate(opened):
        found[partition] += [bytes(chunk.data) for chunk in encoder.close_batch(batch)]
        assert (batch.record_count, batch.size_bytes) == (0, 0)
        assert list(encoder.close_batch(batch)) == []
        rows = pa.RecordBatch.from_arrays([pa.array(values[partition::3])], ["value"])
        alone = RecordEncoder(compression=compression).encode(rows, timestamp_ms=5)
        # Offsets count on over all partitions; nothing else differs, nor where batches end.
        assert [each[8:] for each in found[partition]] == [bytes(each.data)[8:] for each in alone]


def test_an_open_batch_grows_with_its_records() -> None:
    values = [b"small", b"L" * 3 * CHUNK_BYTES, b"s", b"M" * 5 * CHUNK_BYTES]
    encoder, opened = (
        RecordEncoder(batch_size_bytes=MAX_BATCH, partition_leader_epoch=0),
        OpenBatch(),
    )
    for value in values:
        assert list(encoder.encode_selected(columns_from([value]), np.array([0]), opened)) == []
    assert opened.size_bytes > 8 * CHUNK_BYTES
    (chunk,) = encoder.close_batch(opened)
    records = [Stored(at, 5, None, value) for at, value in enumerate(values)]
    assert bytes(chunk.data) == batch_v2(records, leader_epoch=0).data
    assert chunk.max_timestamps.tolist() == [5]
    assert chunk.crcs.tolist() == [int.from_bytes(chunk.data[17:21])]


def test_no_selected_rows_are_no_rows() -> None:
    opened = OpenBatch()
    nobody = np.empty(0, dtype=np.int64)
    assert list(RecordEncoder().encode_selected(columns_from([b"v"]), nobody, opened)) == []
    assert opened.record_count == 0


def test_a_selected_row_that_is_not_there_is_refused() -> None:
    encoder = RecordEncoder()
    with pytest.raises(ValueError, match="row 1: the offsets"):
        list(encoder.encode_selected(columns_from([b"v"]), np.array([0, 1]), OpenBatch()))


def test_no_rows_make_no_batches() -> None:
    assert encoded(arrow([])) == b""
    assert encoded(arrow(VARIED).slice(3, 0)) == b""
    assert encoded(pa.Table.from_batches([], arrow([]).schema)) == b""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_size_bytes": 0}, "batch_size_bytes is 0, not from 1 to 2147483647"),
        ({"batch_size_bytes": 2**31}, "batch_size_bytes is 2147483648, not from 1 to 2147483647"),
        ({"max_records": 0}, "max_records is 0, not from 1 to 2147483647"),
        ({"base_offset": -1}, f"base_offset is -1, not from 0 to {2**63 - 1}"),
        ({"partition_leader_epoch": -2}, "partition_leader_epoch is -2, not from -1 to 2147483647"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text[:20]) as caught:
        RecordEncoder(**options)  # type: ignore[arg-type]
    assert str(caught.value) == text


def test_offsets_end_at_2_to_the_63() -> None:
    encoder = RecordEncoder(base_offset=2**63 - 2)
    with pytest.raises(ValueError, match="no offsets are left for 3 records"):
        list(encoder.encode(arrow(plain_records(0, 3))))
    assert encoder.next_offset == 2**63 - 2
