"""What doctor says of a harmed directory is what a broker does to it; and a copy has all back.

Harms that do not end the broker are done to one partition each, and it starts once on all of them;
those that end it are done alone. Everything is compared: whether it starts, which partitions it
sets aside, their first and last offsets, names and sizes of their files.

Differences that are decisions, and what they are about, stand in `SIDE_FILES_DIFFER`: a ``.swap``
file without its indexes has them rebuilt here, and gets empty ones from a broker. A wrapper in a
wrapper ends brokers from 4.0 on; those before start, and their consumers fail.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.corruption import entries, resealed
from tests.support.faults.partitions import DIRECTORY_HARMS, PARTITION_HARMS, Harmed
from tests.support.golden import golden_partitions
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.results import DoctorReport
    from tests.support.faults.partitions import DirectoryHarm, Harm
    from tests.support.golden import GoldenRoot

pytestmark = pytest.mark.broker

TOPIC = "harm"
RECORDS = 150
PARTITIONS = len(PARTITION_HARMS) + 1
SIBLING = f"{TOPIC}-{len(PARTITION_HARMS)}"
SIDE_FILES_DIFFER = (
    "a middle log named .swap",
    "a copy of a log named .swap",
    "a .log.swap of two segments",
    *(
        f"{what} .log.swap beside segment {n}"
        for what in ("an empty", "half a")
        for n in (0, 1, -1)
    ),
)
NOT_ON_THE_DISK = ("meta.properties of another node", "metadata log missing")
"""Which node the broker is configured to be; whether other controllers have the metadata."""
_COMPARED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_SECONDS = 90.0


@dataclass(slots=True)
class Started:
    """What a broker made of a log directory."""

    is_up: bool
    files: dict[str, dict[str, int]] = field(default_factory=dict)
    offsets: dict[str, tuple[int, int]] = field(default_factory=dict)
    intact_before: dict[str, set[int]] = field(default_factory=dict)  # offsets
    intact_after: dict[str, set[int]] = field(default_factory=dict)
    log: str = ""


class Node:
    """A directory that a broker closed in order, and starts on copies of it."""

    def __init__(self, directory: Path, version: str) -> None:
        self.version = version
        self._directory = directory
        with KafkaBroker(directory / "base", version=version) as broker:
            name = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
            config = {name: "16384", "retention.ms": "-1"}  # what older brokers wrote is old
            broker.create_topic(TOPIC, partitions=PARTITIONS, config=config)
            with broker.producer(batch_size=1200, linger_ms=20) as producer:
                for partition in range(PARTITIONS):
                    for number in range(RECORDS):
                        value, key = b"%06d" % number * 40, b"k%d" % (number % 7)
                        producer.send(TOPIC, value, key, partition=partition)
                producer.flush()
            broker.stop()
        self._base = directory / "base" / "logs"

    @contextmanager
    def copy(self, *, is_clean: bool) -> Iterator[Path]:
        """Give a copy to harm; the marker of the clean stop is in it, or not."""
        place = self._directory / "copy"
        shutil.copytree(self._base, place / "logs")
        if not is_clean:
            (place / "logs" / ".kafka_cleanshutdown").unlink()
        try:
            yield place / "logs"
        finally:
            shutil.rmtree(place)

    def harm(self, logs: Path, number: int, harm: Harm) -> None:
        """Do something to a partition."""
        harm[1](Harmed(logs / f"{TOPIC}-{number}", self._base / SIBLING))

    def doctor(self, logs: Path) -> DoctorReport:
        """Return what is said of a start of this version."""
        return pylog.doctor(logs, kafka_version=self.version.rpartition(".")[0])

    @contextmanager
    def broker(self, logs: Path) -> Iterator[KafkaBroker]:
        """Give a broker that is to start on a log directory."""
        broker = KafkaBroker(logs.parent, version=self.version, log_dir=logs)
        broker.is_to_be_formatted = False
        try:
            yield broker
        finally:
            broker.kill()

    def start(self, logs: Path) -> Started:
        """Start a broker, kill it, and return what it has made of the directory."""
        before = intact_by_directory(logs)
        with self.broker(logs) as broker:
            try:
                broker.start()
            except BrokerFailedError:
                return Started(is_up=False, log=broker.server_log)
            offsets = offsets_of(broker)
            log = broker.server_log
        directories = [each for each in logs.iterdir() if each.is_dir()]
        files = {each.name: sizes(each) for each in directories}
        after = intact_by_directory(logs)
        return Started(
            is_up=True,
            files=files,
            offsets=offsets,
            intact_before=before,
            intact_after=after,
            log=log,
        )


def intact_by_directory(logs: Path) -> dict[str, set[int]]:
    return {each.name: intact_offsets(each, "*.log") for each in logs.glob(f"{TOPIC}-*")}


def sizes(directory: Path) -> dict[str, int]:
    with os.scandir(directory) as found:
        return {each.name: each.stat().st_size for each in found if each.name.endswith(_COMPARED)}


def offsets_of(broker: KafkaBroker) -> dict[str, tuple[int, int]]:
    with broker.consumer([(TOPIC, 0)]) as consumer:
        known = consumer.partitions_for_topic(TOPIC) or ()
    if not known:  # it has lost the metadata
        return {}
    with broker.consumer([(TOPIC, each) for each in known]) as consumer:
        assigned = consumer.assignment()
        first, last = consumer.beginning_offsets(assigned), consumer.end_offsets(assigned)
    return {f"{TOPIC}-{each.partition}": (first[each], last[each]) for each in assigned}


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def node(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Node:
    return Node(tmp_path_factory.mktemp("node"), request.param)


def complaints(name: str, harm: str, report: DoctorReport, started: Started) -> list[str]:
    """Return in what a partition is not as it was foretold."""
    [partition] = [each for each in report.partitions if each.path.endswith(f"/{name}")]
    codes = {each.code for each in partition.findings}
    is_aside = any(
        each.startswith(f"{name}.") and each.endswith("-stray") for each in started.files
    )
    if ("stray_partition" in codes) != is_aside:
        return [f"{harm}: set aside: {is_aside}, said: {codes}"]
    start = partition.start
    assert start is not None
    wrong = []
    if not is_aside and harm not in SIDE_FILES_DIFFER:
        said = {key: size for key, size in start.files.items() if key.endswith(_COMPARED)}
        if said != started.files[name]:
            differ = sorted(set(said.items()) ^ set(started.files[name].items()))
            wrong.append(f"{harm}: files differ in {differ}")
    if not is_aside and started.offsets[name] != (start.log_start_offset, start.log_end_offset):
        wrong.append(f"{harm}: offsets {started.offsets[name]}, said: {start}")
    is_whole = started.offsets.get(name) == (0, RECORDS) and not is_aside
    if not is_whole and not any(each.severity is not INFO for each in partition.findings):
        wrong.append(f"{harm}: records are gone, and nothing is said of it")
    end = started.offsets.get(name, (0, 0))[1]
    before, after = started.intact_before[name], started.intact_after.get(name, set())
    lost = {each for each in before if each >= end or each not in after}
    if lost and not (is_aside or start.loses_records):
        wrong.append(f"{harm}: {sorted(lost)} are lost by the start, and it is not said")
    return wrong


INFO = pylog.results.Severity.INFO


def is_refused(node: Node, logs: Path, number: int, harm: Harm) -> bool:
    """Whether doctor says that one harm ends the broker; the partition is as it was again."""
    directory = logs / f"{TOPIC}-{number}"
    node.harm(logs, number, harm)
    refusals = pylog.doctor(logs, partitions=[number]).refusals
    kept = [each for each in refusals if f"/{TOPIC}-{number}" in each.path]
    if kept:
        shutil.rmtree(directory)
        shutil.copytree(node._base / directory.name, directory)
    return bool(kept)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_harms_that_a_broker_survives(node: Node, *, is_clean: bool) -> None:
    with node.copy(is_clean=is_clean) as logs:
        survived = [
            (number, harm)
            for number, harm in enumerate(PARTITION_HARMS)
            if not is_refused(node, logs, number, harm)
        ]
        report = node.doctor(logs)
        assert report.refusals == []
        started = node.start(logs)
    assert started.is_up, started.log[-3000:]
    present = {each.path.rpartition("/")[2] for each in report.partitions}
    wrong = [
        complaint
        for number, (harm, _) in survived
        if f"{TOPIC}-{number}" in present
        for complaint in complaints(f"{TOPIC}-{number}", harm, report, started)
    ]
    assert wrong == []
    assert len(survived) > len(PARTITION_HARMS) - 20
    [empty] = [each for each in report.directories[0].findings if each.code == "empty_partition"]
    assert empty.severity is pylog.results.Severity.ERROR


OLD = [
    each
    for each in golden_partitions()
    if each.startswith(("0.8.2.2/", "0.10.0.1/", "0.11.0.3/", "2.8.2/"))
    and not each.rpartition(":")[2].rpartition("/")[2].startswith("__")
    and not each.endswith("-delete")
]
"""Partitions that older brokers have written, as they lie on the disk."""
OLD_HARMS = ("no *.index", "no *.timeindex", "17 zeros after the last batch", "the last batch cut")


@pytest.mark.thorough
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_partitions_that_older_brokers_have_written(
    node: Node, golden_root: GoldenRoot, *, is_clean: bool
) -> None:
    assert len(OLD) > 60
    with node.copy(is_clean=is_clean) as logs:
        known = {}
        harm_by_name = dict(PARTITION_HARMS)
        for number, partition_id in enumerate(OLD[: PARTITIONS - 1]):
            directory = logs / f"{TOPIC}-{number}"
            topic_id = (directory / "partition.metadata").read_bytes()
            shutil.rmtree(directory)
            shutil.copytree(golden_root.partition(partition_id).directory, directory)
            (directory / "partition.metadata").write_bytes(topic_id)
            what = ("none", *OLD_HARMS)[number % (1 + len(OLD_HARMS))]
            if what in OLD_HARMS:
                harm_by_name[what](Harmed(directory, directory))
            known[directory.name] = f"{partition_id}, {what}"
        report = node.doctor(logs)
        assert report.refusals == []
        started = node.start(logs)
    assert started.is_up, started.log[-3000:]
    wrong = [
        complaint
        for name, what in known.items()
        for complaint in complaints(name, what, report, started)
        if "records are gone" not in complaint
    ]
    assert wrong == []


_WRAPPER = "a wrapper in a wrapper"

ALONE = [
    (harm, is_clean)
    for harm in PARTITION_HARMS
    for is_clean in (True, False)
    if harm[0].startswith(
        ("leader epochs", "partition.metadata", "epochs of", "the zero", _WRAPPER)
    )
    or harm[0] in ("a log whose name is no number", "an aborted transaction twice")
    or harm[0] == "a batch at the highest offset"
    or (is_clean and harm[0].startswith(("last log zeroed", "18 zeros", "5000 zeros after the l")))
    or (is_clean and harm[0].startswith(("zeros, then", "bytes of no batch")))
]


@pytest.mark.thorough(one_in=29)
@pytest.mark.parametrize(
    ("harm", "is_clean"), ALONE, ids=[f"{harm[0]}-{is_clean}" for harm, is_clean in ALONE]
)
def test_harms_of_a_partition_alone(node: Node, harm: Harm, *, is_clean: bool) -> None:
    number = PARTITION_HARMS.index(harm)
    with node.copy(is_clean=is_clean) as logs:
        node.harm(logs, number, harm)
        refusals = node.doctor(logs).refusals
        started = node.start(logs)
    if node.version.startswith("3.") and harm[0].startswith(_WRAPPER):
        assert refusals
        assert started.is_up
        return
    assert started.is_up == (not refusals), (refusals, started.log[-3000:])


@pytest.mark.thorough(one_in=53)
@pytest.mark.parametrize("harm", DIRECTORY_HARMS, ids=[name for name, _ in DIRECTORY_HARMS])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_harms_of_a_log_directory(node: Node, harm: DirectoryHarm, *, is_clean: bool) -> None:
    name, change = harm
    with node.copy(is_clean=is_clean) as logs:
        change(logs)
        report = node.doctor(logs)
        before = {each.name for each in logs.iterdir()}
        started = node.start(logs)
    if name in NOT_ON_THE_DISK:
        is_error = report.worst is pylog.results.Severity.ERROR
        assert is_error or "metadata is not here" in report.verdict.reasons[-1]
        return
    assert started.is_up == (not report.refusals), (report.refusals, started.log[-3000:])
    if not started.is_up:
        return
    if any(each.code == "missing_metadata_log" for each in report.findings):
        return  # an error, and how it ends depends on other nodes
    for partition in ("harm-0", "harm-1", "harm-2"):
        if partition in before and "a stray partition" not in name:
            assert complaints(partition, name, report, started) in (
                [],
                [f"{name}: records are gone, and nothing is said of it"] * ("log start" in name),
            )
    is_said = report.worst is pylog.results.Severity.ERROR
    for partition in ("harm-0", "harm-1", "harm-2"):
        is_whole = started.offsets.get(partition) == (0, RECORDS)
        assert is_whole or is_said or "log start" in name, started.offsets
    for partition, offsets in started.intact_before.items():
        if partition.endswith("-stray") and offsets - started.intact_after[partition]:
            assert is_said
            assert any(each.name == partition for each in report.verdict.loses_records)


# ---- the copy

NOT_SERVED = (
    "a later epoch in the middle",  # the client waits at the leader that wrote less
    "another topic's id",  # the copy has it, too; said with stray_partition
    "a batch at the highest offset",  # no log can hold it: there is no offset after it
)


def intact_offsets(directory: Path, names: str = "*.log*") -> set[int]:
    """Return the offsets of all records in intact batches, by default in whatever ``.log``."""
    found: set[int] = set()
    for path in directory.glob(names):
        data = path.read_bytes()
        at = 0
        while at + 61 <= len(data):
            one = entries(data[at:])[:1]
            if one and len(one[0]) >= 61 and one[0][16] == 2 and resealed(one[0]) == one[0]:
                base = int.from_bytes(one[0][:8], "big")
                is_marker = one[0][22] & 0x20  # which no consumer gets
                count = 0 if is_marker else int.from_bytes(one[0][23:27], "big") + 1
                found.update(range(base, base + count))
                at += len(one[0])
            else:
                at += 1
    return found


@pytest.mark.parametrize(
    "is_clean",
    [pytest.param(True, marks=pytest.mark.thorough, id="clean"), pytest.param(False, id="unclean")],
)
def test_a_broker_serves_every_intact_record_of_a_repaired_copy(
    node: Node, tmp_path: Path, *, is_clean: bool
) -> None:
    target = tmp_path / "repaired" / "logs"
    target.parent.mkdir()
    with node.copy(is_clean=is_clean) as logs:
        for number, harm in enumerate(PARTITION_HARMS):
            node.harm(logs, number, harm)
        wanted = [intact_offsets(logs / f"{TOPIC}-{n}") for n in range(len(PARTITION_HARMS))]
        summary = pylog.repair_copy(logs, target)
    missing = {
        each.topic_partition.partition: each.missing
        for each in summary.partitions
        if each.topic_partition.topic == TOPIC
    }
    with node.broker(target) as broker:
        broker.start()
        served = [served_offsets(broker, n) for n in range(len(PARTITION_HARMS))]
    wrong = []
    for number, (name, _) in enumerate(PARTITION_HARMS):
        lost = wanted[number] - served[number]
        if name == "records that cannot be decoded":
            assert lost == offsets_in(missing[number])
        elif lost and name not in NOT_SERVED:
            wrong.append(f"{name}: {sorted(lost)} are not served")
        gone = set(range(RECORDS)) - served[number]
        if number in missing and name not in NOT_SERVED:
            wrong += [f"{name}: not all is said"] * (not gone <= offsets_in(missing[number]))
    assert wrong == []


def offsets_in(ranges: list[tuple[int, int]]) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


def served_offsets(broker: KafkaBroker, partition: int) -> set[int]:
    """Return the offsets of the records that a consumer gets within a while."""
    found: set[int] = set()
    with broker.consumer([(TOPIC, partition)]) as consumer:
        [assigned] = consumer.assignment()
        end = min(RECORDS, consumer.end_offsets([assigned])[assigned])
        deadline = time.monotonic() + _SECONDS
        name, _ = PARTITION_HARMS[partition]
        while name not in NOT_SERVED and consumer.position(assigned) < end:
            assert time.monotonic() < deadline, f"{name}: stands at {consumer.position(assigned)}"
            for records in consumer.poll(timeout_ms=300).values():
                found.update(each.offset for each in records)
    return found
