"""Segments that change on the disk while they are served: no fetch gives what is not there.

What a fetch may give is what the files hold by then, up to the first damage; where that is told by
an error, a scan of the same files ends with one, too.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.errors import LogStorageError
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import TopicChoice
from pylog.server.replica_manager import ReplicaManager, ServedLogs
from tests.support.batches import Built, batch_v2, joined, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.support.raw_client import RawClient
from tests.unit.server.followed import content, fetched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Counted, HowMany

KAFKA_STORAGE_ERROR, OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE = 56, 1, 2
BATCHES, PER_SEGMENT = 24, 8
MOST_TRIES = 4


def _batches(chance: random.Random) -> list[Built]:
    return [
        batch_v2(
            plain_records(
                each, 1, timestamp=chance.randrange(1 << 30), value_size=chance.randint(5, 400)
            )
        )
        for each in range(BATCHES)
    ]


class Change(NamedTuple):
    """A segment that is changed, and how a place in it is chosen."""

    path: Path
    chance: random.Random

    def position(self) -> int:
        return self.chance.randrange(self.path.stat().st_size)


def _flip(change: Change) -> None:
    with change.path.open("r+b") as file:
        position = change.position()
        file.seek(position)
        [byte] = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1 << change.chance.randrange(8)]))


def _flip_a_size(change: Change) -> None:
    """Change the size of a batch: in a last segment, readers then do not find the log's end."""
    data = bytearray(change.path.read_bytes())
    starts = [0]
    while starts[-1] < len(data):
        starts.append(starts[-1] + 12 + int.from_bytes(data[starts[-1] + 8 : starts[-1] + 12]))
    data[change.chance.choice(starts[:-1]) + 8 + change.chance.randrange(4)] ^= 0x81
    change.path.write_bytes(data)


def _zero(change: Change) -> None:
    with change.path.open("r+b") as file:
        size = change.path.stat().st_size
        position = change.position()
        file.seek(position)
        file.write(bytes(min(4096, size - position)))


def _cut(change: Change) -> None:
    os.truncate(change.path, change.position())


def _empty(change: Change) -> None:
    os.truncate(change.path, 0)


def _replace(change: Change) -> None:
    """Put damaged bytes there in a file of its own, as a copy does."""
    other = change.path.with_name("aside")
    shutil.copy(change.path, other)
    _flip(Change(other, change.chance))
    other.replace(change.path)


def _delete(change: Change) -> None:
    change.path.unlink()


