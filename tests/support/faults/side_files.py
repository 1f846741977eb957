"""Faults in what lies beside the ``.log`` files; see `tests.support.faults.logs`."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.support.batches import crc32c
from tests.support.faults.logs import Place, SoundPartition
from tests.support.log_files import OFFSET_ENTRY, TIME_ENTRY, TRANSACTION_ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    Damage = Callable[[SoundPartition, Random], Place | None]

_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_SNAPSHOT_HEADER = 10
_FAR_ABOVE = 10**12


def _index_entries(path: Path, entry: struct.Struct, offset_at: int) -> list[tuple[int, ...]]:
    """Return the entries before the zeros of a preallocated tail."""
    data = path.read_bytes()
    found: list[tuple[int, ...]] = []
    for fields in entry.iter_unpack(data[: len(data) - len(data) % entry.size]):
        if found and not fields[offset_at]:
            break
        found.append(fields)
    return found


def _indexes(
    partition: SoundPartition, suffix: str, entry: struct.Struct, offset_at: int, least: int
) -> list[tuple[Path, list[tuple[int, ...]]]]:
    """Return the index files that have at least so many entries."""
    found = []
    for log in partition.logs:
        path = log.with_suffix(suffix)
        if path.exists() and log.stat().st_size:
            stored = _index_entries(path, entry, offset_at)
            if len(stored) >= least:
                found.append((path, stored))
    return found


def _put_entry(path: Path, at: int, entry: bytes) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + entry + data[at + len(entry) :])


def missing_index(partition: SoundPartition, random: Random) -> Place | None:
    usable = [each.with_suffix(".index") for each in partition.logs if each.stat().st_size]
    usable = [each for each in usable if each.exists()]
    if not usable:
        return None
    path = random.choice(usable)
    path.unlink()
    return Place(path)


def missing_time_index(partition: SoundPartition, random: Random) -> Place | None:
    usable = [each.with_suffix(".timeindex") for each in partition.logs if each.stat().st_size]
    usable = [each for each in usable if each.exists()]
    is_v2 = any(each.magic == 2 for each in partition.all_entries)
    if not usable or not is_v2:
        return None
    path = random.choice(usable)
    path.unlink()
    return Place(path)


def index_into_a_batch(partition: SoundPartition, random: Random) -> Place | None:
    """Let an entry point one byte after the beginning of its batch."""
    usable = _indexes(partition, ".index", OFFSET_ENTRY, 0, 1)
    if not usable:
        return None
    path, stored = random.choice(usable)
    number = random.randrange(len(stored))
    offset, position = stored[number]
    at = number * OFFSET_ENTRY.size
    _put_entry(path, at, OFFSET_ENTRY.pack(offset, position + 1))
    return Place(path, at)


def index_out_of_order(partition: SoundPartition, random: Random) -> Place | None:
    """Exchange two entries."""
    usable = _indexes(partition, ".index", OFFSET_ENTRY, 0, 2)
    if not usable:
        return None
    path, stored = random.choice(usable)
    number = random.randrange(len(stored) - 1)
    pair = OFFSET_ENTRY.pack(*stored[number + 1]) + OFFSET_ENTRY.pack(*stored[number])
    _put_entry(path, number * OFFSET_ENTRY.size, pair)
    return Place(path)


def index_of_torn_length(partition: SoundPartition, random: Random) -> Place | None:
    usable = [each.with_suffix(".index") for each in partition.logs]
    usable = [each for each in usable if each.exists()]
    if not usable:
        return None
    path = random.choice(usable)
    path.write_bytes(path.read_bytes() + bytes(random.randrange(1, 8)))
    return Place(path)


def late_time_entry(partition: SoundPartition, random: Random) -> Place | None:
    """Let the last entry of a time index have a timestamp that no batch has."""
    usable = _indexes(partition, ".timeindex", TIME_ENTRY, 1, 1)
    if not usable:
        return None
    path, stored = random.choice(usable)
    timestamp, offset = stored[-1]
    at = (len(stored) - 1) * TIME_ENTRY.size
    _put_entry(path, at, TIME_ENTRY.pack(timestamp + random.randrange(1, 10**9), offset))
    return Place(path, at)


def lost_transaction_entries(partition: SoundPartition, random: Random) -> Place | None:
    """Empty a transaction index; of a log from its beginning on, where all data is there."""
    if partition.may_be_compacted or not partition.logs or int(partition.logs[0].stem):
        return None
    usable = [each for each in partition.directory.glob("*.txnindex") if each.stat().st_size]
    if not usable:
        return None
    path = random.choice(sorted(usable))
    path.write_bytes(b"")
    return Place(path)


def stable_offset_far_ahead(partition: SoundPartition, random: Random) -> Place | None:
    """Let an entry say that all is decided up to an offset that the log does not have."""
    if partition.may_be_compacted:
        return None
    usable = [each.with_suffix(".txnindex") for each in partition.logs]
    usable = [each for each in usable if each.exists() and each.stat().st_size]
    if not usable:
        return None
    path = random.choice(usable)
    stored = list(TRANSACTION_ENTRY.iter_unpack(path.read_bytes()))
    number = random.randrange(len(stored))
    entry = TRANSACTION_ENTRY.pack(*stored[number][:4], _FAR_ABOVE)
    _put_entry(path, number * TRANSACTION_ENTRY.size, entry)
    return Place(path)


def invented_transaction(partition: SoundPartition, random: Random) -> Place | None:
    """Add an entry about a producer that has aborted nothing."""
    if partition.may_be_compacted or not partition.logs or not partition.all_entries:
        return None
    path = partition.logs[-1].with_suffix(".txnindex")
    data = path.read_bytes() if path.exists() else b""
    last = TRANSACTION_ENTRY.unpack(data[-TRANSACTION_ENTRY.size :])[3] if data else -1
    offset = max(last + 1, int(path.stem)) + random.randrange(3)
    path.write_bytes(data + TRANSACTION_ENTRY.pack(0, 987_654, offset, offset, offset + 1))
    return Place(path)


def unknown_transaction_version(partition: SoundPartition, random: Random) -> Place | None:
    usable = [each for each in partition.directory.glob("*.txnindex") if each.stat().st_size]
    if not usable:
        return None
    path = random.choice(sorted(usable))
    _put_entry(path, 0, b"\0\7")
    return Place(path)


def flipped_snapshot(partition: SoundPartition, random: Random) -> Place | None:
    usable = sorted(partition.directory.glob("*.snapshot"))
    if not usable:
        return None
    path = random.choice(usable)
    data = bytearray(path.read_bytes())
    data[random.randrange(2, len(data))] ^= 0x10
    path.write_bytes(bytes(data))
    return Place(path)


def snapshot_of_another_producer(partition: SoundPartition, random: Random) -> Place | None:
    """Give a producer in a snapshot another id, under a right checksum."""
    ends = {_last_offset(each.data) for each in partition.all_entries if each.magic == 2}
    usable = []
    for path in sorted(partition.directory.glob("*.snapshot")):
        stored = _SNAPSHOT_ENTRY.iter_unpack(path.read_bytes()[_SNAPSHOT_HEADER:])
        usable += [(path, at) for at, fields in enumerate(stored) if fields[3] in ends]
    if not usable:
        return None
    path, number = random.choice(usable)
    data = path.read_bytes()
    at = _SNAPSHOT_HEADER + number * _SNAPSHOT_ENTRY.size
    fields = _SNAPSHOT_ENTRY.unpack_from(data, at)
    changed = _SNAPSHOT_ENTRY.pack(fields[0] + 7777, *fields[1:])
    body = data[6:at] + changed + data[at + len(changed) :]
    path.write_bytes(data[:2] + struct.pack(">I", crc32c(body)) + body)
    return Place(path)


def _last_offset(entry: bytes) -> int:
    return int.from_bytes(entry[:8], "big") + int.from_bytes(entry[23:27], "big")


def snapshot_far_ahead(partition: SoundPartition, random: Random) -> Place | None:
    """Leave a snapshot of an offset that the log has not come to."""
    usable = sorted(partition.directory.glob("*.snapshot"))
    if not usable:
        return None
    path = partition.directory / f"{_FAR_ABOVE + random.randrange(1000):020d}.snapshot"
    path.write_bytes(usable[0].read_bytes())
    return Place(path)


def another_leader_epoch(partition: SoundPartition, random: Random) -> Place | None:
    """Raise the latest epoch of the checkpoint."""
    path = partition.directory / "leader-epoch-checkpoint"
    if not path.exists():
        return None
    lines = path.read_text("utf-8").splitlines()
    if len(lines) < 3:
        return None
    epoch, start = map(int, lines[-1].split())
    if not any(each.magic == 2 and each.offset >= start for each in partition.all_entries):
        return None
    lines[-1] = f"{epoch + random.randrange(1, 9)} {start}"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return Place(path)


def leader_epoch_back(partition: SoundPartition, random: Random) -> Place | None:
    """Raise the epoch of one batch, which no checksum covers: the next one seems to go back."""
    usable = [
        (one, other)
        for path in partition.logs
        for one, other in pairwise(partition.entries_of(path))
        if one.magic == other.magic == 2 and other.data[12:16] != b"\xff" * 4
    ]
    if not usable:
        return None
    one, other = random.choice(usable)
    epoch = int.from_bytes(other.data[12:16], "big") + random.randrange(1, 100)
    one.put(one.data[:12] + epoch.to_bytes(4, "big") + one.data[16:])
    return Place(other.path, other.position)


def leader_epoch_far_ahead(partition: SoundPartition, _random: Random) -> Place | None:
    """Add an epoch to the checkpoint that begins after the end of the log."""
    path = partition.directory / "leader-epoch-checkpoint"
    if not path.exists():
        return None
    lines = path.read_text("utf-8").splitlines()
    epochs = lines[2:]
    latest = int(epochs[-1].split()[0]) if epochs else 0
    lines = ["0", str(len(epochs) + 1), *epochs, f"{latest + 1} {_FAR_ABOVE}"]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return Place(path)


def nonsense_in(name: str, *, in_log_directory: bool = False) -> Damage:
    """Return what writes nonsense into a file."""

    def nonsense(partition: SoundPartition, _random: Random) -> Place:
        parent = partition.directory.parent if in_log_directory else partition.directory
        path = parent / name
        path.write_text("version=nonsense\n", "utf-8")
        return Place(path)

    nonsense.__name__ = f"nonsense_in_{name}"
    return nonsense


def checkpoint_above_end(name: str) -> Damage:
    """Return what lets a checkpoint say an offset above the end of the log."""

    def above_end(partition: SoundPartition, random: Random) -> Place | None:
        topic, _, number = partition.directory.name.rpartition("-")
        path = partition.directory.parent / name
        offset = _FAR_ABOVE + random.randrange(1000)
        path.write_text(f"0\n1\n{topic} {number} {offset}\n", "utf-8")
        return Place(path)

    above_end.__name__ = f"{name}_above_end"
    return above_end


def leftover_file(state: str) -> Damage:
    """Return what leaves a file of an interrupted deletion or compaction."""

    def leftover(partition: SoundPartition, random: Random) -> Place:
        base = _FAR_ABOVE + random.randrange(1000)
        suffix = random.choice([".index", ".timeindex", ".txnindex"])
        path = partition.directory / f"{base:020d}{suffix}{state}"
        path.write_bytes(b"")
        return Place(path)

    leftover.__name__ = f"leftover{state.replace('.', '_')}"
    return leftover


def misnamed_log(partition: SoundPartition, random: Random) -> Place | None:
    if not partition.logs:
        return None
    path = partition.directory / random.choice(
        ["copy.log", "123.log", "00000000000000000000-2.log"]
    )
    path.write_bytes(partition.logs[0].read_bytes())
    return Place(path)


def misnamed_directory(partition: SoundPartition, random: Random) -> Place:
    path = partition.directory.parent / random.choice(["lost+found", "backup", "orders-zero"])
    path.mkdir()
    return Place(path)


def directory_of_state(state: str) -> Damage:
    """Return what leaves the directory of a partition that is not live."""

    def directory_of_state(partition: SoundPartition, _random: Random) -> Place:
        path = partition.directory.parent / f"gone-0.{'0123456789abcdef' * 2}-{state}"
        path.mkdir()
        (path / f"{0:020d}.log").write_bytes(b"")
        return Place(path)

    directory_of_state.__name__ = f"{state}_directory"
    return directory_of_state


def _second_partition(partition: SoundPartition, topic: str, number: int, topic_id: bytes) -> Path:
    path = partition.directory.parent / f"{topic}-{number}"
    path.mkdir()
    (path / f"{0:020d}.log").write_bytes(b"")
    (path / f"{0:020d}.index").write_bytes(b"")
    (path / f"{0:020d}.timeindex").write_bytes(b"")
    (path / "partition.metadata").write_bytes(topic_id)
    return path / "partition.metadata"


def topic_id_of_two_topics(partition: SoundPartition, _random: Random) -> Place | None:
    metadata = partition.directory / "partition.metadata"
    if not metadata.exists():
        return None
    # Sorted after all names of topics in the golden set, so that it is the one with the finding.
    path = _second_partition(partition, "zzz", 0, metadata.read_bytes())
    return Place(path)


def two_ids_of_a_topic(partition: SoundPartition, _random: Random) -> Place | None:
    if not (partition.directory / "partition.metadata").exists():
        return None
    topic = partition.directory.name.rpartition("-")[0]
    content = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABA"
    path = _second_partition(partition, topic, 4711, content)
    return Place(path)


def absent_partition(partition: SoundPartition, random: Random) -> Place:
    path = partition.directory.parent / "recovery-point-offset-checkpoint"
    path.write_text(f"0\n1\nnowhere {random.randrange(100)} 0\n", "utf-8")
    return Place(path)
