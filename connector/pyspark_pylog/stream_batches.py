"""One batch of a stream: its ranges, how much of what is new it takes, and what of it is lost.

The cases of loss are those of Spark's ``kafka`` source, and one more, since a directory tells it: a
topic that was made anew has another id. A gap between the offsets of two records is no loss as long
as the log starts at or before it: compaction, markers and aborted records leave gaps.

How much a trigger takes is the arithmetic of Spark's ``kafka`` source. Sizes are offsets, as there:
compaction and transaction markers leave fewer records than that.

Source: KafkaMicroBatchStream.latestOffset, rateLimit, delayBatch (Spark 4.3).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pylog.jobs
from pyspark_pylog.errors import StreamDataLossError
from pyspark_pylog.stream_offset import StreamOffset, is_initial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog import TopicPartition
    from pylog.results import FollowedLog

_MOST_NAMED = 5
_HIGHEST_OFFSET = 2**63 - 1
_LOGGER = logging.getLogger(__name__)


class BatchBegins(NamedTuple):
    """The offsets at which the next batch begins."""

    # The next offset to read of each partition that there is now.
    offsets: dict[TopicPartition, int]
    # Those of them that are not where the last batch ended: their topic was made anew.
    restarts: dict[TopicPartition, int]
    losses: list[str]  # what is lost, a sentence without its full stop for each partition


def find_begins(start: StreamOffset, logs: Mapping[TopicPartition, FollowedLog]) -> BatchBegins:
    """Return where the batch after ``start`` begins, and what is lost before it."""
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
            f"{pylog.jobs.offsets_text(offset, log.log_start_offset)} of partition "
            f"{topic_partition} were deleted before this query had read them"
        )
    return None


def report(losses: Sequence[str], *, fail_on_data_loss: bool) -> None:
    """Log a warning for each loss, or raise the error that names the first ones."""
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


@dataclass(frozen=True, slots=True)
class StreamRanges:
    """Where the partitions of a batch begin and end, from two offsets of the checkpoint alone."""

    # begins, ends: ``begins[each] <= offset < ends[each]``, of partitions that have any such
    # offset.
    begins: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    # What the two offsets show to be lost, a sentence without its full stop for each partition.
    # Spark 4.2 and later let `latestOffset` find that before an end is logged.
    losses: tuple[str, ...]
    end: StreamOffset  # the end of the batch

    @classmethod
    def between(cls, start: dict[str, Any], end: dict[str, Any]) -> StreamRanges:
        """Return the ranges between two offsets."""
        if is_initial(end):
            return cls({}, {}, (), StreamOffset({}))
        stop = StreamOffset.from_json(end)
        losses: tuple[str, ...] = ()
        if is_initial(start):
            begins = dict(stop.begins)
        else:
            begins, losses = _begins_after(StreamOffset.from_json(start), stop)
        ranges = {
            each: (begins.get(each, 0), until)
            for each, until in stop.ends.items()
            if begins.get(each, 0) < until
        }
        return cls(
            {each: begin for each, (begin, _) in ranges.items()},
            {each: until for each, (_, until) in ranges.items()},
            losses,
            stop,
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is neither an offset nor a loss."""
        return not self.ends and not self.losses

    def clipped(self, logs: Mapping[TopicPartition, FollowedLog]) -> tuple[StreamRanges, list[str]]:
        """Return what is left of the ranges, and what is lost of them."""
        begins: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        losses = list(self.losses)
        for each, until in self.ends.items():
            begin, log = self.begins[each], logs.get(each)
            if log is None or is_another_topic(each, log, self.end):
                what = "is gone" if log is None else "is another one since its topic was made anew"
                losses.append(
                    f"partition {each} {what}, and {pylog.jobs.offsets_text(begin, until)} of it "
                    "were to be read"
                )
                continue
            low, high = max(begin, log.log_start_offset), min(until, log.view.log_end_offset)
            if (low, high) != (begin, until):
                losses.append(
                    f"{pylog.jobs.offsets_text(begin, until)} of partition {each} were to be read, "
                    "and the log holds "
                    f"{pylog.jobs.offsets_text(log.log_start_offset, log.view.log_end_offset)}"
                )
            if low < high:
                begins[each], ends[each] = low, high
        return StreamRanges(begins, ends, (), self.end), losses


def _begins_after(
    last: StreamOffset, stop: StreamOffset
) -> tuple[dict[TopicPartition, int], tuple[str, ...]]:
    """Return where a batch begins that ends at ``stop``, and what is lost since ``last``."""
    begins = {**last.ends, **stop.restarts}
    losses = []
    for each, offset in last.ends.items():
        until = stop.ends.get(each)
        if until is None:
            losses.append(partition_is_gone(each, offset))
        elif each in stop.restarts:
            continue
        elif each.topic in last.topic_ids.keys() & stop.topic_ids and (
            last.topic_ids[each.topic] != stop.topic_ids[each.topic]
        ):
            losses.append(topic_was_made_anew(each, offset, last, stop.topic_ids[each.topic]))
            begins[each] = 0
        elif until < offset:
            losses.append(log_ends_before(each, until, offset))
    return begins, tuple(losses)


class TriggerDelay:
    """Whether a trigger is to wait until there is more; for one run of a query.

    The first trigger of a run never waits.
    """

    def __init__(self, min_offsets: int | None, max_delay_ms: int) -> None:
        self._min_offsets = min_offsets
        self._max_delay_ms = max_delay_ms
        self._last_trigger_ms: float | None = None

    def is_waiting(self, new_offsets: int, now_ms: float) -> bool:
        """Whether the trigger at ``now_ms`` is to wait; if not, that is the last trigger."""
        if (
            self._min_offsets is not None
            and self._last_trigger_ms is not None
            and now_ms - self._last_trigger_ms < self._max_delay_ms
            and new_offsets < self._min_offsets
        ):
            return True
        self._last_trigger_ms = now_ms
        return False


def limited_ends(
    max_offsets: int,
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return where partitions end if about ``max_offsets`` are taken of all together."""
    sizes = {each: end - begins[each] for each, end in ends.items() if end > begins[each]}
    total = sum(sizes.values())
    limited = dict(ends)
    for each, size in sizes.items():
        share = max(1, max_offsets * size // total)
        limited[each] = min(ends[each], begins[each] + share, _HIGHEST_OFFSET)
    return limited
