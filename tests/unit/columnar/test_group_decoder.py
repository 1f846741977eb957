"""Batches that are decoded in pieces: the same rows, bounded memory, nothing of a damaged one."""

from __future__ import annotations

import functools
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from pylog.columnar import decode_legacy, group_decoder
from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.columnar.record_columns import RecordColumns
from pylog.errors import CorruptRecordError, InvalidRecordError, LogStorageError
from pylog.model import TopicPartition
from pylog.record.batch_scan import Window, find_batches
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    joined,
    message,
    message_bytes,
    plain_records,
    record_v2,
    varint,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import CODEC_IDS, CODECS, LEGACY_CODECS, compress
from tests.support.reading import as_buffer, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = 8 << 20
LONGEST_TOPIC = "t" * 249
ALL_COLUMNS = record_schema(include_headers=True, include_batch_metadata=True, timestamp_unit="ms")
KEY_AND_VALUE = record_schema(("offset", "key", "value"))


@pytest.fixture(params=[(64, 1 << 18), (1 << 24, 1), (1 << 24, 3), (300, 4)])
def small_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    most_bytes, most_rows = request.param
    monkeypatch.setattr(group_decoder, "_LEAST_PIECE_BYTES", most_bytes)
    monkeypatch.setattr(group_decoder, "_MOST_PIECE_BYTES", most_bytes)
    monkeypatch.setattr(group_decoder, "_LEAST_PIECE_ROWS", most_rows)
    monkeypatch.setattr(group_decoder, "_MOST_PIECE_ROWS", most_rows)


def decoded(
    data: bytes,
    limit: int = LIMIT,
    schema: pa.Schema = ALL_COLUMNS,
    start_offset: int = 0,
    end_offset: int = 2**62,
) -> Iterator[pa.RecordBatch]:
    scan = find_batches(as_buffer(data))
    decoder = RecordDecoder(TopicPartition(LONGEST_TOPIC, 0), schema, max_decompressed_bytes=limit)
    window = Window.of(scan, "0.log", 0)
    return decoder.decode(window, start_offset, end_offset)


def varied(first_offset: int, count: int) -> list[Stored]:
    return [
        Stored(
            first_offset + i,
            1_000 + i,
            None if i % 5 == 1 else b"k" * (i % 7),
            None if i % 4 == 2 else b"v" * (37 * i % 101),
            () if i % 3 else (("h", b"x" * (i % 50)), ("ключ", None)),
        )
        for i in range(count)
    ]


def without_headers(records: list[Stored]) -> list[Stored]:
    return [record._replace(headers=()) for record in records]


def batches_of_every_kind() -> list[Built]:
    made = [batch_v2(varied(40 * i, 30), codec=codec) for i, codec in enumerate(CODECS)]
    for magic in (0, 1):
        for codec in LEGACY_CODECS:
            if codec != "none":
                made.append(
                    wrapper(without_headers(varied(40 * len(made), 30)), magic=magic, codec=codec)
                )
    made.append(message(without_headers(varied(40 * len(made), 1))[0], magic=1))
    made.append(
        wrapper(without_headers(varied(40 * len(made), 9)), magic=1, codec="gzip", append_time=77)
    )
    made.append(batch_v2(varied(40 * len(made), 20), codec="zstd", append_time=78))
    return made


@pytest.mark.usefixtures("small_pieces")
def test_a_batch_in_pieces_gives_the_rows_that_it_holds() -> None:
    batches = batches_of_every_kind()
    found = list(decoded(joined(batches)))
    assert rows(found) == [record for built in batches for record in built.records]
    assert len(found) > 2 * len(batches)
    base_offsets = [
        o for each in found for o in each.column("batch").field("baseOffset").to_pylist()
    ]
    assert base_offsets == [built.base_offset for built in batches for _ in built.records]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("start", "end"), [(0, 1), (7, 8), (13, 25), (29, 45), (100, 330)])
def test_a_range_of_a_batch_in_pieces_is_that_range(start: int, end: int) -> None:
    batches = batches_of_every_kind()
    found = rows(decoded(joined(batches), start_offset=start, end_offset=end))
    expected = [record for built in batches for record in built.records]
    assert found == [record for record in expected if start <= record.offset < end]


