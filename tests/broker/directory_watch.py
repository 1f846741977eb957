"""What happens in partition directories: rolls, deletions and compactions, from listings alone."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.broker.background_thread import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_POLL_SECONDS = 0.004
_SUFFIX = ".log"


class Change(NamedTuple):
    """Names that came into a directory, and that left it, between two listings."""

    at: float
    partition: str
    came: tuple[str, ...]
    went: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.partition} +[{' '.join(self.came)}] -[{' '.join(self.went)}]"


@dataclass
class Seen:
    """All that was ever seen of one partition's segments."""

    base_offsets: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    swapped: set[int] = field(default_factory=set)
    """Bases of ``.swap`` files: compacted segments on their way into the log."""


def log_start_offset(directory: Path) -> int:
    """Return the lowest base offset of the segments that are part of the log now."""
    return min(_base_offsets(os.listdir(directory)), default=0)  # noqa: PTH208 - names only


def _base_offsets(names: Iterable[str]) -> set[int]:
    return {int(name[: -len(_SUFFIX)]) for name in names if name.endswith(_SUFFIX)}


class DirectoryWatch(BackgroundThread):
    """A thread that lists directories every few milliseconds.

    It sees most of what happens, not all: files that come and go between two listings are missed.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        super().__init__()
        self._directories = list(directories)
        self.seen = {each.name: Seen() for each in self._directories}
        self._changes: list[Change] = []

    def changes_since(self, moment: float) -> list[Change]:
        """Return what changed since a moment of `time.monotonic`."""
        return [change for change in self._changes.copy() if change.at >= moment]

    def work(self) -> None:
        """List until the block is left."""
        names: dict[str, set[str]] = {each.name: set() for each in self._directories}
        while not self.has_to_end.wait(_POLL_SECONDS):
            for directory in self._directories:
                before = names[directory.name]
                if not before and not directory.exists():
                    continue  # a partition's directory comes a moment after its topic
                now = set(os.listdir(directory))  # noqa: PTH208 - names only
                if now != before:
                    names[directory.name] = now
                    self._note(directory.name, came=now - before, went=before - now)

    def _note(self, partition: str, came: set[str], went: set[str]) -> None:
        change = Change(time.monotonic(), partition, tuple(sorted(came)), tuple(sorted(went)))
        self._changes.append(change)
        seen = self.seen[partition]
        seen.base_offsets |= _base_offsets(came)
        seen.gone |= _base_offsets(went)
        # A compacted segment takes the place of the first one it was made of, by the same name.
        seen.gone -= _base_offsets(came)
        seen.swapped |= _base_offsets(
            name.removesuffix(".swap") for name in came if name.endswith(".log.swap")
        )
