"""What a figure of two ways to read is, which take turns."""

from dataclasses import dataclass, field
from statistics import median


@dataclass(slots=True)
class PairFigure:
    """Seconds of one way to read and of what it is held against, taken in turns."""

    name: str
    peer: str
    seconds: list[float] = field(default_factory=list)
    peer_seconds: list[float] = field(default_factory=list)

    @property
    def times(self) -> float:
        """How many times as long as the peer it takes: the median of the rounds."""
        rounds = zip(self.seconds, self.peer_seconds, strict=True)
        return median(ours / peer for ours, peer in rounds)
