"""Whatever has happened to groups: ours are those that Kafka's tools list, at the same offsets.

Each history is made on a broker of its own, out of commits and what undoes them: by members, by
nobody, in transactions; tombstones, topics that go, come back and grow, groups that change their
kind, cleaning, restarts. Groups are read beside the running broker, where members may be alive.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from kafka import TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from pylog.server.messages import APIS
from tests.broker.streams_messages import STREAMS_APIS
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, is_version_3
from tests.support.kafka_broker_tools import run_tool, tool_table
from tests.support.raw_client import RawClient
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.server.protocol import Api
    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.broker

HISTORIES = 40
STEPS = 14
SHARE_GROUPS_COMMAND = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSUMER_GROUPS_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPICS = [f"topic-{number}" for number in range(4)]
GROUPS = [f"group-{number}" for number in range(6)]
STREAMS_GROUPS = ["streams-0", "streams-1", GROUPS[-1]]  # the last one changes its kind, too
OF_OTHER_TOOLS = ("share", "streams")
COORDINATOR_ERRORS = (14, 15, 16)
MOST_PARTITIONS = 4
SECONDS = 90.0
PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    # A broker that is back before its session has ended has to wait for that.
    "broker.session.timeout.ms": "2000",
}
OF_SHARE_GROUPS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

Offsets = dict[tuple[str, str, int], tuple[int | None, ...]]


class History:
    """Things that happen to the groups of one broker; one thread."""

    def __init__(self, broker: KafkaBroker, source: random.Random, stack: ExitStack) -> None:
        self._broker = broker
        self._source = source
        self._stack = stack  # closes what lives until the look
        self._partitions: dict[str, int] = {}
        self._transactions = 0
        self._streams_members = 0
        self.has_new_groups = not is_version_3(broker.version)
        self._make_topic(TOPICS[0], 2)
        self.produce()
        self._commit(GROUPS[0], {TopicPartition(TOPICS[0], 0): 1})

    def run(self, steps: int) -> None:
        """Do random things; at the end some members stay."""
        things: list[Callable[[], None]] = [
            *[self.produce, self.commit, self.commit_in_transaction, self.commit_as_member] * 3,
            *[self.remove_offsets, self.remove_group, self.remove_topic, self.add_topic] * 2,
            *(self.add_partitions, self.remove_records, self.clean, self.restart),
        ]
        if self.has_new_groups:
            things += [self.read_as_share_group, self.commit_as_streams_member] * 3
        for _ in range(steps):
            self._source.choice(things)()
        for group in self._source.sample(GROUPS, self._source.randint(0, 2)):
            self.commit_as_member(group, stays=True)

    def produce(self) -> None:
        """Append to a partition, at times in a transaction that is given up."""
        topic, partition = self._any_partition()
        count = self._source.randint(1, 30)
        with self._broker.producer() as producer:
            for number in range(count):
                producer.send(topic, value=b"%d" % number, partition=partition)

    def commit(self) -> None:
        """Commit as nobody; the broker refuses it where a group has members."""
        group = self._source.choice(GROUPS)
        self._commit(group, {self._any_partition(): self._any_offset()})

    def commit_in_transaction(self) -> None:
        """Commit in a transaction, which is committed, given up, or still open."""
        self._transactions += 1
        producer = confluent_kafka.Producer(
            self._client({"transactional.id": f"id-{self._transactions}"})
        )
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        topic, partition = self._any_partition()
        producer.produce(topic, b"in a transaction", partition=partition)
        group = self._source.choice(GROUPS)
        consumer = confluent_kafka.Consumer(self._client({"group.id": group}))
        offset = max(0, self._any_offset())
        offsets = [confluent_kafka.TopicPartition(topic, partition, offset)]
        try:
            producer.send_offsets_to_transaction(
                offsets, consumer.consumer_group_metadata(), SECONDS
            )
            end = self._source.choice(["commit", "commit", "abort", "leave open"])
            if end == "commit":
                producer.commit_transaction(SECONDS)
            elif end == "abort":
                producer.abort_transaction(SECONDS)
        finally:
            consumer.close()

    def commit_as_member(self, group: str | None = None, *, stays: bool = False) -> None:
        """Join a group, of either protocol, and commit something of what is assigned."""
        protocol = self._source.choice(["classic", "consumer"])
        if is_version_3(self._broker.version):
            protocol = "classic"
        options = {
            "group.id": group or self._source.choice(GROUPS),
            "group.protocol": protocol,
            "enable.auto.commit": False,
        }
        consumer = confluent_kafka.Consumer(self._client(options))
        close = self._stack.callback if stays else ExitStack().callback
        topics = list(self._partitions)
        consumer.subscribe(self._source.sample(topics, self._source.randint(1, len(topics))))
        self._until(lambda: consumer.poll(0.1) is not None or bool(consumer.assignment()))
        if self._source.random() < 0.8 and (assigned := consumer.assignment()):
            chosen = self._source.choice(assigned)
            chosen.offset = max(0, self._any_offset())
            consumer.commit(offsets=[chosen], asynchronous=False)
        if stays:
            close(consumer.close)
        else:
            consumer.close()

    def read_as_share_group(self) -> None:
        """Read some records as a share group, and accept, release or reject them."""
        group = f"share-{self._source.randrange(2)}"
        reader = confluent_kafka.ShareConsumer(
            self._client({"group.id": group, "share.acknowledgement.mode": "explicit"})
        )
        topics = list(self._partitions)
        reader.subscribe(self._source.sample(topics, self._source.randint(1, len(topics))))
        try:
            for _ in range(4):
                with suppress(confluent_kafka.KafkaException):
                    for message in reader.poll(0.5):
                        kind = self._source.choice(list(confluent_kafka.AcknowledgeType))
                        reader.acknowledge(message, kind)
                    reader.commit_sync(SECONDS)
                self.produce()
        finally:
            reader.close()

    def commit_as_streams_member(self) -> None:
        """Join a streams group as its only member, commit, and leave; not where it has others."""
        self._streams_members += 1
        group = self._source.choice(STREAMS_GROUPS)
        topic, partition = self._any_partition()
        member = {"groupId": group, "memberId": f"member-{self._streams_members}"}
        subtopology = {
            "subtopologyId": "0",
            "sourceTopics": [topic],
            "sourceTopicRegex": [],
            "repartitionSinkTopics": [],
            "copartitionGroups": [],
            "stateChangelogTopics": [],
            "repartitionSourceTopics": [],
        }
        join = {
            **member,
            "memberEpoch": 0,
            "rebalanceTimeoutMs": 5_000,
            "processId": "process",
            "topology": {"epoch": self._streams_members, "subtopologies": [subtopology]},
            "activeTasks": [],
            "standbyTasks": [],
            "warmupTasks": [],
        }
        offset = {"partitionIndex": partition, "committedOffset": max(0, self._any_offset())}
        heartbeat = STREAMS_APIS["StreamsGroupHeartbeat"]
        with RawClient(self._broker.bootstrap_servers) as client:
            joined = self._ask_coordinator(client, heartbeat, join)
            if joined["errorCode"]:
                return
            commit = {
                **member,
                "generationIdOrMemberEpoch": joined["memberEpoch"],
                "topics": [{"name": topic, "partitions": [{**offset, "committedMetadata": ""}]}],
            }
            client.ask(APIS["OffsetCommit"], 9, commit)
            client.ask(heartbeat, 0, {**member, "memberEpoch": -1})

    def _ask_coordinator(
        self, client: RawClient, api: Api, request: dict[str, Any]
    ) -> dict[str, Any]:
        """Ask until the broker, which may have just been started, knows its groups."""
        answers: list[dict[str, Any]] = []

        def has_answered() -> bool:
            answers.append(client.ask(api, 0, request))
            return answers[-1]["errorCode"] not in COORDINATOR_ERRORS

        self._until(has_answered)
        return answers[-1]

    def remove_offsets(self) -> None:
        """Write a tombstone for an offset, if the group has such."""
        group = self._source.choice(GROUPS)
        with suppress(KafkaError):
            self._broker.admin().delete_group_offsets(group, [self._any_partition()])

    def remove_group(self) -> None:
        """Write tombstones for all that a group has."""
        with suppress(KafkaError):
            self._broker.admin().delete_groups([self._source.choice(GROUPS)])

    def add_topic(self) -> None:
        """Make a topic, or one again that was there before."""
        self._make_topic(self._source.choice(TOPICS), self._source.randint(1, MOST_PARTITIONS))

    def remove_topic(self) -> None:
        """Delete a topic, unless it is the last one."""
        if len(self._partitions) == 1:
            return
        topic = self._source.choice(list(self._partitions))
        self._broker.admin().delete_topics([topic])
        del self._partitions[topic]
        self._until(lambda: topic not in self._broker.admin().list_topics())

    def add_partitions(self) -> None:
        """Raise a topic's number of partitions."""
        topic = self._source.choice(list(self._partitions))
        if self._partitions[topic] < MOST_PARTITIONS:
            self._partitions[topic] += 1
            self._broker.admin().create_partitions({topic: self._partitions[topic]})

    def remove_records(self) -> None:
        """Raise a log's start offset."""
        where = self._any_partition()
        with suppress(KafkaError):
            self._broker.admin().delete_records({where: self._source.randint(0, 5)})

    def clean(self) -> None:
        """Have the committed offsets cleaned from now on."""
        with suppress(ValueError):  # a broker that has just started does not know the topic yet
            self._broker.alter_topic("__consumer_offsets", {"segment.ms": "1"})

    def restart(self) -> None:
        """Stop or kill the broker and start it, at times with more partitions of offsets."""
        if self._source.random() < 0.5:
            with suppress(KafkaError):  # which it has already
                self._broker.admin().create_partitions({"__consumer_offsets": 5})
        if self._source.random() < 0.5:
            self._broker.stop()
        else:
            self._broker.kill()
        self._broker.start()
        self._until(lambda: set(self._broker.admin().list_topics()) >= set(self._partitions))

    def _make_topic(self, topic: str, partitions: int) -> None:
        if topic not in self._partitions:
            self._broker.create_topic(topic, partitions)
            self._partitions[topic] = partitions

    def _commit(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        rows = {where: OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()}
        with suppress(KafkaError):
            self._broker.admin().alter_group_offsets(group, rows)

    def _any_partition(self) -> TopicPartition:
        topic = self._source.choice(list(self._partitions))
        return TopicPartition(topic, self._source.randrange(self._partitions[topic]))

    def _any_offset(self) -> int:
        return self._source.choice([-1, 0, self._source.randint(1, 20), 1_000_000])

    def _client(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"bootstrap.servers": self._broker.bootstrap_servers, **options}

    @staticmethod
    def _until(is_true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not is_true():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def known(text: str) -> int | None:
    return None if text == "-" else int(text)


def theirs(broker: KafkaBroker, tool: str, *arguments: str) -> list[dict[str, str]]:
    return tool_table(run_tool(tool, "--bootstrap-server", broker.bootstrap_servers, *arguments))


def ours(broker: KafkaBroker) -> tuple[list[dict[str, Any]], set[str]]:
    """Return our groups, and the ids that are left out, of which a broker may serve older state.

    One of Kafka 3 keeps groups by id alone. Where __consumer_offsets has grown, it has loaded those
    of a partition that they left, too: the ones that it has loaded first are served.
    """
    command = [sys.executable, "-m", "pylog", "groups", str(broker.log_dir), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=120)
    document = json.loads(done.stdout)
    mixed = {each["id"] for each in document["stale"] if is_version_3(broker.version)}
    return [each for each in document["groups"] if each["groupId"] not in mixed], mixed


def committed(broker: KafkaBroker, groups: list[dict[str, Any]]) -> Offsets:
    """Return what Kafka's tool says of all groups, or of ours if it gives up at another one."""
    at = ("--bootstrap-server", broker.bootstrap_servers, "--describe")
    printed = run_tool(CONSUMER_GROUPS_COMMAND, *at, "--all-groups")
    ids = [each["groupId"] for each in groups if each["kind"] not in OF_OTHER_TOOLS]
    if ids and not tool_table(printed):
        # It lists what other partitions of __consumer_offsets have since before there were more,
        # and describes nothing if one of these groups is not found.
        printed = run_tool(CONSUMER_GROUPS_COMMAND, *at, *(f"--group={each}" for each in ids))
    return {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): tuple(
            known(row[name]) for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
        )
        for row in tool_table(printed)
    }


def of_streams_groups(broker: KafkaBroker) -> tuple[dict[str, str], Offsets]:
    """Return the states of the streams groups, and what is committed, as the broker says."""
    with RawClient(broker.bootstrap_servers) as client:
        listed = client.ask(APIS["ListGroups"], 5, {"statesFilter": [], "typesFilter": ["streams"]})
        states = {each["groupId"]: each["groupState"] for each in listed["groups"]}
        asked = [{"groupId": each, "topics": None} for each in states]
        answer = client.ask(APIS["OffsetFetch"], 8, {"groups": asked})
    return states, {
        (group["groupId"], topic["name"], each["partitionIndex"]): (each["committedOffset"],)
        for group in answer["groups"]
        for topic in group["topics"]
        for each in topic["partitions"]
    }


def shared(broker: KafkaBroker) -> Offsets:
    """Return what Kafka's tool says of all share groups."""
    options = ("--describe", "--all-groups", "--offsets", "--verbose")
    return {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): (
            known(row["START-OFFSET"]),
            known(row["LAG"]),
        )
        for row in theirs(broker, SHARE_GROUPS_COMMAND, *options)
    }


