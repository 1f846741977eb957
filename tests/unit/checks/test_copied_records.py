"""Whatever has happened to a partition, its copy has each intact record, or names its offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.corruption import resealed
from tests.support.faults.partitions import PARTITION_HARMS, Harmed
from tests.support.faults.texts import PARTITION_TEXT_HARMS
from tests.support.log_files import mark_clean_shutdown, write_high_watermarks, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Built
    from tests.support.faults.partitions import Harm

RECORDS = 45
_PER_BATCH, _PER_SEGMENT = 3, 15
_HEADER_BYTES = 61
_UNSERVED = (
    # No log can hold it: there is no offset after it.
    "a batch at the highest offset",
    # Their records cannot be decoded, or not as what they say that they are.
    "records that cannot be decoded",
    "a wrapper in a wrapper",
    "a wrapper in a wrapper, after another one",
    "a wrapper in a wrapper, and no index",
)
HARMS = [each for each in (*PARTITION_HARMS, *PARTITION_TEXT_HARMS) if each[0] not in _UNSERVED]


def segments(value_size: int) -> dict[int, list[Built]]:
    return {
        base: [
            batch_v2(plain_records(offset, _PER_BATCH, value_size=value_size))
            for offset in range(base, base + _PER_SEGMENT, _PER_BATCH)
        ]
        for base in range(0, RECORDS, _PER_SEGMENT)
    }


def write(logs: Path) -> tuple[Path, Path]:
    """Write a partition as a broker leaves it that has stopped in order, and another one."""
    directories = []
    for number, value_size in enumerate((10, 12)):
        directory = write_partition(logs, segments(value_size), name=f"harm-{number}")
        text = "version: 0\ntopic_id: Igo74ZAZCxWJ1lxdTzs-vQ"
        (directory / "partition.metadata").write_text(text)
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        snapshot = bytes.fromhex("0001" + "48674bc7" + "00000000")
        for offset in (*range(_PER_SEGMENT, RECORDS, _PER_SEGMENT), RECORDS):
            (directory / f"{offset:020d}.snapshot").write_bytes(snapshot)
        directories.append(directory)
    ends = {("harm", 0): RECORDS, ("harm", 1): RECORDS}
    write_high_watermarks(logs, ends)
    text = (logs / "replication-offset-checkpoint").read_text()
    (logs / "recovery-point-offset-checkpoint").write_text(text)
    return directories[0], directories[1]


def intact(directory: Path) -> dict[int, set[bytes]]:
    """Return the batches whose checksums are right in whatever ``.log``, by their records' offsets.

    A batch is what follows its offset and its length, which no checksum covers.
    """
    found: dict[int, set[bytes]] = {}
    for path in directory.glob("*.log*"):
        data = path.read_bytes() if path.is_file() else b""
        at = 0
        while at + _HEADER_BYTES <= len(data):
            one = data[at : at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")]
            is_whole = _HEADER_BYTES <= len(one) <= len(data) - at and one[16] == 2
            if not is_whole or resealed(one) != one:
                at += 1
                continue
            base = int.from_bytes(one[:8], "big")
            count = int.from_bytes(one[23:27], "big") + 1
            for offset in range(base, base + count):
                found.setdefault(offset, set()).add(one[16:])
            at += len(one)
    return found


@pytest.mark.thorough(one_in=7)
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("harm", HARMS, ids=[name for name, _ in HARMS])
def test_each_intact_record_is_in_the_copy_or_its_offset_is_named(
    tmp_path: Path, harm: Harm, *, is_clean: bool
) -> None:
    directory, sibling = write(tmp_path / "logs")
    own = intact(directory)
    if is_clean:
        mark_clean_shutdown(tmp_path / "logs")
    harm[1](Harmed(directory, sibling))
    before = intact(directory)
    summary = pylog.repair_copy(tmp_path / "logs", tmp_path / "copy")
    harmed = pylog.TopicPartition("harm", 0)
    missing = [
        one for each in summary.partitions if each.topic_partition == harmed for one in each.missing
    ]
    missing += [summary.absent[harmed]] if harmed in summary.absent else []
    named = {
        offset for offset in range(RECORDS) if any(start <= offset < end for start, end in missing)
    }
    after = intact(tmp_path / "copy" / "harm-0")
    lost = {each for each in before if not before[each] & after.get(each, set())}
    assert not {each for each in lost - named if each < RECORDS}
    # What was the partition's own before, and is still there, comes before what is another's.
    kept = {each for each in own if own[each] & before.get(each, set())}
    assert not {each for each in kept if not own[each] & after.get(each, set())} - named
    # What is gone is named.
    assert not {each for each in own if each not in after} - named - _compacted(summary)


def _compacted(summary: pylog.results.RepairSummary) -> set[int]:
    """Return all offsets where compaction may have removed what is not there."""
    codes = {each.code for each in summary.source.findings}
    return set(range(RECORDS)) if "compacted_offsets" in codes else set()