def _with_times_set_back(change: Change) -> None:
    """Change a byte as one who sets the time back that everybody looks at."""
    before = change.path.stat()
    _flip(change)
    os.utime(change.path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _touch(change: Change) -> None:
    change.path.touch()


CHANGES: tuple[Callable[[Change], None], ...] = (
    _flip,
    _flip_a_size,
    _zero,
    _cut,
    _empty,
    _replace,
    _delete,
    _with_times_set_back,
    _touch,
)


@contextmanager
def _served(
    log_directory: str, mode: ReadMode, *, follows: bool = False, checks_each_time: bool = False
) -> Iterator[ReplicaManager]:
    served = ServedLogs(
        paths=(log_directory,),
        choice=TopicChoice.of(topics=None, assign=None, pattern=None),
        mode=mode,
        follows=follows,
        checks_each_time=checks_each_time,
    )
    replicas = ReplicaManager(served)
    try:
        yield replicas
    finally:
        replicas.close()


def _read(replicas: ReplicaManager, offset: int, max_bytes: int) -> tuple[bytes, int]:
    """Return what a client gets from an offset on, and the error that ends it; 0 at the end."""
    data, tries = b"", 0
    for _ in range(4 * BATCHES):
        answer = fetched(replicas, offset, max_bytes)
        code = int(answer["errorCode"])
        if code == KAFKA_STORAGE_ERROR and tries < MOST_TRIES:
            tries += 1  # clients ask again
            continue
        if code == OFFSET_OUT_OF_RANGE and tries < MOST_TRIES:
            partition = replicas.find("orders", 0)
            assert partition is not None
            offset, tries = partition.known.log_start_offset, MOST_TRIES
            continue  # as one whose offset reset is "earliest"
        got = content(answer)
        if code or not got:
            return data, code
        while len(got) >= 61:  # what a header has; a part of a batch is of no use
            size = 12 + int.from_bytes(got[8:12], "big")
            if size > len(got):
                break
            data += got[:size]
            offset = int.from_bytes(got[:8], "big") + int.from_bytes(got[23:27], "big") + 1
            got = got[size:]
    pytest.fail("what is fetched does not come to an end")


def _split(data: bytes) -> list[bytes]:
    """Return the batches of what has been fetched."""
    batches = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        batches.append(data[:size])
        data = data[size:]
    return batches


def _base_offset(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big")


def _checked(batch: bytes) -> bytes:
    """Return a batch without its offset, length and leader epoch, which no checksum is of.

    A changed epoch is no damage that anybody could see. A changed offset is, and where damage is
    left out the batch gets the one that its neighbours leave to it.
    """
    return batch[16:]


def _scanned(log_directory: str, mode: ReadMode) -> tuple[list[int], bool]:
    """Return the offsets that a scan gives, and whether it ends with an error."""
    offsets: list[int] = []
    try:
        for batch in pylog.scan(log_directory, mode=mode.name).to_batches():  # type: ignore[arg-type]
            offsets += batch.column("offset").to_pylist()
    except LogStorageError:
        return offsets, True
    return offsets, False


class Served(NamedTuple):
    """A local log directory, where it is served from, and what brings a change there."""

    local: Path
    location: str
    publish: Callable[[], None] = lambda: None


def outcome_of(
    change: Callable[[Change], None],
    served: Served,
    chance: random.Random,
    mode: ReadMode,
    *,
    follows: bool,
) -> str:
    """Read a partition, change a segment, read again: no fetch gives what is not there."""
    data = _batches(chance)
    segments = {at: data[at : at + PER_SEGMENT] for at in range(0, BATCHES, PER_SEGMENT)}
    partition = write_partition(served.local, segments)
    served.publish()
    with _served(served.location, mode, follows=follows) as replicas:
        assert _read(replicas, 0, 1 << 20) == (joined(data), 0)
        change(Change(segment_path(partition, chance.choice(list(segments))), chance))
        served.publish()
        if follows and chance.random() < 0.5:
            replicas.refresh()
        held = b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))
        got, code = _read(replicas, 0, chance.choice((1, 2_000, 1 << 20)))
        offsets, is_error = _scanned(served.location, mode)
    batches = _split(got)
    given = [each for each in data if _checked(each.data) in map(_checked, batches)]
    assert [_checked(each.data) for each in given] == [_checked(each) for each in batches]
    assert all(_checked(each.data) in held for each in given)
    assert [_base_offset(each) for each in batches] == [each.base_offset for each in given]
    assert bool(code) == is_error, code
    assert [each.base_offset for each in given] == offsets
    return "an error" if code else f"{len(given) == len(data)}"


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("mode", [ReadMode.FAILFAST, ReadMode.DROPMALFORMED])
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__.strip("_"))
def test_no_fetch_gives_what_the_files_do_not_hold(
    tmp_path: Path,
    how_many: HowMany,
    counted: Counted,
    change: Callable[[Change], None],
    mode: ReadMode,
    *,
    follows: bool,
) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(how_many(6, 320)):
        chance = random.Random(f"{change.__name__} {mode} {follows} {seed}")
        directory = tmp_path / str(seed)
        served = Served(directory, str(directory))
        try:
            outcomes[outcome_of(change, served, chance, mode, follows=follows)] += 1
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(directory)
    counted(f"changed while served, {change.__name__}", outcomes)


def test_a_change_that_leaves_no_trace_is_found_where_each_batch_is_checked_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    data = _batches(chance)
    path = segment_path(write_partition(tmp_path, {0: data}), 0)
    monkeypatch.setattr("pylog.server.segment_proof.change_mark", lambda _path: (1, 2, 3))
    for each_time, expected in ((True, CORRUPT_MESSAGE), (False, 0)):
        path.write_bytes(joined(data))
        with _served(str(tmp_path), ReadMode.FAILFAST, checks_each_time=each_time) as replicas:
            assert _read(replicas, 0, 1 << 20) == (joined(data), 0)
            _flip(Change(path, chance))
            assert _read(replicas, 0, 1 << 20)[1] == expected


def test_a_change_on_the_way_ends_the_connection_before_the_last_bytes(tmp_path: Path) -> None:
    data = [batch_v2(plain_records(each, 1, value_size=1 << 20)) for each in range(24)]
    path = segment_path(write_partition(tmp_path, {0: data}), 0)
    wanted = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 30}
    request = {
        "maxWaitMs": 0,
        "minBytes": 1,
        "maxBytes": 1 << 30,
        "topics": [{"topic": "orders", "partitions": [wanted]}],
    }
    with pylog.serve(tmp_path) as server:
        with RawClient(server.address) as client:
            client.send("Fetch", 12, request)
            connection = client._socket
            received = len(connection.recv(1 << 20))
            _flip(Change(path, random.Random(1)))
            while got := connection.recv(1 << 20):
                received += len(got)
        assert path.stat().st_size - 4096 <= received < path.stat().st_size