def rows(groups: list[dict[str, Any]], of: str, *names: str) -> Offsets:
    return {
        (group["groupId"], each["topic"], each["partition"]): tuple(
            # What is committed as -1 is no position, and kept apart from what is not committed.
            None if name in ("offset", "startOffset") and each[name] == -1 else each[name]
            for name in names
        )
        for group in groups
        for each in group[of]
    }


def assert_only_empty_ones_more(listed: dict[str, str], ours: dict[str, str]) -> None:
    """Check that a broker lists our groups and, beside them, only groups without members.

    One whose last offset has been removed, and one that another partition of __consumer_offsets
    answers for since there are more, is listed until the next start and later.
    """
    others = {each: state for each, state in listed.items() if each not in ours}
    assert listed == ours | others
    assert set(others.values()) <= {"Empty"}


@pytest.mark.thorough(one_in=40)
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_groups_are_where_kafkas_tools_say_after_any_history(
    new_broker: NewBroker, seed: int
) -> None:
    version = LAST_VERSION_3 if seed % 4 == 3 else NEWEST_VERSION
    properties = PROPERTIES | ({} if is_version_3(version) else OF_SHARE_GROUPS)
    with ExitStack() as stack:
        broker = new_broker(version, properties)
        history = History(broker, random.Random(seed), stack)
        history.run(STEPS)

        # What a topic that has just been deleted leaves behind goes a moment later.
        eventually(partial(ensure_same, broker))
        if history.has_new_groups:
            eventually(partial(ensure_same_new_groups, broker))


