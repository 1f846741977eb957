from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.checks import examination
from pylog.checks.doctor import doctor
from pylog.errors import LogDirectoryError
from pylog.reading import discovery
from pylog.reading.discovery import PartitionDirectory, discover_all, discover_partitions
from pylog.reading.log_view import read_unless_deleted
from pylog.reading.segment_listing import SegmentListing, list_segments
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    move_partition,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import TOPIC_ID_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.tables import TableName

ONE_SEGMENT = {0: [batch_v2(plain_records(0, 2))]}


def make(log_directory: Path, *names: str) -> None:
    for name in names:
        write_partition(log_directory, ONE_SEGMENT, name=name)


def discovered(path: Path | str) -> list[tuple[str, int, str]]:
    return [(*each.topic_partition, each.state) for each in discover_partitions(path)]


def refusal(*paths: Path | str) -> str:
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(*paths)
    return str(caught.value)


def test_a_name_that_is_not_text_is_no_partitions(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    shutil.copytree(tmp_path / "orders-0", os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff\xfe-0"))
    assert list(pylog.open_directory(tmp_path).topics) == ["orders"]
    assert pylog.scan(tmp_path).count() == 2
    (found,) = pylog.doctor(tmp_path).findings
    assert found.code == "misnamed_directory"


def test_a_log_directory_holds_its_partitions_in_order(tmp_path: Path) -> None:
    make(tmp_path, "orders-10", "orders-2", "a-b-c-0", "orders.eu_1-0")
    assert discovered(tmp_path) == [
        ("a-b-c", 0, ""),
        ("orders", 2, ""),
        ("orders", 10, ""),
        ("orders.eu_1", 0, ""),
    ]


def test_a_partition_directory_is_itself(tmp_path: Path) -> None:
    make(tmp_path, "orders-0", "orders-1")
    assert discovered(tmp_path / "orders-1") == [("orders", 1, "")]
    assert discovered(f"{tmp_path}/orders-1/") == [("orders", 1, "")]


def test_paths_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "orders-0")
    monkeypatch.chdir(tmp_path)
    assert discovered(".") == discovered("../" + tmp_path.name) == [("orders", 0, "")]
    monkeypatch.chdir(tmp_path / "orders-0")
    assert discovered(".") == [("orders", 0, "")]
    assert pylog.scan(".").count() == 2


def test_a_log_directory_may_be_named_like_a_partition(tmp_path: Path) -> None:
    make(tmp_path / "kafka-0", "orders-0", "orders-1")
    assert discovered(tmp_path / "kafka-0") == [("orders", 0, ""), ("orders", 1, "")]
    # Seen from above it is not a partition: there are no files of Kafka's in it.
    assert "no Kafka log here" in refusal(tmp_path)


def test_what_is_not_kafkas_is_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    (tmp_path / "backup-2024").mkdir()
    (tmp_path / "backup-2024" / "notes.log").write_text("x")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "meta.properties").write_text("version=0\n")
    (tmp_path / "orders-1").write_text("a file of that name")
    assert discovered(tmp_path) == [("orders", 0, "")]


def test_a_partition_without_segments_yet_is_there(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    (tmp_path / "orders-1").mkdir()
    write_topic_id(tmp_path / "orders-1", "AAAAAAAAAAAAAAAAAAAAAg")
    assert discovered(tmp_path) == [("orders", 0, ""), ("orders", 1, "")]
    view = pylog.open_directory(tmp_path)["orders", 1]
    assert (view.log_start_offset, view.log_end_offset) == (0, 0)


def test_directories_that_are_not_live_are_listed_with_their_state(tmp_path: Path) -> None:
    uuid = "6f44d6d0d6e640da886b8b62a6ed4a6c"
    states = ("-delete", "-future", "-stray")
    make(tmp_path, "orders-0", *(f"orders-0.{uuid}{state}" for state in states))
    assert discovered(tmp_path) == [("orders", 0, ""), *(("orders", 0, state) for state in states)]
    directory = pylog.open_directory(tmp_path)
    assert len(directory) == 1
    assert [each.state for each in directory.others] == list(states)
    assert pylog.scan(tmp_path).count() == 2


def test_links_to_partition_directories_are_followed(tmp_path: Path) -> None:
    make(tmp_path / "disk", "orders-0")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "orders-0").symlink_to(tmp_path / "disk" / "orders-0")
    assert discovered(tmp_path / "links") == [("orders", 0, "")]
    (tmp_path / "shortcut").symlink_to(tmp_path / "disk" / "orders-0")
    assert discovered(tmp_path / "shortcut") == [("orders", 0, "")]


