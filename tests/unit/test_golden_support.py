"""The golden cases are what their birth certificates say, and their helpers can fail."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.pack_cases import tar_of
from tests.support.golden import (
    CASES_DIRECTORY,
    GoldenPartition,
    GoldenRoot,
    Holds,
    Isolation,
    archive_path,
    certificate_path,
    differences,
    golden_cases,
    golden_partitions,
    read_expected,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL_CASE = "4.3.0/long-topic-name"
ISOLATIONS: tuple[Isolation, ...] = ("uncommitted", "committed")


def certificate(case_id: str) -> dict[str, Any]:
    return tomllib.loads(certificate_path(case_id).read_text("utf-8"))


def certificate_table(partition_id: str) -> dict[str, Any]:
    """Return the certificate's table of a partition."""
    case_id, _, place = partition_id.partition(":")
    tables: list[dict[str, Any]] = certificate(case_id)["partition"]
    (table,) = (t for t in tables if f"{t['state']}/{t['name']}".removeprefix("/") == place)
    return table


def dumped_offsets(partition: GoldenPartition) -> list[int]:
    """Return the offsets of the data records in Kafka's own dump of the folder.

    Newer versions of DumpLogSegments print ``offset:`` for a batch and ``| offset:`` for a
    record, older ones ``offset:`` for a record.
    """
    dump = partition.log_directory / f"dump.{partition.name}.txt.gz"
    text = gzip.decompress(dump.read_bytes()).decode("utf-8", "replace")
    offsets = []
    for section in re.split(r"^Dumping ", text, flags=re.MULTILINE):
        name, _, body = section.partition("\n")
        if name.endswith(".log"):
            lines = body.split("\n")
            records = [line for line in lines if line.startswith("| offset: ")]
            records = records or [line for line in lines if line.startswith("offset: ")]
            data = (line for line in records if "endTxnMarker" not in line)
            offsets += [int(line.removeprefix("| ").split(" ", 2)[1]) for line in data]
    return offsets


def test_all_cases_and_partitions_are_there() -> None:
    assert len(golden_cases()) == 94
    assert len(golden_partitions()) == len(set(golden_partitions())) == 237
    assert "4.3.0/txn:payments-0" in golden_partitions()
    assert "4.3.0/crash-kill:before/crash-0" in golden_partitions(Holds.UNKNOWN)


def test_every_archive_has_a_certificate_and_nothing_else_lies_beside_them() -> None:
    found = {path for path in CASES_DIRECTORY.rglob("*") if path.is_file()}
    assert found == {
        path for case in golden_cases() for path in (archive_path(case), certificate_path(case))
    }


@pytest.mark.parametrize("case_id", golden_cases())
def test_a_case_has_the_files_of_its_certificate_and_no_other(
    golden_root: GoldenRoot, case_id: str
) -> None:
    case = golden_root.case(case_id)
    found = {
        path.relative_to(case).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in case.rglob("*")
        if path.is_file()
    }
    assert (
        found.pop("case.toml") == hashlib.sha256(certificate_path(case_id).read_bytes()).hexdigest()
    )
    assert found == certificate(case_id)["sha256"]
    assert case_id == "{broker}/{scenario}".format_map(certificate(case_id))


@pytest.mark.parametrize("case_id", golden_cases())
def test_packing_an_unpacked_case_again_gives_its_archive_with_all_modification_times(
    golden_root: GoldenRoot, case_id: str
) -> None:
    # Not the compressed bytes, which are the business of whichever liblzma is installed.
    assert tar_of(golden_root.case(case_id)) == lzma.decompress(archive_path(case_id).read_bytes())


def test_modification_times_are_kept_below_the_microsecond(golden_root: GoldenRoot) -> None:
    case = golden_root.case(SMALL_CASE)
    assert any(path.stat().st_mtime_ns % 1_000 for path in case.rglob("*.log"))


@pytest.mark.parametrize("case_id", golden_cases())
def test_unpacked_files_and_folders_are_read_only(golden_root: GoldenRoot, case_id: str) -> None:
    case = golden_root.case(case_id)
    assert [path for path in (case, *case.rglob("*")) if path.stat().st_mode & 0o222] == []


@pytest.mark.parametrize("case_id", golden_cases())
def test_every_folder_with_a_log_is_in_the_certificate_except_a_remote_stores(
    golden_root: GoldenRoot, case_id: str
) -> None:
    case = golden_root.case(case_id)
    of_case = [name for name in golden_partitions() if name.startswith(f"{case_id}:")]
    assert {golden_root.partition(name).directory for name in of_case} == {
        path.parent for path in case.rglob("*.log") if not path.is_relative_to(case / "remote")
    }


