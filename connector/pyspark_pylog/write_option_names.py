"""The names of the options of writes; reads know them, too, and say that they are not theirs."""

from __future__ import annotations

WRITE_OPTIONS = (
    "path",
    "topic",
    "compression",
    "level",
    "batchSizeBytes",
    "numPartitions",
    "partitioner",
    "jobId",
    "commitTimeout",
)

TOPIC_PROPERTY_PREFIX = "topic."
"""Before the name of a property of topics that the write creates: ``topic.retention.ms``."""


def is_only_of_writes(name: str) -> bool:
    """Whether an option, in lower case, is one of writes and not of reads."""
    names = {each.lower() for each in WRITE_OPTIONS} - {"path"}
    return name in names or name.startswith(TOPIC_PROPERTY_PREFIX)
