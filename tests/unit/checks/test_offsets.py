"""What has become of offsets: `pylog.checks.offsets`, through doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Built, Stored, batch_v2, batch_v2_of, plain_records, wrapper
from tests.support.log_files import segment_path, write_high_watermarks, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.checks.report import OffsetTotals

FAR = 2**31 + 5


def wrong(directory: Path) -> list[str]:
    findings = pylog.doctor(directory).findings
    return [each.code for each in findings if each.severity is not pylog.results.Severity.INFO]


def totals(directory: Path) -> OffsetTotals:
    return pylog.doctor(directory).partitions[0].offsets


@pytest.mark.parametrize("recovery_point", [None, 0, FAR, 3 * FAR])
@pytest.mark.parametrize("is_clean", [True, False])
def test_empty_segments_are_what_compaction_leaves_below_what_is_flushed(
    tmp_path: Path, recovery_point: int | None, *, is_clean: bool
) -> None:
    last = batch_v2(plain_records(2 * FAR, 3))
    write_partition(tmp_path, {0: [], FAR: [], 2 * FAR: [last]})
    if recovery_point is not None:
        text = f"0\n1\norders 0 {recovery_point}\n"
        (tmp_path / "recovery-point-offset-checkpoint").write_text(text)
    if is_clean:
        (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    codes = wrong(tmp_path)
    if is_clean or recovery_point != 0:
        assert "missing_segment" not in codes
        assert (totals(tmp_path).compacted, totals(tmp_path).missing) == (2 * FAR, 0)
    else:
        assert codes.count("missing_segment") == 2


def test_an_empty_segment_whose_index_has_entries_is_a_loss(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(base, 5)) for base in (0, 5, 10)]
    directory = write_partition(tmp_path, {0: batches[:2], 10: batches[2:]})
    segment_path(directory, 0).write_bytes(b"")
    assert "missing_segment" in wrong(tmp_path)
    segment_path(directory, 0, ".index").write_bytes(b"")
    segment_path(directory, 0, ".timeindex").write_bytes(b"")
    assert wrong(tmp_path) == []


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_compressed_messages_are_counted_and_their_holes_are_compaction(
    tmp_path: Path, magic: int, codec: str
) -> None:
    def holding(*offsets: int) -> Built:
        records = [Stored(offset, 1, b"k", b"v") for offset in offsets]
        return wrapper(records, magic=magic, codec=codec, first_offset=offsets[0] - 2)

    write_partition(tmp_path, {0: [holding(2, 5), holding(6)], 90: [holding(92, 99)]})
    assert wrong(tmp_path) == []
    found = totals(tmp_path)
    assert (found.records, found.missing, found.compacted) == (5, 0, 95)


def test_a_batch_that_cannot_be_decoded_has_its_offsets(tmp_path: Path) -> None:
    """A control batch that says lz4 and holds nothing."""
    data = batch_v2_of(b"", base_offset=3, record_count=0, attributes=0x23)
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3)), Built(data, (), 2, 3, 3)]})
    write_high_watermarks(tmp_path, {("orders", 0): 4})
    assert wrong(tmp_path) == ["damaged_batches"]
    write_high_watermarks(tmp_path, {("orders", 0): 5})
    assert wrong(tmp_path) == ["damaged_batches", "high_watermark_above_log_end"]