def with_damage_at_the_end(codec: str, kind: str) -> bytes:
    if kind == "v2":
        payload = b"".join(record_v2(0, i, b"k", b"v") for i in range(20)) + b"\x0c\x00\x00"
        return batch_v2_of(compress(codec, payload), record_count=21, attributes=CODEC_IDS[codec])
    inner = [message_bytes(i, b"k", b"v", magic=1, timestamp=1) for i in range(20)]
    inner[-1] = inner[-1][:-1] + b"w"
    return wrapper_of(compress(codec, b"".join(inner), 1), offset=19, magic=1, codec=codec)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("codec", "kind"), [("none", "v2"), ("zstd", "v2"), ("gzip", "v1"), ("snappy", "v1")]
)
def test_nothing_is_given_of_a_batch_whose_last_record_is_damaged(codec: str, kind: str) -> None:
    found: list[pa.RecordBatch] = []
    with pytest.raises((InvalidRecordError, CorruptRecordError)):
        found.extend(decoded(with_damage_at_the_end(codec, kind)))
    assert found == []


@pytest.mark.usefixtures("small_pieces")
def test_malformed_header_keys_are_replaced_in_every_piece() -> None:
    payload = b"".join(
        record_v2(0, i, None, None, [(b"\xed\xa0\x80" * (i % 3) + b"\xf0\x9f", b"1")])
        for i in range(30)
    )
    data = batch_v2_of(payload, record_count=30, last_offset_delta=29)
    found = [record.headers for record in rows(decoded(data))]
    assert found == [(("\ufffd" * (i % 3 + 1), b"1"),) for i in range(30)]


class Outcome(NamedTuple):
    rows: int
    peak_bytes: int
    error: str


def measured(data: bytes, schema: pa.Schema, limit: int = LIMIT) -> Outcome:
    """Decode under watch: the peak of what Python, NumPy and Arrow take together at the most."""
    with suppress(LogStorageError):
        for batch in decoded(data, limit, schema):  # kernels are compiled, which takes memory
            del batch
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    count, error = 0, ""
    try:
        for batch in decoded(data, limit, schema):
            count += batch.num_rows
            del batch
    except LogStorageError as caught:
        error = str(caught)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        pa.set_memory_pool(before)
    return Outcome(count, peak + pool.max_memory(), error)


def one_record(size: int, headers: bytes = b"", header_count: int = 0) -> bytes:
    """Return a record of exactly ``size`` bytes: its value fills what the headers leave."""
    value_size = size - len(headers) - 40
    while True:
        body = b"\x00" * 3 + varint(-1) + varint(value_size) + bytes(value_size)
        body += varint(header_count) + headers
        found = varint(len(body)) + body
        if len(found) == size:
            return found
        value_size += size - len(found)


TINY = record_v2(0, 0, None, None)


def with_offset_delta_1(record: bytes) -> bytes:
    at = len(varint(len(record))) + 2  # after length, attributes and a timestamp delta of 0
    assert record[at] == 0
    return record[:at] + varint(1) + record[at + 1 :]


@functools.cache
def tiny_records() -> tuple[bytes, int]:
    """Return records of 7 bytes with offsets that go up, as many as the limit allows."""
    count = LIMIT // 12
    return b"".join(record_v2(0, i, None, None) for i in range(count)), count


BOMBS: dict[str, Callable[[], tuple[bytes, int]]] = {
    "tiny records": tiny_records,
    "one value": lambda: (one_record(LIMIT), 1),
    "one value and a header": lambda: (one_record(LIMIT, b"\x02h\x02v", 1), 1),
    "headers of twelve bytes": lambda: (
        one_record(LIMIT, b"\x0aabcde\x0avwxyz" * 600_000, 600_000),
        1,
    ),
    "malformed header keys": lambda: (
        b"".join(record_v2(0, i, None, None, [(b"\xff" * 60_000, None)]) for i in range(100)),
        100,
    ),
}


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
@pytest.mark.parametrize("name", BOMBS)
def test_whatever_fits_the_limit_is_decoded_within_four_times_as_much(
    name: str, codec: str
) -> None:
    payload, count = BOMBS[name]()
    assert len(payload) <= LIMIT
    data = batch_v2_of(
        compress(codec, payload),
        record_count=count,
        last_offset_delta=count - 1,
        attributes=CODEC_IDS[codec],
    )
    schema = ALL_COLUMNS if codec != "lz4" else KEY_AND_VALUE
    found = measured(data, schema)
    assert (found.rows, found.error) == (count, "")
    assert found.peak_bytes + len(data) <= 4 * LIMIT


