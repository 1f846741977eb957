"""Random histories of a partition's replicas, the damage of disks, and what the truth is.

A model of three brokers: leaders append, followers fetch whole batches, leaders are elected, also
such as are behind (unclean). A follower that comes back cuts its log as KIP-101 and KIP-279 have
it: it asks the leader where the last epoch that both know ends, again and again. The truth is the
log of the last leader. Batches are real ones, in real files.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.support.batches import COMMIT, Built, Stored, batch_v2, marker
from tests.support.log_files import write_topic_id

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

_START_MS = 1_700_000_000_000
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"  # that of `tests.support.metadata_log`
PARTITION = "orders-0"


class Written(NamedTuple):
    """A batch in the log of a replica."""

    built: Built
    epoch: int

    @property
    def end(self) -> int:
        return self.built.last_offset + 1


@dataclass
class Replica:
    """A broker's copy: its batches, and its leader epoch checkpoint."""

    log: list[Written] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    start: int = 0

    @property
    def end(self) -> int:
        return self.log[-1].end if self.log else self.start

    def note_epoch(self, epoch: int, start: int) -> None:
        if self.epochs and self.epochs[-1][0] == epoch:
            return
        while self.epochs and (self.epochs[-1][0] >= epoch or self.epochs[-1][1] >= start):
            self.epochs.pop()
        self.epochs.append((epoch, start))

    def append(self, batch: Written) -> None:
        self.note_epoch(batch.epoch, batch.built.base_offset)
        self.log.append(batch)

    def cut(self, end: int) -> None:
        self.log = [each for each in self.log if each.end <= end]
        self.epochs = [each for each in self.epochs if each[1] < self.end]

    def end_of(self, epoch: int) -> tuple[int, int] | None:
        """Return the highest epoch up to one, and where it ends."""
        if self.epochs and epoch == self.epochs[-1][0]:
            return epoch, self.end
        higher = [each for each in self.epochs if each[0] > epoch]
        lower = [each for each in self.epochs if each[0] <= epoch]
        if not higher:
            return None
        return (lower[-1][0] if lower else epoch), higher[0][1]

    def follow(self, leader: Replica) -> None:
        """Cut what the leader does not have."""
        while self.epochs:
            answer = leader.end_of(self.epochs[-1][0])
            if answer is None:
                self.cut(self.start)
                return
            epoch, end = answer
            own = self.end_of(epoch) if any(each[0] <= epoch for each in self.epochs) else None
            if own is None:
                # None of its epochs is one of the leader's: a broker starts such a log anew.
                self.cut(self.start)
                return
            if own[0] == epoch:
                self.cut(min(own[1], end))
                return
            self.cut(own[1])

    def fetch(self, leader: Replica, batches: int) -> None:
        self.follow(leader)
        for each in leader.log:
            if batches and each.built.base_offset >= self.end:
                self.append(each)
                batches -= 1


@dataclass
class History:
    """What happened to a partition.

    ``unclean`` counts elections of leaders that were behind.
    """

    replicas: list[Replica]
    leader: int = 0
    epoch: int = 0
    unclean: int = 0

    @property
    def truth(self) -> list[Written]:
        return self.replicas[self.leader].log


def random_history(random: random.Random, *, steps: int = 40) -> History:
    """Return one with appends, fetches, brokers that stop and come back, and elections."""
    history = History([Replica() for _ in range(3)])
    history.replicas[0].note_epoch(0, 0)
    running = {0, 1, 2}
    for _ in range(random.randrange(4, steps)):
        kind = random.random()
        if kind < 0.55:
            _append(history, random)
        elif kind < 0.8:
            for each in sorted(running - {history.leader}):
                if random.random() < 0.8:
                    count = random.choice([1, 2, 5, 50])
                    history.replicas[each].fetch(history.replicas[history.leader], count)
        elif kind < 0.9:
            broker = random.randrange(3)
            if broker in running and len(running) > 1:
                running.remove(broker)
            else:
                running.add(broker)
        if history.leader not in running or random.random() < 0.08:
            _elect(history, sorted(running), random)
    return history


def _append(history: History, random: random.Random) -> None:
    leader = history.replicas[history.leader]
    for _ in range(random.randrange(1, 6)):
        base, now = leader.end, _START_MS + leader.end
        if random.random() < 0.1:
            built = marker(base, COMMIT, producer_id=7, timestamp=now, leader_epoch=history.epoch)
        else:
            count = random.randrange(1, 5)
            text = b"%d-%d" % (history.epoch, random.randrange(1 << 30))
            records = [Stored(base + at, now + at, b"k%d" % at, text) for at in range(count)]
            built = batch_v2(records, leader_epoch=history.epoch)
        leader.append(Written(built, history.epoch))


