"""``pylog-topic-configs.json``: what single topics of a log directory are configured to.

A broker keeps these in its cluster's metadata; a directory without one needs them beside its logs.
Brokers pass over plain files of a log directory that they do not know. UTF-8, one JSON object::

    {
      "version": 1,
      "topics": {
        "orders": {"cleanup.policy": "compact", "segment.bytes": "1048576"}
      }
    }

Names and texts of properties are Kafka's (`pylog.config.LogConfig`); what is not listed has the
value that it has for all topics. The file is replaced as a whole, and missing where no topic has a
configuration of its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pylog.files.durable_io import DurableIO

TOPIC_CONFIGS = "pylog-topic-configs.json"
TOPIC_CONFIGS_VERSION = 1

_EXPECTED = '{"version": …, "topics": {topic: {property: text}}}'


def read_topic_configs(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Return the properties of every topic that has some, {} if there is no such file.

    Properties are not checked here.

    Raises
    ------
    CorruptCheckpointError
        The file does not follow the format.
    LogDirectoryError
        It cannot be read.
    """
    try:
        text = read_text_file(path)
    except SegmentVanishedError:
        return {}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f"topic configurations are no JSON: {error}"
        raise CorruptCheckpointError(reason, path) from error
    if not isinstance(content, dict) or set(content) != {"version", "topics"}:
        reason = f"topic configurations are not of the form {_EXPECTED}"
        raise CorruptCheckpointError(reason, path)
    if content["version"] != TOPIC_CONFIGS_VERSION:
        reason = (
            f"topic configurations have version {content['version']!r}, "
            f"expected {TOPIC_CONFIGS_VERSION}"
        )
        raise CorruptCheckpointError(reason, path)
    return _checked(content["topics"], path)


def _checked(topics: object, path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Return ``topics`` once it is known to map topics to properties, and those to texts."""
    if not isinstance(topics, dict):
        reason = f"topic configurations are not of the form {_EXPECTED}"
        raise CorruptCheckpointError(reason, path)
    for topic, properties in topics.items():
        if not isinstance(properties, dict) or not all(
            isinstance(value, str) for value in properties.values()
        ):
            reason = f"configuration of topic {topic!r} is not an object of texts"
            raise CorruptCheckpointError(reason, path)
    return topics


def write_topic_configs(
    io: DurableIO, path: str | os.PathLike[str], configs: Mapping[str, Mapping[str, str]]
) -> None:
    """Replace the file, and return when it is on the disk.

    Raises
    ------
    KafkaStorageError
        It could not be written; what was there before is there still.
    """
    topics = {topic: dict(configs[topic]) for topic in sorted(configs)}
    content = {"version": TOPIC_CONFIGS_VERSION, "topics": topics}
    io.write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
