"""Consumer groups in doctor's verdict: `pylog.checks.group_findings`, through doctor and table."""

from __future__ import annotations

import shutil
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

import pylog
from pylog.checks.doctor import doctor  # alone: the table has no such options
from pylog.checks.group_findings import GroupPosition
from pylog.checks.partition_report import LogDirectoryReport
from pylog.checks.verdict import verdict_on
from pylog.config.server_properties import ServerProperties
from pylog.files.directory_lock import DirectoryLock
from pylog.files.partition_metadata import format_uuid
from pylog.findings import kinds
from pylog.findings.finding import Severity
from pylog.model import TopicPartition
from pylog.reading.group_records import last_group_records
from tests.support import group_records
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.damage import flip
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    write_log_start_offsets,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
)
from tests.unit.admin.coordinated import coordinated

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.group_records import LastRecords
    from pylog.reading.log_view import LogView
    from pylog.results import AffectedOffsets, Verdict
    from tests.unit.checks.conftest import AtThirdPause

DISK = bytes(range(16))
WEEK = 7 * 24 * 3_600_000
SOUND = "A broker starts, and loses nothing"


def commit(group: str, offset: int, *, number: int = 0, age_ms: int = 0) -> group_records.Record:
    at = int(time.time() * 1000) - age_ms
    return group_records.commit(group, "orders", number, offset=offset, at=at)


def stopped(root: Path) -> Path:
    mark_clean_shutdown(root)
    return root


def orders(root: Path) -> Path:
    """Write a log of offsets 5 to 9, of which 5 to 7 are in the first batch."""
    first, second = batch_v2(plain_records(5, 3)), batch_v2(plain_records(8, 2))
    place = write_partition(root, {5: [first, second]}, name="orders-0")
    write_log_start_offsets(root, {("orders", 0): 5})
    return place


def places(affected: list[AffectedOffsets]) -> list[tuple[str | None, int | None, tuple[str, ...]]]:
    return [(each.name, each.from_offset, each.groups) for each in affected]


def verdict_of(root: Path) -> Verdict:
    return pylog.doctor(root).verdict


def severities(root: Path, code: str) -> list[tuple[str, str]]:
    return [
        (str(each.severity), each.message)
        for each in pylog.doctor(root).findings
        if each.code == code
    ]


def test_groups_within_their_logs_change_no_verdict(tmp_path: Path) -> None:
    orders(stopped(tmp_path))
    records = [commit("start", 5), commit("end", 10), commit("none", -1)]
    group_records.write_commits(tmp_path, 0, *records)
    assert verdict_of(tmp_path).reasons == [SOUND]


def test_positions_outside_their_log_are_in_the_verdict(tmp_path: Path) -> None:
    orders(stopped(tmp_path))
    records = [commit("below", 4), commit("beyond", 11), commit("far", 11), commit("in", 6)]
    group_records.write_commits(tmp_path, 0, *records)
    verdict = verdict_of(tmp_path)
    assert places(verdict.will_reset) == [
        ("orders-0", 4, ("below",)),
        ("orders-0", 11, ("beyond", "far")),
    ]
    assert verdict.would_start is True
    assert verdict.reasons == [
        f"{SOUND}, but consumer groups lose their positions",
        (
            "Consumer groups do not go on where they were: orders-0 at offset 4 (group below), "
            "orders-0 at offset 11 (groups beyond, far): group below is at 4: the log starts at 5: "
            "offset 4 is gone"
        ),
    ]
    assert severities(tmp_path, "group_resets") == [
        ("info", "group below is at 4: the log starts at 5: offset 4 is gone"),
        ("warning", "group beyond is at 11: the log ends at 10"),
        ("warning", "group far is at 11: the log ends at 10"),
    ]


