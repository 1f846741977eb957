"""Compressed streams that go on after the last record, or end before their own end.

What every reader makes of them is what Kafka's consumer did (4.3.1, on Java 17 and 25).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.errors import LogStorageError
from pylog.record.record_batch import RecordBatch
from tests.support.batches import (
    batch_v2_of,
    message_set,
    plain_records,
    record_v2,
    wrapper_of,
)
from tests.support.codecs import CODEC_IDS, compress, gzip_member, lz4_frame
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = plain_records(0, 3)
KEPT, REFUSED = True, False


class Case(NamedTuple):
    """A stream: its codec, what follows the records inside of it, what follows it, the verdict."""

    codec: str
    inside: bytes
    after: bytes
    verdict: bool


def entry(offset: int, size: int, rest: bytes) -> bytes:
    return struct.pack(">qi", offset, size) + rest


IN_MESSAGE_SETS = [
    Case(codec, inside, b"", verdict)
    for codec in ("gzip", "snappy", "lz4")
    for inside, verdict in (
        (b"\x00", KEPT),
        (bytes(11), KEPT),
        (bytes(12), REFUSED),
        (entry(3, -1, bytes(5)), REFUSED),
        (entry(3, 13, bytes(13)), REFUSED),
        (entry(3, 14, bytes(5)), KEPT),
        (entry(3, 1 << 20, bytes(5)), KEPT),
    )
]
AFTER_STREAMS = [
    Case("gzip", b"", bytes(30), KEPT),
    Case("gzip", b"", gzip_member(b"x")[:9], KEPT),
    Case("gzip", b"", gzip_member(b""), KEPT),
    Case("gzip", b"", gzip_member(b"x")[:-1], REFUSED),
    Case("snappy", b"", bytes(3), KEPT),
    Case("snappy", b"", bytes(4), REFUSED),
    Case("snappy", b"", bytes(30), REFUSED),
    Case("snappy", b"", b"\x00\x00\x00\x09abc", REFUSED),
    Case("lz4", b"", bytes(30), KEPT),
    Case("lz4", b"", lz4_frame(b"x"), KEPT),
]


def stored(stream: bytes, codec: str, magic: int) -> bytes:
    """Return a batch of `RECORDS` whose compressed stream is this one."""
    if magic < 2:
        return wrapper_of(stream, offset=2, magic=magic, codec=codec)
    return batch_v2_of(
        stream,
        last_offset_delta=2,
        record_count=3,
        attributes=CODEC_IDS[codec],
        base_timestamp=1_000,
        max_timestamp=1_002,
    )


def inner(magic: int) -> bytes:
    if magic < 2:
        return message_set(RECORDS, inner_magic=magic)
    return b"".join(
        record_v2(each.timestamp - 1_000, each.offset, each.key, each.value) for each in RECORDS
    )


def ensure_verdict(tmp_path: Path, data: bytes, *, verdict: bool) -> None:
    """Assert that every reader has all records of the batch, or refuses it."""
    directory = write_partition(tmp_path, {0: []}, name="t-0", with_index=False)
    segment_path(directory, 0).write_bytes(data)
    offsets = [0, 1, 2]
    if verdict is KEPT:
        assert [each.offset for each in RecordBatch(data).records()] == offsets
        for columns in ("offset", ["offset", "value", "headers"]):
            assert (
                pylog.scan(directory, columns=columns).to_table()["offset"].to_pylist() == offsets
            )
    else:
        with pytest.raises(LogStorageError):
            list(RecordBatch(data).records())
        for columns in ("offset", ["offset", "value", "headers"]):
            with pytest.raises(LogStorageError):
                pylog.scan(directory, columns=columns).to_table()
    found = pylog.search(directory, value_contains=RECORDS[1].value or b"")
    assert sum(batch.num_rows for batch in found) == (verdict is KEPT)
    assert len(found.summary.unreadable) == (verdict is REFUSED)
    codes = [each.code for each in pylog.doctor(directory).findings]
    assert ("damaged_batches" in codes) == (verdict is REFUSED)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("case", IN_MESSAGE_SETS)
def test_a_message_set_that_continues_after_its_last_message(
    tmp_path: Path, case: Case, magic: int
) -> None:
    stream = compress(case.codec, inner(magic) + case.inside, magic)
    ensure_verdict(tmp_path, stored(stream, case.codec, magic), verdict=case.verdict)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("case", AFTER_STREAMS)
def test_what_follows_a_stream(tmp_path: Path, case: Case, magic: int) -> None:
    stream = compress(case.codec, inner(magic), magic) + case.after
    ensure_verdict(tmp_path, stored(stream, case.codec, magic), verdict=case.verdict)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("missing", [0, 1, 4])
def test_an_lz4_frame_has_the_content_checksum_that_it_announces(
    tmp_path: Path, missing: int, magic: int
) -> None:
    frame = lz4_frame(inner(magic), magic=magic, content_checksum=7)
    data = stored(frame[: len(frame) - missing], "lz4", magic)
    ensure_verdict(tmp_path, data, verdict=REFUSED if missing else KEPT)
