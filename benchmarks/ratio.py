"""Ratios of two figures, round by round.

The rounds of both are neighbours in time, so that a busy machine slows both sides of a round: the
median of the rounds decides. The ratio of the best repetitions stands beside it.
"""

import statistics
from dataclasses import dataclass

from benchmarks.measuring import Figure
from benchmarks.reading import CODEC_ALONE, OURS, OURS_UNCOMPRESSED, SetResult


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two times or rates: of the best repetitions, and the median of the rounds."""

    best: float
    median: float

    def __str__(self) -> str:
        """Median first: it is the one that decides."""
        return f"{self.median:.2f} (best {self.best:.2f})"


def faster(figure: Figure, than: Figure) -> Ratio:
    """Return how many times the records a second of `than` `figure` reads."""
    scale = figure.records / than.records
    pairs = zip(than.seconds(), figure.seconds(), strict=True)
    return Ratio(
        scale * than.best_seconds / figure.best_seconds,
        scale * statistics.median(slow / fast for slow, fast in pairs),
    )


def over_floor(result: SetResult) -> Ratio | None:
    """Return our time over (codec alone + our uncompressed time), or None for such a set."""
    if CODEC_ALONE not in result.figures:
        return None
    whole = result.figures[OURS]
    codec, plain = result.figures[CODEC_ALONE], result.figures[OURS_UNCOMPRESSED]
    rounds = zip(whole.seconds(), codec.seconds(), plain.seconds(), strict=True)
    return Ratio(
        whole.best_seconds / (codec.best_seconds + plain.best_seconds),
        statistics.median(ours / (alone + decode) for ours, alone, decode in rounds),
    )
