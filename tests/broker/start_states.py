"""States of a node's two disks that nobody has listed: harms of node and partitions, in pairs.

What a harm may be stands in `tests.support.node_harms`, `harms`, `text_harms` and `consumer_harms`.
A state is drawn by its number, and the same in each run. `Node` is what the harms are done to;
`complaints` says in what a start of a broker was not as it was foretold, or its consumers got
something else than was announced, once it is up and when its timers have run.
"""

from __future__ import annotations

import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pylog
from pylog.errors import LogStorageError
from pylog.files.file_names import FUTURE_DIR_SUFFIX
from tests.broker.consumption import ENDED, STUCK, Consumed, what_consumers_get
from tests.support.consumer_harms import CONSUMER_HARMS
from tests.support.harms import PARTITION_HARMS, Harmed
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker
from tests.support.node_harms import NODE_HARMS, TOPIC
from tests.support.text_harms import PARTITION_TEXT_HARMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pylog.results import AffectedOffsets, DoctorReport, Verdict
    from tests.support.harms import Harm
    from tests.support.node_harms import NodeHarm

PARTITIONS = 12
TRANSACTIONAL = range(0, PARTITIONS, 2)
"""Of these numbers, every third transaction of ten records was aborted."""
SIBLINGS = (PARTITIONS - 2, PARTITIONS - 1)
"""Partitions that no harm is done to: one with transactions, one without."""
RECORDS = 150
PAIRS = 80
STATES = 2 * len(NODE_HARMS) + PAIRS
"""How many a version has: each harm of a node after a clean and an unclean stop, then pairs."""
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
_LEADERS_SECONDS = 4.0
_CANNOT_BE_DONE = (OSError, ValueError, IndexError, StopIteration)
"""Where the harm before has taken away what one changes."""
_ISOLATIONS = ("read_uncommitted", "read_committed")

Rows = dict[int, str]
Partition = tuple[str, int]
Look = dict[Partition, Consumed]


class State(NamedTuple):
    """What is done to the disks of a node that has stopped."""

    number: int
    is_clean: bool
    node: tuple[NodeHarm, ...]
    partitions: dict[int, tuple[Harm, ...]]  # by the number of the partition
    has_refused: bool  # whether one of them that ends the broker stays

    @property
    def text(self) -> str:
        """What it is, for a message."""
        of_node = " + ".join(name for name, _ in self.node) or "nothing"
        of_partitions = "; ".join(
            f"{TOPIC}-{at}: {' + '.join(name for name, _ in harms)}"
            for at, harms in self.partitions.items()
        )
        return f"{'clean' if self.is_clean else 'unclean'}, {of_node}; {of_partitions}"


