"""Faults in ``.log`` files: what each does to a copy of a sound partition.

Every fault is a function of a `SoundPartition` and a random generator. It changes the copy and
returns the `Place` of the damage, or None where the partition has nothing that it could be done to.
What is to be found then is in the table of `tests.support.faults`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tests.support.corruption import entries, resealed

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
HEADER_SIZE = 61


class Place(NamedTuple):
    """Where a fault is: the file, and a byte in it if that is known."""

    path: Path
    position: int | None = None


class Entry(NamedTuple):
    """One entry of a ``.log`` file."""

    path: Path
    position: int
    data: bytes

    @property
    def magic(self) -> int:
        return self.data[16]

    @property
    def offset(self) -> int:
        return int.from_bytes(self.data[:8], "big")

    @property
    def codec(self) -> int:
        return self.data[22 if self.magic == 2 else 17] & 7

    @property
    def record_count(self) -> int:
        return int.from_bytes(self.data[57:61], "big") if self.magic == 2 else 1

    @property
    def is_control(self) -> bool:
        return self.magic == 2 and bool(self.data[22] & 0x20)

    @property
    def producer(self) -> bytes:
        """The id and the epoch of the producer, of v2 alone; -1 for none."""
        return self.data[43:53]

    @property
    def first_covered(self) -> int:
        """The first byte that the checksum covers."""
        return 21 if self.magic == 2 else 16

    def put(self, data: bytes) -> None:
        """Put other bytes in the place of the entry's."""
        content = self.path.read_bytes()
        end = self.position + len(self.data)
        self.path.write_bytes(content[: self.position] + data + content[end:])


@dataclass(frozen=True)
class SoundPartition:
    """A writable copy of a partition and of its log directory's files."""

    directory: Path

    @property
    def logs(self) -> list[Path]:
        return sorted(self.directory.glob("*.log"))

    def entries_of(self, path: Path) -> list[Entry]:
        """Return the whole entries of a ``.log`` file, but for a tail that is not of any."""
        found, at = [], 0
        for data in entries(path.read_bytes()):
            found.append(Entry(path, at, data))
            at += len(data)
        return found

    @property
    def all_entries(self) -> list[Entry]:
        return [each for path in self.logs for each in self.entries_of(path)]

    @property
    def may_be_compacted(self) -> bool:
        """Whether offsets are missing, or may well be; formats v0 and v1 are not judged."""
        if self.directory.name.startswith(("__consumer_offsets-", "__transaction_state-")):
            return True
        following: int | None = None
        for each in self.all_entries:
            if each.magic < 2 or (following is not None and each.offset != following):
                return True
            delta = int.from_bytes(each.data[23:27], "big")
            if each.record_count != delta + 1:
                return True
            following = each.offset + delta + 1
        return False


def flipped_bit(partition: SoundPartition, random: Random) -> Place | None:
    """Flip one bit of what a checksum covers."""
    if not partition.all_entries:
        return None
    entry = random.choice(partition.all_entries)
    at = random.randrange(entry.first_covered, len(entry.data))
    changed = bytearray(entry.data)
    changed[at] ^= 1 << random.randrange(8)
    entry.put(bytes(changed))
    return Place(entry.path, entry.position)


def zeroed_block(partition: SoundPartition, random: Random) -> Place | None:
    """Zero up to 512 bytes inside an entry, after its header, as a lost sector does."""
    usable = [each for each in partition.all_entries if any(each.data[HEADER_SIZE:])]
    if not usable:
        return None
    entry = random.choice(usable)
    places = [at for at in range(HEADER_SIZE, len(entry.data)) if entry.data[at]]
    start = random.choice(places)
    end = min(start + random.randrange(1, 513), len(entry.data))
    entry.put(entry.data[:start] + bytes(end - start) + entry.data[end:])
    return Place(entry.path, entry.position)


