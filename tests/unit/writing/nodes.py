"""The log directory of a node with metadata, and what doctor finds in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    mark_clean_shutdown,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

OTHER_ID = "Igo74ZAZCxWJ1lxdTzs-vQ"
TOPIC = [topic_record("orders"), *(partition_record(number, 1, (1,)) for number in range(2))]


def node_directory(tmp_path: Path) -> Path:
    """Give the only directory of a node: two partitions, and metadata that has them."""
    directory = tmp_path / "logs"
    for number in range(2):
        place = write_partition(
            directory, {0: [batch_v2(plain_records(0, 3))]}, name=f"orders-{number}"
        )
        write_topic_id(place, TOPIC_ID_TEXT)
    write_metadata_log(directory, TOPIC)
    write_meta_properties(directory)
    mark_clean_shutdown(directory)
    return directory


def found(*paths: Path, kafka_version: str | None = None) -> list[tuple[str, str]]:
    """Return codes of what is above info, and the last two parts of their paths."""
    findings = pylog.doctor(*paths, kafka_version=kafka_version).findings
    return [
        (each.code, "/".join(each.path.split("/")[-2:]))
        for each in findings
        if each.severity is not pylog.results.Severity.INFO
        and each.code != "topic_ids_disagree"  # of partitions, and not of what a node does
    ]