@pytest.mark.parametrize("partition_id", golden_partitions())
def test_what_a_folder_holds_is_what_kafkas_dump_of_it_says(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    dumped = dumped_offsets(partition)
    assert len(dumped) == certificate_table(partition_id)["dump_records"]
    path = partition.expected_path("uncommitted")
    served = [line["offset"] for line in read_expected(path)] if path else []
    match partition.holds:
        case Holds.UNKNOWN:
            assert path is None
        case Holds.EXACTLY:
            assert dumped == served
        case Holds.ONLY_THE_START:
            assert dumped == served[: len(dumped)] != served
        case Holds.ONLY_THE_END:
            assert dumped == served[-len(dumped) :] != served
        case Holds.MORE_AT_THE_START:
            assert served == dumped[-len(served) :] != dumped
        case Holds.OTHER_RECORDS:
            assert dumped != served


@pytest.mark.parametrize("partition_id", golden_partitions(Holds.OTHER_RECORDS))
def test_a_diverged_replica_has_other_records_from_offset_30_on(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    path = partition.expected_path("uncommitted")
    assert path is not None
    served = [line["timestamp"] for line in read_expected(path)]
    dump = gzip.decompress((partition.log_directory / f"dump.{partition.name}.txt.gz").read_bytes())
    dumped = [
        int(ms) for ms in re.findall(rb"^\| offset: \d+ CreateTime: (\d+)", dump, re.MULTILINE)
    ]
    assert dumped[:30] == served[:30]
    assert not set(dumped[30:]) & set(served[30:])


@pytest.mark.parametrize("partition_id", golden_partitions())
def test_expected_files_have_the_stated_number_of_lines_and_come_with_offsets(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    committed = partition.expected_path("committed")
    uncommitted = partition.expected_path("uncommitted")
    assert (partition.offsets is None) == (partition.holds is Holds.UNKNOWN)
    assert (committed is None) == (uncommitted is None) == (partition.holds is Holds.UNKNOWN)
    table = certificate_table(partition_id)
    if committed is None or uncommitted is None:
        assert "expected_committed" not in table
    elif "expected_committed" in table:
        assert len(read_expected(committed)) == table["expected_committed"]
        assert len(read_expected(uncommitted)) == table["expected_uncommitted"]
    else:
        assert {committed.parent, uncommitted.parent} == {partition.case_directory}


@pytest.mark.parametrize("case_id", golden_cases())
def test_every_expected_file_belongs_to_a_partition(golden_root: GoldenRoot, case_id: str) -> None:
    partitions = [
        golden_root.partition(name)
        for name in golden_partitions()
        if name.startswith(f"{case_id}:")
    ]
    belonging = {p.expected_path(isolation) for p in partitions for isolation in ISOLATIONS}
    assert belonging - {None} == set(golden_root.case(case_id).rglob("expected.*"))


def test_a_deleted_topics_folder_has_its_topic_and_partition(golden_root: GoldenRoot) -> None:
    name = "left-deleted-topic-0.6f44d6d0d6e640da886b8b62a6ed4a6c-delete"
    partition = golden_root.partition(f"4.3.0/leftovers:{name}")
    assert (partition.topic, partition.partition) == ("left-deleted-topic", 0)


def test_a_topic_name_may_hold_dashes(golden_root: GoldenRoot) -> None:
    partition = golden_root.partition("4.3.0/internal-logdir:invoices-eu-1")
    assert (partition.topic, partition.partition) == ("invoices-eu", 1)


def write_to_a_log(case: Path) -> str:
    log = next(case.rglob("*.log"))
    stat = log.stat()
    log.chmod(0o644)
    log.write_bytes(b"\xff" + log.read_bytes()[1:])
    os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return f"{log}: contents changed"


def touch_an_index(case: Path) -> str:
    index = next(case.rglob("*.index"))
    index.touch()
    return f"{index}: modification time changed"


def add_a_file(case: Path) -> str:
    case.chmod(0o755)
    (case / ".lock").touch()
    return f"{case / '.lock'}: added"


def add_a_file_and_remove_it(case: Path) -> str:
    add_a_file(case)
    (case / ".lock").unlink()
    return f"{case}: modification time changed"


def remove_a_file(case: Path) -> str:
    case.chmod(0o755)
    (case / "meta.properties").unlink()
    return f"{case / 'meta.properties'}: removed"


@pytest.mark.parametrize(
    "change",
    [write_to_a_log, touch_an_index, add_a_file, add_a_file_and_remove_it, remove_a_file],
)
def test_a_change_of_a_used_case_is_noticed_and_named(
    tmp_path: Path, change: Callable[[Path], str]
) -> None:
    root = GoldenRoot(tmp_path)
    case = root.case(SMALL_CASE)
    assert root.changes() == []
    what = change(case)
    assert any(line.startswith(what) for line in root.changes())
    root.begin_watching()
    assert root.changes() == []
    assert root.changes(of_all_ever_used=True) != []


def test_a_second_process_uses_what_the_first_unpacked_and_notices_its_changes(
    tmp_path: Path,
) -> None:
    case = GoldenRoot(tmp_path).case(SMALL_CASE)
    what = touch_an_index(case)
    second = GoldenRoot(tmp_path)
    assert second.case(SMALL_CASE) == case
    assert [line for line in second.changes() if line.startswith(what)]


LONG = "QUJD" * 1_500
LINES: list[dict[str, Any]] = [
    {"offset": 3, "timestamp": 7, "key": None, "value": "QQ==", "headers": [["a", None]]},
    {"offset": 5, "timestamp": 8, "key": "", "value": None, "headers": []},
    {
        "offset": 6,
        "timestamp": 9,
        "key": "QQ==",
        "valueSha256": hashlib.sha256(b"ABC" * 1_500).hexdigest(),
        "valueSize": 4_500,
        "headers": [],
    },
]
RECORDS: list[dict[str, Any]] = [
    {"offset": 3, "timestamp": 7, "key": None, "value": "QQ==", "headers": [("a", None)]},
    {"offset": 5, "timestamp": 8, "key": "", "value": None, "headers": ()},
    {"offset": 6, "timestamp": 9, "key": "QQ==", "value": LONG, "headers": []},
]


def test_equal_records_have_no_differences() -> None:
    assert differences(LINES, RECORDS) == []


@pytest.mark.parametrize(
    ("record", "changed", "message"),
    [
        (0, {"headers": [("a", "")]}, "offset 3: headers is [['a', '']], expected [['a', None]]"),
        (0, {"timestamp": -1}, "offset 3: timestamp is -1, expected 7"),
        (1, {"key": None}, "offset 5: key is None, expected ''"),
        (1, {"value": ""}, "offset 5: value is '', expected None"),
        (1, {"other": 1}, "offset 5: other is 1, expected 'no such field'"),
        (2, {"value": None}, "offset 6: valueSize is None, expected 4500"),
        (2, {"value": LONG[:-4]}, "offset 6: valueSize is 4497, expected 4500"),
        (2, {"value": "QUJE" + LONG[4:]}, "offset 6: valueSha256 is"),
    ],
)
def test_a_field_that_differs_is_named_with_both_values(
    record: int, changed: dict[str, Any], message: str
) -> None:
    records = [dict(r) for r in RECORDS]
    records[record] |= changed
    assert any(line.startswith(message) for line in differences(LINES, records))


def test_a_field_that_is_not_there_is_named() -> None:
    records = [{k: v for k, v in r.items() if k != "value"} for r in RECORDS]
    assert "offset 5: value is 'no such field', expected None" in differences(LINES, records)
    assert any("offset 6: valueSize" in line for line in differences(LINES, records))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 2], "offsets missing: 5"),
        ([0, 1, 1, 2], "offsets not expected or repeated: 5"),
        ([1, 0, 2], "another order: record 0 has 5, not 3"),
        ([], "3 records expected, 0 read"),
    ],
)
def test_records_that_are_missing_repeated_or_reordered_are_reported(
    order: list[int], message: str
) -> None:
    assert message in differences(LINES, [RECORDS[i] for i in order])


def test_only_the_first_differences_are_shown() -> None:
    many = [{"offset": i, "timestamp": 1} for i in range(100)]
    assert differences(many, [{"offset": i, "timestamp": 2} for i in range(100)], limit=2) == [
        "offset 0: timestamp is 2, expected 1",
        "offset 1: timestamp is 2, expected 1",
        "… and 98 more",
    ]
    assert differences(many, [], limit=2)[1] == "offsets missing: 0, 1, … and 98 more"
