"""How much of what is new a trigger takes: the arithmetic of Spark's ``kafka`` source.

Sizes are offsets, as there: compaction and transaction markers leave fewer records than that.

Source: KafkaMicroBatchStream.latestOffset, rateLimit, delayBatch (Spark 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_pylog import option_values as values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog import TopicPartition

LIMIT_OPTIONS = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxBytesPerTrigger",
)
DEFAULT_MAX_TRIGGER_DELAY_MS = 15 * 60_000
_HIGHEST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerLimits:
    """What the options say of the size of a trigger; None where they say nothing.

    Attributes
    ----------
    max_offsets, max_bytes
        The most offsets and the most bytes of ``.log`` files of a trigger, all partitions together.
    min_offsets
        A trigger with fewer offsets waits for more,
    max_trigger_delay_ms
        but no longer than this.
    """

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_trigger_delay_ms: int = DEFAULT_MAX_TRIGGER_DELAY_MS
    max_bytes: int | None = None

    @classmethod
    def parse(cls, lower: Mapping[str, str]) -> TriggerLimits:
        """Return the limits, from options with lower-cased names; ``ValueError`` if senseless."""
        limits = cls(
            max_offsets=values.count(lower, "maxOffsetsPerTrigger"),
            min_offsets=values.count(lower, "minOffsetsPerTrigger"),
            max_trigger_delay_ms=values.milliseconds(lower, "maxTriggerDelay")
            or DEFAULT_MAX_TRIGGER_DELAY_MS,
            max_bytes=values.size_bytes(lower, "maxBytesPerTrigger", 0) or None,
        )
        if limits.max_offsets and limits.min_offsets and limits.min_offsets > limits.max_offsets:
            msg = (
                f"option minOffsetsPerTrigger ({limits.min_offsets}) is more than option "
                f"maxOffsetsPerTrigger ({limits.max_offsets})"
            )
            raise ValueError(msg)
        return limits

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return any((self.max_offsets, self.min_offsets, self.max_bytes))


NO_LIMITS = TriggerLimits()


class TriggerDelay:
    """Whether a trigger is to wait until there is more; for one run of a query.

    The first trigger of a run never waits.
    """

    def __init__(self, limits: TriggerLimits) -> None:
        self._limits = limits
        self._last_trigger_ms: float | None = None

    def is_waiting(self, new_offsets: int, now_ms: float) -> bool:
        """Whether the trigger at ``now_ms`` is to wait; if not, that is the last trigger."""
        limits, last = self._limits, self._last_trigger_ms
        if (
            limits.min_offsets is not None
            and last is not None
            and now_ms - last < limits.max_trigger_delay_ms
            and new_offsets < limits.min_offsets
        ):
            return True
        self._last_trigger_ms = now_ms
        return False


def limited_ends(
    max_offsets: int,
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return where partitions end if about ``max_offsets`` are taken of all together.

    Each partition gets a share in proportion to what it has, rounded down or, if that would be
    none, up: so the batch may exceed the limit by one offset for each small partition.

    Parameters
    ----------
    max_offsets
        1 or more.
    begins
        The next offset to read of every partition in ``ends``.
    ends
        The offset after the last one that there is. One below its begin is kept as it is.
    """
    sizes = {each: end - begins[each] for each, end in ends.items() if end > begins[each]}
    total = sum(sizes.values())
    limited = dict(ends)
    for each, size in sizes.items():
        share = max(1, max_offsets * size // total)
        limited[each] = min(ends[each], begins[each] + share, _HIGHEST_OFFSET)
    return limited