def state(version: str, number: int) -> State:
    """Return the state of a number: single harms of the node first, then pairs of them."""
    chance = random.Random(f"{version} {number}")
    singles = 2 * len(NODE_HARMS)
    if number < singles:
        node: tuple[NodeHarm, ...] = (NODE_HARMS[number // 2],)
        is_clean = number % 2 == 0
    else:
        node = tuple(chance.sample(NODE_HARMS, chance.choice((0, 2))))
        is_clean = chance.random() < 0.5
    partitions = {}
    for at in range(min(SIBLINGS)):
        known = [*PARTITION_HARMS, *PARTITION_TEXT_HARMS]
        known += CONSUMER_HARMS if at in TRANSACTIONAL else ()
        partitions[at] = tuple(chance.sample(known, chance.choice((1, 2, 2))))
    return State(number, is_clean, node, partitions, chance.random() < 0.1)


class Node:
    """A node with two disks that a broker closed in order, and copies of them to be harmed."""

    def __init__(self, directory: Path, version: str) -> None:
        self.version = version
        self._directory = directory
        disks = [directory / "base" / name for name in ("d1", "d2")]
        with self._broker(disks, _OFTEN) as broker:
            name = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
            config = {name: "16384", "index.interval.bytes": "1024", "retention.ms": "-1"}
            broker.create_topic(TOPIC, partitions=PARTITIONS, config=config)
            self._produce(broker)
            self.truth = {
                (each, isolation): consumed.values
                for isolation in _ISOLATIONS
                for each, consumed in what_consumers_get(
                    broker, {(TOPIC, at): 0 for at in range(PARTITIONS)}, isolation
                ).items()
            }
            broker.stop()
        self._base = directory / "base"

    def _produce(self, broker: KafkaBroker) -> None:
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

    def _broker(self, disks: Sequence[Path], properties: Mapping[str, str]) -> KafkaBroker:
        for each in disks:
            each.mkdir(parents=True, exist_ok=True)
        listed = ",".join(map(str, disks))
        return KafkaBroker(
            disks[0].parent,
            version=self.version,
            log_dir=disks[0],
            properties={"log.dirs": listed, **properties},
        )

    def harmed(self, state: State) -> tuple[list[Path], dict[int, tuple[Harm, ...]]]:
        """Return the disks of a copy in a state, and the harms of partitions that were left in it.

        What would end the broker is undone, but for one where the state wants it.
        """
        place = self._directory / "copy"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._base, place, symlinks=True)
        disks = [place / "d1", place / "d2"]
        if not state.is_clean:
            for each in disks:
                (each / ".kafka_cleanshutdown").unlink()
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
        for _, harm in state.node:
            with suppress(*_CANNOT_BE_DONE):
                disks = harm(disks)
        return disks, kept

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

    def foretold(self, disks: Sequence[Path]) -> DoctorReport:
        """Return what doctor says of a start of this version."""
        return pylog.doctor(*disks, kafka_version=self.version.rpartition(".")[0])

    def start(self, disks: Sequence[Path]) -> Started:
        """Start a broker, let its timers run, end it, and return what it served and has left."""
        broker = self._broker(disks, _MINUTES_MS)
        broker.is_to_be_formatted = False
        try:
            try:
                broker.start()
            except BrokerFailedError:
                return Started(is_up=False, log=broker.server_log)
            leaders = self._leaders(broker)
            served = [(TOPIC, at) for at, leader in leaders.items() if leader >= 0]
            offsets = _offsets(broker, served) if served else {}
            looks = []
            for pause in (0.0, _TEN_MINUTES_SECONDS):
                time.sleep(pause)
                begins = {(TOPIC, at): first for at, (first, _) in offsets.items()}
                looks.append(_look(broker, begins))
            return Started(
                is_up=True, leaders=leaders, offsets=offsets, looks=looks, log=broker.server_log
            )
        finally:
            broker.kill()

    def _leaders(self, broker: KafkaBroker) -> dict[int, int]:
        """Return the leader of each partition, -1 of one that still has none after a while."""
        deadline = time.monotonic() + _LEADERS_SECONDS
        while True:
            found = {}
            with suppress(KeyError, IndexError):
                [described] = broker.admin().describe_topics([TOPIC])
                found = {
                    each["partition_index"]: each["leader_id"] for each in described["partitions"]
                }
            is_done = len(found) == PARTITIONS and min(found.values()) >= 0
            if is_done or time.monotonic() > deadline:
                return found
            time.sleep(0.3)


def _look(broker: KafkaBroker, begins: Mapping[Partition, int]) -> dict[str, Look]:
    """Return what consumers of each level get, side by side."""
    if not begins:
        return {each: {} for each in _ISOLATIONS}
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda each: what_consumers_get(broker, begins, each), _ISOLATIONS)
        return dict(zip(_ISOLATIONS, found, strict=True))


def _offsets(broker: KafkaBroker, served: Sequence[Partition]) -> dict[int, tuple[int, int]]:
    with broker.consumer(served) as client:
        assigned = client.assignment()
        starts, ends = client.beginning_offsets(assigned), client.end_offsets(assigned)
    return {each.partition: (starts[each], ends[each]) for each in assigned}


@dataclass(slots=True)
class Started:
    """What a broker made of the disks."""

    is_up: bool
    leaders: dict[int, int] = field(default_factory=dict)
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    looks: list[dict[str, Look]] = field(default_factory=list)
    log: str = ""

    @property
    def was_assigned_in_time(self) -> bool:
        """Whether it told where its partitions are before it got leaders: milliseconds decide."""
        told, led = (self.log.find(each) for each in (": sending ", "handleBrokerUnfenced"))
        return 0 <= told < led


