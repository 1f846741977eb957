"""How far a stream has come, as Spark keeps it in the checkpoint.

The JSON is that of Spark's ``kafka`` source, ``{"orders":{"0":8,"1":12}}`` with the next offset to
read of each partition, and one more member, ``$pylog``, which no topic can be called. Spark
compares offsets as text, so members are always in the same order.

Spark asks for the initial offset of a query more than once and keeps it nowhere. So it is a
constant here, and the end of the first batch says where that batch began.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pylog import TopicPartition

VERSION = 1
OURS = "$pylog"
"""The member that is not a topic."""

INITIAL: dict[str, Any] = {OURS: {"initial": True, "version": VERSION}}
"""The offset before the first batch of a query, whatever its options are."""

_NO_SOURCE = (
    'the progress has no source of format("pylog"); pass query.lastProgress of a query that reads '
    "such a stream"
)
_NO_LATEST = (
    "the progress has no latest offsets: Spark asks Python data sources for them from version 4.2 "
    "on"
)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The end of a batch."""

    ends: Mapping[TopicPartition, int]  # the next offset to read, by partition
    # Where the first batch of a query began, in its end alone; else empty.
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    # Where partitions begin in the batch that ends here although the one before ended elsewhere:
    # their topic was made anew.
    restarts: Mapping[TopicPartition, int] = field(default_factory=dict)
    # The ids of topics that have one, to know them again after a restart.
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the offsets as the JSON that Spark checkpoints."""
        ours: dict[str, Any] = {}
        if self.begins:
            ours["begin"] = by_topic(self.begins)
        if self.restarts:
            ours["restart"] = by_topic(self.restarts)
        if self.topic_ids:
            ours["topicIds"] = dict(sorted(self.topic_ids.items()))
        ours["version"] = VERSION
        return {OURS: ours, **by_topic(self.ends)}

    @classmethod
    def from_json(cls, given: object) -> StreamOffset:
        """Return the offset that Spark has read from its checkpoint."""
        if not isinstance(given, Mapping) or not isinstance(given.get(OURS, {}), Mapping):
            raise _not_an_offset(given)
        ours = given.get(OURS, {})
        version = ours.get("version", VERSION)
        if type(version) is not int or not 1 <= version <= VERSION:
            raise ValueError(
                f"the checkpoint holds an offset of version {version!r}, and this pylog knows "
                f"versions up to {VERSION}: run the query with the pylog that wrote it"
            )
        topic_ids = ours.get("topicIds", {})
        if not isinstance(topic_ids, Mapping):
            raise _not_an_offset(given)
        return cls(
            _by_partition({each: of for each, of in given.items() if each != OURS}, given),
            _by_partition(ours.get("begin", {}), given),
            _by_partition(ours.get("restart", {}), given),
            {str(topic): str(topic_id) for topic, topic_id in topic_ids.items()},
        )


def is_initial(given: object) -> bool:
    """Whether an offset is that before the first batch of a query."""
    return isinstance(given, Mapping) and OURS in given and bool(given[OURS].get("initial"))


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets as the ``kafka`` source writes them, in topic and partition order."""
    topics: dict[str, dict[str, int]] = {}
    for topic_partition in sorted(offsets):
        of_topic = topics.setdefault(topic_partition.topic, {})
        of_topic[str(topic_partition.partition)] = offsets[topic_partition]
    return topics


def _by_partition(topics: object, given: object) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    if not isinstance(topics, Mapping):
        raise _not_an_offset(given)
    for topic, of_topic in topics.items():
        if not isinstance(of_topic, Mapping):
            raise _not_an_offset(given)
        for number, offset in of_topic.items():
            if not str(number).isdecimal() or type(offset) is not int or offset < 0:
                raise _not_an_offset(given)
            offsets[TopicPartition(topic, int(number))] = offset
    return offsets


def _not_an_offset(given: object) -> ValueError:
    return ValueError(
        f"the checkpoint holds {given!r}, which is not an offset of this source, expected JSON "
        'like {"orders":{"0":8}}; a query that read something else needs a checkpoint of its own'
    )


def lag(progress: Any) -> dict[tuple[str, int], int] | None:  # noqa: ANN401 - of Spark
    """Return how many offsets each partition has that the query has not read.

    Sum the values for the lag of the query. Transaction markers count as offsets; under
    read_committed what follows an open transaction does not.

    Examples
    --------
    >>> orders = spark.readStream.format("pylog").option("subscribe", "orders").load("kafka/intact")
    >>> query = orders.writeStream.format("noop").trigger(availableNow=True).start()
    >>> query.processAllAvailable()
    >>> sum(pyspark_pylog.lag(query.lastProgress).values())
    0
    """
    if progress is None:
        return None
    behind: dict[tuple[str, int], int] = {}
    has_source = False
    for source in _member(progress, "sources"):
        end = _parsed(_member(source, "endOffset"))
        if not isinstance(end, dict) or OURS not in end or is_initial(end):
            continue
        latest = _parsed(_member(source, "latestOffset"))
        if latest is None:
            raise ValueError(_NO_LATEST)
        has_source = True
        read = StreamOffset.from_json(end).ends
        for each, offset in StreamOffset.from_json(latest).ends.items():
            behind[each.topic, each.partition] = max(0, offset - read.get(each, 0))
    if not has_source:
        raise ValueError(_NO_SOURCE)
    return behind


def _member(of: Any, name: str) -> Any:  # noqa: ANN401 - of Spark
    """Return a member of a progress object, or of the JSON of one."""
    return of[name] if isinstance(of, dict) and name in of else getattr(of, name)


def _parsed(offset: Any) -> Any:  # noqa: ANN401 - JSON is anything
    return json.loads(offset) if isinstance(offset, str) else offset
