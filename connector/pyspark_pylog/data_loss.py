"""What a stream has lost: offsets that are gone before it has read them, or are others now.

The cases are those of Spark's ``kafka`` source, and one more, since a directory tells it: a topic
that was made anew has another id. A gap between the offsets of two records is no loss as long as
the log starts at or before it: compaction, transaction markers and aborted records leave gaps.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pyspark_pylog.errors import StreamDataLossError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog import FollowedLog, TopicPartition
    from pyspark_pylog.stream_offset import StreamOffset

_MOST_NAMED = 5
_LOGGER = logging.getLogger(__name__)


class BatchBegins(NamedTuple):
    """Where the next batch begins.

    Attributes
    ----------
    offsets
        The next offset to read of each partition that there is now.
    restarts
        Those of them that are not where the last batch ended: their topic was made anew.
    losses
        What is lost, a sentence without its full stop for each partition.
    """

    offsets: dict[TopicPartition, int]
    restarts: dict[TopicPartition, int]
    losses: list[str]


def find_begins(start: StreamOffset, logs: Mapping[TopicPartition, FollowedLog]) -> BatchBegins:
    """Return where the batch after ``start`` begins, and what is lost before it.

    Parameters
    ----------
    start
        The end of the last batch.
    logs
        What there is now.
    """
    offsets: dict[TopicPartition, int] = {}
    restarts: dict[TopicPartition, int] = {}
    losses = [
        partition_is_gone(each, offset) for each, offset in start.ends.items() if each not in logs
    ]
    for each, log in logs.items():
        if each not in start.ends:
            offsets[each] = log.log_start_offset
            if log.log_start_offset > 0:
                losses.append(
                    f"partition {each} is new and starts at offset {log.log_start_offset}: those "
                    "before it were deleted before this query saw them"
                )
            continue
        offset = start.ends[each]
        loss = _loss(each, log, offset, start)
        if loss is not None:
            losses.append(loss)
        if is_another_topic(each, log, start):
            offset = restarts[each] = log.log_start_offset
        offsets[each] = max(offset, log.log_start_offset)
    return BatchBegins(offsets, restarts, losses)


def is_another_topic(
    topic_partition: TopicPartition, log: FollowedLog, known: StreamOffset
) -> bool:
    """Whether the log's topic has another id than the one that a checkpoint knows."""
    topic_id = known.topic_ids.get(topic_partition.topic)
    return None not in (topic_id, log.topic_id) and topic_id != log.topic_id


def partition_is_gone(topic_partition: TopicPartition, offset: int) -> str:
    """Return what to say of a partition that was read up to ``offset`` and is not there."""
    return f"partition {topic_partition} is gone, which this query had read up to offset {offset}"


def topic_was_made_anew(
    topic_partition: TopicPartition, offset: int, known: StreamOffset, topic_id: str | None
) -> str:
    """Return what to say of a partition of a topic that has another id than ``known`` has."""
    return (
        f"topic {topic_partition.topic} was made anew: partition {topic_partition} has topic id "
        f"{topic_id}, and the one that this query had read up to offset {offset} had "
        f"{known.topic_ids[topic_partition.topic]}"
    )


def log_ends_before(topic_partition: TopicPartition, end_offset: int, offset: int) -> str:
    """Return what to say of a log that ends before ``offset``, up to which it was read."""
    return (
        f"partition {topic_partition} ends at offset {end_offset}, before offset {offset}, up to "
        "which this query had read it: it was truncated, or its topic made anew"
    )


def _loss(
    topic_partition: TopicPartition, log: FollowedLog, offset: int, start: StreamOffset
) -> str | None:
    if is_another_topic(topic_partition, log, start):
        return topic_was_made_anew(topic_partition, offset, start, log.topic_id)
    if log.end_offset < offset:
        return log_ends_before(topic_partition, log.end_offset, offset)
    if log.rewritten_below is not None:
        return (
            f"partition {topic_partition} was truncated and written anew, or its topic made anew: "
            f"records before offset {log.rewritten_below} are others now than when this query "
            "last looked"
        )
    if offset < log.log_start_offset:
        return (
            f"offsets {offset} to {log.log_start_offset} (exclusive) of partition "
            f"{topic_partition} were deleted before this query had read them"
        )
    return None


def report(losses: Sequence[str], *, fail_on_data_loss: bool) -> None:
    """Log a warning for each loss, or raise the error that names the first ones.

    Raises
    ------
    StreamDataLossError
        There is a loss, and ``fail_on_data_loss``.
    """
    if not losses:
        return
    if fail_on_data_loss:
        named = "; ".join(losses[:_MOST_NAMED])
        more = len(losses) - _MOST_NAMED
        raise StreamDataLossError(
            f"data loss: {named}{f'; and {more} more' if more > 0 else ''}. To go on with what is "
            "there, set option failOnDataLoss=false; the checkpoint may stay as it is"
        )
    for loss in losses:
        _LOGGER.warning("pylog: data loss: %s; going on, as failOnDataLoss=false says", loss)