def _elect(history: History, running: list[int], random: random.Random) -> None:
    replicas = history.replicas
    best = max(running, key=lambda at: (replicas[at].epochs[-1:], replicas[at].end))
    history.leader = random.choice(running) if random.random() < 0.4 else best
    if replicas[history.leader].end < max(each.end for each in replicas):
        history.unclean += 1
    history.epoch += random.choice([1, 1, 1, 3])
    replicas[history.leader].note_epoch(history.epoch, replicas[history.leader].end)


def write_replica(replica: Replica, log_directory: Path, segment_bytes: int) -> Path:
    """Write the partition directory of a replica into a log directory; return it."""
    directory = log_directory / PARTITION
    directory.mkdir(parents=True)
    content, base = b"", replica.start
    for each in replica.log:
        if content and len(content) + len(each.built.data) > segment_bytes:
            (directory / f"{base:020d}.log").write_bytes(content)
            content, base = b"", each.built.base_offset
        content += each.built.data
    (directory / f"{base:020d}.log").write_bytes(content)
    write_epochs(directory, replica.epochs)
    write_topic_id(directory, TOPIC_ID)
    return directory


def write_epochs(directory: Path, epochs: list[tuple[int, int]]) -> None:
    lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
    (directory / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")


# ---- damage


def _flip(directory: Path, random: random.Random) -> None:
    path = random.choice(sorted(directory.glob("*.log")))
    data = bytearray(path.read_bytes())
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)


def _zeros(directory: Path, random: random.Random) -> None:
    path = random.choice(sorted(directory.glob("*.log")))
    data = bytearray(path.read_bytes())
    if data:
        at = random.randrange(len(data))
        end = min(len(data), at + 64)
        data[at:end] = bytes(end - at)
        path.write_bytes(data)


def _lose_segment(directory: Path, random: random.Random) -> None:
    random.choice(sorted(directory.glob("*.log"))).unlink()


def _cut_tail(directory: Path, random: random.Random) -> None:
    path = sorted(directory.glob("*.log"))[-1]
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(len(data) + 1)])


def _zero_tail(directory: Path, random: random.Random) -> None:
    path = sorted(directory.glob("*.log"))[-1]
    data = path.read_bytes()
    kept = random.randrange(len(data) + 1)
    path.write_bytes(data[:kept] + bytes(len(data) - kept))


def _no_checkpoint(directory: Path, random: random.Random) -> None:
    (directory / "leader-epoch-checkpoint").unlink(missing_ok=True)


def _stale_checkpoint(directory: Path, random: random.Random) -> None:
    path = directory / "leader-epoch-checkpoint"
    if path.exists():
        lines = path.read_text().splitlines()[2:]
        lines = lines[: random.randrange(len(lines) + 1)]
        pairs = [line.split() for line in lines]
        write_epochs(directory, [(int(epoch), int(start)) for epoch, start in pairs])


def _lose_replica(directory: Path, random: random.Random) -> None:
    shutil.rmtree(directory)
    directory.mkdir()


DAMAGE: dict[str, Callable[[Path, random.Random], None]] = {
    "flip": _flip,
    "flip again": _flip,
    "zeros": _zeros,
    "lose a segment": _lose_segment,
    "cut the tail": _cut_tail,
    "zeros at the tail": _zero_tail,
    "no checkpoint": _no_checkpoint,
    "stale checkpoint": _stale_checkpoint,
    "lose a replica": _lose_replica,
}


def damage(directory: Path, random: random.Random) -> str:
    """Harm a partition directory in one way; return its name."""
    kind = random.choice(list(DAMAGE))
    if kind in ("no checkpoint", "stale checkpoint") or list(directory.glob("*.log")):
        DAMAGE[kind](directory, random)
    return kind


# ---- judgement


def stored_batches(directory: Path) -> Iterator[bytes]:
    """Yield the batches of intact ``.log`` files, in order."""
    for path in sorted(directory.glob("*.log")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
            yield data[at : at + size]
            at += size


def whole_in(directory: Path, batch: bytes) -> bool:
    """Whether a batch is somewhere in the files of a damaged replica, byte for byte."""
    return any(batch in path.read_bytes() for path in directory.glob("*.log"))