def test_a_group_that_has_read_what_was_appended_meanwhile_is_not_beyond_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = segment_path(orders(tmp_path), 5)

    def append_and_read(view: LogView) -> LastRecords:
        log.write_bytes(joined([batch_v2(plain_records(at, 3)) for at in (5, 8, 11)]))
        return last_group_records(view)

    monkeypatch.setattr("pylog.checks.group_findings.last_group_records", append_and_read)
    group_records.write_commits(tmp_path, 0, commit("end", 14), commit("beyond", 15))
    assert [each.message for each in doctor(tmp_path).findings if each.code == "group_resets"] == [
        "group beyond is at 15: the log ends at 14"
    ]


@pytest.mark.parametrize("has_lock", [True, False])
def test_a_group_that_has_read_what_was_half_written_is_not_beyond_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_lock: bool
) -> None:
    """A start would cut off what a broker is writing; it has gone on before the group reads it."""
    log = segment_path(orders(tmp_path), 5)
    whole = joined([batch_v2(plain_records(at, 3)) for at in (5, 8, 11)])
    log.write_bytes(whole[:-10])

    def write_on_and_read(view: LogView) -> LastRecords:
        log.write_bytes(whole)
        return last_group_records(view)

    monkeypatch.setattr("pylog.checks.group_findings.last_group_records", write_on_and_read)
    group_records.write_commits(tmp_path, 0, commit("end", 14), commit("beyond", 15))
    with DirectoryLock(tmp_path) if has_lock else nullcontext():
        found = doctor(tmp_path).findings
    assert [each.message for each in found if each.code == "group_resets"] == [
        "group beyond is at 15: the log ends at 11"
    ]


def test_a_position_in_a_log_that_a_broker_makes_or_drops_is_not_reset(
    tmp_path: Path, at_third_pause: AtThirdPause
) -> None:
    place = orders(tmp_path)
    write_topic_id(place, TOPIC_ID_TEXT)
    with_id = [
        topic_record("orders"),
        *(partition_record(each, 1, (1,), (DISK,)) for each in (0, 1)),
    ]
    write_metadata_log(tmp_path, with_id)
    write_meta_properties(tmp_path)
    with (tmp_path / "meta.properties").open("a") as file:
        file.write(f"directory.id={format_uuid(UUID(bytes=DISK))}\n")
    group_records.write_commits(tmp_path, 0, commit("there", 6), commit("new", 6, number=1))

    def resets() -> list[str]:
        found = doctor(tmp_path).findings
        return [each.message for each in found if each.code == "group_resets"]

    [message] = resets()
    assert message.startswith("group new is at 6: its log is gone")
    at_third_pause(lambda: shutil.copytree(place, tmp_path / "orders-1"))
    with DirectoryLock(tmp_path):
        assert resets() == []
    shutil.rmtree(tmp_path / "orders-1")

    def drop() -> None:
        shutil.rmtree(tmp_path / "__cluster_metadata-0")
        write_metadata_log(tmp_path, [])

    at_third_pause(drop)
    with DirectoryLock(tmp_path):
        assert resets() == []


def test_positions_are_held_against_the_log_that_a_start_leaves(tmp_path: Path) -> None:
    place = orders(tmp_path)  # not stopped: a start scans the log, and cuts it
    path = place / f"{5:020d}.log"
    flip(path, 70)  # in the first batch
    records = [commit("before", 5), commit("within", 9), commit("end", 10)]
    group_records.write_commits(tmp_path, 0, *records)
    verdict = verdict_of(tmp_path)
    assert places(verdict.loses_records) == [("orders-0", 5, ("before", "end", "within"))]
    assert places(verdict.will_reset) == [
        ("orders-0", 10, ("end",)),
        ("orders-0", 9, ("within",)),
    ]
    assert "the log ends at 5" in verdict.will_reset[0].reason
    assert SOUND not in verdict.reasons[0]


