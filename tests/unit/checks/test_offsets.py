"""What has become of offsets: `pylog.checks.offsets`, through doctor."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Built, Stored, batch_v2, batch_v2_of, plain_records, wrapper
from tests.support.golden import golden_partitions
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    write_high_watermarks,
    write_log_start_offsets,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    BROKER,
    TOPIC,
    TOPIC_ID_TEXT,
    config_record,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.checks.partition_report import OffsetTotals
    from tests.support.golden import GoldenRoot

FAR = 2**31 + 5
CLEANED = ":after"
"""In the name of a golden partition that a broker's cleaner has been at."""


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
        mark_clean_shutdown(tmp_path)
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


# ---- where offsets are missing, and only other files say that the topic is compacted


def write_gap(directory: Path) -> Path:
    mark_clean_shutdown(directory)
    batches = {base: [batch_v2(plain_records(base, 5))] for base in (0, 20)}
    partition = write_partition(directory, batches)
    assert wrong(directory) == ["missing_segment"]
    return partition


@pytest.mark.parametrize(
    ("resource", "owner", "name", "value", "is_known"),
    [
        (TOPIC, "orders", "cleanup.policy", "compact", True),
        (TOPIC, "orders", "cleanup.policy", "compact,delete", True),
        (TOPIC, "orders", "cleanup.policy", "delete", False),
        (TOPIC, "others", "cleanup.policy", "compact", False),
        (BROKER, "", "log.cleanup.policy", "compact", True),
        (BROKER, "1", "log.cleanup.policy", "compact", True),
        (BROKER, "2", "log.cleanup.policy", "compact", False),
    ],
)
def test_the_metadata_say_that_a_topic_is_compacted(
    tmp_path: Path, resource: int, owner: str, name: str, value: str, *, is_known: bool
) -> None:
    partition = write_gap(tmp_path)
    write_topic_id(partition, TOPIC_ID_TEXT)
    write_meta_properties(tmp_path)
    records = [topic_record("orders"), partition_record(0, 1, (1,))]
    write_metadata_log(tmp_path, [*records, config_record(resource, owner, name, value)])
    assert wrong(tmp_path) == ([] if is_known else ["missing_segment"])


@pytest.mark.parametrize(("policy", "is_lost"), [("compact", False), ("delete", True)])
def test_empty_files_are_a_loss_where_the_metadata_say_that_nothing_is_compacted(
    tmp_path: Path, policy: str, *, is_lost: bool
) -> None:
    partition = write_partition(tmp_path, {0: [], 10: [], 20: [batch_v2(plain_records(20, 5))]})
    write_topic_id(partition, TOPIC_ID_TEXT)
    write_meta_properties(tmp_path)
    mark_clean_shutdown(tmp_path)
    records = [topic_record("orders"), partition_record(0, 1, (1,))]
    policy_record = config_record(TOPIC, "orders", "cleanup.policy", policy)
    write_metadata_log(tmp_path, [*records, policy_record])
    verdict = pylog.doctor(tmp_path).verdict
    lost = [(each.from_offset, each.to_offset) for each in verdict.lost_already]
    assert lost == ([(0, 10), (10, 20)] if is_lost else [])
    said = (
        "20 records are lost: orders-0: 20 records, offsets 0 to 19, missing ("  # ranges that meet
    )
    assert verdict.reasons[0].startswith(said if is_lost else "A broker starts, and loses nothing")


def test_the_cleaner_has_a_line_on_another_disk_of_the_node(tmp_path: Path) -> None:
    disk, other = tmp_path / "one", tmp_path / "two"
    for each in (disk, other):
        each.mkdir()
    write_gap(disk)
    for each in (disk, other):
        (each / "meta.properties").write_text("version=0\nbroker.id=1\n")
        mark_clean_shutdown(each)
    write_partition(other, {0: [batch_v2(plain_records(0, 5))]}, name="others-0")
    line = other / "cleaner-offset-checkpoint"
    line.write_text("0\n1\norders 0 25\n")
    assert [each.code for each in pylog.doctor(disk, other).findings] == ["compacted_offsets"]
    line.write_text("0\n1\norders 0 19\n")  # the cleaner had not come to the gap's end
    codes = [each.code for each in pylog.doctor(disk, other).findings]
    assert codes == ["missing_segment"]


def test_a_compaction_that_has_not_finished_shows_that_a_topic_is_compacted(
    tmp_path: Path,
) -> None:
    partition = write_gap(tmp_path)
    (partition / f"{0:020d}.log.cleaned").write_bytes(b"")
    assert wrong(tmp_path) == []
    # What it was to replace lies in the gap, and goes: nothing shows that it was compacted.
    (partition / f"{5:020d}.log.deleted").write_bytes(b"")
    assert "missing_segment" in wrong(tmp_path)


