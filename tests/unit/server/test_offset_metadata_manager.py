"""The file of ``--offsets``: what has been answered survives, and nothing else is made of it."""

from __future__ import annotations

import itertools
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from pylog.errors import CorruptRecordError, LogLockedError, LogStorageError
from pylog.internal_topics.group_state import StoredOffset
from pylog.server.offset_metadata_manager import CommitKey, OffsetsFile
from tests.support.crash_replay import Kind, Names, replay
from tests.support.recording_io import Fault, FaultyIO, ForgetfulIO, RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

TOPIC_ID = uuid.UUID("11111111-2222-3333-4444-555555555555")
TORN_EVERY = 13
Changes = dict[CommitKey, StoredOffset | None]


def _key(number: int) -> CommitKey:
    return CommitKey(f"group-{number % 2}", "orders", number)


def _offset(offset: int, metadata: str = "") -> StoredOffset:
    return StoredOffset(offset, 3, metadata, 1_700_000_000_000 + offset, TOPIC_ID)


COMMITS: list[Changes] = [
    {_key(0): _offset(10), _key(1): _offset(20)},
    {_key(0): _offset(11, "ü" * 300)},
    {_key(1): None, _key(2): StoredOffset(0, None, "", -1, None)},
    {_key(number): _offset(number) for number in range(3, 9)},
    {_key(1): _offset(21)},
]


def _states() -> list[dict[CommitKey, StoredOffset]]:
    """Return what there is before and after each of the commits."""
    states: list[dict[CommitKey, StoredOffset]] = [{}]
    for changes in COMMITS:
        after: dict[CommitKey, Any] = {**states[-1], **changes}
        states.append({key: each for key, each in after.items() if each is not None})
    return states


def _read(path: Path) -> dict[CommitKey, StoredOffset]:
    with OffsetsFile(path, ForgetfulIO()) as file:
        return dict(file.offsets)


def _comparable(offsets: dict[CommitKey, StoredOffset]) -> dict[CommitKey, StoredOffset]:
    """Return offsets without the difference between no topic id and one of zeros."""
    none = (None, uuid.UUID(int=0))
    return {
        key: each._replace(topic_id=None if each.topic_id in none else each.topic_id)
        for key, each in offsets.items()
    }


def test_offsets_are_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    for changes, expected in zip(COMMITS, _states()[1:], strict=True):
        with OffsetsFile(path) as file:
            file.store(changes)
        assert _comparable(_read(path)) == _comparable(expected)
    with OffsetsFile(path) as file:
        file.store({_key(0): None})
    with OffsetsFile(path) as file:
        assert file.deleted == {_key(0)}


def test_the_file_is_made_by_the_first_commit(tmp_path: Path) -> None:
    with OffsetsFile(tmp_path / "offsets"):
        pass
    assert not (tmp_path / "offsets").exists()


def test_a_first_commit_to_an_empty_file_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    root = tmp_path / "recorded"
    root.mkdir()
    (root / "offsets").touch()
    io = RecordingIO(root)
    with OffsetsFile(root / "offsets", io) as file:
        file.store(COMMITS[0])
    written = {each.path for each in io.operations if each.kind is Kind.WRITE}
    assert "offsets" not in written


@pytest.mark.parametrize(
    ("lose_unsynced", "keep_lengths"), [(False, False), (True, False), (True, True)]
)
def test_after_a_crash_at_any_point_there_is_what_was_answered(
    tmp_path: Path,
    *,
    lose_unsynced: bool,
    keep_lengths: bool,
) -> None:
    root = tmp_path / "recorded"
    root.mkdir()
    io = RecordingIO(root)
    answered_after = [0]
    with OffsetsFile(root / "offsets", io) as file:
        for changes in COMMITS:
            file.store(changes)
            answered_after.append(len(io.operations))
    states = [_comparable(each) for each in _states()]
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for done, names in itertools.product(range(len(io.operations) + 1), Names):
        answered = max(number for number, each in enumerate(answered_after) if each <= done)
        cuts = [io.operations[:done]]
        if done and io.operations[done - 1].kind is Kind.WRITE:
            last = io.operations[done - 1]
            cuts += [
                [*io.operations[: done - 1], last.torn(size)]
                for size in range(0, len(last.data), TORN_EVERY)
            ]
        for number, operations in enumerate(cuts):
            for child in crashed.iterdir():
                child.unlink()
            replay(
                operations,
                crashed,
                lose_unsynced=lose_unsynced,
                names=names,
                keep_lengths=keep_lengths,
            )
            least = answered if number == 0 else answered_before(answered_after, done)
            assert _comparable(_read(crashed / "offsets")) in states[least : answered + 2]


