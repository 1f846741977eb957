"""Offsets up to which history has been exported, for whoever reads on from a broker there.

============================  ====================================================================
``consumer-group.csv``        lines ``topic,partition,offset``, as
                              ``kafka-consumer-groups --reset-offsets --from-file`` reads them
``connect-offsets.json``      the body of Kafka Connect's ``PATCH /connectors/NAME/offsets``, for a
                              sink connector (KIP-875)
``spark-offsets.json``        the value of ``startingOffsets`` for Spark's ``kafka`` and ``pylog``
============================  ====================================================================

An offset is that of the next record: the first one that has not been exported.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from pylog_jobs.record_files import sync

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_hand_over(directory: Path, offsets: Mapping[tuple[str, int], int]) -> list[str]:
    """Write the three files, in place of any that are there; return their paths."""
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())
    )
    of_connect = {
        "offsets": [
            {
                "partition": {"kafka_topic": topic, "kafka_partition": partition},
                "offset": {"kafka_offset": offset},
            }
            for (topic, partition), offset in sorted(offsets.items())
        ]
    }
    texts = {
        "consumer-group.csv": table.getvalue(),
        "connect-offsets.json": json.dumps(of_connect, indent=1),
        "spark-offsets.json": json.dumps(by_topic(offsets)),
    }
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in texts.items():
        path, temporary = directory / name, directory / f".{name}.part"
        temporary.write_text(text, "utf-8")
        sync(temporary)
        temporary.replace(path)
        written.append(str(path))
    sync(directory)
    return written


def by_topic(offsets: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    """Return the offsets as JSON has them: partitions, as text, by topic."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found
