"""Whose a node's log directories are, and which are missing: `pylog.writing.node_disks`."""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.faults.nodes import change_properties
from tests.support.log_files import mark_clean_shutdown, write_partition, write_topic_id
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID_TEXT,
    data_batch,
    leader_change,
    partition_record,
    register_broker_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import DoctorReport

IDS = tuple(bytes(15) + bytes([number]) for number in (200, 201))
STRANGER = 4_000_000
NEW_ID = "AAAAAAAAAAAAAAAAAAAB7Q"
ALL_IS_WELL = ["A broker starts, and loses nothing"]


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    """Give the two log directories of a node: the metadata and orders-0, orders-1."""
    found = [tmp_path / "d1", tmp_path / "d2"]
    for number, disk in enumerate(found):
        place = write_partition(disk, {0: [batch_v2(plain_records(0, 3))]}, name=f"orders-{number}")
        write_topic_id(place, TOPIC_ID_TEXT)
        directory_id = base64.urlsafe_b64encode(IDS[number]).decode().rstrip("=")
        text = f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={directory_id}\n"
        (disk / "meta.properties").write_text(text)
        mark_clean_shutdown(disk)
        (disk / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    write_records(found[0])
    return found


@pytest.fixture
def everybodys(disks: list[Path]) -> Iterator[list[Path]]:
    """Give copies of them that anybody can look into and change."""
    with tempfile.TemporaryDirectory(prefix="pylog-disks-") as name:
        Path(name).chmod(0o755)
        copies = [Path(shutil.copytree(each, Path(name) / each.name)) for each in disks]
        for path in Path(name).rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
        yield copies


def write_records(
    disk: Path, *, replicas: tuple[int, ...] = (1,), voters: tuple[int, ...] = (1,)
) -> None:
    records = [
        register_broker_record(1, IDS),
        topic_record("orders"),
        *(
            partition_record(number, 1, replicas, (IDS[number], *IDS[1:] * (len(replicas) - 1)))
            for number in range(2)
        ),
    ]
    shutil.rmtree(disk / METADATA, ignore_errors=True)
    write_metadata_log(disk, records, voters=voters)


def errors(report: DoctorReport) -> list[tuple[str, str]]:
    return [
        (each.code, "/".join(each.path.split("/")[-2:]))
        for each in report.findings
        if each.severity is pylog.results.Severity.ERROR
    ]


def test_nothing_is_wrong_with_a_whole_node(disks: list[Path]) -> None:
    assert pylog.doctor(*disks).verdict.reasons == ALL_IS_WELL


@pytest.mark.parametrize("directory_id", [None, NEW_ID])
def test_nobody_leads_the_partitions_of_a_directory_with_another_id(
    disks: list[Path], directory_id: str | None
) -> None:
    change_properties(disks[1], directory_id=directory_id)
    report = pylog.doctor(*disks)
    assert errors(report) == [("unserved_partition", "d2/orders-1")]
    assert report.verdict.would_start
    assert [each.name for each in report.verdict.unserved] == ["orders-1"]


def test_nobody_leads_one_that_is_set_aside_and_made_anew_either(disks: list[Path]) -> None:
    change_properties(disks[1], directory_id=NEW_ID)
    (disks[1] / "orders-1" / "partition.metadata").unlink()
    verdict = pylog.doctor(*disks).verdict
    assert [each.name for each in verdict.stray_partitions] == ["orders-1"]
    assert [each.name for each in verdict.unserved] == ["orders-1"]


def test_another_replica_that_is_in_sync_leads_them(disks: list[Path]) -> None:
    write_records(disks[0], replicas=(1, 2))
    change_properties(disks[1], directory_id=NEW_ID)
    assert errors(pylog.doctor(*disks)) == []


@pytest.mark.parametrize("directory_id", ["AAAAAAAAAAAAAAAAAAAAYw", "A" * 22])
def test_a_reserved_directory_id_ends_the_broker(disks: list[Path], directory_id: str) -> None:
    change_properties(disks[1], directory_id=directory_id)
    [refusal] = pylog.doctor(*disks).refusals
    assert (refusal.code, refusal.path) == (
        "damaged_meta_properties",
        str(disks[1] / "meta.properties"),
    )
    change_properties(disks[1], directory_id="AAAAAAAAAAAAAAAAAAAAZA")  # 100
    assert pylog.doctor(*disks).refusals == []


def test_version_0_beside_kraft_is_kraft(disks: list[Path]) -> None:
    for disk in disks:
        change_properties(disk, version="0", node_id=None, broker_id="1")
    assert pylog.doctor(*disks).verdict.reasons == ALL_IS_WELL
    change_properties(disks[1], directory_id=None)
    assert [each.name for each in pylog.doctor(*disks).verdict.unserved] == ["orders-1"]


@pytest.mark.parametrize(
    "change", [{"version": "2"}, {"version": "7"}, {"directory_id": ""}, {"cluster_id": None}]
)
def test_a_directory_whose_owner_cannot_be_read_goes_offline(
    disks: list[Path], change: dict[str, str | None]
) -> None:
    change_properties(disks[1], **change)
    report = pylog.doctor(*disks)
    assert report.verdict.would_start
    assert {each.name for each in report.verdict.unserved} == {"orders-1"}
    shutil.copyfile(disks[1] / "meta.properties", disks[0] / "meta.properties")
    assert pylog.doctor(*disks).verdict.would_start is False


def test_nothing_in_a_directory_that_goes_offline_ends_the_broker(disks: list[Path]) -> None:
    epochs = disks[1] / "orders-1" / "leader-epoch-checkpoint"
    epochs.write_text("0\n1\nx 0\n")  # what ends a broker that loads it
    assert pylog.doctor(*disks).verdict.would_start is False
    change_properties(disks[1], version="7")
    report = pylog.doctor(*disks)
    assert report.verdict.would_start
    assert [each.name for each in report.verdict.unserved] == ["orders-1"]
    assert [each.path for each in report.refusals] == []


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("", 0o755),
        (".lock", 0o644),
        ("meta.properties", 0o600),
        ("orders-1", 0o755),
        ("orders-1", 0o733),
        (f"orders-1/{0:020d}.log", 0o600),
        (f"orders-1/{0:020d}.log", 0o644),
    ],
)
def test_what_is_forbidden_on_another_disk_than_that_of_the_metadata_takes_it_offline(
    everybodys: list[Path], name: str, mode: int
) -> None:
    path = everybodys[1] / name
    path.touch()
    path.chmod(mode)
    verdict = pylog.doctor(*everybodys, as_user=STRANGER).verdict
    assert verdict.would_start
    assert [each.name for each in verdict.unserved] == ["orders-1"]
    assert "user uid 4000000 may not" in verdict.unserved[0].reason
    path.chmod(0o777)
    assert pylog.doctor(*everybodys, as_user=STRANGER).verdict.unserved == []


