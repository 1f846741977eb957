"""Random histories of clusters of which some disks are left, and what serves them afterwards.

A run has one cluster of three nodes, or of three controllers and two brokers, and several topics
with histories of their own: on which brokers they are, what is written to them in transactions or
plainly, and what while one broker is away. All that was acknowledged stands in a ledger. Then the
nodes are killed or stopped, disks are lost, and one of the ways back is gone. What is served is
held against the ledger, and against the logs on the disks as the tests read them.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

import pylog
from pylog.results import Fate
from tests.broker.recovery_cluster import (
    Clients,
    RecoveryCluster,
    Shape,
    batches,
    end_offset,
    stored,
    wait_for,
)
from tests.broker.test_first_aid import known_to, tree_hash
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_tools import run_tool

if TYPE_CHECKING:
    from pylog.results import FirstAid

_CODECS = ("none", "gzip", "lz4", "zstd")
_SMALL_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "metadata.log.segment.ms": "3000",
    "metadata.max.retention.bytes": "3000",
    "metadata.max.retention.ms": "5000",
}
_ENDED = 0.3
_SESSION_SECONDS = 7
_CLEAN = (Fate.UNTOUCHED, Fate.IN_SYNC, Fate.ELIGIBLE)


class Ending(StrEnum):
    """What happens to the cluster, and what is done about it."""

    QUORUM_LOST = "most controllers lost"
    ONE_COPY_LONGER = "the survivor was behind"
    ADDRESSES = "addresses changed"
    METADATA_LOST = "metadata lost"
    MOVED = "hosts and cluster id changed"
    SHRUNK = "three nodes to one"


class Run(NamedTuple):
    """One run, as its test has it."""

    seed: int
    ending: Ending
    version: str
    is_dynamic: bool
    is_apart: bool

    def __str__(self) -> str:
        parts = [self.ending.name.lower(), self.version, f"kraft-{int(self.is_dynamic)}"]
        return "-".join([*parts, "apart" if self.is_apart else "combined", str(self.seed)])


@dataclass
class Topic:
    """A topic, and what was acknowledged of it."""

    name: str
    assignments: list[list[int]]
    config: dict[str, str] = field(default_factory=dict)
    is_written_in_absence: bool = False
    records: dict[int, dict[int, bytes]] = field(default_factory=dict)
    aborted: set[bytes] = field(default_factory=set)

    @property
    def partitions(self) -> range:
        return range(len(self.assignments))


class Group(NamedTuple):
    """A group and its positions in its topic, as it committed them one after the other."""

    name: str
    protocol: str
    positions: list[dict[int, int]]

    @property
    def is_java(self) -> bool:
        return self.name == "java"


class Announced(NamedTuple):
    """What was said of a partition: whether records may be lost, and who has to lead it."""

    is_clean: bool = True
    is_served: bool = True
    is_empty: bool = False
    leader: int | None = None
    text: str = ""


UNTOUCHED = Announced()


class History:
    """One run: the cluster that ends, and the one that goes on."""

    def __init__(self, run: Run, directory: Path) -> None:
        self.run, self.directory = run, directory
        self.random = Random(run.seed)
        brokers, controllers = ((4, 5), (1, 2, 3)) if run.is_apart else ((1, 2, 3), (1, 2, 3))
        self.shape = Shape(run.version, run.is_dynamic, brokers, controllers)
        self.survivor = self.random.choice(brokers)
        self.others = [each for each in brokers if each != self.survivor]
        self.disks = {each: directory / f"disk-{each}" for each in self.shape.nodes}
        self.properties = {
            "offsets.topic.replication.factor": str(len(brokers)),
            "offsets.topic.num.partitions": str(self.random.randint(1, 4)),
            "transaction.state.log.replication.factor": str(len(brokers)),
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.min.isr": str(self.random.choice([1, 2])),
        }
        self.has_snapshots = self.random.random() < 0.5
        if self.has_snapshots:
            self.properties |= _SMALL_SNAPSHOTS
        self.absent = self._absent()
        self.comes_back = self.absent is not None and (
            run.ending is Ending.QUORUM_LOST
            or (run.ending is not Ending.ONE_COPY_LONGER and self.random.random() < 0.5)
        )
        self.topics: dict[str, Topic] = {}
        self.groups: list[Group] = []
        self.outcomes: Counter[str] = Counter()
        self._numbers = iter(range(1_000_000))

    def _absent(self) -> int | None:
        if self.run.ending is Ending.ONE_COPY_LONGER:
            return self.survivor
        return self.random.choice([None, self.survivor, self.random.choice(self.others)])

    # The cluster that ends.

    def live(self) -> None:
        """Let the cluster serve, and end it."""
        random = self.random
        cluster = RecoveryCluster(self.directory / "old", self.shape, self.disks, self.properties)
        self.old = cluster
        with cluster:
            for node in cluster.nodes.values():
                node.format()
            cluster.each(KafkaBroker.start)
            self._make(cluster, self._first_topics())
            for topic in self.topics.values():
                self._write(cluster, topic)
            self._start_groups(cluster)
            if self.absent is not None:
                self._be_without(cluster, self.absent)
            for topic in self.topics.values():
                if random.random() < 0.4:
                    self._write(cluster, topic)
            if self.has_snapshots:
                time.sleep(6)
            self._settle(cluster)
            running = [each for each, node in cluster.nodes.items() if node.is_running]
            is_killed = random.random() < 0.6
            cluster.each(KafkaBroker.kill if is_killed else _stop, running)

    def _settle(self, cluster: RecoveryCluster) -> None:
        """Wait until each broker that runs knows its replicas to be in sync."""
        running = {each for each in self.shape.brokers if cluster.nodes[each].is_running}

        def are_in_sync() -> bool:
            return all(
                set(each["isrNodes"]) >= running & set(each["replicaNodes"])
                for node in running
                for topic in known_to(cluster.nodes[node])["topics"]
                for each in topic["partitions"]
                if each["leaderId"] in running
            )

        wait_for(are_in_sync, f"{self.run}: replicas in sync")

    def _first_topics(self) -> list[Topic]:
        random, brokers, survivor = self.random, list(self.shape.brokers), self.survivor

        def anywhere(partitions: int, replicas: int = len(brokers)) -> list[list[int]]:
            return [random.sample(brokers, replicas) for _ in range(partitions)]

        def is_chosen() -> bool:
            return random.random() < 0.5

        count = random.randint(1, len(self.others))
        away = [random.sample(self.others, count) for _ in range(2)]
        mixed = anywhere(3, random.randint(1, len(brokers)))
        return [
            Topic("whole", anywhere(2), is_written_in_absence=is_chosen()),
            Topic("behind", anywhere(2), is_written_in_absence=True),
            Topic("without", away),
            Topic("alone", [[survivor]], {"segment.bytes": "1048576"}),
            Topic("mixed", mixed, {"retention.ms": "-1"}, is_written_in_absence=is_chosen()),
            Topic("strict", anywhere(1, 2), {"min.insync.replicas": "2"}),
        ]

    def _make(self, cluster: RecoveryCluster, topics: list[Topic]) -> None:
        cluster.create(
            NewTopic(
                each.name,
                num_partitions=len(each.assignments),
                replica_assignment=each.assignments,
                config=each.config,
            )
            for each in topics
        )
        for each in topics:
            self.topics[each.name] = each

    def _write(self, cluster: RecoveryCluster, topic: Topic) -> None:
        for partition in topic.partitions:
            leader, in_sync = cluster.partitions(topic.name).get(partition, (-1, []))
            if leader not in cluster.nodes or not cluster.nodes[leader].is_running:
                continue
            if len(in_sync) < int(topic.config.get("min.insync.replicas", "1")):
                continue
            for _ in range(self.random.randint(1, 3)):
                values = [
                    b"%s-%d-%d" % (topic.name.encode(), partition, next(self._numbers))
                    for _ in range(self.random.randint(1, 20))
                ]
                transaction = self.random.choice([None, None, "first", "second"])
                if sum(cluster.nodes[each].is_running for each in self.shape.brokers) < 2:
                    transaction = None  # one of two brokers cannot make __transaction_state
                commits = self.random.random() < 0.7
                codec = self.random.choice(_CODECS)
                found = cluster.produce(
                    topic.name,
                    partition,
                    values,
                    transaction=transaction,
                    commits=commits,
                    codec=codec,
                )
                if transaction is None or commits:
                    topic.records.setdefault(partition, {}).update(found)
                else:
                    topic.aborted |= set(values)

    def _start_groups(self, cluster: RecoveryCluster) -> None:
        has_new_protocol = not self.run.version.startswith("3.")
        is_new = has_new_protocol and self.random.random() < 0.5
        self.groups = [
            Group("classic", "classic", []),
            Group("java", "consumer" if is_new else "classic", []),
        ]
        if has_new_protocol:
            self.groups.append(Group("modern", "consumer", []))
        for each in self.groups:
            self._let_commit(cluster, each)

    def _let_commit(self, cluster: RecoveryCluster, group: Group) -> None:
        topic, count = "whole", self.random.randint(1, 8)
        if group.is_java:
            read = cluster.java_group(group.name, group.protocol, topic, count)
            found = {partition: offset + 1 for partition, offset in read}
        else:
            found = cluster.commit(group.name, group.protocol, topic, count)
        before = group.positions[-1] if group.positions else {}
        group.positions.append({**before, **found})

    def _be_without(self, cluster: RecoveryCluster, broker: int) -> None:
        random = self.random
        cluster.each(_stop if random.random() < 0.5 else KafkaBroker.kill, [broker])
        time.sleep(_SESSION_SECONDS)
        for topic in self.topics.values():
            if topic.is_written_in_absence:
                self._write(cluster, topic)
        left = [each for each in self.shape.brokers if each != broker]
        newer = Topic("newer", [random.sample(left, len(left))])
        self._make(cluster, [newer])
        self._write(cluster, newer)
        self._let_commit(cluster, self.groups[0])
        if self.comes_back:
            cluster.each(KafkaBroker.start, [broker])
            wait_for(
                lambda: all(
                    broker in in_sync
                    for each in self.topics.values()
                    for number, (_, in_sync) in cluster.partitions(each.name).items()
                    if broker in each.assignments[number]
                ),
                f"broker {broker} to be in sync again",
            )

    # The one that goes on.

    def go_on(self) -> None:
        """Recover it, and hold what is served against what was acknowledged."""
        match self.run.ending:
            case Ending.QUORUM_LOST | Ending.ONE_COPY_LONGER:
                self._go_on_after_first_aid()
            case Ending.ADDRESSES:
                self._go_on_at_new_addresses()
            case Ending.METADATA_LOST:
                self._go_on_in_new_cluster()
            case Ending.MOVED | Ending.SHRUNK:
                self._go_on_elsewhere()

    def _go_on_after_first_aid(self) -> None:
        random, run = self.random, self.run
        other = random.choice(self.others)
        is_with_other = run.ending is Ending.ONE_COPY_LONGER or random.random() < 0.4
        controller = random.choice(self.shape.controllers) if run.is_apart else self.survivor
        given = [self.survivor, *([other] if is_with_other else [])]
        kept = [self.survivor, *([other] if is_with_other and random.random() < 0.4 else [])]
        paths = [self.disks[each] for each in dict.fromkeys([controller, *given])]
        before = {each: tree_hash(each) for each in paths}
        shape = Shape(run.version, run.is_dynamic, tuple(kept), (controller,))
        cluster = self._again(shape, self.disks)
        aid = pylog.first_aid(
            *paths,
            to=self.directory / "copy",
            voters=[controller],
            endpoints=cluster.endpoints,
            lost=[each for each in self.shape.brokers if each not in kept],
            elects_unclean=random.random() < 0.5,
            reassigns=not run.is_apart and random.random() < 0.5,
        )
        assert {each: tree_hash(each) for each in paths} == before
        self._is_announced_as(aid, kept)
        # Nothing has been taken from the disks.
        assert not any(
            text in each
            for each in aid.losses
            for text in ("begins with an empty log", "had reached", "-stray", "to its end")
        ), (self.run, aid.losses)
        metadata = self.disks[controller] / "__cluster_metadata-0"
        shutil.rmtree(metadata)
        shutil.copytree(self.directory / "copy" / "__cluster_metadata-0", metadata)
        logs = self._logs(given)
        with cluster:
            cluster.each(KafkaBroker.start)
            self._do_steps(cluster, aid)
            said = {(each.topic, each.partition): _said(each) for each in aid.partitions}
            self._check(cluster, said, logs, kept)
            self._check_afterwards(cluster, said)

    def _is_announced_as(self, aid: FirstAid, kept: list[int]) -> None:
        """Hold the counts that first aid names against the logs on the disks."""
        for each in aid.partitions:
            if each.topic.startswith("__") or each.missing is None:
                continue
            topic = self.topics[each.topic]
            ends = {
                node: end_offset(self.disks[node], each.topic, each.partition)
                for node in topic.assignments[each.partition]
            }
            if each.fate in (Fate.LOST, Fate.REASSIGNED):
                assert each.missing in ends.values(), (each, ends)
            elif each.fate is Fate.UNCLEAN:
                assert each.leader in kept
                given = [end for node, end in ends.items() if node != each.leader]
                assert each.missing <= max(0, *(end - ends[each.leader] for end in given)), each

    def _do_steps(self, cluster: RecoveryCluster, aid: FirstAid) -> None:
        """Call the tools that first aid has named."""
        for step in aid.steps:
            words = step.split()
            options = dict(pairwise(words))
            if words[0] == "kafka-configs.sh":
                run_tool(
                    "org.apache.kafka.tools.ConfigCommand",
                    *("--bootstrap-server", cluster.bootstrap_servers, *words[3:]),
                )
            elif words[0] == "kafka-leader-election.sh":
                place = TopicPartition(options["--topic"], int(options["--partition"]))
                wait_for(partial(_elected, cluster, place), step)

    def _go_on_at_new_addresses(self) -> None:
        shape, logs = self.shape, self._logs(self.shape.nodes)
        said: dict[tuple[str, int], Announced] = {}
        with self._again(shape, self.disks) as cluster:
            if self.run.is_dynamic:
                paths = [self.disks[each] for each in shape.controllers]
                others = [self.disks[each] for each in shape.brokers if self.run.is_apart]
                aid = pylog.first_aid(
                    *paths, *others, to=self.directory / "copy", endpoints=cluster.endpoints
                )
                assert aid.losses == []
                metadata = paths[0] / "__cluster_metadata-0"
                shutil.rmtree(metadata)
                shutil.copytree(self.directory / "copy" / "__cluster_metadata-0", metadata)
            cluster.each(KafkaBroker.start)
            self._check(cluster, said, logs, shape.brokers)
            self._check_afterwards(cluster, said)

    def _go_on_in_new_cluster(self) -> None:
        random, run = self.random, self.run
        brokers = self.shape.brokers
        given = random.choice([list(brokers), [self.survivor]])
        for each in self.disks.values():
            shutil.rmtree(each / "__cluster_metadata-0")
        count = random.choice([1, 3])
        ids = tuple(range(11, 11 + count))
        shape = Shape(run.version, run.is_dynamic, ids, ids)
        disks = {each: self.directory / f"disk-{each}" for each in ids}
        properties = {"offsets.topic.replication.factor": str(count)}
        logs = self._logs(given)
        with RecoveryCluster(self.directory / "new", shape, disks, properties) as cluster:
            for node in cluster.nodes.values():
                node.format()
            paths = [self.disks[each] for each in given]
            hashes = {each: tree_hash(each) for each in paths}
            done = pylog.adopt(*paths, into=list(disks.values()))
            assert {each: tree_hash(each) for each in paths} == hashes
            self._has_the_same_bytes(done)
            said = {}
            texts = [*done.losses, *done.notes]
            for adopted in done.partitions:
                name = f"{adopted.topic}-{adopted.partition}"
                text = next((each for each in texts if name in each), "")
                said[adopted.topic, adopted.partition] = Announced(
                    is_clean=not text,
                    is_empty=adopted.source is None,
                    leader=adopted.replicas[0],
                    text=text,
                )
            cluster.each(KafkaBroker.start)
            self._check(cluster, said, logs, given, is_by_disk=True)
            self._check_afterwards(cluster, said)

    def _go_on_elsewhere(self) -> None:
        random, run = self.random, self.run
        given, kept = self.shape.nodes, self.shape.nodes
        controllers = self.shape.controllers
        if run.ending is Ending.SHRUNK:
            kept, controllers = [self.survivor], (self.survivor,)
            given = random.choice([given, [self.survivor]])
        shape = Shape(
            run.version,
            run.is_dynamic,
            tuple(each for each in self.shape.brokers if each in kept),
            controllers,
        )
        moved = {each: self.directory / f"moved-{each}" for each in kept}
        cluster = RecoveryCluster(self.directory / "moved", shape, moved, self._alone(shape))
        is_formatted = not run.is_dynamic and random.random() < 0.5
        logs = self._logs(given)
        with cluster:
            for node in cluster.nodes.values():
                if is_formatted:
                    node.format()
                node.is_to_be_formatted = False
            paths = [self.disks[each] for each in given]
            before = {each: tree_hash(each) for each in paths}
            done = pylog.jobs.adopt_cluster(
                *paths,
                into=[moved[each] for each in kept],
                nodes=kept,
                voters=controllers,
                endpoints=cluster.endpoints,
                cluster_id=None if is_formatted else cluster.nodes[kept[0]].cluster_id,
            )
            assert {each: tree_hash(each) for each in paths} == before
            assert done.cluster_id == cluster_id_of(cluster)
            self._has_the_same_bytes(done)
            said = {}
            for adopted in done.partitions:
                name = f"{adopted.topic}-{adopted.partition}"
                text = next((each for each in done.losses if name in each), "")
                said[adopted.topic, adopted.partition] = Announced(
                    is_clean=not text, is_empty=adopted.source is None, text=text
                )
            self._has_lost_only_what_it_must(done.losses, given)
            cluster.each(KafkaBroker.start)
            self._check(cluster, said, logs, given)
            self._check_afterwards(cluster, said)

    def _alone(self, shape: Shape) -> dict[str, str]:
        """Return the settings of a cluster of fewer brokers."""
        factor = str(len(shape.brokers))
        return {
            **self.properties,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
        }

    def _has_the_same_bytes(self, done: pylog.results.AdoptionSummary) -> None:
        """Hold the copies of leaders' logs against those that they were made of."""
        for each in done.partitions:
            if each.source is not None and not each.missing:
                source, copy = (batches(Path(path)) for path in (each.source, each.directories[0]))
                assert [one.data for one in copy] == [one.data for one in source], (self.run, each)
                self.outcomes["with the same bytes"] += 1

    def _has_lost_only_what_it_must(self, losses: list[str], given: list[int]) -> None:
        """Ensure that nothing is lost where all disks are there."""
        if set(given) == set(self.shape.nodes):
            assert losses == [], losses

    def _again(self, shape: Shape, disks: dict[int, Path]) -> RecoveryCluster:
        again = RecoveryCluster(self.directory / "again", shape, disks, self.properties)
        for each in again.nodes.values():
            each.is_to_be_formatted = False
        return again

    def _logs(self, given: list[int] | tuple[int, ...]) -> dict[tuple[str, int, int], bytes]:
        """Return what the logs of partitions have before anything is started on them."""
        found = {}
        for node in given:
            for topic in self.topics.values():
                for number in topic.partitions:
                    directory = self.disks[node] / f"{topic.name}-{number}"
                    if directory.is_dir():
                        found[topic.name, number, node] = b"".join(
                            each.data for each in batches(directory)
                        )
        return found

    # What has to be so.

    def _check(
        self,
        cluster: RecoveryCluster,
        said: dict[tuple[str, int], Announced],
        logs: dict[tuple[str, int, int], bytes],
        given: list[int] | tuple[int, ...],
        *,
        is_by_disk: bool = False,
    ) -> None:
        for topic in self.topics.values():
            for number in topic.partitions:
                on_given = {
                    offset: value
                    for node in given
                    for offset, value in (
                        stored(self.disks[node], topic.name, number) or {}
                    ).items()
                }
                announced = said.get((topic.name, number), UNTOUCHED)
                if is_by_disk and (topic.name, number) not in said:
                    assert not on_given, f"{topic.name}-{number} is on a disk, and not adopted"
                    self.outcomes["on no disk"] += 1
                    continue
                self._check_partition(cluster, topic, number, announced, on_given)
                if announced.is_clean and announced.is_served and not announced.is_empty:
                    self._check_bytes(cluster, topic.name, number, logs)

    def _check_bytes(
        self,
        cluster: RecoveryCluster,
        topic: str,
        number: int,
        logs: dict[tuple[str, int, int], bytes],
    ) -> None:
        """Ensure that a lone broker has kept the bytes of the log that it leads."""
        if len(cluster.shape.brokers) > 1:
            return
        [node] = cluster.shape.brokers
        before = logs.get((topic, number, node))
        directory = cluster.nodes[node].log_dir / f"{topic}-{number}"
        if before is not None and cluster.nodes[node].log_dir == self.disks.get(node):
            now = b"".join(each.data for each in batches(directory))
            assert now.startswith(before), f"{self.run}: {topic}-{number} is another one"
            self.outcomes["with the same bytes"] += 1

    def _check_partition(
        self,
        cluster: RecoveryCluster,
        topic: Topic,
        number: int,
        announced: Announced,
        on_given: dict[int, bytes],
    ) -> None:
        name = f"{self.run}: {topic.name}-{number} {announced}"
        acknowledged = topic.records.get(number, {})
        if not announced.is_served:
            wait_for(lambda: cluster.leader(topic.name, number) < 0, f"{name}: a leader")
            self.outcomes[announced.text] += 1
            return
        wait_for(lambda: cluster.leader(topic.name, number) >= 0, f"{name}: no leader")
        isolation = "read_committed" if announced.is_clean else "read_uncommitted"
        served = cluster.consume(topic.name, number, isolation)
        if announced.is_empty:
            assert served == {}, name
            assert not set(acknowledged.items()) & set(on_given.items()), name
            self.outcomes["begins empty"] += 1
            return
        assert len(set(served.values())) == len(served), f"{name}: a record twice"
        if announced.is_clean:
            lost = {k: v for k, v in acknowledged.items() if served.get(k) != v}
            if self.run.ending is Ending.METADATA_LOST:
                lost = {k: v for k, v in lost.items() if k in on_given}
            assert lost == {}, f"{name}: {len(lost)} of {len(acknowledged)} lost"
            assert not set(served.values()) & topic.aborted, name
            assert set(served.values()) <= set(acknowledged.values()), name
            self.outcomes["whole"] += 1
            return
        leader = announced.leader
        if leader in self.disks:
            here = stored(self.disks[leader], topic.name, number) or {}
            lacking = {k: v for k, v in acknowledged.items() if k in here and served.get(k) != v}
            assert lacking == {}, name
        self.outcomes["with an announced loss"] += 1

    def _check_afterwards(
        self, cluster: RecoveryCluster, said: dict[tuple[str, int], Announced]
    ) -> None:
        self._check_groups(cluster, said)
        served = [
            (topic.name, number)
            for topic in self.topics.values()
            for number in topic.partitions
            if cluster.leader(topic.name, number) >= 0
        ]
        for topic, number in served:
            added = cluster.produce(topic, number, [b"after-%d" % next(self._numbers)])
            assert len(added) == 1, f"{self.run}: nothing can be appended to {topic}-{number}"
        topic, number = served[0]
        assert cluster.produce(topic, number, [b"in a transaction"], transaction="first")
        assert b"in a transaction" in cluster.consume(topic, number, "read_committed").values()
        if len(cluster.shape.brokers) > 1:
            self._check_followers(cluster)
        else:
            self._check_new_node(cluster, served)
        for each in cluster.nodes.values():
            stray = [path.name for path in each.log_dir.glob("*-stray")]
            assert stray == [], f"{self.run}: {stray}"

    def _check_groups(
        self, cluster: RecoveryCluster, said: dict[tuple[str, int], Announced]
    ) -> None:
        of_offsets = [each for (topic, _), each in said.items() if topic == "__consumer_offsets"]
        is_whole = all(each.is_clean and each.is_served for each in of_offsets)
        if self.run.ending is Ending.METADATA_LOST:
            is_whole = is_whole and bool(of_offsets)
        if not all(cluster.leader("whole", number) >= 0 for number in range(2)):
            return
        for group in self.groups:
            found = cluster.committed(group.name, "whole", range(2))
            # Java's consumer commits where it is in partitions of which it has read nothing, too.
            found = {number: offset for number, offset in found.items() if offset}
            if is_whole and not self._can_be_behind():
                assert self._is_same(found, group.positions[-1]), (
                    f"{self.run}: {group} is at {found}"
                )
                self.outcomes["group where it was"] += 1
            else:
                known = [{}, *group.positions]
                assert any(self._is_same(found, each) for each in known), (self.run, group, found)
                self.outcomes["group where it was, or before"] += 1
            of_topic = [said.get(("whole", number), UNTOUCHED) for number in range(2)]
            if found and all(each.is_clean and each.is_served for each in of_topic):
                self._check_resumption(cluster, group, found)

    def _is_same(self, found: dict[int, int], wanted: dict[int, int]) -> bool:
        """Whether two positions are at the same records: Java's consumer commits after markers."""
        records = self.topics["whole"].records
        return all(
            not set(records.get(number, ())) & set(range(*sorted((found.get(number, 0), at))))
            for number, at in wanted.items()
        ) and set(found) <= set(wanted)

    def _can_be_behind(self) -> bool:
        """Whether a disk without the last commits may be all that is left."""
        is_alone = self.run.ending is Ending.METADATA_LOST
        return is_alone and self.absent == self.survivor and not self.comes_back

    def _check_resumption(
        self, cluster: RecoveryCluster, group: Group, found: dict[int, int]
    ) -> None:
        if group.is_java:
            read = cluster.java_group(group.name, group.protocol, "whole", 1)
            first = dict(reversed(read))
        else:
            first = cluster.first_of_group(group.name, group.protocol, "whole")
        for number, offset in first.items():
            wanted = found.get(number, 0)
            records = self.topics["whole"].records.get(number, {})
            expected = min((each for each in records if each >= wanted), default=offset)
            assert offset <= expected, f"{self.run}: {group} goes on at {offset}"
            assert offset >= wanted, f"{self.run}: {group} goes on at {offset}"

    def _check_followers(self, cluster: RecoveryCluster) -> None:
        kept = set(cluster.shape.brokers)

        def is_followed() -> bool:
            return all(
                set(in_sync) >= kept & self._replicas(cluster, topic, number)
                for topic in self.topics
                for number, (leader, in_sync) in cluster.partitions(topic).items()
                if leader >= 0
            )

        wait_for(is_followed, f"{self.run}: a follower of each partition")

    def _replicas(self, cluster: RecoveryCluster, topic: str, number: int) -> set[int]:
        found = cluster.admin().list_topics(topic, timeout=10).topics[topic].partitions[number]
        return set(found.replicas)

    def _check_new_node(self, cluster: RecoveryCluster, served: list[tuple[str, int]]) -> None:
        """Add a node that follows, and a controller where the log names them."""
        node, disk = 29, self.directory / "disk-29"
        is_voter = self.run.is_dynamic and not self.run.is_apart
        roles = "broker,controller" if is_voter else "broker"
        new = cluster.node(
            self.directory / "node-29", node, disk, ["--no-initial-controllers"], roles
        )
        new.cluster_id = cluster_id_of(cluster)
        with ExitStack() as stack:
            stack.callback(new.kill)
            new.start()
            if is_voter:
                self._add_controller(cluster, new)
            clients = Clients(cluster.bootstrap_servers)
            chosen = served[:3]
            first = cluster.shape.brokers[0]
            moves = {place: [first, node] for place in chosen}
            clients.admin().alter_partition_reassignments(
                {_place(*each): replicas for each, replicas in moves.items()}
            )
            clients.close_clients()
            wait_for(
                lambda: all(node in cluster.partitions(t)[n][1] for t, n in chosen),
                f"{self.run}: the new node in sync",
            )
            for topic, number in chosen:
                got = stored(disk, topic, number) or {}
                uncommitted = cluster.consume(topic, number, "read_uncommitted")
                assert set(uncommitted.items()) <= set(got.items()), (topic, number)
            self.outcomes["a new node follows"] += 1
            new.stop()

    def _add_controller(self, cluster: RecoveryCluster, new: KafkaBroker) -> None:
        run_tool(
            "org.apache.kafka.tools.MetadataQuorumCommand",
            *("--bootstrap-server", cluster.bootstrap_servers),
            *("--command-config", str(new.directory / "server.properties"), "add-controller"),
        )
        status = run_tool(
            "org.apache.kafka.tools.MetadataQuorumCommand",
            *("--bootstrap-server", cluster.bootstrap_servers, "describe", "--status"),
        )
        [voters] = [line for line in status.splitlines() if line.startswith("CurrentVoters")]
        assert '"id": 29' in voters, status
        self.outcomes["a controller was added"] += 1