def complaints(
    node: Node, report: DoctorReport, started: Started, disks: Sequence[Path]
) -> list[str]:
    """Return in what it was not as it was foretold; none if it was."""
    verdict = report.verdict
    if started.is_up and verdict.would_start is False:
        return [f"it starts, and was said not to: {verdict.reasons}"]
    if not started.is_up:
        return [] if verdict.would_start is not True else [f"it does not start: {verdict.reasons}"]
    if verdict.would_start is None:
        return []  # it is said that this is not known, and why
    found = list(_about_strays(verdict, disks))
    for at in range(PARTITIONS):
        found += _about_partition(node, report, started, at)
    first, later = started.looks
    found += [
        f"{TOPIC}-{at} {isolation}: other rows after ten minutes"
        for isolation in _ISOLATIONS
        for (_, at), consumed in first[isolation].items()
        if consumed.trouble is None
        and later[isolation][TOPIC, at].values != consumed.values
        # Unless the broker has ended meanwhile, since somebody has read somewhere else.
        and all(each.from_offset is not None for each in Costs.of(verdict, at).of_consumers)
    ]
    found += _about_readers(node, verdict, started, disks)
    return found


def _names(affected: Iterable[AffectedOffsets]) -> set[int]:
    return {
        each.partition for each in affected if each.topic == TOPIC and each.partition is not None
    }


def _about_strays(verdict: Verdict, disks: Sequence[Path]) -> Iterator[str]:
    aside = {
        int(each.name.partition(".")[0].rpartition("-")[2])
        for disk in disks
        for each in disk.glob(f"{TOPIC}-*-stray")
    }
    said = _names(verdict.stray_partitions)
    if aside - said:
        yield f"set aside and not said: {sorted(aside - said)}"
    if said - aside:
        yield f"said to be set aside: {sorted(said - aside)}"


def _about_partition(node: Node, report: DoctorReport, started: Started, at: int) -> Iterator[str]:
    verdict = report.verdict
    unserved = at in _names(verdict.unserved)
    # Where the cluster does not know the topic any more, all its partitions are strays.
    is_known = bool(started.leaders) or not _names(verdict.stray_partitions)
    is_led = started.leaders.get(at, -1) >= 0
    if is_known and is_led == unserved and not (is_led and started.was_assigned_in_time):
        yield f"{TOPIC}-{at}: leader {started.leaders.get(at)}, said to be unserved: {unserved}"
    strays = [each for each in verdict.stray_partitions if FUTURE_DIR_SUFFIX not in each.path]
    if at not in started.offsets or at in _names(strays):
        return
    torn = min(
        (
            each.next_offset
            for partition in report.partitions
            if partition.topic_partition == (TOPIC, at)
            for each in partition.findings
            if each.code == "torn_tail" and each.next_offset is not None
        ),
        default=None,
    )
    for isolation in _ISOLATIONS:
        consumed = started.looks[0][isolation][TOPIC, at]
        truth = node.truth[(TOPIC, at), isolation]
        yield from _about_rows(truth, torn, consumed, Costs.of(verdict, at), at, isolation)
    starts = [
        each.start
        for each in report.partitions
        if each.topic_partition == (TOPIC, at) and each.path.endswith(f"/{TOPIC}-{at}")
    ]
    said = [(each.log_start_offset, each.log_end_offset) for each in starts if each is not None]
    # One that takes the place of the live one has no simulated start; its rows are compared.
    is_moved = any(
        f"/{TOPIC}-{at}." in each.path and FUTURE_DIR_SUFFIX in each.path
        for directory in report.directories
        for each in directory.findings
    )
    is_lost = at in _names(verdict.loses_records) or is_moved
    if said and started.offsets[at] not in said and not is_lost:
        yield f"{TOPIC}-{at}: offsets {started.offsets[at]}, said {said}"


