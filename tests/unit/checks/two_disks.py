"""A node with two disks."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import mark_clean_shutdown, write_partition, write_topic_id
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    partition_record,
    register_broker_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

IDS = tuple(bytes(15) + bytes([number]) for number in (200, 201))
PLACES = (0, 1, 1)
"""The disk of each partition."""


def node_with_two_disks(tmp_path: Path) -> list[Path]:
    """Give the two disks of a node: the metadata and orders-0, orders-1 and orders-2."""
    return disks_in(tmp_path)


def disks_in(directory: Path) -> list[Path]:
    found = [directory / "d1", directory / "d2"]
    for disk, directory_id in zip(found, IDS, strict=True):
        disk.mkdir()
        text = base64.urlsafe_b64encode(directory_id).decode().rstrip("=")
        properties = f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={text}\n"
        (disk / "meta.properties").write_text(properties)
        mark_clean_shutdown(disk)
        (disk / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for number, place in enumerate(PLACES):
        segments = {base: [batch_v2(plain_records(base, 3))] for base in (0, 3, 6)}
        partition = write_partition(found[place], segments, name=f"orders-{number}")
        write_topic_id(partition, TOPIC_ID_TEXT)
    records = [
        register_broker_record(1, IDS),
        topic_record("orders"),
        *(partition_record(number, 1, (1,), (IDS[at],)) for number, at in enumerate(PLACES)),
    ]
    write_metadata_log(found[0], records, voters=(1,))
    return found
