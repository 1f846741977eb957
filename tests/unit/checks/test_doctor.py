"""`pylog.doctor`: what it finds beyond single partitions, and what its report says."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.checks.doctor import doctor
from pylog.checks.files import read_checkpoints
from pylog.errors import LogDirectoryError
from pylog.findings import kinds
from pylog.findings.finding import Severity
from pylog.findings.kinds import BY_CODE
from pylog.log.log_loader import LogLoading, load_log
from pylog.scheduling.worker_threads import SharedProgress
from tests.support.batches import (
    COMMIT,
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    crc32c,
    empty_batch_v2,
    joined,
    marker,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.log_files import (
    offset_index_bytes,
    segment_path,
    time_index_bytes,
    write_partition,
)

if TYPE_CHECKING:
    from pylog.log.unified_log import UnifiedLog

ROOT = Path(__file__).parents[3]
FIRST = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (0, 5)]
SECOND = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (10, 15)]
THIRD = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (20, 25)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: FIRST, 10: SECOND, 20: THIRD})


def codes(report: pylog.results.DoctorReport) -> list[tuple[str, str]]:
    return [(str(each.severity), each.code) for each in report.findings]


def remove_segment(directory: Path, base: int) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        segment_path(directory, base, suffix).unlink()


def test_a_sound_directory_has_no_finding(directory: Path) -> None:
    report = pylog.doctor(directory.parent)
    assert (codes(report), report.worst) == ([], None)
    [partition] = report.partitions
    assert partition.topic_partition == pylog.TopicPartition("orders", 0)
    assert (
        partition.size_bytes
        == partition.scanned_bytes
        == sum(len(joined(each)) for each in (FIRST, SECOND, THIRD))
    )
    assert (partition.start_offset, partition.end_offset) == (0, 30)
    assert partition.offsets == (30, 0, 0, 0, 0)


def test_a_segment_that_is_gone_is_told_from_compaction(directory: Path) -> None:
    remove_segment(directory, 10)
    report = pylog.doctor(directory.parent)
    [finding] = report.findings
    assert (finding.severity, finding.code) == (pylog.results.Severity.ERROR, "missing_segment")
    assert finding.path == str(segment_path(directory, 20))
    assert (finding.next_offset, finding.end_offset) == (10, 20)
    assert report.partitions[0].offsets.missing == 10
    (directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 20\n", "utf-8")
    report = pylog.doctor(directory.parent)
    assert codes(report) == [("info", "compacted_offsets")]
    assert report.partitions[0].offsets.compacted == 10


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("00000000000000000010.log (deleted)", True),
        ("00000000000000000010.log.bak", True),
        ("00000000000000000015.log.deleted", True),
        ("00000000000000000020.log (deleted)", False),
        ("00000000000000000010.index (deleted)", False),
        ("10.log (deleted)", False),
    ],
)
def test_a_file_that_is_named_after_missing_offsets_is_told(
    directory: Path, name: str, *, is_named: bool
) -> None:
    remove_segment(directory, 10)
    (directory / name).write_bytes(b"")
    [finding] = [
        each for each in pylog.doctor(directory.parent).findings if each.code == "missing_segment"
    ]
    assert finding.message.endswith(f"; {name} may hold what is missing") is is_named


def test_compaction_explains_no_gap_above_the_offset_that_it_has_come_to(directory: Path) -> None:
    remove_segment(directory, 10)
    (directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 10\n", "utf-8")
    assert codes(pylog.doctor(directory.parent)) == [("error", "missing_segment")]


def test_a_gap_inside_a_segment_is_a_warning(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [FIRST[0], SECOND[0]]})
    [finding] = pylog.doctor(tmp_path).findings
    assert (finding.severity, finding.code) == (pylog.results.Severity.WARNING, "offset_gap")
    assert (finding.path, finding.position) == (
        str(segment_path(directory, 0)),
        len(FIRST[0].data),
    )
    assert (finding.next_offset, finding.end_offset) == (5, 10)


@pytest.mark.parametrize(
    "sign",
    [
        empty_batch_v2(20, 24),
        batch_v2(plain_records(20, 3), last_offset=24),
        batch_v2(plain_records(20, 5), delete_horizon=77),
    ],
    ids=["empty batch", "holes in a batch", "delete horizon"],
)
def test_batches_show_that_compaction_made_a_gap(tmp_path: Path, sign: Built) -> None:
    write_partition(tmp_path, {0: [FIRST[0], SECOND[0], SECOND[1], sign]})
    assert codes(pylog.doctor(tmp_path)) == [("info", "compacted_offsets")]


def test_a_topic_that_kafka_compacts_needs_no_sign(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [FIRST[0], SECOND[0]]}, name="__consumer_offsets-0")
    assert codes(pylog.doctor(tmp_path)) == [("info", "compacted_offsets")]


def test_markers_are_counted_apart(tmp_path: Path) -> None:
    data = batch_v2(plain_records(0, 4), producer_id=1, is_transactional=True)
    write_partition(tmp_path, {0: [data, marker(4, COMMIT, producer_id=1)]})
    [partition] = pylog.doctor(tmp_path).partitions
    assert (partition.offsets.records, partition.offsets.control_records) == (4, 1)


def test_damage_is_no_gap_besides(directory: Path) -> None:
    segment_path(directory, 0).write_bytes(joined([FIRST[0], with_bad_crc(FIRST[1])]))
    report = pylog.doctor(directory.parent)
    assert codes(report) == [("error", "damaged_batches")]
    assert report.partitions[0].offsets == (25, 0, 0, 0, 5)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(directory: Path) -> None:
    log = segment_path(directory, 10)
    log.rename(directory.parent / "on another disk")
    log.symlink_to(directory.parent / "a disk that is not mounted")
    [partition] = pylog.doctor(directory).partitions
    assert [(each.code, Path(each.path).name) for each in partition.findings] == [
        ("unreadable", log.name)
    ]
    assert partition.start is None  # nobody knows what a broker that can open it would do


def test_an_entry_of_an_index_is_told_with_the_names_of_its_numbers(directory: Path) -> None:
    at = len(SECOND[0].data)
    index = offset_index_bytes([(14, 1), (19, at)], 10)
    segment_path(directory, 10, ".index").write_bytes(index)
    times = time_index_bytes([(2000, 14)], 10)
    segment_path(directory, 10, ".timeindex").write_bytes(times)
    assert {each.code: each.message for each in pylog.doctor(directory).findings} == {
        "wrong_index": "1 entry fits no batch (1 points into the middle of one); the first is "
        "entry 0: offset 14, position 1",
        "wrong_time_index": "1 entry fits no batch; the first is entry 0: offset 14, timestamp "
        "2000",
    }


def test_what_a_broker_would_lose(directory: Path) -> None:
    path = segment_path(directory, 10)
    path.write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert (start.is_clean, start.scanned_segments, start.deleted_segments) == (False, 2, 1)
    assert (start.cut_path, start.cut_position) == (str(path), len(SECOND[0].data))
    assert (start.cut_offset, start.end_offset) == (15, 30)
    assert start.lost_bytes == len(SECOND[1].data) + len(joined(THIRD))
    assert start.loses_records


def test_a_broker_looks_at_nothing_after_a_clean_stop(directory: Path) -> None:
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    report = pylog.doctor(directory.parent)
    start = report.partitions[0].start
    assert start is not None
    assert (start.is_clean, start.scanned_segments, start.cut_path) == (True, 0, None)
    assert report.directories[0].is_clean


@pytest.mark.parametrize(
    ("zeros", "code"),
    [(5, "unreadable_appends"), (17, "unreadable_appends"), (18, "start_refused")],
)
def test_zeros_at_the_end_after_a_clean_stop(directory: Path, zeros: int, code: str) -> None:
    """A broker reads the last segment's end all the same: from 18 zeros on it does not start."""
    with segment_path(directory, 20).open("ab") as file:
        file.write(bytes(zeros))
    assert codes(pylog.doctor(directory.parent)) == [("info", "zero_tail")]
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    report = pylog.doctor(directory.parent)
    severity = "error" if code == "start_refused" else "warning"
    assert codes(report) == [(severity, code)]
    start = report.partitions[0].start
    assert start is not None
    assert (start.refusal is not None) == (code == "start_refused")