def _about_rows(
    truth: Rows, torn: int | None, consumed: Consumed, costs: Costs, at: int, isolation: str
) -> Iterator[str]:
    what = f"{TOPIC}-{at} {isolation}"
    lacking = {offset for offset, value in truth.items() if consumed.values.get(offset) != value}
    unsaid = [each for each in lacking if not costs.explain(each, consumed.trouble)]
    if torn is not None:  # its records were never whole on the disk, and it is said
        unsaid = [each for each in unsaid if each < torn]
    if unsaid:
        yield f"{what}: {len(unsaid)} records from {min(unsaid)} on are not served; said: {costs}"
    wrong = consumed.values.keys() - truth.keys()
    if wrong and not costs.of_consumers:
        yield f"{what}: {len(wrong)} from {min(wrong)} on should not be served; said: {costs}"
    # Where all that comes is lost, the consumer stands before it, and gets no error.
    is_at_end = not lacking or (consumed.trouble == STUCK and not unsaid)
    stands_before_gap = is_at_end and bool(costs.lost)
    if consumed.trouble is not None and not (costs.of_consumers or stands_before_gap):
        yield f"{what}: {consumed.trouble}, and it is not said; said: {costs}"
    if isolation == "read_uncommitted":
        for each in costs.lost:
            meant = [offset for offset in truth if _has(each, offset)]
            if meant and lacking.isdisjoint(meant):
                yield f"{what}: all records are served; said: {each}"


class Costs(NamedTuple):
    """What was announced of a partition."""

    lost: list[AffectedOffsets]  # by the start, or already
    of_consumers: list[AffectedOffsets]

    @classmethod
    def of(cls, verdict: Verdict, at: int) -> Costs:
        """Return it of the partition with a number."""
        lost = [*verdict.loses_records, *verdict.lost_already]
        return cls(
            [each for each in lost if (each.topic, each.partition) == (TOPIC, at)],
            [each for each in verdict.consumers if (each.topic, each.partition) == (TOPIC, at)],
        )

    def explain(self, offset: int, trouble: str | None) -> bool:
        """Whether a record is announced to be missing; a consumer that stops gets none after it."""
        stops = trouble is not None and any(
            (each.from_offset or 0) <= offset or trouble == ENDED for each in self.of_consumers
        )
        return stops or any(_has(each, offset) for each in (*self.lost, *self.of_consumers))

    def __str__(self) -> str:
        return "; ".join(f"{each.text}: {each.reason}" for each in (*self.lost, *self.of_consumers))


def _has(affected: AffectedOffsets, offset: int) -> bool:
    start = affected.from_offset or 0
    return offset >= start and (affected.to_offset is None or offset < affected.to_offset)


def _about_readers(
    node: Node, verdict: Verdict, started: Started, disks: Sequence[Path]
) -> Iterator[str]:
    """Yield in what a scan of the disks that the broker has left is not what consumers got.

    Where they were announced to get something wrong, it gives an error, or what was written.
    """
    paths = [each for each in disks if not each.is_symlink()]
    for isolation in _ISOLATIONS:
        for (topic, at), consumed in started.looks[1][isolation].items():
            what = f"{topic}-{at} {isolation}"
            costs = Costs.of(verdict, at)
            is_wrong = bool(costs.of_consumers)
            try:
                table = pylog.scan(
                    paths, assign={topic: [at]}, isolation=isolation, columns=["offset", "value"]
                ).to_table()
            except LogStorageError as error:
                if not (is_wrong or costs.lost) and consumed.trouble is None:
                    yield f"{what}: consumers get all, and a scan fails: {error}"
                continue
            values = (each.decode(errors="replace") for each in table.column("value").to_pylist())
            rows = dict(zip(table.column("offset").to_pylist(), values, strict=True))
            if rows == consumed.values:
                continue
            truth = node.truth[(topic, at), isolation]
            differ = sorted(rows.items() ^ consumed.values.items())
            if not is_wrong and consumed.trouble is None:
                yield f"{what}: a scan differs from consumers, first {differ[:1]}"
            elif not rows.items() <= truth.items():
                yield f"{what}: a scan gives what was not written: {differ[:1]}"
