"""States of nodes that nobody has listed: harms of nodes and partitions, in pairs.

There are four kinds: nodes with two disks, with three, with two that a broker serves as another
user than root, and clusters of three nodes. What a harm may be stands in
`nodes`, `permissions`, `partitions`, `texts` and `consumers` of `tests.support.faults`. A state
is drawn by its number, and the same in each run. `Node` is what the harms are done to; what it was
said to become is compared by `tests.broker.start_complaints`.
"""

from __future__ import annotations

import random
import shutil
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka.admin import AdminClient

import pylog
from tests.broker.consumption import (
    Consumed,
    at_each_level,
    is_patience_over,
    leaders_of,
    offsets_for_times,
    offsets_of,
)
from tests.support.faults.consumers import CONSUMER_HARMS
from tests.support.faults.nodes import CLUSTER_HARMS, NODE_HARMS, TOPIC, partitions_on
from tests.support.faults.partitions import PARTITION_HARMS, Harmed
from tests.support.faults.permissions import USER, give, permission_harms
from tests.support.faults.texts import PARTITION_TEXT_HARMS
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker
from tests.support.kafka_cluster import KafkaCluster
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from pathlib import Path

    from pylog.results import DoctorReport
    from tests.broker.consumption import Partition
    from tests.support.faults.nodes import Disks
    from tests.support.faults.partitions import Harm

    Broker = KafkaBroker | KafkaCluster
    DisksHarm = tuple[str, Callable[[Disks], Sequence[Path | None]]]

PARTITIONS = 12
TRANSACTIONAL = range(0, PARTITIONS, 2)
"""Of these numbers, every third transaction of ten records was aborted."""
SIBLINGS = (PARTITIONS - 2, PARTITIONS - 1)
"""Partitions that no harm is done to: one with transactions, one without."""
RECORDS = 150


def _of_owners() -> Iterable[DisksHarm]:
    """Yield harms of owners and modes, of either disk."""
    names = {
        place: [name for name, _ in permission_harms("", has_metadata=not place)]
        for place in (0, 1)
    }
    for place, of_disk in names.items():
        for name in of_disk:

            def harm(disks: Disks, place: int = place, name: str = name) -> Disks:
                partition = partitions_on(disks[place])[0].name
                dict(permission_harms(partition, has_metadata=not place))[name](disks[place])
                return disks

            yield f"{name} (disk {place + 1})", harm


OWNER_HARMS: list[DisksHarm] = list(_of_owners())


class Kind(NamedTuple):
    """Nodes that are alike, and how many states of them a version has."""

    name: str
    harms: Sequence[DisksHarm]
    singles: int  # states of one harm: each after a clean stop, of most after a crash, too
    pairs: int  # states of two harms, of one, or of partitions alone
    disks: int = 2
    user: int | None = None  # whom the broker runs as; else as who runs the tests
    nodes: int = 1

    @property
    def states(self) -> int:
        """How many a version has."""
        return self.singles + self.pairs


TWO_DISKS = Kind("two disks", NODE_HARMS, singles=2 * len(NODE_HARMS), pairs=80)
THREE_DISKS = Kind("three disks", NODE_HARMS, singles=0, pairs=60, disks=3)
OWNERS = Kind("owners", OWNER_HARMS, singles=len(OWNER_HARMS), pairs=60, user=USER)
THREE_NODES = Kind(
    "three nodes", CLUSTER_HARMS, singles=2 * len(CLUSTER_HARMS), pairs=10, disks=3, nodes=3
)
KINDS = (TWO_DISKS, THREE_DISKS, OWNERS, THREE_NODES)
_MINUTES_MS = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "400",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "500",
    "file.delete.delay.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "offsets.retention.check.interval.ms": "600",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "600",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "600",
}
"""Timers that run in a broker's first ten minutes, shortened."""
_TEN_MINUTES_SECONDS = 2.5
_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "100"}
_VOTES = {
    "initial.broker.registration.timeout.ms": "30000",  # how long a node waits for the others
    "broker.session.timeout.ms": "6000",
}
_LEADERS_SECONDS = 20.0
_CANNOT_BE_DONE = (OSError, ValueError, IndexError, StopIteration, struct.error)
"""What a harm raises where the one before has taken away what it changes."""


