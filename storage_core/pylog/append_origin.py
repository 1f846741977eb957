"""Where the records of an append come from, which decides how far they are validated."""

from __future__ import annotations

from enum import Enum, auto


class AppendOrigin(Enum):
    """Who hands records to a log (Kafka: AppendOrigin)."""

    REPLICATION = auto()
    """A follower that copies its leader, or a log that reads itself: a leader has checked it."""
    COORDINATOR = auto()
    """A group or transaction coordinator: offset commits, which carry no sequence, and markers."""
    CLIENT = auto()
    """A producer: everything is checked."""
    RAFT_LEADER = auto()
    """The leader of a metadata quorum, which assigns its offsets itself."""
