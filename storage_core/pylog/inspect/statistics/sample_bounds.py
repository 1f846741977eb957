"""What a sample of runs says of the whole: a share or a ratio, and how far off it may be.

Records near each other are alike, so a run counts as one observation, however many records it has:
the variance is that of a ratio estimator over clusters (Cochran, "Sampling Techniques", 6.3). In 95
% of samples the truth lies within the bounds, as far as runs are many and not too uneven.

Shares are those of keys that were picked *because* they are frequent in the sample, which is where
chance has helped. So their bounds hold for all keys of the topic at once. Of keys with a share of
1/k there are at most k; how likely one of those is to be seen so often is bounded by Chernoff, for
as many independent records as are worth as much as the runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]

_WRONG = 0.05  # of samples, both sides together
_TINY = 1e-6
_HALVINGS = 40
# Of Student's t distribution, the quantile for 95 % both-sided, by degrees of freedom from 1 on.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
_NORMAL = 1.96
_CORRECTION = 2.6  # of Student's t for more than ten degrees, divided by their number


class Bounds(NamedTuple):
    """An estimate, and between what the truth lies."""

    estimate: float
    low: float
    high: float


def ratio_bounds(parts: Int64Array, wholes: Int64Array, sampled_share: float) -> Bounds | None:
    """Return the ratio of all parts to all wholes; None where there is nothing to divide by.

    Parameters
    ----------
    parts, wholes
        int64, a pair for each run.
    sampled_share
        How much of everything has been looked at, 0 to 1: of all of it nothing is uncertain.
    """
    if not wholes.sum():
        return None
    ratio = int(parts.sum()) / int(wholes.sum())
    if sampled_share >= 1:
        return Bounds(ratio, ratio, ratio)
    if parts.size < 2:
        return Bounds(ratio, 0.0, math.inf)
    variance = _variance(parts, wholes) * (1 - sampled_share)
    off = _student(parts.size - 1) * math.sqrt(variance)
    return Bounds(ratio, max(0.0, ratio - off), ratio + off)


def share_bounds(
    parts: Int64Array, wholes: Int64Array, sampled_share: float, *, records: int
) -> Bounds | None:
    """Return the share that all parts have in all wholes, and between what it lies.

    Parameters
    ----------
    parts, wholes, sampled_share
        As of `ratio_bounds`; no part is larger than its whole.
    records
        How many there are in all runs.
    """
    if not wholes.sum():
        return None
    share = int(parts.sum()) / int(wholes.sum())
    if sampled_share >= 1:
        return Bounds(share, share, share)
    if parts.size < 2:
        return Bounds(share, 0.0, 1.0)
    variance = _variance(parts, wholes)
    observed = float(records)
    if variance > 0:
        observed = max(1.0, min(observed, share * (1 - share) / variance))
    low, high = (each / observed for each in _rates(share * observed, observed))
    scale = _student(parts.size - 1) / _NORMAL * math.sqrt(1 - sampled_share)
    return Bounds(
        share,
        max(0.0, share - scale * (share - low)),
        min(1.0, share + scale * (high - share)),
    )


def _rates(seen: float, observed: float) -> tuple[float, float]:
    """Return between what a key's expected count lies that was seen so often among so many."""

    def is_unlikely(rate: float) -> bool:
        exponent = rate - seen + (seen * math.log(seen / rate) if seen else 0.0)
        return exponent >= math.log(2 * observed / (_WRONG * rate))

    low, start = 0.0, seen
    if seen and is_unlikely(seen * _TINY):
        low = seen * _TINY
    for _ in range(_HALVINGS if low else 0):
        middle = (low + start) / 2
        low, start = (middle, start) if is_unlikely(middle) else (low, middle)
    high, end = max(seen, 1.0), observed
    for _ in range(_HALVINGS):
        middle = (high + end) / 2
        high, end = (high, middle) if is_unlikely(middle) else (middle, end)
    return low, end


def _variance(parts: Int64Array, wholes: Int64Array) -> float:
    """Return that of the ratio, of runs out of very many."""
    whole = int(wholes.sum())
    residuals = parts - int(parts.sum()) / whole * wholes
    return float((residuals**2).sum()) * parts.size / (parts.size - 1) / whole**2


def _student(degrees: int) -> float:
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    return _NORMAL + _CORRECTION / degrees