class State(NamedTuple):
    """What is done to the disks of a node, or a cluster, that has stopped."""

    number: int
    is_clean: bool
    node: tuple[DisksHarm, ...]
    partitions: dict[int, tuple[Harm, ...]]  # by the number of the partition
    has_refused: bool  # whether one of them that ends the broker stays
    owners: tuple[DisksHarm, ...] = ()

    @property
    def text(self) -> str:
        """What it is, for a message."""
        of_node = " + ".join(name for name, _ in (*self.node, *self.owners)) or "nothing"
        of_partitions = "; ".join(
            f"{TOPIC}-{at}: {' + '.join(name for name, _ in harms)}"
            for at, harms in self.partitions.items()
        )
        return f"{'clean' if self.is_clean else 'unclean'}, {of_node}; {of_partitions}"


def state(version: str, number: int, kind: Kind = TWO_DISKS) -> State:
    """Return the state of a number: single harms of the node first, then pairs of them."""
    chance = random.Random(
        f"{version} {number}" if kind is TWO_DISKS else f"{version} {kind.name} {number}"
    )
    if number < kind.singles:
        times = kind.singles // len(kind.harms)
        node: tuple[DisksHarm, ...] = (kind.harms[number // times],)
        is_clean = number % 2 == 0
    else:
        node = tuple(_pair(kind, chance))
        is_clean = chance.random() < 0.5
    partitions = {}
    for at in range(min(SIBLINGS)):
        known = [*PARTITION_HARMS, *PARTITION_TEXT_HARMS]
        known += CONSUMER_HARMS if at in TRANSACTIONAL else ()
        partitions[at] = tuple(chance.sample(known, chance.choice((1, 2, 2))))
    owners = tuple(each for each in node if each in OWNER_HARMS)
    node = tuple(each for each in node if each not in OWNER_HARMS)
    return State(number, is_clean, node, partitions, chance.random() < 0.1, owners)


def _pair(kind: Kind, chance: random.Random) -> Iterable[DisksHarm]:
    if kind is TWO_DISKS:
        return chance.sample(NODE_HARMS, chance.choice((0, 2)))
    if kind is THREE_DISKS:  # two of them end most nodes
        return chance.sample(NODE_HARMS, chance.choice((0, 1, 1, 2)))
    if kind is OWNERS and chance.random() < 0.5:
        return [chance.choice(NODE_HARMS), chance.choice(OWNER_HARMS)]
    if kind is THREE_NODES:  # nodes that do not start are the last to be chosen
        first = chance.choice(CLUSTER_HARMS[3:])
        return [first, chance.choice([each for each in CLUSTER_HARMS if each is not first])]
    return chance.sample(list(kind.harms), 2)


class Node:
    """A node, or a cluster, that was closed in order, and copies of its disks to be harmed.

    The directory has to be one that any user can look into.
    """

    def __init__(self, directory: Path, version: str, kind: Kind = TWO_DISKS) -> None:
        self.version = version
        self.kind = kind
        self._directory = directory
        self._base = directory / "base"
        disks = [self._base / f"d{at + 1}" for at in range(kind.disks)]
        try:
            self._make(disks)
        except BrokerFailedError:
            # The last node of a cluster to close waits for the others, which have gone.
            shutil.rmtree(self._base)
            self._make(disks)
        self._homes = {
            int(each.name.rpartition("-")[2]): each.parent.name
            for disk in disks
            for each in partitions_on(disk)
        }

    def _make(self, disks: Sequence[Path]) -> None:
        """Write records, and close the node in order."""
        version = self.version
        with self._broker(disks, _OFTEN, user=None) as broker:
            name = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
            config = {name: "16384", "index.interval.bytes": "1024", "retention.ms": "-1"}
            broker.create_topic(TOPIC, partitions=PARTITIONS, config=config)
            self._produce(broker)
            starts = {(TOPIC, at): 0 for at in range(PARTITIONS)}
            self.truth = {
                (each, isolation): consumed.values
                for isolation, got in at_each_level(broker.bootstrap_servers, starts).items()
                for each, consumed in got.items()
            }
            broker.stop()

    def on_absent_nodes(self, disks: Sequence[Path | None]) -> set[int]:
        """Return the partitions of nodes that do not start, of which nothing is said."""
        absent = {f"d{at}" for at, disk in enumerate(disks, start=1) if disk is None}
        return {partition for partition, home in self._homes.items() if home in absent}

    def _produce(self, broker: Broker) -> None:
        for partition in range(PARTITIONS):
            is_transactional = partition in TRANSACTIONAL
            options = {"transactional_id": f"t{partition}"} if is_transactional else {}
            with broker.producer(batch_size=1200, linger_ms=20, **options) as producer:
                if is_transactional:
                    producer.init_transactions()
                for ten in range(0, RECORDS, 10):
                    if is_transactional:
                        producer.begin_transaction()
                    for number in range(ten, ten + 10):
                        value, key = b"%06d" % number * 40, b"k%d" % (number % 7)
                        producer.send(TOPIC, value, key, partition=partition)
                    producer.flush()
                    if is_transactional and ten % 30 == 10:
                        producer.abort_transaction()
                    elif is_transactional:
                        producer.commit_transaction()

    def _broker(
        self, disks: Sequence[Path | None], properties: Mapping[str, str], user: int | None
    ) -> Broker:
        there = [each for each in disks if each is not None]
        for each in there:
            each.mkdir(parents=True, exist_ok=True)
        if self.kind.nodes > 1:
            return KafkaCluster(
                there[0].parent,
                version=self.version,
                disks=disks,
                properties=properties,
            )
        listed = ",".join(map(str, there))
        return KafkaBroker(
            there[0].parent,
            version=self.version,
            log_dir=there[0],
            properties={"log.dirs": listed, **properties},
            user=user,
        )

    def harmed(self, state: State) -> tuple[list[Path | None], dict[int, tuple[Harm, ...]]]:
        """Return the disks of a copy in a state, and the harms of partitions that were left in it.

        What would end the broker is undone, but for one where the state wants it. Owners are the
        last that change.
        """
        place = self._directory / "copy"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._base, place, symlinks=True)
        disks = sorted(place.glob("d?"))
        if not state.is_clean:
            for each in disks:
                (each / ".kafka_cleanshutdown").unlink()
        kept = self._harm_partitions(disks, state)
        given: Sequence[Path | None] = disks
        for harm in state.node:
            given = _done(harm, given)
        if self.kind.user is not None:
            for each in disks:
                give(each, self.kind.user)
        for harm in state.owners:
            given = _done(harm, given)
        return list(given), kept

    def _harm_partitions(self, disks: Sequence[Path], state: State) -> dict[int, tuple[Harm, ...]]:
        kept: dict[int, tuple[Harm, ...]] = {}
        refused = 0
        for at, harms in state.partitions.items():
            [directory] = [found for each in disks for found in each.glob(f"{TOPIC}-{at}")]
            [sibling] = self._base.glob(f"d?/{TOPIC}-{SIBLINGS[at not in TRANSACTIONAL]}")
            if not self._harm(Harmed(directory, sibling), harms):
                self._undo(directory)
                continue
            found = pylog.doctor(directory.parent, partitions=[at], topics=[TOPIC]).refusals
            if any(f"/{directory.name}" in each.path for each in found):
                if not state.has_refused or refused:
                    self._undo(directory)
                    continue
                refused += 1
            kept[at] = harms
        return kept

    def _harm(self, harmed: Harmed, harms: Iterable[Harm]) -> bool:
        """Do harms one after the other; return whether each could be done."""
        for _, harm in harms:
            try:
                harm(harmed)
            except _CANNOT_BE_DONE:
                return False
        return True

    def _undo(self, directory: Path) -> None:
        shutil.rmtree(directory)
        shutil.copytree(self._base / directory.parent.name / directory.name, directory)

    def foretold(self, disks: Sequence[Path | None]) -> DoctorReport:
        """Return what doctor says of a start of this version."""
        return pylog.doctor(
            *(each for each in disks if each is not None),
            kafka_version=self.version.rpartition(".")[0],
            as_user=self.kind.user,
        )

    def start(
        self,
        disks: Sequence[Path | None],
        unserved: Container[int] = (),
        *,
        is_to_end: bool = False,
    ) -> Started:
        """Start it, let timers run, end it, and return what it served and has left.

        Nobody waits for leaders of the partitions in ``unserved``. One that is said to end by
        itself gets the time for it.
        """
        before = set(_strays(disks))
        broker = self._broker(disks, _MINUTES_MS | _VOTES, self.kind.user)
        broker.is_to_be_formatted = False
        try:
            try:
                broker.start()
            except BrokerFailedError:
                return Started(is_up=False, log=broker.server_log)
            leaders = [self._leaders(broker, unserved)]
            offsets = self._offsets(broker, leaders[0])
            begins = {(TOPIC, at): first for at, (first, _) in offsets.items()}
            looks = [at_each_level(broker.bootstrap_servers, begins)]
            # This opens time indexes, as retention does.
            if self.kind.user is not None and broker.is_running:
                offsets_for_times(broker.bootstrap_servers, [*begins], [1])
            time.sleep(_TEN_MINUTES_SECONDS)
            if is_to_end:
                with suppress(TimeoutError):
                    wait_for(lambda: not broker.is_running, "the end of the broker")
            if not broker.is_running:
                return Started(is_up=False, has_ended=True, log=broker.server_log)
            leaders.append(self._leaders(broker, unserved, has_run=True))
            looks.append(at_each_level(broker.bootstrap_servers, begins))
            return Started(
                is_up=True,
                leaders=leaders,
                offsets=offsets,
                looks=looks,
                aside={number for name, number in _strays(disks) if (name, number) not in before},
                log=broker.server_log,
            )
        finally:
            broker.kill()

    def _leaders(
        self, broker: Broker, unserved: Container[int], *, has_run: bool = False
    ) -> dict[int, int]:
        """Return the leader of each partition, -1 of one that still has none after a while.

        Those in ``unserved`` have none at the latest when the broker has run.
        """
        since = time.monotonic()
        client = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        while True:
            found = dict.fromkeys(range(PARTITIONS), -1)
            found |= leaders_of(broker.bootstrap_servers, TOPIC)
            is_done = all(
                leader < 0 or not has_run if at in unserved else leader >= 0
                for at, leader in found.items()
            )
            if is_done or is_patience_over(client, since, _LEADERS_SECONDS * self.kind.nodes):
                return found
            time.sleep(0.3)

    def _offsets(self, broker: Broker, leaders: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        led = [(TOPIC, at) for at, leader in leaders.items() if leader >= 0]
        found = offsets_of(broker.bootstrap_servers, led)
        return {at: offsets for (_, at), offsets in found.items()}


def _strays(disks: Sequence[Path | None]) -> Iterable[tuple[str, int]]:
    """Yield names and partitions of directories that are set aside."""
    for disk in disks:
        for each in disk.glob(f"{TOPIC}-*-stray") if disk is not None else ():
            yield each.name, int(each.name.partition(".")[0].rpartition("-")[2])


def _done(harm: DisksHarm, disks: Sequence[Path | None]) -> Sequence[Path | None]:
    """Return the disks after a harm, if it could be done."""
    with suppress(*_CANNOT_BE_DONE):
        return harm[1]([each for each in disks if each is not None])
    return disks


@dataclass(slots=True)
class Started:
    """What a broker made of the disks."""

    is_up: bool
    has_ended: bool = False  # some time after its start
    leaders: list[dict[int, int]] = field(default_factory=list)  # at once, and after ten minutes
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    looks: list[dict[str, dict[Partition, Consumed]]] = field(default_factory=list)  # likewise
    aside: set[int] = field(default_factory=set)  # what it has renamed to -stray
    log: str = ""

    @property
    def was_assigned_in_time(self) -> bool:
        """Whether it told where its partitions are before it got leaders: milliseconds decide."""
        told, led = (self.log.find(each) for each in (": sending ", "handleBrokerUnfenced"))
        return 0 <= told < led
