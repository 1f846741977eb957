"""The limit on a batch's decompressed size, from every place where it can be given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.reading.offset_resolution import find_max_timestamp, find_offset_for_timestamp
from tests.support.batches import Built, Stored, batch_v2, batch_v2_of, plain_records, record_v2
from tests.support.codecs import CODEC_IDS, CODECS, compress
from tests.support.log_files import write_partition
from tests.support.reading import spans

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 100_000


def three_batches(codec: str, size: int) -> list[Built]:
    """Return batches at offsets 0, 1 and 2, the middle one with ``size`` bytes of records."""
    value = bytes(size - len(record_v2(0, 0, None, bytes(size))) + size)
    middle = [Stored(1, 0, None, value)]
    assert len(record_v2(0, 0, None, value)) == size
    return [
        batch_v2(plain_records(0, 1)),
        batch_v2(middle, codec=codec),
        batch_v2(plain_records(2, 1)),
    ]


def written(directory: Path, batches: list[Built]) -> Path:
    return write_partition(directory, {0: batches}, with_index=False, with_time_index=False)


@pytest.mark.parametrize("size", [LIMIT + 1, 3 * LIMIT, 60 * LIMIT])
@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_over_the_limit_is_damage_and_its_neighbours_are_read(
    tmp_path: Path, codec: str, size: int
) -> None:
    batches = three_batches(codec, size)
    directory = written(tmp_path, batches)
    options: dict[str, Any] = {"columns": ["offset"], "max_decompressed_bytes": LIMIT}
    with pytest.raises((InvalidRecordError, CorruptRecordError)) as caught:
        pylog.scan(directory, **options).to_table()
    start, end = len(batches[0].data), len(batches[0].data + batches[1].data)
    assert caught.value.position == start
    for words in (f"limit of {LIMIT} bytes", "max_decompressed_bytes", "maxDecompressedBytes"):
        assert words in str(caught.value)
    scan = pylog.scan(directory, mode="DROPMALFORMED", **options)
    assert scan.to_table()["offset"].to_pylist() == [0, 2]
    assert spans(scan.damage.ranges) == [(start, end, 1, 2)]
    assert pylog.scan(directory, columns=["offset"]).to_table().num_rows == 3


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_exactly_the_limit_is_read(tmp_path: Path, codec: str) -> None:
    directory = written(tmp_path, three_batches(codec, LIMIT))
    assert pylog.scan(directory, max_decompressed_bytes=LIMIT).to_table().num_rows == 3


def test_the_default_limit_is_256_mib(tmp_path: Path) -> None:
    bomb = compress("zstd", bytes((256 << 20) + 1))
    directory = written(
        tmp_path, [Built(batch_v2_of(bomb, attributes=CODEC_IDS["zstd"]), (), 2, 0, 0)]
    )
    with pytest.raises(InvalidRecordError, match="limit of 268435456 bytes"):
        pylog.scan(directory).to_table()


def test_findings_take_the_limit(tmp_path: Path) -> None:
    directory = written(tmp_path, three_batches("gzip", 2 * LIMIT))
    found = pylog.read_table(directory, "findings", max_decompressed_bytes=LIMIT)
    assert found["code"].to_pylist().count("damaged_batches") == 1
    found = pylog.read_table(directory, "findings")
    assert "damaged_batches" not in found["code"].to_pylist()


def test_a_filter_keeps_what_passes_of_a_batch_in_pieces(tmp_path: Path) -> None:
    records = [Stored(i, i % 1_000, b"%d" % (i % 7), bytes(100)) for i in range(20_000)]
    directory = written(tmp_path, [batch_v2(records, codec="zstd")])
    where = pylog.RecordFilter(keys=frozenset({b"3"}), min_timestamp=500)
    limit = 20_000 * 120  # pieces of 2,343 records
    found = pylog.scan(directory, where=where, max_decompressed_bytes=limit).to_table()
    expected = [r.offset for r in records if r.key == b"3" and r.timestamp >= 500]
    assert found["offset"].to_pylist() == expected
    assert len(found["value"].chunks) > 2


def test_look_ups_by_time_go_through_large_batches(tmp_path: Path) -> None:
    count = 400_000  # decoded in two pieces
    records = b"".join(record_v2(5 * i, i, None, None) for i in range(count))
    data = batch_v2_of(
        compress("zstd", records),
        record_count=count,
        last_offset_delta=count - 1,
        max_timestamp=5 * (count - 1),
        attributes=CODEC_IDS["zstd"],
    )
    directory = written(tmp_path, [Built(data, (), 2, 0, count - 1)])
    (view,) = pylog.open_directory(directory).select()
    for offset in (0, 1, 262_143, 262_144, count - 1):
        found = find_offset_for_timestamp(view, 5 * offset - 1)
        assert found is not None
        assert (found.offset, found.timestamp) == (offset, 5 * offset)
    latest = find_max_timestamp(view)
    assert latest is not None
    assert (latest.offset, latest.timestamp) == (count - 1, 5 * (count - 1))
