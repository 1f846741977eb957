"""A crash anywhere in the splitting of a segment, and a second one in what the next start does."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.config import LogConfig
from pylog.errors import LogStorageError
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import Stored, batch_v2, joined
from tests.support.crash_replay import Kind, Names, Operation, replay
from tests.support.recording_io import ForgetfulIO, RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from tests.conftest import Counted, SomeOf

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
FAR = 2**31 - 1
FIRST_OFFSETS = [(0,), (5,), (FAR,)]
OVERFLOW_OFFSETS = [(FAR + 1, FAR + 2, FAR + 3), (FAR + 9,), (2 * FAR + 20, 2 * FAR + 22)]
NEXT_SEGMENT = 3 * FAR
BASE_OFFSETS = [0, FAR + 1, 2 * FAR + 20, NEXT_SEGMENT]
OFFSETS = [
    *(offset for offsets in FIRST_OFFSETS + OVERFLOW_OFFSETS for offset in offsets),
    NEXT_SEGMENT,
]
NAME_CHANGES = frozenset({Kind.CREATE, Kind.REPLACE, Kind.REMOVE})
CRASHES = {
    "process death": (False, Names.ALL),
    "no unsynced name": (True, Names.NONE),
    "the last unsynced name": (True, Names.LAST),
    "the last unsynced name, all content": (False, Names.LAST),
    "all but the first unsynced name": (True, Names.WITHOUT_FIRST),
}

SECOND_CRASHES = ["process death", "the last unsynced name", "all but the first unsynced name"]
SWAP_SUFFIXES = (".swap", ".cleaned", ".deleted")


def records(offsets: tuple[int, ...]) -> list[Stored]:
    return [Stored(offset, NOW_MS, b"key", b"%d" % offset) for offset in offsets]


def write_overflowed(root: Path) -> None:
    """Write a log whose first segment is one that brokers before 2.0 could compact."""
    partition = root / "logs" / "orders-0"
    partition.mkdir(parents=True)
    batches = [batch_v2(records(offsets)) for offsets in FIRST_OFFSETS + OVERFLOW_OFFSETS]
    (partition / f"{0:020d}.log").write_bytes(joined(batches))
    last = batch_v2(records((NEXT_SEGMENT,)))
    (partition / f"{NEXT_SEGMENT:020d}.log").write_bytes(last.data)
    (partition / f"{NEXT_SEGMENT:020d}.index").write_bytes(b"")


def start(root: Path, io: DurableIO) -> LogManager:
    clock = ManualClock(NOW_MS)
    context = LogContext(io=io, clock=clock, scheduler=ManualScheduler(clock))
    config = LogConfig(segment_index_bytes=1200)
    return LogManager([root / "logs"], config, context=context).startup()


def recorded_start(root: Path) -> list[Operation]:
    io = RecordingIO(root)
    start(root, io).abandon()
    return io.operations


def check_split(root: Path) -> None:
    """Check what the next owner finds, and what readers find after it."""
    manager = start(root, ForgetfulIO())
    log = manager.get_log(ORDERS)
    assert [segment.base_offset for segment in log.segments] == BASE_OFFSETS
    assert log.log_end_offset == NEXT_SEGMENT + 1
    manager.shutdown()
    names = [path.name for path in (root / "logs" / "orders-0").iterdir()]
    assert [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))] == []
    table = pylog.scan(root / "logs", columns=["offset", "value"]).to_table()
    assert table.column("offset").to_pylist() == OFFSETS
    assert table.column("value").to_pylist() == [b"%d" % offset for offset in OFFSETS]


class Crashes:
    """Crashes of one kind, checked; directories that look the same are looked at once."""

    def __init__(self, tmp_path: Path, kind: tuple[bool, Names]) -> None:
        self.count = 0
        self.failures: list[str] = []
        self._root = tmp_path / "crashed"
        self._lose_unsynced, self._names = kind
        self._seen: set[bytes] = set()

    def check(self, operations: list[Operation]) -> None:
        """Check a crash after ``operations``."""
        self.count += 1
        write_overflowed(self._root)
        replay(operations, self._root, lose_unsynced=self._lose_unsynced, names=self._names)
        fingerprint = fingerprint_of(self._root)
        if fingerprint not in self._seen:
            self._seen.add(fingerprint)
            try:
                check_split(self._root)
            except (AssertionError, LogStorageError) as error:
                done = [str(each) for each in operations[-3:]]
                self.failures.append(f"crash after {len(operations)} operations {done}: {error}")
        shutil.rmtree(self._root)

    def report(self, counted: Counted) -> None:
        """Fail if a crash did; else say how many there were."""
        assert not self.failures, f"{len(self.failures)} of {self.count}:\n" + "\n".join(
            self.failures[:3]
        )
        counted("crashes of a split", {"survived": self.count, "different": len(self._seen)})


def fingerprint_of(root: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.digest()


class Recorded(NamedTuple):
    """What one start did that had a segment to split."""

    operations: list[Operation]

    def prefixes(self) -> list[list[Operation]]:
        return [self.operations[:count] for count in range(len(self.operations) + 1)]

    def swapping(self) -> list[list[Operation]]:
        """Return the prefixes that end in a change of a name while files are swapped."""
        first = next(n for n, each in enumerate(self.operations) if each.target.endswith(".swap"))
        last = max(n for n, each in enumerate(self.operations) if each.path.endswith(".swap"))
        return [
            self.operations[: number + 1]
            for number in range(first, last + 1)
            if self.operations[number].kind in NAME_CHANGES
        ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    root = tmp_path_factory.mktemp("recorded")
    write_overflowed(root)
    return Recorded(recorded_start(root))


@pytest.mark.parametrize("kind", CRASHES.values(), ids=list(CRASHES))
def test_a_crash_anywhere_in_a_split_costs_no_record(
    recorded: Recorded,
    tmp_path: Path,
    kind: tuple[bool, Names],
    some_of: SomeOf,
    counted: Counted,
) -> None:
    crashes = Crashes(tmp_path, kind)
    prefixes = recorded.prefixes()
    for number in some_of(range(len(prefixes)), one_in=3):
        crashes.check(prefixes[number])
    crashes.report(counted)


@pytest.mark.slow
@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("name", SECOND_CRASHES)
def test_a_second_crash_in_the_start_after_the_first_one_costs_no_record(
    recorded: Recorded, tmp_path: Path, name: str, counted: Counted
) -> None:
    # The first kills the process: names that were not synced are there, and are not on the disk.
    crashes = Crashes(tmp_path, CRASHES[name])
    for before in recorded.swapping():
        root = tmp_path / "killed"
        write_overflowed(root)
        replay(before, root, lose_unsynced=False)
        following = recorded_start(root)
        shutil.rmtree(root)
        swaps = [
            number for number, each in enumerate(following) if each.path.endswith(SWAP_SUFFIXES)
        ]
        for number in range(max(swaps, default=-1) + 1):
            if following[number].kind in NAME_CHANGES:
                crashes.check(before + following[: number + 1])
    crashes.report(counted)
