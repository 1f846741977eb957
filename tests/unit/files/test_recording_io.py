from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError
from pylog.files.durable_io import DurableIO
from tests.support.crash_replay import Kind, Names, Operation, replay
from tests.support.recording_io import Fault, FaultyIO, RecordingIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

OLD, NEW = b"old content", b"new"


def tree(root: Path) -> dict[str, bytes | None]:
    """Return what lies below ``root``: the content of files, None for directories."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


def after_crash(
    tmp_path: Path,
    operations: Iterable[Operation],
    *,
    lose_unsynced: bool = False,
    names: Names = Names.ALL,
    keep_lengths: bool = False,
) -> dict[str, bytes | None]:
    root = tmp_path / "after"
    if root.exists():
        shutil.rmtree(root)
    root.mkdir()
    replay(operations, root, lose_unsynced=lose_unsynced, names=names, keep_lengths=keep_lengths)
    return tree(root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


def test_everything_is_done_and_written_down_in_order(root: Path) -> None:
    io = RecordingIO(root)
    io.make_directory(root / "d")
    with io.open(root / "d" / "a", create=True) as file:
        file.write_at(3, b"xyz")
        file.truncate(5)
        file.sync()
    with io.open(root / "d" / "a") as file:
        file.write_at(0, b"0")
    io.replace(root / "d" / "a", root / "b")
    io.sync_directory(root)
    io.remove_directory(root / "d")
    io.remove(root / "b")
    assert io.summary == [
        "make-directory d",
        "create d/a",
        "write d/a 3+3",
        "truncate d/a 5",
        "sync d/a",
        "write d/a 0+1",
        "replace d/a b",
        "sync-directory .",
        "remove-directory d",
        "remove b",
    ]
    assert io.operations[2] == Operation(Kind.WRITE, "d/a", 3, b"xyz")
    assert tree(root) == {}


def test_what_failed_is_not_written_down(root: Path) -> None:
    class FaultyRecordingIO(FaultyIO, RecordingIO):
        pass

    io = FaultyRecordingIO(Fault(kinds=frozenset({Kind.SYNC})), root=root)
    with io.open(root / "a", create=True) as file:
        file.write_at(0, NEW)
        with pytest.raises(KafkaStorageError):
            file.sync()
    assert io.summary == ["create a", "write a 0+3"]


def test_open_file_is_followed_through_renames_of_it_and_its_directory(root: Path) -> None:
    io = RecordingIO(root)
    io.make_directory(root / "d")
    with io.open(root / "d" / "a", create=True) as file:
        io.replace(root / "d" / "a", root / "d" / "b")
        file.write_at(0, b"1")
        io.replace(root / "d", root / "e")
        file.write_at(1, b"2")
        io.remove(root / "e" / "b")
        file.write_at(2, b"3")
    assert [line for line in io.summary if line.startswith("write")] == [
        "write d/b 0+1",
        "write e/b 1+1",
    ]


def test_file_that_another_one_replaced_has_no_name_any_more(root: Path) -> None:
    io = RecordingIO(root)
    with io.open(root / "a", create=True) as old, io.open(root / "b", create=True) as new:
        io.replace(root / "b", root / "a")
        old.write_at(0, OLD)
        new.write_at(0, NEW)
    assert io.summary[-1] == "write a 0+3"
    assert io.summary.count("write a 0+11") == 0
    assert (root / "a").read_bytes() == NEW


def test_nothing_is_lost_when_only_the_process_dies(tmp_path: Path, root: Path) -> None:
    io = RecordingIO(root)
    io.make_directory(root / "d")
    io.write_file(root / "d" / "a", OLD)
    with io.open(root / "d" / "a") as file:
        file.write_at(4, b"C")
        file.truncate(8)
        file.truncate(1000)
    io.write_atomically(root / "d" / "b", NEW)
    io.replace(root / "d", root / "e")
    expected = {"e": None, "e/a": b"old Cont" + bytes(992), "e/b": NEW}
    assert tree(root) == expected
    assert after_crash(tmp_path, io.operations, lose_unsynced=False) == expected


def test_unsynced_content_is_lost_and_synced_content_is_not(tmp_path: Path, root: Path) -> None:
    io = RecordingIO(root)
    with io.open(root / "a", create=True) as file:
        file.write_at(0, b"12")
        file.sync()
        file.write_at(1, b"345")
    io.write_file(root / "b", NEW)
    assert after_crash(tmp_path, io.operations, lose_unsynced=True) == {"a": b"12", "b": b""}
    lengths_kept = {"a": b"12\0\0", "b": b"\0\0\0"}
    assert (
        after_crash(tmp_path, io.operations, lose_unsynced=True, keep_lengths=True) == lengths_kept
    )
    assert after_crash(tmp_path, io.operations[:3], lose_unsynced=True) == {"a": b"12"}
    assert after_crash(tmp_path, io.operations[:2], lose_unsynced=True) == {"a": b""}


def test_truncation_that_was_not_synced_is_undone(tmp_path: Path, root: Path) -> None:
    io = RecordingIO(root)
    with io.open(root / "a", create=True) as file:
        file.write_at(0, OLD)
        file.sync()
        file.truncate(3)
    assert after_crash(tmp_path, io.operations, lose_unsynced=True) == {"a": OLD}
    assert after_crash(tmp_path, io.operations, lose_unsynced=False) == {"a": b"old"}


def test_names_are_lost_up_to_the_last_sync_of_their_directory(tmp_path: Path, root: Path) -> None:
    io = RecordingIO(root)
    io.write_file(root / "kept", b"1", sync=True)
    io.write_file(root / "renamed", b"2", sync=True)
    io.sync_directory(root)
    io.replace(root / "renamed", root / "new-name")
    io.remove(root / "kept")
    io.write_file(root / "created", b"3", sync=True)
    kept = after_crash(tmp_path, io.operations, lose_unsynced=True, names=Names.ALL)
    assert kept == {"new-name": b"2", "created": b"3"}
    lost = after_crash(tmp_path, io.operations, lose_unsynced=True, names=Names.NONE)
    assert lost == {"kept": b"1", "renamed": b"2"}


def test_changes_of_names_that_no_sync_separates_reach_the_disk_in_any_order(
    tmp_path: Path, root: Path
) -> None:
    io = RecordingIO(root)
    io.write_file(root / "old", OLD, sync=True)
    io.write_file(root / "new.tmp", NEW, sync=True)
    io.sync_directory(root)
    io.replace(root / "new.tmp", root / "new")
    io.replace(root / "old", root / "old.deleted")
    io.remove(root / "old.deleted")
    assert after_crash(tmp_path, io.operations) == {"new": NEW}
    # What is removed last has been renamed before; the other renaming has nothing to do with it.
    assert after_crash(tmp_path, io.operations, names=Names.LAST) == {"new.tmp": NEW}
    assert after_crash(tmp_path, io.operations, names=Names.WITHOUT_FIRST) == {"new.tmp": NEW}
    assert after_crash(tmp_path, io.operations[:-2], names=Names.LAST) == {"old": OLD, "new": NEW}
    io.sync_directory(root)
    assert after_crash(tmp_path, io.operations, names=Names.LAST) == {"new": NEW}


def test_a_file_that_moves_to_another_directory_has_two_names_one_or_none_in_between(
    tmp_path: Path, root: Path
) -> None:
    io = RecordingIO(root)
    io.make_directory(root / "other")
    io.write_file(root / "file", NEW, sync=True)
    io.sync_directory(root)
    io.replace(root / "file", root / "other" / "moved")
    moved = {"other": None, "other/moved": NEW}
    assert after_crash(tmp_path, io.operations) == moved
    assert after_crash(tmp_path, io.operations, names=Names.NONE) == {"file": NEW, "other": None}
    assert after_crash(tmp_path, io.operations, names=Names.LAST) == {"file": NEW, **moved}
    io.sync_directory(root)  # the wrong one of the two
    assert after_crash(tmp_path, io.operations, names=Names.NONE) == {"other": None}
    io.sync_directory(root / "other")
    assert after_crash(tmp_path, io.operations, names=Names.NONE) == moved


def test_directory_without_a_durable_name_is_lost_with_all_in_it(
    tmp_path: Path, root: Path
) -> None:
    io = RecordingIO(root)
    io.make_directory(root / "d")
    io.write_file(root / "d" / "a", NEW, sync=True)
    io.sync_directory(root / "d")
    assert after_crash(tmp_path, io.operations, lose_unsynced=False, names=Names.NONE) == {}
    io.sync_directory(root)
    assert after_crash(tmp_path, io.operations, lose_unsynced=False, names=Names.NONE) == {
        "d": None,
        "d/a": NEW,
    }


def test_replay_begins_with_what_the_root_holds(tmp_path: Path, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "a").write_bytes(OLD)
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    io = RecordingIO(root)
    with io.open(root / "d" / "a") as file:
        file.write_at(0, NEW)
    io.remove(root / "d" / "a")
    replay(io.operations, copy, lose_unsynced=True, names=Names.NONE)
    assert tree(copy) == {"d": None, "d/a": OLD}


@pytest.mark.parametrize("names", [Names.ALL, Names.NONE])
@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_atomic_write_survives_a_crash_at_any_step(
    tmp_path: Path, root: Path, *, lose_unsynced: bool, names: Names
) -> None:
    (root / "a").write_bytes(OLD)
    copy = tmp_path / "copy"
    io = RecordingIO(root)
    io.write_atomically(root / "a", NEW)
    found = []
    for end in range(len(io.operations) + 1):
        copy.mkdir()
        (copy / "a").write_bytes(OLD)
        replay(io.operations[:end], copy, lose_unsynced=lose_unsynced, names=names)
        found.append((copy / "a").read_bytes())
        shutil.rmtree(copy)
    assert found == [OLD, OLD, OLD, OLD, OLD if names is Names.NONE else NEW, NEW]


def test_replay_shows_what_a_forgotten_sync_would_do(tmp_path: Path, root: Path) -> None:
    io = RecordingIO(root)
    io.write_file(root / "a.tmp", NEW, sync=False)
    io.replace(root / "a.tmp", root / "a")
    io.sync_directory(root)
    assert after_crash(tmp_path, io.operations, lose_unsynced=True, names=Names.NONE) == {"a": b""}


def test_last_write_can_be_torn(tmp_path: Path, root: Path) -> None:
    io = RecordingIO(root)
    io.write_file(root / "a", OLD)
    operations = [io.operations[0], io.operations[1].torn(4)]
    assert after_crash(tmp_path, operations, lose_unsynced=False) == {"a": b"old "}


def test_fault_comes_once_at_the_call_it_is_set_for(root: Path) -> None:
    io = FaultyIO(Fault(kinds=frozenset({Kind.WRITE, Kind.SYNC}), at=3, error_number=errno.ENOSPC))
    with io.open(root / "a", create=True) as file:
        file.write_at(0, b"1")
        file.sync()
        with pytest.raises(KafkaStorageError) as caught:
            file.write_at(1, b"2")
        file.write_at(1, b"3")
    assert caught.value.errno == errno.ENOSPC
    assert (root / "a").read_bytes() == b"13"
    assert io.counts == {Kind.CREATE: 1, Kind.WRITE: 3, Kind.SYNC: 1}


def test_fault_for_ever_does_not_end(root: Path) -> None:
    io = FaultyIO(Fault(kinds=frozenset({Kind.MAKE_DIRECTORY}), at=2, forever=True))
    io.make_directory(root / "1")
    for _ in range(3):
        with pytest.raises(KafkaStorageError):
            io.make_directory(root / "2")
    io.faults.clear()
    io.make_directory(root / "2")
    assert tree(root) == {"1": None, "2": None}


def test_fault_counts_only_the_files_it_is_for(root: Path) -> None:
    io = FaultyIO(Fault(kinds=frozenset({Kind.CREATE}), path_end=".index"))
    io.write_file(root / "0.log", NEW)
    with pytest.raises(KafkaStorageError):
        io.write_file(root / "0.index", NEW)
    assert tree(root) == {"0.log": NEW}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.OPEN])
def test_every_kind_can_fail_and_changes_nothing_then(root: Path, kind: Kind) -> None:
    (root / "a").write_bytes(OLD)
    (root / "d").mkdir()
    before = tree(root)
    io = FaultyIO(Fault(kinds=frozenset({kind})))
    with io.open(root / "a") as file:
        calls: dict[Kind, Callable[[], object]] = {
            Kind.CREATE: lambda: io.open(root / "b", create=True),
            Kind.WRITE: lambda: file.write_at(0, NEW),
            Kind.TRUNCATE: lambda: file.truncate(1),
            Kind.SYNC: file.sync,
            Kind.REPLACE: lambda: io.replace(root / "a", root / "b"),
            Kind.REMOVE: lambda: io.remove(root / "a"),
            Kind.MAKE_DIRECTORY: lambda: io.make_directory(root / "e"),
            Kind.REMOVE_DIRECTORY: lambda: io.remove_directory(root / "d"),
            Kind.SYNC_DIRECTORY: lambda: io.sync_directory(root),
        }
        with pytest.raises(KafkaStorageError) as caught:
            calls[kind]()
    assert caught.value.errno == errno.EIO
    assert tree(root) == before


def test_opening_a_file_that_exists_can_fail_too(root: Path) -> None:
    (root / "a").write_bytes(OLD)
    io = FaultyIO(Fault(kinds=frozenset({Kind.OPEN}), error_number=errno.EMFILE))
    with pytest.raises(KafkaStorageError, match="Too many open files"):
        io.open(root / "a", create=True)


def test_without_faults_and_diary_all_three_do_the_same(tmp_path: Path) -> None:
    trees = []
    for name, io in (
        ("plain", DurableIO()),
        ("recorded", RecordingIO(tmp_path / "recorded")),
        ("faulty", FaultyIO()),
    ):
        io.make_directory(tmp_path / name)
        io.write_atomically(tmp_path / name / "a", OLD)
        io.write_file(tmp_path / name / "b", NEW)
        io.replace(tmp_path / name / "b", tmp_path / name / "a")
        trees.append(tree(tmp_path / name))
    assert trees == [{"a": NEW}] * 3
