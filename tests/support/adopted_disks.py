"""Disks of old nodes without metadata, and of the stopped nodes that take their topics over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    mark_clean_shutdown,
    tree,
    write_high_watermarks,
    write_partition,
    write_recovery_points,
)
from tests.support.metadata_log import (
    data_batch,
    feature_record,
    partition_record,
    register_broker_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


NEW_CLUSTER = "qM6VaBEQIIV4rb6KS_2csw"


OLD_CLUSTER = "TGS49_DL2kqPGPzG1xseBg"


DIRECTORY_ID = "Igo74ZAZCxWJ1lxdTzs-vQ"


TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"


LEVEL = [feature_record(25)]


def properties(directory: Path, node_id: int, cluster: str, directory_id: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    text = f"version=1\ncluster.id={cluster}\nnode.id={node_id}\ndirectory.id={directory_id}\n"
    (directory / "meta.properties").write_text(text)
    return directory


def formatted(directory: Path, node_id: int = 7, level: int = 25) -> Path:
    """Write a log directory as formatting leaves it, with static voters and before Kafka 4.4."""
    properties(directory, node_id, NEW_CLUSTER, DIRECTORY_ID)
    (directory / "bootstrap.checkpoint").write_bytes(data_batch(0, [feature_record(level)]).data)
    return directory


def run(
    directory: Path, values: Sequence[bytes] = (), voters: Sequence[int] = (7,), node_id: int = 7
) -> Path:
    """Write a log directory of a node that has run and was stopped."""
    properties(directory, node_id, NEW_CLUSTER, DIRECTORY_ID)
    brokers = [register_broker_record(node_id, (bytes(15) + b"\x77",))]
    write_metadata_log(directory, [*LEVEL, *brokers, *values], voters=voters)
    mark_clean_shutdown(directory)
    return directory


def old(directory: Path, *, epochs: Sequence[int] = (3,), partitions: Sequence[int] = (0,)) -> Path:
    """Write a log directory without metadata: ten records a leader epoch."""
    properties(directory, 1, OLD_CLUSTER, DIRECTORY_ID)
    for number in partitions:
        batches = [
            batch_v2(
                plain_records(at * 10, 10),
                leader_epoch=epoch,
                producer_id=4_000,
                producer_epoch=0,
                base_sequence=at * 10,
            )
            for at, epoch in enumerate(epochs)
        ]
        write_partition(directory, {0: batches}, name=f"t-{number}")
        metadata = f"version: 0\ntopic_id: {TOPIC_ID}\n"
        (directory / f"t-{number}" / "partition.metadata").write_text(metadata)
    return directory


def known(
    directory: Path,
    node_id: int = 1,
    replicas: tuple[int, ...] = (1,),
    *,
    more: Sequence[bytes] = (),
    voters: Sequence[int] = (1,),
    epochs: Sequence[int] = (0, 0),
    directory_id: str = DIRECTORY_ID,
) -> Path:
    """Write a log directory of a node of the old cluster: t-0, its checkpoints, and metadata."""
    old(directory, epochs=epochs)
    properties(directory, node_id, OLD_CLUSTER, directory_id)
    brokers = [register_broker_record(each, (bytes(15) + b"\x77",)) for each in replicas]
    partition = partition_record(0, replicas[0], replicas)
    write_metadata_log(
        directory, [*LEVEL, *brokers, topic_record("t"), partition, *more], voters=voters
    )
    ends = {("t", 0): 10 * len(epochs)}
    write_high_watermarks(directory, ends)
    write_recovery_points(directory, ends)
    mark_clean_shutdown(directory)
    return directory


def left_in(directory: Path) -> dict[str, bytes]:
    """Return what is in a directory, without what a process leaves there that was killed."""
    of_mark = tuple(each.name for each in directory.glob("pylog-adoption-0.*-delete"))
    found = tree(directory)
    return {
        name: data
        for name, data in found.items()
        if name != ".lock" and not name.startswith(of_mark or ("/",))
    }
