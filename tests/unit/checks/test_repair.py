"""`pylog.repair_copy`: a log directory of what is sound in another one, which stays as it is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.errors import CorruptCheckpointError, LogDirectoryError
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import LEDGER
from pylog.files.ledger import LedgerEntry, ensure_intact, enter_in_ledger
from pylog.files.staged_files import JobKey
from pylog.writing.new_log_directory import UNFINISHED
from tests.support.batches import COMMIT, batch_v2, joined, marker, plain_records, with_bad_crc
from tests.support.faults.odd_files import deadline, put
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    tree,
    write_meta_properties,
    write_partition,
    write_topic_id,
)

if TYPE_CHECKING:
    from pathlib import Path

FIRST = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (0, 5)]
SECOND = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (10, 15)]
THIRD = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (20, 25)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = write_partition(tmp_path / "source", {0: FIRST, 10: SECOND, 20: THIRD})
    write_topic_id(directory, "sjhcX-UcQSKqZ9r7sV6gLw")
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n", "utf-8")
    segment_path(directory, 0).write_bytes(joined([FIRST[0], with_bad_crc(FIRST[1])]))
    return tmp_path / "source"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "repaired"


def offsets(directory: Path) -> list[int]:
    offsets: list[int] = pylog.scan(directory, columns=["offset"]).to_table()["offset"].to_pylist()
    return offsets


def test_a_partition_is_left_out_and_named_where_a_file_cannot_be_opened(
    source: Path, target: Path
) -> None:
    log = segment_path(source / "orders-0", 10)
    log.rename(source.parent / "on another disk")
    log.symlink_to(source.parent / "a disk that is not mounted")
    with pytest.raises(LogDirectoryError, match="may be intact: make it readable") as refused:
        pylog.repair_copy(source, target)
    assert refused.value.path == str(log)
    assert not target.exists()
    write_partition(source, {0: FIRST}, name="clicks-0")
    summary = pylog.repair_copy(source, target)
    assert [each.topic_partition.topic for each in summary.partitions] == ["clicks"]
    orders = pylog.TopicPartition("orders", 0)
    assert summary.left_out == [orders]
    assert summary.unreadable[orders].startswith(f"{log}: link leads to a file that does not exist")
    assert not summary.is_complete
    assert not (target / "orders-0").exists()
    assert pylog.scan(target, topics="clicks").count() > 0


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_nothing_is_left_of_a_copy_that_is_not_finished(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, reason: BaseException
) -> None:
    def stopped(*arguments: object) -> None:
        raise reason

    monkeypatch.setattr("pylog.checks.repair._copy_epochs", stopped)
    with pytest.raises(type(reason)):
        pylog.repair_copy(source, target)
    assert not target.exists()


def test_what_a_killed_call_has_left_is_replaced(source: Path, target: Path) -> None:
    left = target / UNFINISHED / "orders-0"
    left.mkdir(parents=True)
    (left / "00000000000000000000.log").write_bytes(b"half")
    pylog.repair_copy(source, target)
    assert offsets(target) == [*range(5), *range(10, 30)]
    assert not (target / UNFINISHED).exists()


@pytest.mark.parametrize("kind", ["garbage", "sparse", "fifo", "broken link"])
def test_topic_configurations_that_cannot_be_read_are_a_finding_and_not_copied(
    source: Path, target: Path, kind: str
) -> None:
    configs = source / "pylog-topic-configs.json"
    configs.write_text('{"version":1,"topics":{}}', "utf-8")
    put(configs, kind)
    with deadline(source):
        summary = pylog.repair_copy(source, target)
    found = [(each.code, each.path) for each in summary.source.directories[0].findings]
    assert found == [("damaged_topic_configs", str(configs))]
    assert offsets(target) == [*range(5), *range(10, 30)]
    assert summary.copy.directories[0].findings == []


def enter_jobs(directory: Path, bookmark: str) -> None:
    """Enter more jobs than a ledger itself holds, and one with a long bookmark."""
    jobs = [
        LedgerEntry(JobKey(f"job {each}"), "a" * 32, 1_700_000_000_000, 0) for each in range(1_100)
    ]
    text = json.dumps(
        {
            "version": 1,
            "jobs": [
                {"job_id": each.key.job_id, "batch_id": None, "commit_id": each.commit_id}
                | {"time_ms": each.time_ms, "record_count": 0}
                for each in jobs
            ],
        }
    )
    (directory / LEDGER).write_text(text)
    last = LedgerEntry(JobKey("hourly", 7), "b" * 32, 1, 0, None, bookmark)
    for each in (last, replace(jobs[0], key=JobKey("job 1100"))):
        enter_in_ledger(DurableIO(), str(directory), each)


def job_in(directory: Path, job_id: str) -> pylog.jobs.WriteJob:
    return pylog.jobs.WriteJob(str(directory), job_id, topic="orders")


def test_the_copy_knows_the_jobs_that_were_written(source: Path, target: Path) -> None:
    enter_jobs(source, "long " * 2_000)
    summary = pylog.repair_copy(source, target)
    assert [each.code for each in summary.copy.directories[0].findings] == []
    assert all(job_in(target, f"job {each}").is_committed() for each in range(0, 1_101, 100))
    newest = job_in(target, "hourly").newest_run()
    assert newest is not None
    assert (newest.batch_id, newest.bookmark) == (7, "long " * 2_000)
    assert not job_in(target, "new").is_committed()


@pytest.mark.parametrize("damage", ["the ledger", "an archive", "a bookmark", "an archive is gone"])
def test_a_ledger_that_cannot_be_read_is_a_finding(source: Path, target: Path, damage: str) -> None:
    enter_jobs(source, "long " * 2_000)
    pattern = {"the ledger": LEDGER, "a bookmark": ".pylog-bookmark-*"}.get(damage, f"{LEDGER}-*")
    [path] = source.glob(pattern)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 128
    path.write_bytes(content)
    if damage == "an archive is gone":
        path.unlink()
    [found] = pylog.doctor(source).directories[0].findings
    assert (found.code, found.severity.value, found.path) == ("damaged_ledger", "error", str(path))
    pylog.repair_copy(source, target)
    if damage != "the ledger":  # what the source cannot tell, the copy cannot tell either
        with pytest.raises(CorruptCheckpointError, match=path.name):
            ensure_intact(str(target))


def test_all_that_is_sound_is_kept_with_a_gap_where_damage_was(source: Path, target: Path) -> None:
    before = tree(source)
    summary = pylog.repair_copy(source, target)
    assert tree(source) == before
    assert offsets(target) == [*range(5), *range(10, 30)]
    [repaired] = summary.partitions
    assert (repaired.copied_bytes, repaired.left_out_bytes, repaired.end_offset) == (
        len(joined([FIRST[0], *SECOND, *THIRD])),
        len(FIRST[1].data),
        30,
    )
    assert [each.code for each in summary.source.findings] == ["damaged_batches"]
    [left] = summary.copy.findings
    assert (left.code, left.next_offset, left.end_offset) == ("missing_segment", 5, 10)


def test_the_copy_was_closed_in_order_and_has_the_topic_id(source: Path, target: Path) -> None:
    pylog.repair_copy(source, target)
    assert (target / ".kafka_cleanshutdown").exists()
    assert not (target / ".lock").exists()
    [partition] = pylog.list_partitions(target).partitions
    assert partition.topic_id == "sjhcX-UcQSKqZ9r7sV6gLw"
    assert partition.leader_epoch == 0
    names = {path.name for path in (target / "orders-0").iterdir()}
    assert {f"{base:020d}{suffix}" for base in (0, 10, 20) for suffix in (".log", ".index")} < names


def test_indexes_are_made_from_the_batches(source: Path, target: Path) -> None:
    for suffix in (".index", ".timeindex"):
        segment_path(source / "orders-0", 10, suffix).write_bytes(b"nonsense")
    summary = pylog.repair_copy(source, target)
    assert {each.code for each in summary.copy.findings} == {"missing_segment"}


def test_a_segment_of_damage_alone_leaves_no_file_but_the_last_one_does(
    source: Path, target: Path
) -> None:
    for base in (10, 20):
        path = segment_path(source / "orders-0", base)
        path.write_bytes(b"\xff" * 500)
    pylog.repair_copy(source, target)
    assert [path.name for path in sorted((target / "orders-0").glob("*.log"))] == [
        f"{0:020d}.log",
        f"{20:020d}.log",
    ]
    assert offsets(target) == [*range(5)]
    with pylog.logs.LogManager([target]) as manager:
        assert manager.get_log(pylog.TopicPartition("orders", 0)).log_end_offset == 20


def test_producers_are_known_in_the_copy(tmp_path: Path, target: Path) -> None:
    data = batch_v2(
        plain_records(0, 4),
        producer_id=77,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    write_partition(tmp_path / "source", {0: [data, marker(4, COMMIT, producer_id=77)]})
    pylog.repair_copy(tmp_path / "source", target)
    assert pylog.read_table(target, "producers")["producer_id"].to_pylist() == [77]


def test_offsets_of_checkpoints_come_along_if_they_fit(source: Path, target: Path) -> None:
    for name, offset in (
        ("log-start-offset-checkpoint", 3),
        ("cleaner-offset-checkpoint", 10**9),
    ):
        (source / name).write_text(f"0\n1\norders 0 {offset}\n", "utf-8")
    pylog.repair_copy(source, target)
    assert pylog.open_directory(target)["orders", 0].log_start_offset == 3
    path = target / "cleaner-offset-checkpoint"
    assert not path.exists() or "orders" not in path.read_text("utf-8")


def test_a_directory_with_something_in_it_is_refused(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(LogDirectoryError, match="not empty"):
        pylog.repair_copy(source, target)
    assert tree(target) == {"notes.txt": b"mine"}


def test_a_partition_with_two_directories_is_refused(source: Path, target: Path) -> None:
    shutil.copytree(source / "orders-0", source / "orders-00")
    with pytest.raises(LogDirectoryError, match=r"orders-0 lies in .*, too: repair one of"):
        pylog.repair_copy(source, target)
    assert not target.exists()
    [repaired] = pylog.repair_copy(source / "orders-00", target).partitions
    assert repaired.path == str(target / "orders-0")


def test_the_source_itself_is_refused(source: Path) -> None:
    before = tree(source)
    for place in (source, source / "copy"):
        with pytest.raises(LogDirectoryError):
            pylog.repair_copy(source, place)
    assert tree(source) == before


def test_a_disk_without_space_is_refused_before_anything_is_written(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int = 1000
        total: int = 1 << 40

    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage())
    with pytest.raises(LogDirectoryError, match="1000 are free"):
        pylog.repair_copy(source, target)
    assert not target.exists()


class TestSeveralLogDirectories:
    """The volumes of a node are copied together, each under its own name."""

    @pytest.fixture
    def volumes(self, source: Path, tmp_path: Path) -> tuple[Path, Path]:
        other = tmp_path / "mount" / "data"
        write_partition(other, {0: FIRST, 10: SECOND}, name="clicks-0")
        for each in (source, other):
            write_meta_properties(each)
            (each / "replication-offset-checkpoint").write_text("0\n1\nclicks 0 20\n")
        return source, other

    def test_each_has_a_copy_of_its_name(self, volumes: tuple[Path, Path], target: Path) -> None:
        summary = pylog.repair_copy([str(volumes[0]) + "/", volumes[1]], target)
        assert sorted(each.name for each in target.iterdir()) == ["data", "source"]
        assert offsets(target / "source" / "orders-0") == [*range(5), *range(10, 30)]
        assert offsets(target / "data" / "clicks-0") == list(range(20))
        assert {each.path for each in summary.partitions} == {
            str(target / "source" / "orders-0"),
            str(target / "data" / "clicks-0"),
        }
        assert {each.path for each in summary.copy.directories} == {
            str(target / "source"),
            str(target / "data"),
        }
        assert summary.directory == str(target)
        for name in ("source", "data"):
            assert (target / name / "meta.properties").read_text().startswith("version=1")
            assert (target / name / ".kafka_cleanshutdown").exists()

    def test_names_that_are_alike_are_refused(
        self, volumes: tuple[Path, Path], target: Path, tmp_path: Path
    ) -> None:
        volumes[0].rename(tmp_path / "data")
        with pytest.raises(LogDirectoryError, match="have the same name, data: copy each by it"):
            pylog.repair_copy([tmp_path / "data", volumes[1]], target)
        assert not target.exists()

    def test_a_partition_in_two_of_them_is_refused(
        self, volumes: tuple[Path, Path], target: Path
    ) -> None:
        shutil.copytree(volumes[0] / "orders-0", volumes[1] / "orders-0")
        with pytest.raises(LogDirectoryError, match="partition orders-0 lies in"):
            pylog.repair_copy(volumes, target)
        assert not target.exists()


class TestTheEndOfALog:
    """What side files say of the end is held against each other."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        directory = write_partition(tmp_path / "source", {0: FIRST, 10: SECOND})
        (directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 5000\n")
        return tmp_path / "source"

    def write_ends(self, source: Path, end: int) -> None:
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (source / name).write_text(f"0\n1\norders 0 {end}\n")

    @pytest.mark.parametrize("is_clean", [True, False])
    def test_one_file_that_others_contradict_is_no_loss(
        self, source: Path, target: Path, *, is_clean: bool
    ) -> None:
        self.write_ends(source, 20)
        if is_clean:
            mark_clean_shutdown(source)
        summary = pylog.repair_copy(source, target)
        [partition] = summary.partitions
        assert partition.missing == []
        assert partition.doubt == (
            "leader-epoch-checkpoint alone says that the log reached offset 5000; according to "
            "replication-offset-checkpoint it reached 20"
        )
        assert summary.is_complete

    def test_one_file_that_none_contradicts_is_believed(self, source: Path, target: Path) -> None:
        [partition] = pylog.repair_copy(source, target).partitions
        assert (partition.missing, partition.doubt) == ([(20, 5000)], None)

    def test_several_files_are_believed_against_one(self, source: Path, target: Path) -> None:
        self.write_ends(source, 40)
        mark_clean_shutdown(source)
        [partition] = pylog.repair_copy(source, target).partitions
        assert partition.missing == [(20, 40)]
        assert partition.doubt is not None
        assert partition.doubt.endswith("-offset-checkpoint it reached 40")