def test_of_lost_offsets_those_groups_are_named_that_have_not_read_past(tmp_path: Path) -> None:
    first, last = batch_v2(plain_records(0, 3)), batch_v2(plain_records(8, 2))
    write_partition(stopped(tmp_path), {0: [first], 8: [last]}, name="orders-0")
    records = [commit("before", 1), commit("within", 5), commit("past", 8)]
    group_records.write_commits(tmp_path, 0, *records)
    [lost] = verdict_of(tmp_path).lost_already
    assert (lost.from_offset, lost.to_offset, lost.groups) == (3, 8, ("before", "within"))
    assert lost.text.endswith("groups before, within)")


def test_ranges_that_meet_have_the_groups_of_both() -> None:
    lost = [
        kinds.MISSING_SEGMENT.found(
            *("/l/orders-0", "gone", None, None, start, end), severity=Severity.ERROR
        )
        for start, end in ((0, 3), (3, 6))
    ]
    positions = {TopicPartition("orders", 0): [GroupPosition(1, "a"), GroupPosition(5, "b")]}
    directory = LogDirectoryReport(
        "/l",
        is_clean=True,
        is_of_a_controller=False,
        lacks_metadata=False,
        findings=lost,
        positions=positions,
    )
    verdict = verdict_on([directory], [])
    assert [each.groups for each in verdict.lost_already] == [("a",), ("a", "b")]
    assert "orders-0: 6 records, offsets 0 to 5, missing (groups a, b)" in verdict.reasons[0]