def impossible_size(partition: SoundPartition, random: Random) -> Place | None:
    """Make the size of an entry smaller than any can be."""
    if not partition.all_entries:
        return None
    entry = random.choice(partition.all_entries)
    entry.put(entry.data[:8] + struct.pack(">i", random.randrange(-100, 14)) + entry.data[12:])
    return Place(entry.path, entry.position)


def offset_back(partition: SoundPartition, random: Random) -> Place | None:
    """Give a batch the offset of the one before it; no checksum covers that field."""
    if partition.may_be_compacted:
        return None
    usable = []
    for path in partition.logs:
        found = partition.entries_of(path)
        usable += list(pairwise(found))
    if not usable:
        return None
    before, entry = random.choice(usable)
    entry.put(before.data[:8] + entry.data[8:])
    return Place(entry.path, entry.position)


def unknown_magic(partition: SoundPartition, random: Random) -> Place | None:
    """Give an entry a format that does not exist."""
    if not partition.all_entries:
        return None
    entry = random.choice(partition.all_entries)
    magic = random.randrange(3, 256)
    entry.put(entry.data[:16] + bytes([magic]) + entry.data[17:])
    return Place(entry.path, entry.position)


def too_many_records_counted(partition: SoundPartition, random: Random) -> Place | None:
    """Count one record more than a batch has, under a right checksum."""
    usable = [each for each in partition.all_entries if each.magic == 2 and each.record_count]
    if not usable:
        return None
    entry = random.choice(usable)
    count = struct.pack(">i", entry.record_count + 1)
    entry.put(resealed(entry.data[:57] + count + entry.data[61:]))
    return Place(entry.path, entry.position)


def no_records_counted(partition: SoundPartition, random: Random) -> Place | None:
    """Count no record in a batch that has some, under a right checksum."""
    usable = [
        each
        for each in partition.all_entries
        if each.magic == 2 and each.record_count and not each.codec and not each.is_control
    ]
    if not usable:
        return None
    entry = random.choice(usable)
    entry.put(resealed(entry.data[:57] + bytes(4) + entry.data[61:]))
    return Place(entry.path, entry.position)


def skipped_sequence(partition: SoundPartition, random: Random) -> Place | None:
    """Let a batch's sequence number skip some, under a right checksum; no offset is missing."""
    if partition.may_be_compacted:
        return None
    usable = []
    seen: set[bytes] = set()
    for each in partition.all_entries:
        if each.magic == 2 and not each.is_control and each.producer[:1] < b"\x80":
            usable += [each] if each.producer in seen else []
            seen.add(each.producer)
    if not usable:
        return None
    entry = random.choice(usable)
    sequence = int.from_bytes(entry.data[53:57], "big") + random.randrange(1, 1000)
    entry.put(resealed(entry.data[:53] + struct.pack(">i", sequence) + entry.data[57:]))
    return Place(entry.path, entry.position)


def torn_segment(partition: SoundPartition, random: Random) -> Place | None:
    """Cut an earlier segment inside its last batch."""
    if partition.may_be_compacted:
        return None
    usable = [path for path in partition.logs[:-1] if partition.entries_of(path)]
    if not usable:
        return None
    entry = partition.entries_of(random.choice(usable))[-1]
    _truncate(entry.path, entry.position + random.randrange(17, len(entry.data)))
    return Place(entry.path, entry.position)


def torn_tail(partition: SoundPartition, random: Random) -> Place | None:
    """Cut the last batch of the log, as a crash does."""
    if not partition.logs or not partition.entries_of(partition.logs[-1]):
        return None
    entry = partition.entries_of(partition.logs[-1])[-1]
    # Zeros alone, such as the first bytes of a small base offset, may be a preallocated tail, too.
    zeros = len(entry.data) - len(entry.data.lstrip(b"\0"))
    _truncate(entry.path, entry.position + random.randrange(zeros + 1, len(entry.data)))
    _marker(partition).unlink(missing_ok=True)
    return Place(entry.path, entry.position)