def test_a_swap_file_explains_no_gap_where_the_metadata_say_that_records_are_kept(
    tmp_path: Path,
) -> None:
    partition = write_gap(tmp_path)
    for suffix in (".log", ".index", ".timeindex"):
        path = segment_path(partition, 20, suffix)
        path.rename(f"{path}.swap")
    assert wrong(tmp_path) == []
    write_topic_id(partition, TOPIC_ID_TEXT)
    write_meta_properties(tmp_path)
    write_metadata_log(tmp_path, [topic_record("orders"), partition_record(0, 1, (1,))])
    assert wrong(tmp_path) == ["missing_segment"]


def test_a_segment_under_another_name_has_what_is_missing_before_it(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(base, 5)) for base in range(0, 30, 5)]
    partition = write_partition(tmp_path, {0: batches[:2], 10: batches[2:4], 20: batches[4:]})
    content = segment_path(partition, 0).read_bytes()
    segment_path(partition, 0).write_bytes(b"")
    assert "missing_segment" in wrong(tmp_path)
    segment_path(partition, 10).write_bytes(content)
    assert "missing_segment" not in wrong(tmp_path)


@pytest.mark.parametrize("partition_id", [each for each in golden_partitions() if CLEANED in each])
def test_what_a_broker_has_cleaned_is_not_in_doubt_and_a_lost_segment_is(
    partition_id: str, golden_root: GoldenRoot, tmp_path: Path
) -> None:
    source = golden_root.partition(partition_id).directory
    copy = tmp_path / source.name
    shutil.copytree(source, copy, copy_function=shutil.copy)
    for name in ("cleaner-offset-checkpoint", "meta.properties"):
        if (source.parent / name).exists():
            shutil.copy(source.parent / name, tmp_path)
    assert "missing_segment" not in wrong(tmp_path)
    logs = sorted(copy.glob("*.log"))
    snapshots = [each.with_suffix(".snapshot") for each in logs[1:-1]]
    lost = [each for each in snapshots if each.exists()]
    if len(lost) < 2:  # of a version that keeps the latest ones only
        return
    for each in lost:
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            each.with_suffix(suffix).unlink(missing_ok=True)
    assert "missing_segment" in wrong(tmp_path)


def test_one_snapshot_without_a_segment_may_be_of_a_clean_stop(tmp_path: Path) -> None:
    mark_clean_shutdown(tmp_path)
    cleaned = [batch_v2([Stored(base + 1, 1, b"k", b"v")], base_offset=base) for base in (0, 60)]
    partition = write_partition(tmp_path, {0: cleaned[:1], 60: cleaned[1:]})
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 60\n")
    for offset, expected in ((90, []), (20, []), (40, ["missing_segment"])):
        (partition / f"{offset:020d}.snapshot").touch()
        found = [each.code for each in pylog.doctor(tmp_path).findings]
        assert [each for each in found if each == "missing_segment"] == expected


def test_a_cleaner_that_has_not_come_so_far_has_not_cleaned(tmp_path: Path) -> None:
    partition = write_gap(tmp_path)
    cleaned = batch_v2([Stored(21, 1, b"k", b"v")], base_offset=20, last_offset=29)
    segment_path(partition, 20).write_bytes(cleaned.data)
    mark = tmp_path / "cleaner-offset-checkpoint"
    for offset, expected in ((5, ["missing_segment"]), (6, []), (20, [])):
        mark.write_text(f"0\n1\norders 0 {offset}\n")
        found = [each for each in pylog.doctor(tmp_path).findings if each.code == "missing_segment"]
        assert [each.code for each in found] == expected
        assert all("cleaned or lost" in each.message for each in found)


# ---- the first segment


@pytest.mark.parametrize("epochs", ["0\n1\n0 0\n", "0\n1\n0 5\n", None])
@pytest.mark.parametrize("is_clean", [True, False])
def test_its_indexes_show_that_it_was_here(
    tmp_path: Path, epochs: str | None, *, is_clean: bool
) -> None:
    batches = {base: [batch_v2(plain_records(base, 5))] for base in (0, 5)}
    partition = write_partition(tmp_path, batches)
    if epochs is not None:
        (partition / "leader-epoch-checkpoint").write_text(epochs)
    if is_clean:
        mark_clean_shutdown(tmp_path)
    segment_path(partition, 0).unlink()
    [lost] = pylog.doctor(tmp_path).verdict.lost_already
    assert (lost.from_offset, lost.to_offset) == (0, 5)


def test_the_first_segment_that_a_broker_was_deleting_is_not_missed(tmp_path: Path) -> None:
    batches = {base: [batch_v2(plain_records(base, 5))] for base in (0, 5)}
    partition = write_partition(tmp_path, batches)
    segment_path(partition, 0).rename(segment_path(partition, 0, ".log.deleted"))
    assert "missing_segment" not in wrong(tmp_path)
    (partition / f"{0:020d}.log.deleted").unlink()
    assert "missing_segment" in wrong(tmp_path)
    (partition / f"{0:020d}.log.deleted").mkdir()  # holds nothing that a broker deletes
    assert "missing_segment" in wrong(tmp_path)
    write_log_start_offsets(tmp_path, {("orders", 0): 5})
    assert "missing_segment" not in wrong(tmp_path)
