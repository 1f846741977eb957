"""A target: what was to be reached, and what a run says of it."""

from dataclasses import dataclass

from benchmarks.ratio import Ratio

NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the table of targets; `met` is None where it was not measured."""

    text: str
    measured: str
    met: bool | None


def at_least(text: str, ratio: Ratio | None, limit: float) -> Target:
    """Return the target that the median of a ratio, None if not measured, reaches a limit."""
    if ratio is None:
        return Target(text, NOT_MEASURED, None)
    return Target(text, str(ratio), ratio.median >= limit)