def test_messages_that_fit_the_limit_are_decoded_within_four_times_as_much() -> None:
    count = LIMIT // 34
    inner = b"".join(message_bytes(i, None, None, magic=1, timestamp=1) for i in range(count))
    data = wrapper_of(compress("gzip", inner, 1), offset=count - 1, magic=1, codec="gzip")
    found = measured(data, ALL_COLUMNS)
    assert (found.rows, found.error) == (count, "")
    assert found.peak_bytes + len(data) <= 4 * LIMIT


@pytest.mark.parametrize("key", [b"", b"\xff"])
def test_headers_of_no_bytes_by_the_million_are_refused_by_the_options_name(key: bytes) -> None:
    header = varint(len(key)) + key + varint(-1)
    count = LIMIT // len(header) - 100
    # The record is the second one: nothing is given of the first one either.
    large = one_record(LIMIT - len(TINY), header * count, count)
    data = batch_v2_of(
        compress("zstd", TINY + with_offset_delta_1(large)),
        record_count=2,
        last_offset_delta=1,
        attributes=CODEC_IDS["zstd"],
    )
    found = measured(data, ALL_COLUMNS)
    assert found.rows == 0
    assert "raise max_decompressed_bytes" in found.error
    assert f"limit of {LIMIT} bytes" in found.error
    assert found.peak_bytes <= 4 * LIMIT


def test_columns_that_are_not_asked_for_cost_nothing() -> None:
    count = LIMIT // 2 - 100
    payload = one_record(LIMIT, b"\x00\x01" * count, count)
    data = batch_v2_of(compress("zstd", payload), attributes=CODEC_IDS["zstd"])
    found = measured(data, KEY_AND_VALUE)
    assert (found.rows, found.error) == (1, "")
    assert found.peak_bytes <= 3 * LIMIT


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_a_batch_of_one_byte_over_the_limit_is_refused_before_it_has_memory(codec: str) -> None:
    data = batch_v2_of(compress(codec, one_record(LIMIT + 1)), attributes=CODEC_IDS[codec])
    found = measured(data, ALL_COLUMNS)
    assert found.rows == 0
    assert f"limit of {LIMIT} bytes" in found.error
    assert found.peak_bytes <= 3 * LIMIT
    far_over = compress(codec, bytes(8 * LIMIT))
    found = measured(batch_v2_of(far_over, attributes=CODEC_IDS[codec]), ALL_COLUMNS)
    assert f"limit of {LIMIT} bytes" in found.error
    assert found.peak_bytes <= 3 * LIMIT + len(far_over)


def test_many_small_batches_are_grouped_as_before() -> None:
    batches = [batch_v2(plain_records(10 * i, 10)) for i in range(50)]
    assert len(list(decoded(joined(batches)))) == 1
    timestamps = np.array([record.timestamp for built in batches for record in built.records])
    (found,) = decoded(joined(batches))
    assert found.column("timestamp").cast(pa.int64()).to_numpy().tolist() == timestamps.tolist()


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_columns_have_room_for_the_records_that_fit_and_no_more(
    monkeypatch: pytest.MonkeyPatch, magic: int
) -> None:
    most_rows = []

    class Noted(RecordColumns):
        def __init__(self, most: int, *arguments: Any) -> None:  # noqa: ANN401 - passed on
            most_rows.append(most)
            super().__init__(most, *arguments)

    module = group_decoder if magic == 2 else decode_legacy
    monkeypatch.setattr(module, "RecordColumns", Noted)
    records = [Stored(offset, -1 if magic == 0 else 5, None, b"v" * 30) for offset in range(10)]
    if magic == 2:
        data = batch_v2(records).data
    else:
        data = joined([message(each, magic=magic) for each in records])
    (batch,) = decoded(data, schema=KEY_AND_VALUE)
    assert batch.num_rows == 10
    # A message of v0 has 26 bytes at least, one of these has 56 or 64: two of those would fit.
    assert most_rows == [10 if magic == 2 else 20]