@pytest.mark.parametrize("state", ["stray", "delete"])
def test_a_forbidden_directory_that_is_not_live_takes_its_disk_offline(
    everybodys: list[Path], state: str
) -> None:
    aside = everybodys[1] / f"orders-1.{1:032x}-{state}"
    shutil.copytree(everybodys[1] / "orders-1", aside)
    assert pylog.doctor(*everybodys, as_user=STRANGER).verdict.unserved == []
    aside.chmod(0o700)
    verdict = pylog.doctor(*everybodys, as_user=STRANGER).verdict
    assert verdict.would_start
    assert [each.name for each in verdict.unserved] == ["orders-1"]


@pytest.mark.parametrize(
    ("name", "mode", "is_loaded"),
    [("", 0o755, False), ("meta.properties", 0o600, False), (".lock", 0o644, True)],
)
def test_what_lies_in_a_directory_that_cannot_be_locked_is_loaded_before_it_goes_offline(
    everybodys: list[Path], name: str, mode: int, *, is_loaded: bool
) -> None:
    (everybodys[1] / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\nx 0\n")
    path = everybodys[1] / name
    path.touch()
    path.chmod(mode)
    assert pylog.doctor(*everybodys, as_user=STRANGER).verdict.would_start is not is_loaded


def test_what_cannot_be_loaded_is_not_set_aside(everybodys: list[Path]) -> None:
    (everybodys[1] / "orders-1" / "partition.metadata").unlink()
    verdict = pylog.doctor(*everybodys, as_user=STRANGER).verdict
    assert [each.name for each in verdict.stray_partitions] == ["orders-1"]
    next(everybodys[1].glob("orders-1/*.log")).chmod(0o600)
    verdict = pylog.doctor(*everybodys, as_user=STRANGER).verdict
    assert verdict.stray_partitions == []
    assert [each.name for each in verdict.unserved] == ["orders-1"]


def test_what_is_forbidden_on_the_disk_of_the_metadata_ends_the_broker(
    everybodys: list[Path],
) -> None:
    next(everybodys[0].glob("orders-0/*.log")).chmod(0o600)
    assert pylog.doctor(*everybodys, as_user=STRANGER).verdict.would_start is False


def test_the_metadata_lie_in_the_first_log_directory(disks: list[Path]) -> None:
    report = pylog.doctor(*reversed(disks))
    assert errors(report) == [("misplaced_metadata_log", f"d1/{METADATA}")]
    assert report.verdict.would_start is False


def test_the_metadata_may_have_a_directory_of_their_own_that_is_given_last(
    disks: list[Path], tmp_path: Path
) -> None:
    own = tmp_path / "metadata"
    own.mkdir()
    (disks[0] / METADATA).rename(own / METADATA)
    shutil.copyfile(disks[0] / "meta.properties", own / "meta.properties")
    change_properties(own, directory_id=NEW_ID)
    assert pylog.doctor(*disks, own).verdict.reasons == ALL_IS_WELL


def test_a_log_directory_that_is_given_twice_ends_the_broker(
    disks: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(disks[1])
    [refusal] = pylog.doctor(*disks, tmp_path / "link").refusals
    assert refusal.code == "meta_properties_disagree"
    assert str(disks[1]) in refusal.message


def test_of_one_log_directory_alone_it_is_said_that_others_are_missing(disks: list[Path]) -> None:
    report = pylog.doctor(disks[0])
    assert report.verdict.would_start is None
    assert "log directories that were not given" in report.verdict.not_known[0].reason
    assert errors(report) == []


def test_the_partitions_of_a_disk_that_was_replaced_are_gone(disks: list[Path]) -> None:
    for each in disks[1].iterdir():
        if each.name != "meta.properties":
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    change_properties(disks[1], directory_id=NEW_ID)
    report = pylog.doctor(*disks)
    assert [each.name for each in report.verdict.lost_already] == ["orders-1"]
    assert [each.name for each in report.verdict.unserved] == ["orders-1"]
    write_records(disks[0], replicas=(1, 2))
    report = pylog.doctor(*disks)
    assert report.verdict.lost_already == []
    assert [
        each.code for each in report.findings if each.severity is pylog.results.Severity.WARNING
    ] == ["absent_partition"]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_partition_that_a_crash_may_have_prevented_is_not_said_to_be_gone(
    disks: list[Path], *, is_clean: bool
) -> None:
    shutil.rmtree(disks[1] / "orders-1")
    if not is_clean:
        (disks[1] / ".kafka_cleanshutdown").unlink()
    verdict = pylog.doctor(*disks).verdict
    assert len(verdict.lost_already) == is_clean
    assert verdict.would_start is (True if is_clean else None)


def test_all_partitions_become_strays_where_the_disk_of_the_metadata_was_replaced(
    disks: list[Path],
) -> None:
    for each in disks[0].iterdir():
        if each.name != "meta.properties":
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    report = pylog.doctor(*disks)
    assert {each.name for each in report.verdict.stray_partitions} >= {"orders-1"}
    assert report.verdict.would_start


def test_an_empty_disk_beside_others_ends_the_broker(disks: list[Path], tmp_path: Path) -> None:
    (tmp_path / "d3").mkdir()
    report = pylog.doctor(*disks, tmp_path / "d3")
    assert errors(report) == [("missing_meta_properties", "d3/meta.properties")]


@pytest.mark.parametrize("change", [{"node_id": "7"}, {"cluster_id": "other"}])
def test_meta_properties_of_another_node_end_the_broker(
    disks: list[Path], change: dict[str, str | None]
) -> None:
    change_properties(disks[1], **change)
    assert ("meta_properties_of_another", "d2/meta.properties") in errors(pylog.doctor(*disks))


# ---- several controllers


def test_one_of_three_controllers_waits_for_another(disks: list[Path]) -> None:
    write_records(disks[0], voters=(1, 2, 3))
    report = pylog.doctor(*disks)
    assert report.verdict.would_start is None
    [unknown] = report.verdict.not_known
    assert unknown.reason == (
        "this node is one of 3 voters (1, 2, 3): it serves when 2 of them run, and only 1 is here. "
        "If the others are gone, use pylog first-aid"
    )


def write_second_node(place: Path, values: list[bytes]) -> Path:
    write_partition(place, {0: [leader_change(0, (1, 2, 3)), data_batch(1, values)]}, name=METADATA)
    (place / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=c\n")
    return place


@pytest.mark.parametrize(("is_agreed", "would_start"), [(True, True), (False, None)])
def test_what_most_controllers_have_counts(
    disks: list[Path], tmp_path: Path, *, is_agreed: bool, would_start: bool | None
) -> None:
    records = [
        register_broker_record(1, IDS),
        topic_record("orders"),
        *(partition_record(number, 2, (2,), (bytes(16),)) for number in range(2)),
    ]
    shutil.rmtree(disks[0] / METADATA)
    write_metadata_log(disks[0], records, voters=(1, 2, 3))
    second = write_second_node(tmp_path / "n2", records if is_agreed else records[:1])
    report = pylog.doctor(*disks, second)
    strays = [each for each in report.findings if each.code == "stray_partition"]
    assert len(strays) == 2
    assert report.verdict.would_start is would_start
    assert len(report.verdict.stray_partitions) == (2 if is_agreed else 0)
    assert all("agreed" in each.message for each in strays) == (not is_agreed)


def test_what_goes_offline_where_partitions_are_assigned_elsewhere_is_not_known(
    disks: list[Path],
) -> None:
    (disks[1] / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n 0 0\n")
    verdict = pylog.doctor(*disks).verdict
    assert verdict.would_start
    assert [each.name for each in verdict.unserved] == ["orders-1"]
    (disks[1] / "orders-1" / "leader-epoch-checkpoint").unlink()
    (disks[1] / "orders-1").rename(disks[0] / "orders-1")
    (disks[0] / "orders-0").rename(disks[1] / "orders-0")
    (disks[1] / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n 0 0\n")
    assert pylog.doctor(*disks).verdict.would_start is None
