"""What the disks of nodes lack of the partitions that these lead."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.model import TopicPartition
from pylog.recovery.given_logs import GivenLogs
from pylog.recovery.metadata_copies import find_copies, metadata_of
from pylog.writing.node import nodes_of
from tests.support.adopted_disks import NEW_CLUSTER, TOPIC_ID, known
from tests.support.log_files import segment_path, write_topic_id
from tests.support.metadata_log import register_broker_record, remove_topic_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.internal_topics.metadata_image import TopicImage

PLACE = TopicPartition("t", 0)


def logs_of(disk: Path) -> tuple[GivenLogs, TopicImage | None]:
    nodes = list(nodes_of([str(disk)]).values())
    [copy], _ = find_copies(nodes)
    image = metadata_of(copy, [copy]).image
    return GivenLogs(nodes, image), next(iter(image.topics), None)


def set_id(disk: Path, text: str) -> None:
    (disk / "t-0" / "partition.metadata").write_text(text)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda _: None, None),
        (lambda disk: shutil.rmtree(disk / "t-0"), "no log directory of node 1 has it"),
        (
            lambda disk: (disk / "t-0").rename(disk / f"t-0.{'a' * 32}-stray"),
            f"t-0.{'a' * 32}-stray",
        ),
        (lambda disk: set_id(disk, ""), "has no partition.metadata that can be read"),
        (
            lambda disk: set_id(disk, f"version: 0\ntopic_id: {NEW_CLUSTER}\n"),
            f"is of the topic id {NEW_CLUSTER}, and not of {TOPIC_ID}",
        ),
    ],
)
def test_a_node_begins_empty_where_a_broker_does_not_find_its_log(
    change: Callable[[Path], object], why: str | None, tmp_path: Path
) -> None:
    disk = known(tmp_path / "1")
    change(disk)
    logs, topic = logs_of(disk)
    assert topic is not None
    found = logs.lacks(1, topic, 0)
    assert found is None if why is None else found is not None and why in found
    assert logs.lacks(2, topic, 0) is None  # of a node that was not given nothing is known


def test_of_a_node_with_another_log_directory_it_is_not_known(tmp_path: Path) -> None:
    two = register_broker_record(1, (bytes(15) + b"\x77", bytes(15) + b"\x78"))
    disk = known(tmp_path / "1", more=[two])
    shutil.rmtree(disk / "t-0")
    logs, topic = logs_of(disk)
    assert topic is not None
    assert logs.lacks(1, topic, 0) is None
    assert any("1 of 2 log directories of node 1 were given" in each for each in logs.incomplete())


def test_a_log_that_ends_before_what_checkpoints_say_is_named(tmp_path: Path) -> None:
    disk = known(tmp_path / "1")
    logs, _ = logs_of(disk)
    assert logs.ends(PLACE) == {1: 20}
    assert logs.shortened(1, PLACE) is None
    path = segment_path(disk / "t-0", 0)
    path.write_bytes(path.read_bytes()[:-5])
    text = "t-0: its log on node 1 ends at offset 10, and had reached 20, as checkpoints say"
    assert logs_of(disk)[0].shortened(1, PLACE) == text
    for each in disk.glob("*checkpoint"):
        each.unlink()
    assert logs_of(disk)[0].shortened(1, PLACE) is None
    (disk / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 20\n")
    assert logs_of(disk)[0].shortened(1, PLACE) == text
    (disk / "replication-offset-checkpoint").write_text("none")
    [unread] = logs_of(disk)[0].incomplete()
    assert "replication-offset-checkpoint cannot be read" in unread


def test_directories_that_the_metadata_does_not_know_are_named(tmp_path: Path) -> None:
    disk = known(tmp_path / "1")
    shutil.copytree(disk / "t-0", disk / "t-7")
    shutil.copytree(disk / "t-0", disk / "new-0")
    write_topic_id(disk / "new-0", NEW_CLUSTER)
    assert list(logs_of(disk)[0].unknown()) == [str(disk / "new-0"), str(disk / "t-7")]
    deleted = known(tmp_path / "2", more=[remove_topic_record()])
    assert list(logs_of(deleted)[0].unknown()) == []
