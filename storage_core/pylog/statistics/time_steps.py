"""Traffic over time: intervals of a document's "times" in steps that people count in."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MINUTE_MS = 60_000
_HOUR = 60  # in minutes
_DAY = 24 * _HOUR
_STEPS_MS = tuple(
    _MINUTE_MS * minutes
    for minutes in (
        *(1, 2, 5, 10, 15, 30),
        *(_HOUR * hours for hours in (1, 2, 3, 6, 12)),
        *(_DAY * days for days in (1, 2, 7, 14, 28, 91, 364)),
    )
)
_MOST_STRAYS = 0.1  # of all bytes
_MOST_CUTS = 8
_LEAST_TIMES = 4


class TimeSteps(NamedTuple):
    """What came in each of some steps of time, one after the other.

    Attributes
    ----------
    start_ms
        Where the first step begins; it is a multiple of the length.
    step_ms
        The length of each.
    records, size_bytes
        By step: what has its largest timestamp there, batch by batch.
    spanning_bytes
        What of it is in batches that began in an earlier interval of the table.
    """

    start_ms: int
    step_ms: int
    records: list[int]
    size_bytes: list[int]
    spanning_bytes: list[int]

    @property
    def end_ms(self) -> int:
        """Where the last step ends."""
        return self.start_ms + self.step_ms * len(self.records)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], most: int) -> TimeSteps | None:
        """Return the steps of some rows of a document's "times"; None if no row has a time.

        Parameters
        ----------
        rows
            Of one topic, or of several.
        most
            How many steps there may be.
        """
        timed = [each for each in rows if each["start"] is not None]
        if not timed:
            return None
        first = min(each["start"] for each in timed)
        last = max(each["start"] for each in timed)
        starts = sorted({each["start"] for each in timed})
        step = _step(first, last, max(each["intervalMs"] for each in timed), most, _pace(starts))
        begin = first // step
        count = last // step - begin + 1
        found = cls(begin * step, step, [0] * count, [0] * count, [0] * count)
        for each in timed:
            place = each["start"] // step - begin
            found.records[place] += each["records"]
            found.size_bytes[place] += each["bytes"]
            found.spanning_bytes[place] += each["spanningBytes"]
        return found


def _pace(starts: Sequence[int]) -> int:
    """Return how far apart times usually are: shorter steps would mostly be empty."""
    if len(starts) < _LEAST_TIMES:
        return 0
    return int(median(after - before for before, after in pairwise(starts)))


def _step(first: int, last: int, interval_ms: int, most: int, pace: int) -> int:
    """Return a length that people count in, if one of those is long enough."""
    for step in _STEPS_MS:
        fits = step % interval_ms == 0 and last // step - first // step < most
        if fits and (step >= pace or step == _STEPS_MS[-1]):
            return step
    return interval_ms * (1 + (last - first) // interval_ms // max(1, most - 1))


def without_strays(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Split off what is far from all the rest: a wrong clock would draw years without a record.

    Far is what lies beyond a gap that is longer than everything else, and has less than a tenth of
    all bytes. Rows without a time are neither.
    """
    timed = sorted((each for each in rows if each["start"] is not None), key=lambda x: x["start"])
    strays: list[Mapping[str, Any]] = []
    least = _MOST_STRAYS * sum(each["bytes"] for each in timed)
    for _ in range(_MOST_CUTS):
        gaps = [after["start"] - before["start"] for before, after in pairwise(timed)]
        if not gaps or 2 * max(gaps) <= sum(gaps) + timed[0]["intervalMs"]:
            break
        place = gaps.index(max(gaps)) + 1
        sides = (timed[:place], timed[place:])
        few, many = sorted(sides, key=lambda side: sum(each["bytes"] for each in side))
        if sum(each["bytes"] for each in [*strays, *few]) > least:
            break
        timed, strays = many, [*strays, *few]
    return timed, strays
