"""The offsets of one batch of a stream, by partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_pylog.data_loss import (
    is_another_topic,
    log_ends_before,
    partition_is_gone,
    topic_was_made_anew,
)
from pyspark_pylog.stream_offset import StreamOffset, is_initial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog import FollowedLog, TopicPartition


@dataclass(frozen=True, slots=True)
class StreamRanges:
    """Where the partitions of a batch begin and end, from two offsets of the checkpoint alone.

    Attributes
    ----------
    begins, ends
        ``begins[each] <= offset < ends[each]``, of partitions that have any such offset.
    losses
        What the two offsets show to be lost, a sentence without its full stop for each partition.
        Spark 4.2 and later let `latestOffset` find that before an end is logged.
    end
        The end of the batch.
    """

    begins: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    losses: tuple[str, ...]
    end: StreamOffset

    @classmethod
    def between(cls, start: dict[str, Any], end: dict[str, Any]) -> StreamRanges:
        """Return the ranges between two offsets.

        A partition that ``start`` does not have begins at offset 0.

        Raises
        ------
        ValueError
            They are not offsets of this source.
        """
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
        """Return what is left of the ranges, and what is lost of them.

        Parameters
        ----------
        logs
            What there is now.
        """
        begins: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        losses = list(self.losses)
        for each, until in self.ends.items():
            begin, log = self.begins[each], logs.get(each)
            if log is None or is_another_topic(each, log, self.end):
                what = "is gone" if log is None else "is another one since its topic was made anew"
                losses.append(
                    f"partition {each} {what}, and offsets {begin} to {until} (exclusive) of it "
                    "were to be read"
                )
                continue
            low, high = max(begin, log.log_start_offset), min(until, log.view.log_end_offset)
            if (low, high) != (begin, until):
                losses.append(
                    f"offsets {begin} to {until} (exclusive) of partition {each} were to be read, "
                    f"and the log holds {log.log_start_offset} to {log.view.log_end_offset} "
                    "(exclusive)"
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