def test_a_link_with_a_partitions_name_may_lead_to_a_directory_of_another(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    (tmp_path / "orders-0").rename(tmp_path / "copied")
    (tmp_path / "orders-0").symlink_to(tmp_path / "copied")
    assert discovered(tmp_path / "orders-0") == [("orders", 0, "")]


def test_a_link_that_leads_in_a_circle_is_a_partition_that_cannot_be_read(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    (tmp_path / "orders-1").symlink_to(tmp_path / "orders-1")
    assert discovered(tmp_path) == [("orders", 0, ""), ("orders", 1, "")]


def test_an_internal_topic_is_read_where_a_link_names_it(tmp_path: Path) -> None:
    make(tmp_path, "__consumer_offsets-0")
    (tmp_path / "__consumer_offsets-0").rename(tmp_path / "copied")
    (tmp_path / "__consumer_offsets-0").symlink_to(tmp_path / "copied")
    assert len(pylog.scan(tmp_path / "__consumer_offsets-0").plan()) == 1


def test_a_path_that_is_not_there_is_reported(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere") == (
        f"{tmp_path}/nowhere: no such directory (is it mounted on this host?)"
    )


def test_a_home_directory_is_not_expanded_and_the_error_says_so() -> None:
    with pytest.raises(LogDirectoryError, match=r"^~/logs: no such directory; '~' is taken as it "):
        pylog.open_directory("~/logs")


def test_a_path_that_is_a_file_is_reported(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    assert refusal(path) == (
        f"{path}: not a directory; give a log directory or a <topic>-<partition> directory"
    )


def test_a_directory_without_logs_is_reported(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    text = refusal(tmp_path)
    assert text == (
        f"{tmp_path}: no Kafka log here: neither segment files (<20 digits>.log) nor "
        "sub-directories named <topic>-<partition> with such files"
    )


def test_a_path_one_level_too_high_is_answered_with_where_the_logs_are(tmp_path: Path) -> None:
    make(tmp_path / "kafka" / "disk2", "orders-0")
    (tmp_path / "kafka" / "empty").mkdir()
    (tmp_path / "kafka" / "notes.txt").write_text("x")
    here = tmp_path / "kafka"
    assert refusal(here) == (
        f"{here}: no Kafka log here, but one level below, in {here}/disk2; give that path"
    )
    make(here / "disk1", "web-0")
    assert refusal(here) == (
        f"{here}: no Kafka log here, but one level below, in {here}/disk1, {here}/disk2; give one "
        "or more of these paths"
    )


def test_many_log_directories_below_are_counted(tmp_path: Path) -> None:
    for number in range(7):
        make(tmp_path / f"disk{number}", "orders-0")
    assert "/disk4 and 2 more; give one or more of these paths" in refusal(tmp_path)


def kafka_0_7(log_directory: Path, name: str) -> Path:
    directory = log_directory / name
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.kafka").write_bytes(b"\0" * 100)
    return directory


def test_segments_of_kafka_0_7_are_recognised(tmp_path: Path) -> None:
    directory = kafka_0_7(tmp_path, "orders-0")
    expected = (
        f"{directory}: cannot read segments of Kafka 0.7 (.kafka files), only those of Kafka 0.8 "
        "and later (.log files); the KafkaMigrationTool of Kafka 0.8 copies topics of 0.7"
    )
    for path in (tmp_path, directory):
        assert discovered(path) == [("orders", 0, "")]
        with pytest.raises(LogDirectoryError) as caught:
            pylog.scan(path).count()
        assert str(caught.value) == expected


def test_a_partition_of_kafka_0_7_does_not_keep_others_from_being_read(tmp_path: Path) -> None:
    kafka_0_7(tmp_path, "orders-0")
    make(tmp_path, "web-0")
    assert pylog.scan(tmp_path, topics="web").count() == 2


def test_segments_of_kafka_0_8_are_read_beside_those_of_0_7(tmp_path: Path) -> None:
    kafka_0_7(tmp_path, "orders-0")
    make(tmp_path, "orders-0")
    assert pylog.scan(tmp_path).count() == 2


def test_a_partition_that_cannot_be_read_fails_only_reads_that_need_it(tmp_path: Path) -> None:
    make(tmp_path, "orders-0", "web-0")
    (tmp_path / "orders-1").symlink_to(tmp_path / "nowhere")
    assert pylog.scan(tmp_path, topics="web").count() == 2
    assert pylog.scan(tmp_path, assign={"orders": [0]}).count() == 2
    where = pylog.RecordFilter(topics=frozenset({"web"}))
    assert pylog.scan(tmp_path, where=where).count() == 2
    with pytest.raises(LogDirectoryError, match="orders-1"):
        pylog.scan(tmp_path).count()


def test_segments_in_a_directory_that_names_no_topic_are_reported(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    (tmp_path / "orders-0").rename(tmp_path / "copied")
    text = refusal(tmp_path / "copied")
    assert "segment files in a directory whose name does not say which partition it is" in text
    assert "'copied' is not <topic>-<partition>" in text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read_is_an_error_for_who_reads_it(tmp_path: Path) -> None:
    make(tmp_path, "orders-0", "orders-1")
    (tmp_path / "orders-0").chmod(0)
    try:
        assert pylog.scan(tmp_path, assign={"orders": [1]}).count() == 2
        with pytest.raises(LogDirectoryError, match="cannot list directory: Permission denied"):
            pylog.scan(tmp_path).count()
        assert "cannot list directory: Permission denied" in refusal(tmp_path / "orders-0")
    finally:
        (tmp_path / "orders-0").chmod(0o755)


def test_no_path_is_reported() -> None:
    assert refusal() == "no path was given"


def test_several_paths_are_one_directory(tmp_path: Path) -> None:
    make(tmp_path / "disk1", "orders-0", "orders-2")
    make(tmp_path / "disk2", "orders-1")
    found = sorted(discover_all([tmp_path / "disk1", tmp_path / "disk2"]))
    names = [str(each.topic_partition) for each in found]
    assert names == ["orders-0", "orders-1", "orders-2"]
    assert pylog.scan([tmp_path / "disk1", tmp_path / "disk2" / "orders-1"]).count() == 6


def test_the_same_directory_twice_is_read_once(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    (tmp_path.parent / f"{tmp_path.name}-link").symlink_to(tmp_path)
    paths = [tmp_path, tmp_path / "orders-0", tmp_path.parent / f"{tmp_path.name}-link"]
    assert len(discover_all(paths)) == 1
    assert pylog.scan(paths).count() == 2


def test_a_partition_twice_in_the_directories_of_one_node_is_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "disk-1", tmp_path / "disk-2"
    for each in (one, other):
        make(each, "orders-0")
        (each / "meta.properties").write_text("version=1\nnode.id=3\ncluster.id=c\n", "utf-8")
    assert refusal(one, other) == (
        f"partition orders-0 lies both in {one}/orders-0 and in {other}/orders-0, which are of one "
        "node; read one of them"
    )


def test_a_future_replica_beside_the_live_one_is_not_a_duplicate(tmp_path: Path) -> None:
    make(tmp_path / "disk1", "orders-0")
    make(tmp_path / "disk2", "orders-0.6f44d6d0d6e640da886b8b62a6ed4a6c-future")
    assert pylog.scan([tmp_path / "disk1", tmp_path / "disk2"]).count() == 2


def test_a_partition_directory_knows_the_log_directory_above(tmp_path: Path) -> None:
    make(tmp_path, "orders-0")
    (directory,) = discover_partitions(tmp_path / "orders-0")
    assert isinstance(directory, PartitionDirectory)
    assert directory.log_directory == str(tmp_path.resolve())


READERS: dict[str, Callable[[Path], object]] = {
    "list_partitions": lambda root: pylog.list_partitions(root).partitions,
    "stats": lambda root: pylog.stats(root, now_ms=0).document()["topics"],
    "transactions": lambda root: pylog.transactions(root).errors,
    "info": lambda root: pylog.info(root).errors,
    "doctor": lambda root: [
        (each.topic_partition, each.findings) for each in doctor(root).partitions
    ],
    "findings of doctor": lambda root: [each.code for each in doctor(root).findings],
    "a notebook": lambda root: "Unreadable" in pylog.open_directory(root)._repr_html_(),
    "table partitions": lambda root: pylog.read_table(root, "partitions"),
    "table segments": lambda root: pylog.read_table(root, "segments"),
    "table leader_epochs": lambda root: pylog.read_table(root, "leader_epochs"),
}


@pytest.fixture
def deleted_once_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a log directory of topics ``orders`` and ``gone``; the latter goes once it is listed."""
    make(tmp_path, "orders-0", "gone-0")
    write_topic_id(tmp_path / "orders-0", TOPIC_ID_TEXT)
    write_meta_properties(tmp_path)

    def list_and_delete(directory: str) -> SegmentListing:
        listing = list_segments(directory)
        if directory.endswith("gone-0"):
            (tmp_path / "gone-0").rename(tmp_path / f"gone-0.{'0' * 32}-delete")
        return listing

    monkeypatch.setattr("pylog.reading.log_view.list_segments", list_and_delete)
    return tmp_path


@pytest.mark.parametrize("reader", READERS)
def test_a_topic_that_a_broker_deletes_once_it_is_listed_is_not_there(
    deleted_once_listed: Path, reader: str
) -> None:
    found = READERS[reader](deleted_once_listed)
    shutil.rmtree(deleted_once_listed / f"gone-0.{'0' * 32}-delete")
    assert found == READERS[reader](deleted_once_listed)


@pytest.mark.parametrize(
    "complaints",
    [
        lambda root: pylog.list_partitions(root, topics=["gone"]).partitions[0].errors,
        lambda root: pylog.stats(root, topics=["gone"]).problems,
        lambda root: pylog.transactions(root, topics=["gone"]).errors,
        lambda root: doctor(root, topics=["gone"]).findings,
    ],
    ids=["list_partitions", "stats", "transactions", "doctor"],
)
def test_a_topic_that_is_named_is_missed_where_a_broker_deletes_it(
    deleted_once_listed: Path, complaints: Callable[[Path], list[object]]
) -> None:
    assert any("No such file or directory" in str(each) for each in complaints(deleted_once_listed))


@pytest.mark.parametrize("choice", [{"topics": ["gone"]}, {"assign": {"gone": [0]}}], ids=str)
@pytest.mark.parametrize("table", ["partitions", "segments", "leader_epochs"])
def test_a_table_of_a_named_topic_is_no_empty_one_where_a_broker_deletes_it(
    deleted_once_listed: Path, table: TableName, choice: dict[str, Any]
) -> None:
    with pytest.raises(LogDirectoryError, match=r"gone-0: .*No such file or directory"):
        pylog.read_table(deleted_once_listed, table, **choice)


def test_a_partition_was_not_deleted_where_more_than_it_is_gone(tmp_path: Path) -> None:
    make(tmp_path, "orders-0", "orders-1")
    write_meta_properties(tmp_path)
    (one, other), (named,) = (
        discover_partitions(tmp_path),
        discover_partitions(tmp_path / "orders-0"),
    )
    shutil.rmtree(tmp_path / "orders-0")
    assert (one.was_deleted(), other.was_deleted(), named.was_deleted()) == (True, False, False)
    (tmp_path / "orders-0").symlink_to(tmp_path / "disk")
    assert not one.was_deleted()
    (tmp_path / "orders-0").unlink()
    (tmp_path / "meta.properties").unlink()  # as where a disk was unmounted
    assert not one.was_deleted()


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    """Give the two log directories of a node; ``moving-0`` lies in the first one."""
    found = [tmp_path / "a", tmp_path / "b"]
    for disk, names in zip(found, (["first-0", "moving-0"], ["second-0"]), strict=True):
        make(disk, *names)
        write_meta_properties(disk)
    return found


def after_listing(monkeypatch: pytest.MonkeyPatch, count: int, do: Callable[[], object]) -> None:
    """Have something done once ``count`` paths have been listed."""
    listed = 0

    def discover(path: Any, **options: Any) -> list[PartitionDirectory]:  # noqa: ANN401
        nonlocal listed
        found = discover_partitions(path, **options)
        listed += 1
        if listed == count:
            do()
        return found

    monkeypatch.setattr(discovery, "discover_partitions", discover)


def places(directories: list[PartitionDirectory], disks: list[Path]) -> list[tuple[str, str]]:
    names = {str(disk): disk.name for disk in disks}
    return [(str(each.topic_partition), names[each.log_directory]) for each in directories]


@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_partition_that_is_moved_while_disks_are_listed_is_there_once(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch, *, is_backwards: bool
) -> None:
    """Listed on its old disk first it would be there twice, listed on its new one not at all."""
    given = disks[::-1] if is_backwards else disks
    after_listing(monkeypatch, 1, lambda: move_partition(disks[0] / "moving-0", disks[1]))
    assert sorted(places(discover_all(given), disks)) == [
        ("first-0", "a"),
        ("moving-0", "b"),
        ("second-0", "b"),
    ]


def test_disks_of_two_nodes_have_replicas_that_are_not_looked_for_anew(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (disks[1] / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=c\n")
    after_listing(monkeypatch, 1, lambda: move_partition(disks[0] / "moving-0", disks[1]))
    assert places(discover_all(disks), disks) == [
        ("first-0", "a"),
        ("moving-0", "a"),
        ("moving-0", "b"),
        ("second-0", "b"),
    ]


def test_a_directory_is_followed_to_another_disk_of_its_node_and_back(disks: list[Path]) -> None:
    moving = next(each for each in discover_all(disks) if each.topic_partition.topic == "moving")
    assert (moving.now() is moving, moving.was_moved(), moving.was_deleted()) == (
        *(True, False, False),
    )
    there = move_partition(disks[0] / "moving-0", disks[1])
    assert (moving.now().path, moving.was_moved(), moving.was_deleted()) == (
        *(str(there), True, False),
    )
    now = moving.now()
    back = move_partition(there, disks[0])
    assert now.now().path == str(back)
    shutil.rmtree(back)
    assert (moving.now() is moving, moving.was_moved(), moving.was_deleted()) == (
        *(True, False, True),
    )


def test_a_replica_of_another_node_is_not_where_it_was_moved_to(disks: list[Path]) -> None:
    (disks[1] / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=c\n")
    moving = next(each for each in discover_all(disks) if each.topic_partition.topic == "moving")
    move_partition(disks[0] / "moving-0", disks[1])
    # Nor is it deleted: who leaves it out would miss its records.
    assert (moving.was_moved(), moving.was_deleted()) == (False, False)


WAYS: dict[str, Callable[..., list[str]]] = {
    "scan": lambda *disks: pylog.scan(disks, columns=["topic"]).to_table()["topic"].to_pylist(),
    "list_partitions": lambda *disks: [
        each.topic for each in pylog.list_partitions(*disks).partitions
    ],
    "topics": lambda *disks: [each.topic for each in pylog.topics(*disks).topics],
    "stats": lambda *disks: pylog.stats(*disks).tables["topics"]["topic"].to_pylist(),
    "doctor": lambda *disks: [each.topic_partition.topic for each in doctor(*disks).partitions],
    "follow": lambda *disks: [each.topic for each in pylog.follow(*disks).refresh()],
}


@pytest.mark.parametrize("is_backwards", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_look_at_disks_has_what_is_moved_meanwhile(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch, way: str, *, is_backwards: bool
) -> None:
    after_listing(monkeypatch, 1, lambda: move_partition(disks[0] / "moving-0", disks[1]))
    monkeypatch.setattr(examination, "discover_partitions", discovery.discover_partitions)
    found = WAYS[way](*(disks[::-1] if is_backwards else disks))
    assert not (disks[0] / "moving-0").exists()
    assert sorted(set(found)) == ["first", "moving", "second"]
    assert found.count("moving") == (2 if way == "scan" else 1)  # it has two records


def test_a_disk_from_which_all_is_moved_is_empty_beside_others(disks: list[Path]) -> None:
    shutil.rmtree(disks[1] / "second-0")
    assert pylog.scan(disks).count() == 4
    assert "no Kafka log here" in refusal(disks[1])
    directory = pylog.open_directory(*disks)
    there = move_partition(disks[0] / "moving-0", disks[1])
    assert directory["moving", 0].directory.path == str(there)
    for name in ("first-0", "moving-0"):
        shutil.rmtree(next(disk / name for disk in disks if (disk / name).exists()))
    assert "no partition is in any of" in refusal(*disks)
    (disks[1] / "meta.properties").unlink()
    assert "no Kafka log here" in refusal(*disks)


@pytest.mark.parametrize("are_named", [False, True])
def test_side_files_of_a_partition_that_is_moved_are_not_taken_for_unwritten(
    disks: list[Path], *, are_named: bool
) -> None:
    place = disks[0] / "moving-0"
    (place / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n4 1\n")
    write_topic_id(place, TOPIC_ID_TEXT)
    directory = pylog.open_directory(*disks)
    view = directory["moving", 0]
    table: TableName = "leader_epochs"
    topics = ["moving"] if are_named else None
    before = pylog.read_table(directory, table, topics=topics)
    assert before.num_rows == 2
    move_partition(place, disks[1])
    assert pylog.read_table(directory, table, topics=topics).num_rows == 2
    assert [each.epoch for each in view.leader_epochs] == [3, 4]
    assert view.metadata is not None


def test_what_a_log_that_is_gone_by_its_first_look_has_is_read_where_it_is(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = pylog.open_directory(*disks)
    listed = list_segments
    to_move = [disks[0] / "moving-0"]

    def gone_at_first(path: str) -> SegmentListing:
        if path == str(disks[0] / "moving-0") and to_move:
            moved = move_partition(to_move.pop(), disks[1])
            try:
                return listed(path)
            finally:
                move_partition(moved, disks[0])  # before anybody asks where it is
        return listed(path)

    monkeypatch.setattr("pylog.reading.log_view.list_segments", gone_at_first)
    view = directory["moving", 0]
    assert view.unreadable is not None
    assert read_unless_deleted(view, lambda now: now.log_end_offset, -1) == 2


def test_a_disk_whose_last_partition_is_moved_away_meanwhile_is_looked_at(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(disks[0] / "first-0")
    (disks[0] / "recovery-point-offset-checkpoint").write_text("7\n")
    after_listing(monkeypatch, 1, lambda: move_partition(disks[0] / "moving-0", disks[1]))
    monkeypatch.setattr(examination, "discover_partitions", discovery.discover_partitions)
    report = doctor(*disks)
    assert sorted(each.path for each in report.directories) == list(map(str, disks))
    assert "damaged_checkpoint" in [each.code for each in report.findings]
