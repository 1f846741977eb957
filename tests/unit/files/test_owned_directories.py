from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import KafkaStorageError, LogDirectoryError
from pylog.files.owned_directories import writable_log_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a log directory with a topic of two partitions."""
    pylog.create_topic(tmp_path / "logs", "orders", 2)
    return tmp_path / "logs"


def refusal(path: Path) -> str:
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(LogDirectoryError) as caught:
        writable_log_directory(path)
    assert sorted(path.parent.rglob("*")) == before
    return str(caught.value)


def test_a_partition_directory_is_refused_with_the_log_directory_to_give(logs: Path) -> None:
    assert refusal(logs / "orders-0") == (
        f"{logs}/orders-0: this is a topic-partition directory: give the log directory that holds "
        f"it, {logs}"
    )
    for file in (logs / "orders-1").iterdir():  # as a broker that died leaves it
        if file.name != "partition.metadata":
            file.unlink()
    assert "this is a topic-partition directory" in refusal(logs / "orders-1")


@pytest.mark.parametrize("exists", [False, True])
def test_a_partition_directory_to_be_is_refused(logs: Path, *, exists: bool) -> None:
    if exists:
        (logs / "orders-2").mkdir()
    assert refusal(logs / "orders-2") == (
        f"{logs}/orders-2: this is the path of a topic-partition directory (orders-2): give the "
        f"log directory, {logs}"
    )


def test_partitions_without_checkpoints_tell_a_log_directory(logs: Path) -> None:
    for file in logs.iterdir():
        if file.is_file():
            file.unlink()
    assert f"give the log directory, {logs}" in refusal(logs / "orders-2")


@pytest.mark.parametrize("below", ["sub", "sub/sub"])
def test_what_lies_in_a_partition_directory_is_refused(logs: Path, below: str) -> None:
    assert refusal(logs / "orders-0" / below) == (
        f"{logs}/orders-0/{below}: this lies inside the topic-partition directory {logs}/orders-0: "
        f"give the log directory, {logs}"
    )


@pytest.mark.parametrize("exists", [False, True])
def test_a_directory_that_a_broker_would_refuse_in_a_log_directory_is_refused(
    logs: Path, *, exists: bool
) -> None:
    if exists:
        (logs / "new").mkdir()
    assert refusal(logs / "new") == (
        f"{logs}/new: this lies inside the log directory {logs}, and a broker refuses a log "
        f"directory that holds anything but partitions: give {logs} itself, or a path outside it"
    )


def test_a_directory_one_level_too_high_is_refused_with_the_one_to_give(
    logs: Path, tmp_path: Path
) -> None:
    assert refusal(tmp_path) == (
        f"{tmp_path}: no topic-partition directory here, but one level below, in {logs}: give that "
        "path, or one outside it"
    )


def test_links_are_followed(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(logs / "orders-0")
    assert f"give the log directory that holds it, {logs}" in refusal(tmp_path / "elsewhere")
    assert "inside the topic-partition directory" in refusal(tmp_path / "elsewhere" / "new")


def test_log_directories_lie_side_by_side_whatever_they_are_called(tmp_path: Path) -> None:
    for name in ("kafka-0", "kafka-1"):
        pylog.create_topic(tmp_path / name, "orders", 1)
    assert writable_log_directory(tmp_path / "kafka-1") == str(tmp_path / "kafka-1")
    assert writable_log_directory(tmp_path / "kafka-2") == str(tmp_path / "kafka-2")


def test_a_log_directory_in_another_can_still_be_changed(logs: Path, tmp_path: Path) -> None:
    pylog.create_topic(tmp_path / "new", "web", 1)
    (tmp_path / "new").rename(logs / "new")
    assert writable_log_directory(logs / "new") == str(logs / "new")


@pytest.mark.parametrize(
    "write",
    [
        lambda path: pylog.create_topic(path, "web", 1),
        lambda path: pylog.write_topic(path, "web", []),
        pylog.logs.own_log_directory,
        lambda path: pylog.logs.LogManager([path]).startup(),
        lambda path: pylog.logs.LogManager([path.as_uri()]).startup(),
        lambda path: pylog.delete_topic(path, "web"),
    ],
)
@pytest.mark.parametrize("name", ["orders-0", "orders-2"])
def test_whatever_writes_refuses_it(logs: Path, name: str, write: Callable[[Path], object]) -> None:
    before = sorted(logs.rglob("*"))
    with pytest.raises(LogDirectoryError):
        write(logs / name)
    assert sorted(logs.rglob("*")) == before


def test_a_manager_of_one_path_asks_for_a_list(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^directories is one path, expected a list of them: \['/"):
        pylog.logs.LogManager(str(tmp_path))


def test_a_manager_that_was_not_started_says_how_to(tmp_path: Path) -> None:
    manager = pylog.logs.LogManager([tmp_path])
    with pytest.raises(KafkaStorageError, match=r": log manager is not started, or closed: .*with"):
        manager.get_or_create_log(pylog.TopicPartition("orders", 0))


@pytest.mark.parametrize("path", ["s3://bucket/logs", "gs://bucket/logs", "az://container/logs"])
def test_no_manager_takes_an_object_store_for_a_local_path(path: str) -> None:
    with pytest.raises(LogDirectoryError, match="only local directories can be written to"):
        pylog.logs.LogManager([path])


def test_a_file_is_refused_with_the_log_directory_to_give(logs: Path) -> None:
    log = min(logs.glob("orders-0/*.log"))
    for must_exist in (False, True):
        with pytest.raises(LogDirectoryError) as caught:
            writable_log_directory(log, must_exist=must_exist)
        assert str(caught.value) == (
            f"{log}: this is a file of a partition: give the log directory, {logs}"
        )
    other = logs.parent / "notes.txt"
    other.touch()
    assert refusal(other) == f"{other}: this is a file: give a log directory"


def test_what_holds_only_other_things_is_not_a_log_directory_that_exists(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    with pytest.raises(LogDirectoryError) as caught:
        writable_log_directory(tmp_path, must_exist=True)
    assert str(caught.value) == (
        f"{tmp_path}: this is not a log directory: it holds neither <topic>-<partition> "
        "directories nor a broker's files; give one of the log.dirs of a broker"
    )
    (tmp_path / "bin").rmdir()
    assert writable_log_directory(tmp_path, must_exist=True) == str(tmp_path)