def test_offsets_that_go_for_their_age_are_in_the_headline(tmp_path: Path) -> None:
    orders(stopped(tmp_path))
    records = [commit("old", 6, age_ms=WEEK), commit("young", 7, age_ms=WEEK // 2)]
    group_records.write_commits(tmp_path, 0, *records)
    verdict = verdict_of(tmp_path)
    assert places(verdict.will_expire) == [("orders-0", 6, ("old",))]
    assert verdict.reasons == [
        f"{SOUND}, but consumer groups lose their positions",
        (
            "A broker deletes committed offsets for their age, ten minutes after its start: "
            "orders-0 at offset 6 (group old)"
        ),
    ]
    assert [each[0] for each in severities(tmp_path, "group_expires")] == ["info"]


def test_doctor_and_groups_say_the_same(tmp_path: Path) -> None:
    orders(stopped(tmp_path))
    records = [
        commit(f"g-{offset}-{age}", offset, number=number, age_ms=age)
        for number in (0, 1)
        for offset in (4, 5, 10, 11)
        for age in (0, WEEK)
    ]
    group_records.write_commits(tmp_path, 0, *records)
    verdict = verdict_of(tmp_path)
    listed = [
        (group.group_id, each) for group in pylog.groups(tmp_path).groups for each in group.offsets
    ]
    for said, affected in (
        (
            {(group, each.partition) for group, each in listed if each.will_reset},
            verdict.will_reset,
        ),
        (
            {(group, each.partition) for group, each in listed if each.will_expire},
            verdict.will_expire,
        ),
    ):
        assert said
        assert said == {(group, each.partition) for each in affected for group in each.groups}


def test_the_age_of_offsets_is_that_of_the_brokers_configuration(tmp_path: Path) -> None:
    orders(stopped(tmp_path))
    group_records.write_commits(tmp_path, 0, commit("old", 6, age_ms=WEEK))
    configured = ServerProperties(offsets_retention_ms=2 * WEEK)
    report = doctor(tmp_path, server_properties=configured)
    assert report.verdict.reasons == [SOUND]


def test_a_partition_with_a_group_of_two_kinds_is_what_consumers_do_without(
    tmp_path: Path,
) -> None:
    stopped(tmp_path)
    group_records.write_commits(
        tmp_path,
        0,
        group_records.classic("g", "orders", has_member=True),
        group_records.modern(group_records.CONSUMER, "g"),
    )
    [refused] = verdict_of(tmp_path).consumers
    assert (refused.name, refused.groups) == ("__consumer_offsets-0", ("g",))
    older = pylog.doctor(tmp_path, kafka_version="3.9")
    assert older.verdict.consumers == []
    assert [str(each.severity) for each in older.findings if each.code == "refused_groups"] == [
        "warning"
    ]


def test_missing_partitions_are_named_with_how_many_there_are(tmp_path: Path) -> None:
    numbers = (partition_record(number, 1, (1,)) for number in range(4))
    write_metadata_log(tmp_path, [topic_record("__consumer_offsets"), *numbers])
    write_meta_properties(tmp_path)
    group_records.write_commits(stopped(tmp_path), 1, commit("e", 1))
    [(severity, message)] = severities(tmp_path, "missing_groups")
    assert severity == "info"
    assert message.startswith("3 partitions of 4 of __consumer_offsets are not here (0, 2, 3)")


def test_the_groups_of_a_partition_that_is_set_aside_are_named(tmp_path: Path) -> None:
    write_metadata_log(tmp_path, [topic_record("orders"), partition_record(0, 1, (1,))])
    write_meta_properties(tmp_path)
    group_records.write_commits(stopped(tmp_path), 0, commit("e", 1))
    write_topic_id(tmp_path / "__consumer_offsets-0", TOPIC_ID_TEXT[::-1])
    [stray] = verdict_of(tmp_path).stray_partitions
    assert (stray.name, stray.groups) == ("__consumer_offsets-0", ("e",))


def test_no_group_reads_a_copy_that_is_set_aside(tmp_path: Path) -> None:
    write_metadata_log(tmp_path, [topic_record("orders"), partition_record(0, 1, (1,))])
    write_meta_properties(tmp_path)
    group_records.write_commits(stopped(tmp_path), 0, commit("e", 6))
    topic_id = f"version: 0\ntopic_id: {TOPIC_ID_TEXT}"
    (orders(tmp_path) / "partition.metadata").write_text(topic_id)
    write_partition(
        tmp_path, {5: [batch_v2(plain_records(5, 3))]}, name=f"orders-0.{1:032x}-future"
    )
    strays = places(verdict_of(tmp_path).stray_partitions)
    assert (f"orders-0.{1:032x}-future", None, ()) in strays


def test_transactional_ids_with_one_producer_id_are_named(tmp_path: Path) -> None:
    records = [coordinated(0, "a", 1, 0, 0), coordinated(1, "b", 1, 4, 0)]
    write_partition(stopped(tmp_path), {0: [batch_v2(records)]}, name="__transaction_state-0")
    [(severity, message)] = severities(tmp_path, "shared_producer_id")
    assert (severity, message.partition(":")[0]) == (
        "warning",
        "transactional ids a, b have one producer id, 1",
    )


def test_groups_are_read_once_and_only_if_their_topic_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders(stopped(tmp_path))
    group_records.write_commits(tmp_path, 0, commit("beyond", 11))
    read = []

    def counted(view: LogView) -> object:
        read.append(view.partition)
        return last_group_records(view)

    monkeypatch.setattr("pylog.checks.group_findings.last_group_records", counted)
    report = doctor(tmp_path, topics=["orders"])
    assert (report.verdict.reasons, read) == ([SOUND], [])
    report = doctor(tmp_path)
    assert (len(report.verdict.will_reset), read) == (1, [0])


def test_clusters_have_their_groups_apart(tmp_path: Path) -> None:
    for name, offset in (("a", 11), ("b", 6)):
        root = tmp_path / name
        orders(root)
        (stopped(root) / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={name}")
        group_records.write_commits(root, 0, commit("g", offset))
    report = pylog.doctor(tmp_path / "a", tmp_path / "b")
    found = {name: each.verdict.will_reset for name, each in report.of_clusters.items()}
    assert {name: places(each) for name, each in found.items()} == {
        "a": [("orders-0", 11, ("g",))],
        "b": [],
    }
