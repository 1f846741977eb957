"""Names and texts that Java reads in its own way: doctor says of each what a broker makes of it.

As in `tests.broker.test_starts`, harms that do not end a broker share a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.broker.conftest import BROKER_VERSIONS
from tests.broker.test_starts import PARTITIONS, RECORDS, TOPIC, Node, is_refused, offsets_of
from tests.support.faults.texts import DIRECTORY_TEXT_HARMS, PARTITION_TEXT_HARMS
from tests.support.kafka_broker import BrokerFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.faults.partitions import DirectoryHarm, Harm

pytestmark = pytest.mark.broker

_OF_THE_CONFIGURATION = (
    # Which node the broker is configured to be is not on the disk.
    "meta.properties with a node id of -1",
    "meta.properties with the node id twice",
    "meta.properties without a version",
)


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def node(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Node:
    return Node(tmp_path_factory.mktemp("node"), request.param)


@pytest.mark.parametrize(
    "is_clean",
    [True, pytest.param(False, marks=pytest.mark.thorough)],
    ids=["clean", "unclean"],
)
def test_names_and_texts_that_a_broker_survives(node: Node, *, is_clean: bool) -> None:
    assert len(PARTITION_TEXT_HARMS) < PARTITIONS
    with node.copy(is_clean=is_clean) as logs:
        survived = [
            (number, harm)
            for number, harm in enumerate(PARTITION_TEXT_HARMS)
            if not is_refused(node, logs, number, harm)
        ]
        report = node.doctor(logs)
        assert report.refusals == []
        offsets, files = started(node, logs)
    starts = {str(each.topic_partition): each.start for each in report.partitions}
    wrong = []
    for number, (harm, _) in survived:
        name = f"{TOPIC}-{number}"
        start = starts[name]
        assert start is not None
        said = (start.log_start_offset, start.log_end_offset)
        if offsets.get(name) != said:
            wrong.append(f"{harm}: offsets {offsets.get(name)}, said: {said}")
        if files[name] != {each for each in start.files if each.endswith(".log")}:
            wrong.append(f"{harm}: logs {files[name]}, said: {sorted(start.files)}")
        is_said = any(
            each.topic_partition.partition == number and each.findings for each in report.partitions
        )
        if offsets.get(name) != (0, RECORDS) and not is_said:
            wrong.append(f"{harm}: offsets {offsets.get(name)}, and nothing is said")
    assert wrong == []
    assert len(survived) > 50


def started(node: Node, logs: Path) -> tuple[dict[str, tuple[int, int]], dict[str, set[str]]]:
    """Start a broker; return what it says of offsets, and the ``.log`` files that it has left.

    None that it makes at a negative offset, where nobody looks.
    """
    with node.broker(logs) as broker:
        broker.start()
        offsets = offsets_of(broker)
    files = {
        directory.name: {
            each.name
            for each in directory.glob("*.log")
            if each.is_file() and not each.name.startswith("-0")
        }
        for directory in logs.iterdir()
    }
    return offsets, files


def is_up(node: Node, logs: Path) -> bool:
    """Whether a broker starts."""
    with node.broker(logs) as broker:
        try:
            broker.start()
        except BrokerFailedError:
            return False
        return broker.is_running


ALONE = [
    each
    for each in PARTITION_TEXT_HARMS
    if each[0].startswith(("an empty file", "partition.metadata", "leader epochs"))
]


@pytest.mark.thorough(one_in=23)
@pytest.mark.parametrize("harm", ALONE, ids=[name for name, _ in ALONE])
def test_a_name_or_text_of_a_partition_alone(node: Node, harm: Harm) -> None:
    with node.copy(is_clean=True) as logs:
        node.harm(logs, PARTITION_TEXT_HARMS.index(harm), harm)
        refusals = node.doctor(logs).refusals
        assert is_up(node, logs) == (not refusals), refusals


DIRECTORIES = [each for each in DIRECTORY_TEXT_HARMS if each[0] not in _OF_THE_CONFIGURATION]


@pytest.mark.thorough(one_in=29)
@pytest.mark.parametrize("harm", DIRECTORIES, ids=[name for name, _ in DIRECTORIES])
def test_a_text_of_a_log_directory(node: Node, harm: DirectoryHarm) -> None:
    name, change = harm
    with node.copy(is_clean=True) as logs:
        change(logs)
        report = node.doctor(logs)
        if any(str(each.effect) == "unserved" for each in report.findings):
            return  # and whoever asks for offsets waits
        assert is_up(node, logs) == (not report.refusals), (name, report.refusals)