def test_offsets_that_go_back_below_an_index_entry_cost_a_broker_nothing(directory: Path) -> None:
    segment_path(directory, 10).write_bytes(joined([*SECOND, SECOND[0]]))
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert (start.scanned_segments, start.cut_path, start.loses_records) == (3, None, False)


def test_a_start_is_not_known_where_files_go_meanwhile(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_and_lose(_: object) -> object:
        raise FileNotFoundError(segment_path(directory, 10, ".timeindex.deleted"))

    monkeypatch.setattr("pylog.checks.broker_start.load_log", load_and_lose)
    report = pylog.doctor(directory)
    assert codes(report) == []
    assert report.partitions[0].start is None


def test_what_a_broker_deletes_meanwhile_is_not_lost_at_its_start(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete_and_load(loading: LogLoading) -> UnifiedLog:
        segment_path(directory, 10).unlink(missing_ok=True)
        return load_log(loading)

    monkeypatch.setattr("pylog.checks.broker_start.load_log", delete_and_load)
    report = doctor(directory)  # once: the directory changes
    assert report.partitions[0].start is None


def test_nothing_is_logged_of_a_start_that_is_only_tried(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    pylog.doctor(directory.parent)
    assert not caplog.records


def test_a_broker_scans_from_the_recovery_point_on(directory: Path) -> None:
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    checkpoint = directory.parent / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 20\n", "utf-8")
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert (start.scanned_segments, start.cut_path) == (1, None)


def test_bytes_after_an_earlier_segment_cost_a_broker_all_later_ones(directory: Path) -> None:
    with segment_path(directory, 10).open("ab") as file:
        file.write(bytes(100))
    report = pylog.doctor(directory.parent)
    assert codes(report) == [("error", "lost_at_start"), ("warning", "segment_rest")]
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_offset, start.deleted_segments) == (20, 1)
    assert start.loses_records


def test_messages_of_v0_in_one_of_v1_are_told(tmp_path: Path) -> None:
    batches = [
        wrapper(plain_records(0, 3), magic=1, codec="gzip"),
        wrapper(plain_records(3, 3), magic=1, inner_magic=0, codec="gzip"),
        wrapper(plain_records(6, 3), magic=1, inner_magic=0, codec="lz4"),
    ]
    directory = write_partition(tmp_path, {0: batches})
    [finding] = pylog.doctor(tmp_path).findings
    assert (finding.severity, finding.code) == (pylog.results.Severity.INFO, "mixed_wrapper")
    assert (finding.path, finding.position) == (
        str(segment_path(directory, 0)),
        len(batches[0].data),
    )
    assert "2 of them" in finding.message


def with_header_time(built: Built, timestamp: int) -> Built:
    """Give a batch another largest timestamp, under a right checksum."""
    data = bytearray(built.data)
    is_v2 = built.magic == 2
    struct.pack_into(">q", data, 35 if is_v2 else 18, timestamp)
    crc = crc32c(data[21:]) if is_v2 else zlib.crc32(data[16:])
    struct.pack_into(">I", data, 17 if is_v2 else 12, crc)
    return dataclasses.replace(built, data=bytes(data))


@pytest.mark.parametrize("header_time", [-1, 0, 4_999, 9_000_000])
@pytest.mark.parametrize(
    ("magic", "codec"),
    [
        *((1, codec) for codec in ("gzip", "snappy", "lz4")),
        *((2, codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    ],
)
def test_a_header_with_another_largest_timestamp_than_its_records_is_told(
    tmp_path: Path, magic: int, codec: str, header_time: int
) -> None:
    def stored(first: int) -> Built:
        records = [Stored(first + at, 5_000 + at, b"k", b"v") for at in range(3)]
        if magic == 1:
            return wrapper(records, magic=1, codec=codec)
        return batch_v2(records, codec=codec)

    batches = [stored(0), with_header_time(stored(3), header_time), stored(6)]
    write_partition(tmp_path, {0: batches}, with_time_index=False)
    found = [each for each in pylog.doctor(tmp_path).findings if each.code == "header_timestamp"]
    [finding] = found
    first = len(batches[0].data)
    assert (finding.position, finding.end_position) == (first, first + len(batches[1].data))
    assert finding.message == (
        f"the header's largest timestamp is {header_time}, and the latest of the records is 5002"
    )


def test_of_many_headers_with_wrong_timestamps_the_first_are_named(tmp_path: Path) -> None:
    batches = [with_header_time(batch_v2([Stored(at, 5, None, b"v")]), 7) for at in range(50)]
    write_partition(tmp_path, {0: batches}, with_time_index=False)
    found = [each for each in pylog.doctor(tmp_path).findings if each.code == "header_timestamp"]
    assert len(found) == 20
    assert found[-1].message.endswith("; so it is with 30 more")


def test_a_segment_that_no_broker_can_open_is_an_error(directory: Path) -> None:
    os.truncate(segment_path(directory, 20), 2**31)
    found = codes(pylog.doctor(directory.parent))
    assert ("error", "oversized_segment") in found


def test_offsets_beyond_32_bits_are_a_warning(tmp_path: Path) -> None:
    far = [2**31 + 5, 2**31 + 6]
    data = [batch_v2_of(b"", base_offset=at, last_offset_delta=0, record_count=0) for at in far]
    batches = [FIRST[0], *(Built(each, (), 2, at, at) for each, at in zip(data, far, strict=True))]
    write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    assert ("warning", "offset_overflow") in codes(pylog.doctor(tmp_path))


def write_meta_properties(directory: Path, directory_id: str = "Igo74ZAZCxWJ1lxdTzs-vQ") -> None:
    lines = ["version=0", "broker.id=1", "cluster.id=c", f"directory.id={directory_id}"]
    (directory / "meta.properties").write_text("\n".join(lines) + "\n", "utf-8")


def test_directories_of_one_broker_may_not_hold_the_same_partition(tmp_path: Path) -> None:
    for name, directory_id in (("a", "Igo74ZAZCxWJ1lxdTzs-vQ"), ("b", "jho74ZAZCxWJ1lxdTzs-vQ")):
        write_partition(tmp_path / name, {0: FIRST})
        write_meta_properties(tmp_path / name, directory_id)
    report = pylog.doctor(tmp_path / "a", tmp_path / "b")
    assert codes(report) == [("error", "duplicate_partition")]
    assert report.directories[1].findings[0].path == str(tmp_path / "b" / "orders-0")


def test_a_broker_takes_two_names_with_the_same_number_for_one_partition(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: FIRST}, name="t-0")
    write_partition(tmp_path, {0: FIRST}, name="t-00")
    write_partition(tmp_path, {0: FIRST}, name="t-000")
    write_partition(tmp_path, {0: FIRST}, name="t-1")
    report = pylog.doctor(tmp_path)
    assert [(found.code, found.path) for found in report.findings] == [
        ("duplicate_partition", str(tmp_path / "t-00")),
        ("duplicate_partition", str(tmp_path / "t-000")),
    ]
    first, _ = report.findings
    assert first.severity is pylog.results.Severity.ERROR
    assert first.message == (
        f"directory is partition t-0, as {tmp_path / 't-0'} of the same broker is"
    )
    # Each of the four has been looked at.
    assert [each.path.rpartition("/")[2] for each in report.partitions] == [
        *("t-0", "t-00", "t-000", "t-1")
    ]
    # Alone, it is the partition as a broker has it.
    assert list(pylog.doctor(tmp_path / "t-00").findings) == []
    with pytest.raises(LogDirectoryError, match=r"t-0 lies both in .*/t-0 and in .*/t-00, "):
        pylog.scan(tmp_path)


def test_of_future_replicas_a_partition_may_have_one_and_of_deleted_ones_any_number(
    tmp_path: Path,
) -> None:
    write_partition(tmp_path, {0: FIRST}, name="t-0")
    for number in range(2):
        for state in ("future", "delete", "stray"):
            write_partition(tmp_path, {0: FIRST}, name=f"t-0.{number:032x}-{state}")
    found = [(each.code, each.path) for each in pylog.doctor(tmp_path).findings]
    assert [each for each in found if each[0] == "duplicate_partition"] == [
        ("duplicate_partition", str(tmp_path / f"t-0.{1:032x}-future"))
    ]
    shutil.rmtree(tmp_path / "t-0")
    found = [(each.code, each.path) for each in pylog.doctor(tmp_path).findings]
    assert [each for each in found if each[0] == "duplicate_partition"] == [
        ("duplicate_partition", str(tmp_path / f"t-0.{1:032x}-future"))
    ]


def test_a_copied_log_directory_has_the_directory_id_of_the_other(tmp_path: Path) -> None:
    for name, partition in (("a", "orders-0"), ("b", "orders-1")):
        write_partition(tmp_path / name, {0: FIRST}, name=partition)
        write_meta_properties(tmp_path / name)
    report = pylog.doctor(tmp_path / "a", tmp_path / "b")
    assert codes(report) == [("error", "meta_properties_disagree")]


def test_replicas_of_two_brokers_are_no_duplicates(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_partition(tmp_path / name, {0: FIRST})
    assert codes(pylog.doctor(tmp_path / "a", tmp_path / "b")) == []


def test_a_checkpoint_of_many_partitions_is_told_once(tmp_path: Path) -> None:
    for partition in range(3):
        write_partition(tmp_path, {0: FIRST}, name=f"orders-{partition}")
    (tmp_path / "replication-offset-checkpoint").write_text("7\n", "utf-8")
    report = pylog.doctor(tmp_path)
    assert codes(report) == [("error", "damaged_checkpoint")]
    assert len(report.directories[0].findings) == 1


def test_a_directory_that_is_not_live_is_looked_at_if_it_is_named(tmp_path: Path) -> None:
    name = f"orders-0.{'0123456789abcdef' * 2}-delete"
    directory = write_partition(tmp_path, {0: [FIRST[0], with_bad_crc(FIRST[1])]}, name=name)
    assert codes(pylog.doctor(directory)) == [("error", "damaged_batches")]


def test_a_cleaner_offset_below_the_log_start_is_worth_knowing(directory: Path) -> None:
    (directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n", "utf-8")
    (directory.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n", "utf-8")
    assert codes(pylog.doctor(directory)) == [("info", "cleaner_offset_below_log_start")]


def test_a_folder_in_the_place_of_the_marker_of_a_clean_stop_is_one_if_it_is_empty(
    directory: Path,
) -> None:
    marker = directory.parent / ".kafka_cleanshutdown"
    marker.unlink(missing_ok=True)
    marker.mkdir()
    report = pylog.doctor(directory.parent)
    assert [each.is_clean for each in report.directories] == [True]
    assert report.verdict.would_start is not False
    (marker / "something").touch()
    refused = pylog.doctor(directory.parent)
    assert [each.code for each in refused.refusals] == ["misnamed_directory"]


def test_topics_and_partitions_choose(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "clicks-0"):
        write_partition(tmp_path, {0: FIRST}, name=name)
    report = pylog.doctor(tmp_path, topics=["orders"], partitions=[1])
    assert [str(each.topic_partition) for each in report.partitions] == ["orders-1"]
    with pytest.raises(pylog.errors.UnknownTopicOrPartitionError, match="order"):
        pylog.doctor(tmp_path, topics=["order"])


def test_the_table_has_a_row_for_each_finding(directory: Path) -> None:
    remove_segment(directory, 10)
    (directory.parent / "lost+found").mkdir()
    table = pylog.doctor(directory.parent).to_table()
    assert table.schema == pylog.jobs.metadata_table("findings").schema
    assert table.select(["topic", "partition", "severity", "code"]).to_pylist() == [
        {"topic": None, "partition": None, "severity": "error", "code": "misnamed_directory"},
        {"topic": "orders", "partition": 0, "severity": "error", "code": "missing_segment"},
    ]


def test_progress_comes_to_all_bytes(directory: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = pylog.doctor(directory.parent, progress=lambda *done: seen.append(done))
    assert seen[-1] == (report.size_bytes, report.size_bytes)


def test_what_is_slow_stops_the_others_when_it_is_interrupted(tmp_path: Path) -> None:
    for partition in range(3):
        write_partition(tmp_path, {0: FIRST}, name=f"orders-{partition}")

    def interrupted(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pylog.doctor(tmp_path, progress=interrupted)


def test_a_log_that_is_appended_to_meanwhile_has_no_finding(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side files are read first: what a broker writes later is about batches that are seen."""
    more = batch_v2(plain_records(30, 5, timestamp=1030))
    real = read_checkpoints
    place = "pylog.checks.partition.read_checkpoints"

    def appended_after(view: pylog.results.LogView) -> object:
        found = real(view)
        with segment_path(directory, 20).open("ab") as file:
            file.write(more.data)
        (directory.parent / "replication-offset-checkpoint").write_text(
            "0\n1\norders 0 35\n", "utf-8"
        )
        monkeypatch.setattr(place, real)
        return found

    monkeypatch.setattr(place, appended_after)
    report = pylog.doctor(directory.parent)
    assert codes(report) == []
    assert report.partitions[0].end_offset == 35


def test_every_kind_of_finding_is_made_somewhere() -> None:
    sources = [
        path.read_text("utf-8")
        for room in ("checks", "writing")
        for path in (ROOT / "storage_core/pylog" / room).glob("*.py")
    ]
    used = set(re.findall(r"\bkinds\.([A-Z_]+)", "\n".join(sources)))
    assert set(map(str.upper, BY_CODE)) - used == set()


def test_a_finding_is_as_bad_as_its_kind_says() -> None:
    assert kinds.OFFSET_GAP.found("f", "gone").severity is Severity.WARNING
    with pytest.raises(ValueError, match="offset_gap is of severity error, expected warning"):
        kinds.OFFSET_GAP.found("f", "gone", severity=Severity.ERROR)
    with pytest.raises(ValueError, match="is of severity None, expected error or warning"):
        kinds.MISSING_SEGMENT.found("f", "gone")


@pytest.mark.parametrize("beyond", [0, 300], ids=["its torn batch", "beyond the end"])
def test_records_that_a_broker_overlooks_are_lost(directory: Path, beyond: int) -> None:
    """A broker looks for the end of the log from the last index entry on (tried with 4.3.1)."""
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    path = segment_path(directory, 20)
    path.write_bytes(path.read_bytes()[:-10])
    entry = (29, len(THIRD[0].data) + beyond)
    segment_path(directory, 20, ".index").write_bytes(offset_index_bytes([entry], 20))
    report = pylog.doctor(directory.parent)
    start = report.partitions[0].start
    assert start is not None
    assert (start.log_end_offset, start.end_offset, start.loses_records) == (20, 25, True)
    first = next(iter(report.findings))
    assert (first.code, first.path, first.next_offset) == ("lost_at_start", str(path), 20)
    assert first.message.startswith(
        "a broker starts on it, and takes offset 20 for the end of the log, not 25"
    )


def test_a_cut_in_a_segment_that_is_not_the_last_one_costs_what_follows_there(
    directory: Path,
) -> None:
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    segment_path(directory, 10).write_bytes(joined([with_bad_crc(SECOND[0]), SECOND[1]]))
    segment_path(directory, 10, ".index").unlink()
    report = pylog.doctor(directory.parent)
    assert report.verdict.reasons[0].startswith(
        "A broker that starts on this loses 10 records: orders-0: 10 records, offsets 10 to 19, "
    )
    assert report.verdict.would_start
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_position, start.deleted_segments, start.loses_records) == (0, 0, True)
    assert (start.cut_offset, start.end_offset) == (30, 30)
    assert start.describe().endswith("; there are intact batches among them")
    # What no consumer could read is no loss.
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    report = pylog.doctor(directory.parent)
    gone, starts = report.verdict.reasons
    assert starts == "A broker starts, and loses nothing more"
    times = "after 1970-01-01T00:00:01.014Z, before 1970-01-01T00:00:01.020Z"
    assert gone == (f"5 records are lost: orders-0: 5 records, offsets 15 to 19, damaged ({times})")
    assert report.verdict.loses_records == []


@pytest.mark.parametrize("base", [0, 10, 20])
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("what", ["empty", "half", "damaged"])
def test_a_swap_file_that_is_no_whole_segment_takes_the_place_of_one(
    directory: Path, base: int, what: str, *, is_clean: bool
) -> None:
    if is_clean:
        (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    content = segment_path(directory, base).read_bytes()
    half = content[: len(content) // 3]
    damaged = content[:-1] + bytes([content[-1] ^ 1])
    swap = segment_path(directory, base, ".log.swap")
    swap.write_bytes({"empty": b"", "half": half, "damaged": damaged}[what])
    report = pylog.doctor(directory.parent)
    lost = report.partitions[0].findings[0]
    assert (lost.code, lost.path) == ("lost_at_start", str(swap))
    first = {"empty": base, "half": base, "damaged": base + 5}[what]
    assert (lost.next_offset, lost.end_offset) == (first, base + 10)
    # Recovery cuts the file that has taken the place of another, and deletes all later ones.
    is_cut = not is_clean and what != "empty" and base < 20
    many = f"{base + 10 - first} records"
    loses = f"loses {many}: orders-0: {many}, offsets {first} to {base + 9}, deleted at the start"
    if is_cut:
        loses = f"loses records: orders-0: all records from offset {first} on, deleted at the start"
    loses = f"A broker that starts on this {loses} ("
    assert report.verdict.reasons[0].startswith(loses)
    assert f": a broker puts {swap.name} in the place of " in report.verdict.reasons[0]


def test_a_format_that_does_not_exist_ends_no_broker(directory: Path) -> None:
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    path = segment_path(directory, 20)
    content = bytearray(path.read_bytes())
    content[16] = 7
    path.write_bytes(content)
    verdict = pylog.doctor(directory.parent).verdict
    assert verdict.would_start
    assert verdict.loses_records == []
    assert [each.from_offset for each in verdict.consumers] == [20]


def test_an_index_that_leads_to_no_batch_hides_the_last_segment(directory: Path) -> None:
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    path = segment_path(directory, 20)
    path.write_bytes(b"." * 50 + path.read_bytes())
    report = pylog.doctor(directory.parent)
    # The size of what is there leads behind the end of the file, whatever its format.
    assert report.verdict.would_start
    start = report.partitions[0].start
    assert start is not None
    assert start.log_end_offset == 20


def test_a_compaction_that_a_crash_ended_loses_nothing(directory: Path) -> None:
    (directory.parent / ".kafka_cleanshutdown").write_bytes(b"")
    swap = segment_path(directory, 0, ".log.swap")
    swap.write_bytes(joined([FIRST[0], SECOND[1]]))
    report = pylog.doctor(directory.parent)
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_path, start.deleted_segments, start.loses_records) == (None, 0, False)
    assert f"{10:020}.log" not in start.files
    # It was not complete, and is thrown away.
    swap.write_bytes(b"")
    segment_path(directory, 0, ".log.cleaned").write_bytes(b"")
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert not start.loses_records


def test_a_segment_that_is_split_loses_nothing(tmp_path: Path) -> None:
    far = batch_v2(plain_records(2**32, 5))
    write_partition(tmp_path, {0: [FIRST[0], far]}, with_index=False)
    report = pylog.doctor(tmp_path)
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_path, start.loses_records) == (None, False)
    assert sum(name.endswith(".log") for name in start.files) == 2


@pytest.mark.parametrize(
    ("partition_bytes", "threads", "expected"),
    [(1000, None, 1), (2_000_000, None, 3), (1000, 2, 2), (2_000_000, 1, 1)],
)
def test_small_partitions_are_read_by_one_thread(
    partition_bytes: int,
    threads: int | None,
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(4):
        batch = batch_v2(plain_records(0, 1, value_size=partition_bytes))
        write_partition(tmp_path, {0: [batch]}, name=f"orders-{number}")
    monkeypatch.setattr("pylog.checks.doctor.usable_processors", lambda: 3)
    asked: list[int | None] = []
    side_by_side = SharedProgress.side_by_side

    def seen(*given: Any) -> list[Any]:  # noqa: ANN401 - whatever it is
        asked.append(given[-1])
        return side_by_side(*given)

    monkeypatch.setattr(SharedProgress, "side_by_side", seen)
    assert len(doctor(tmp_path, threads=threads).partitions) == 4
    assert asked == [expected]
