"""Tables of Kafka Connect's own topics: offsets of sources, configurations, status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.internal_topics.connect import (
    CONFIGS,
    OFFSETS,
    STATUSES,
    read_config,
    read_offset,
    read_status,
)
from pylog.tables.decoded_records import decoded_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.tables.decoded_records import Decode


def _without_topic(read: Callable[[bytes | None, bytes | None], Sequence[object]]) -> Decode:
    return lambda _, key, value: read(key, value)


_NAMES = """\
The topic's name is in the configuration of the workers. Topics have rows whose names contain
``connect`` or ``mm2`` and end in ``{}``, or go on after that with ``-``, ``.`` or ``_``.
"""

CONNECT_OFFSETS = decoded_table(
    "connect_offsets",
    OFFSETS,
    _without_topic(read_offset),
    f"""\
Where source connectors of Kafka Connect are in what they read, by ``offset.storage.topic``.

connector            string     the connector
source_partition     string     JSON: what it reads, such as a table or a file
source_offset        string     JSON: where it is in that; null in a tombstone

{_NAMES.format("offsets")}
Sink connectors are consumer groups: ``pylog groups`` has their offsets.
""",
)
CONNECT_CONFIGS = decoded_table(
    "connect_configs",
    CONFIGS,
    _without_topic(read_config),
    f"""\
Configurations of Kafka Connect's connectors and tasks, by ``config.storage.topic``.

kind                 string     ``connector``, ``task``, ``commit`` (tasks that belong together),
                                ``target-state``, ``tasks-fencing``, ``restart-connector``,
                                ``session-key`` or ``logger-cluster``
name                 string     the connector; of ``logger-cluster``, the logger
task                 int32      the number of the task
config               string     JSON: what is configured; null in a tombstone. The key of a
                                ``session-key`` is hidden, passwords of connectors are not

{_NAMES.format("configs")}""",
)
CONNECT_STATUS = decoded_table(
    "connect_status",
    STATUSES,
    _without_topic(read_status),
    f"""\
The status of Kafka Connect's connectors and tasks, by ``status.storage.topic``.

kind                 string     ``connector``, ``task``, or ``topic``: one that a connector uses
connector            string     the connector
task                 int32      the number of the task; of a topic, of the one that found it
used_topic           string     the topic that is used
state                string     ``RUNNING``, ``PAUSED``, ``STOPPED``, ``FAILED``, ``UNASSIGNED`` or
                                ``RESTARTING``; null in a tombstone
worker_id            string     the worker that said so
generation           int32      the generation of the workers' group
trace                string     the stack trace of a failure
discovered           timestamp  since when the topic is used

{_NAMES.format("status")}""",
)
