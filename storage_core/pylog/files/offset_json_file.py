"""The file of ``kafka-delete-records --offset-json-file``: where logs are to start.

::

    {
      "partitions": [{"topic": "orders", "partition": 0, "offset": 1000}],
      "version": 1
    }

``offset`` is the first one to keep, -1 for the high watermark: no record is kept then. ``version``
is 1 or missing. Other fields are passed over, and no partition may be there twice.

Source: DeleteRecordsCommand (Kafka 4.3).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeGuard

from pylog.errors import InvalidConfigurationError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file
from pylog.files.java_numbers import shorten
from pylog.model import TopicPartition

if TYPE_CHECKING:
    import os

OFFSET_JSON_VERSION = 1
_HIGH_WATERMARK = -1
_INT32_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1

_EXPECTED = '{"partitions": [{"topic": …, "partition": …, "offset": …}, …], "version": 1}'


def read_offset_json_file(path: str | os.PathLike[str]) -> dict[TopicPartition, int | None]:
    """Return the first offset to keep of each partition, None to keep no record; in file order.

    Raises
    ------
    InvalidConfigurationError
        There is no such file, it does not follow the format, or it names a partition twice.
    LogDirectoryError
        It cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> text = '{"partitions": [{"topic": "orders", "partition": 0, "offset": 10}], "version": 1}'
    >>> size = Path("offsets.json").write_text(text, encoding="utf-8")
    >>> pylog.jobs.read_offset_json_file("offsets.json")
    {TopicPartition(topic='orders', partition=0): 10}
    """
    try:
        return _offsets_in(json.loads(read_text_file(path)))
    except SegmentVanishedError as error:
        reason = "there is no such file of offsets"
        raise InvalidConfigurationError(reason, path) from error
    except (ValueError, RecursionError) as error:
        reason = f"offsets are malformed: {error}"
        raise InvalidConfigurationError(reason, path) from error


def _offsets_in(content: object) -> dict[TopicPartition, int | None]:
    """Return the offsets in a document; ``ValueError`` says what is wrong with it."""
    if not isinstance(content, dict) or not isinstance(content.get("partitions"), list):
        msg = f"not of the form {_EXPECTED}"
        raise ValueError(msg)  # noqa: TRY004 - as everything else that is wrong with the file
    version = content.get("version", OFFSET_JSON_VERSION)
    if not _is_whole_number(version, OFFSET_JSON_VERSION, OFFSET_JSON_VERSION):
        msg = f"version {shorten(json.dumps(version))} is unknown, expected {OFFSET_JSON_VERSION}"
        raise ValueError(msg)
    offsets: dict[TopicPartition, int | None] = {}
    for entry in content["partitions"]:
        topic_partition, offset = _parsed(entry)
        if topic_partition in offsets:
            msg = f"partition {topic_partition} is there twice"
            raise ValueError(msg)
        offsets[topic_partition] = offset
    return offsets


def _parsed(entry: object) -> tuple[TopicPartition, int | None]:
    """Return the partition and the offset of one entry; ``ValueError`` says what is wrong."""
    if isinstance(entry, dict):
        topic, partition, offset = (entry.get(name) for name in ("topic", "partition", "offset"))
        if (
            isinstance(topic, str)
            and _is_whole_number(partition, 0, _INT32_MAX)
            and _is_whole_number(offset, _HIGH_WATERMARK, _INT64_MAX)
        ):
            return TopicPartition(topic, partition), None if offset == _HIGH_WATERMARK else offset
    text = shorten(json.dumps(entry))
    msg = f"entry {text} is not a topic, a partition from 0 on, and an offset from -1 on"
    raise ValueError(msg)


def _is_whole_number(value: object, at_least: int, at_most: int) -> TypeGuard[int]:
    return type(value) is int and at_least <= value <= at_most  # a bool is an int, too