def answered_before(answered_after: list[int], done: int) -> int:
    """Return how many commits were answered before the operation that is torn."""
    return max(number for number, each in enumerate(answered_after) if each < done)


@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.SYNC, Kind.REPLACE, Kind.CREATE])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_failing_disk_is_told_and_the_next_commit_goes_through(
    tmp_path: Path, kind: Kind, at: int
) -> None:
    path = tmp_path / "offsets"
    io = FaultyIO()
    expected: dict[CommitKey, Any] = {}
    failures = 0
    with OffsetsFile(path, io) as file:
        io.faults = [Fault(kinds=frozenset({kind}), at=at, path_end="offsets")]
        if kind in (Kind.WRITE, Kind.SYNC):
            io.faults += [Fault(kinds=frozenset({kind}), at=1, path_end="offsets.tmp")]
        for changes in COMMITS:
            before = dict(file.offsets)
            try:
                file.store(changes)
            except LogStorageError:
                failures += 1
                assert file.offsets == before
                file.store(changes)
            expected |= changes
        assert file.offsets == {key: each for key, each in expected.items() if each is not None}
    assert failures or kind in (Kind.REPLACE, Kind.CREATE)
    assert _comparable(_read(path)) == _comparable(_states()[-1])


def test_a_broken_batch_before_others_is_refused_and_the_file_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    with OffsetsFile(path) as file:
        for changes in COMMITS[:4]:
            file.store(changes)
    data = bytearray(path.read_bytes())
    second = 12 + int.from_bytes(data[8:12])
    data[second + 70] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match=f"at byte {second}: .*batches follow it"):
        _read(path)
    assert path.read_bytes() == data


@pytest.mark.parametrize("content", [b"hello", b"\0" * 200, b"x" * 4096, b"{}\n"])
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(CorruptRecordError, match="not a file of committed offsets"):
        _read(path)
    assert path.read_bytes() == content


def test_a_log_of_other_records_is_refused(golden_root: GoldenRoot, tmp_path: Path) -> None:
    log = next(golden_root.case("4.3.0/plain").glob("*-0/*.log"))
    copy = tmp_path / log.name
    copy.write_bytes(log.read_bytes())
    with pytest.raises(CorruptRecordError, match="not a file of committed offsets"):
        _read(copy)
    assert copy.read_bytes() == log.read_bytes()


def test_one_server_at_a_time_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    code = (
        "import sys; from pylog.server.offset_metadata_manager import OffsetsFile\n"
        "with OffsetsFile(sys.argv[1]): pass\n"
    )
    with OffsetsFile(path):
        with pytest.raises(LogLockedError, match="another server has this file"):
            _read(path)
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], check=False, capture_output=True, text=True
        )
        assert "LogLockedError" in done.stderr
    assert _read(path) == {}


def test_the_file_does_not_grow_beyond_a_multiple_of_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    long = "x" * 4_000
    largest = 0
    with OffsetsFile(path, ForgetfulIO()) as file:
        for number in range(600):
            file.store({_key(0): _offset(number, long)})
            largest = max(largest, path.stat().st_size)
        assert file.offsets == {_key(0): _offset(599, long)}
    assert largest < 1_200_000
    assert _read(path) == {_key(0): _offset(599, long)}


def test_pylog_dumps_the_file_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    with OffsetsFile(path) as file:
        file.store(COMMITS[0])
    done = subprocess.run(
        [sys.executable, "-m", "pylog", "dump", "--offsets-decoder", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert '"group":"group-0","topic":"orders","partition":0' in done.stdout
    assert '"offset":10,' in done.stdout