def _elected(cluster: RecoveryCluster, place: TopicPartition) -> bool:
    """Elect a leader, and return whether there is one: lost brokers lead until they time out."""
    admin = cluster.admin()
    with suppress(KafkaException, TimeoutError):
        admin.elect_leaders(ElectionType.UNCLEAN, [place]).result(20)
    leader = cluster.leader(place.topic, place.partition)
    return leader in cluster.shape.brokers


def _place(topic: str, partition: int) -> object:
    from kafka import TopicPartition as Place  # noqa: PLC0415 - of the other library

    return Place(topic, partition)


def cluster_id_of(cluster: RecoveryCluster) -> str:
    """Return the id of a cluster, as a disk has it."""
    text = (next(iter(cluster.nodes.values())).log_dir / "meta.properties").read_text()
    lines = dict(line.partition("=")[::2] for line in text.splitlines())
    return lines["cluster.id"]


def _said(planned: pylog.results.PlannedPartition) -> Announced:
    fate = planned.fate
    return Announced(
        is_clean=fate in _CLEAN,
        is_served=fate is not Fate.LOST,
        is_empty=fate is Fate.REASSIGNED,
        leader=planned.leader,
        text=str(fate),
    )


def _stop(broker: KafkaBroker) -> None:
    try:
        broker.stop()
    except Exception:  # noqa: BLE001 - the last controllers cannot stop in order
        broker.kill()