def torn_tail_of_a_clean_stop(partition: SoundPartition, random: Random) -> Place | None:
    """Copy the marker of a clean stop along with a log that is torn."""
    place = torn_tail(partition, random)
    _marker(partition).touch()
    return place


def zero_tail(partition: SoundPartition, random: Random) -> Place | None:
    """Append zero bytes to the last segment, as preallocation leaves them."""
    if not partition.logs:
        return None
    path = partition.logs[-1]
    size = path.stat().st_size
    _append(path, bytes(random.randrange(1, 5000)))
    _marker(partition).unlink(missing_ok=True)
    return Place(path, size)


def zeros_of_a_clean_stop(partition: SoundPartition, random: Random) -> Place | None:
    """Append zero bytes to the last segment, enough that a broker takes them for a batch."""
    # A node recovers the log of its metadata at each start, also after a clean stop.
    if not partition.logs or partition.directory.name.startswith("__cluster_metadata-"):
        return None
    path = partition.logs[-1]
    size = path.stat().st_size
    _append(path, bytes(random.randrange(18, 5000)))
    _marker(partition).touch()
    return Place(path, size)


def _marker(partition: SoundPartition) -> Path:
    return partition.directory.parent / ".kafka_cleanshutdown"


def garbage_tail(partition: SoundPartition, random: Random) -> Place | None:
    """Append bytes to the last segment that can be no batch."""
    if not partition.logs:
        return None
    path = partition.logs[-1]
    size = path.stat().st_size
    _append(path, b"\xff" * random.randrange(17, 500))
    return Place(path, size)


def rest_of_a_segment(partition: SoundPartition, random: Random) -> Place | None:
    """Append part of a batch, or zeros, to an earlier segment."""
    if partition.may_be_compacted or len(partition.logs) < 2:
        return None
    path = random.choice(partition.logs[:-1])
    found = partition.entries_of(path)
    if not found:
        return None
    size = path.stat().st_size
    torn = found[-1].data[: random.randrange(20, len(found[-1].data))]
    _append(path, random.choice([torn, bytes(700)]))
    return Place(path, size)


def missing_segment(partition: SoundPartition, random: Random) -> Place | None:
    """Remove all files of a segment in the middle."""
    logs = partition.logs
    usable = [index for index in range(1, len(logs) - 1) if logs[index].stat().st_size]
    if partition.may_be_compacted or not usable:
        return None
    index = random.choice(usable)
    for suffix in SUFFIXES:
        logs[index].with_suffix(suffix).unlink(missing_ok=True)
    return Place(logs[index + 1], 0)


def lost_log(partition: SoundPartition, random: Random) -> Place | None:
    """Remove one ``.log``, and leave its indexes."""
    usable = [each for each in partition.logs if each.with_suffix(".index").exists()]
    if not usable:
        return None
    random.choice(usable).unlink()
    return Place(partition.directory)


def removed_batch(partition: SoundPartition, random: Random) -> Place | None:
    """Cut a whole batch out of the middle of a segment."""
    if partition.may_be_compacted:
        return None
    usable = [each for path in partition.logs for each in partition.entries_of(path)[1:-1]]
    if not usable:
        return None
    entry = random.choice(usable)
    entry.put(b"")
    return Place(entry.path, entry.position)


def renamed_segment(partition: SoundPartition, random: Random) -> Place | None:
    """Give the last segment a name that is above all its offsets."""
    if not partition.logs or not partition.entries_of(partition.logs[-1]):
        return None
    path = partition.logs[-1]
    base = int(path.stem) + random.randrange(100_000, 1_000_000)
    for suffix in SUFFIXES:
        old = path.with_suffix(suffix)
        if old.exists():
            old.rename(path.with_name(f"{base:020d}{suffix}"))
    return Place(path.with_name(f"{base:020d}.log"), 0)


def _truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)