def ensure_same(broker: KafkaBroker) -> None:
    described = committed(broker, ours(broker)[0])
    found, mixed = ours(broker)
    of_tool = [each for each in found if each["kind"] not in OF_OTHER_TOOLS]
    of_ours = {each["groupId"]: each["state"] for each in of_tool}
    described = {key: row for key, row in described.items() if key[0] not in mixed}
    assert described == rows(of_tool, "offsets", "offset", "logEndOffset", "lag")
    states = {
        row["GROUP"]: row["STATE"]
        for row in theirs(broker, CONSUMER_GROUPS_COMMAND, "--list", "--state")
        if row["GROUP"] not in mixed
    }
    assert_only_empty_ones_more(states, of_ours)


def ensure_same_new_groups(broker: KafkaBroker) -> None:
    """Compare streams groups and share groups."""
    states, offsets = of_streams_groups(broker)
    described = shared(broker)
    found = ours(broker)[0]
    streams = [each for each in found if each["kind"] == "streams"]
    assert_only_empty_ones_more(states, {each["groupId"]: each["state"] for each in streams})
    assert rows(streams, "offsets", "offset") == offsets
    shares = rows(found, "sharePartitions", "startOffset", "lag")
    # Of a partition that nobody has initialised yet the tool may say nothing.
    assert described == {
        each: of for each, of in shares.items() if each in described or of != (None, None)
    }
