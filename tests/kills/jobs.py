"""What the jobs of kill tests write: rows that tell their job and their number."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 3
TOPIC = "orders"
CONFIG = {"segment.bytes": "16000", "index.interval.bytes": "1000"}
"""So that partition 0 gets whole segments from large jobs, while all else is appended."""
BATCH_SIZE_BYTES = 1_000

PARTITION_OF_ROW = "cast(array(0, 0, 0, 0, 0, 0, 0, 1, 1, 2)[row % 10] as int)"
"""In SQL, as `partition_of` says it."""


def row_count(number: int) -> int:
    """Return how many rows a job writes: many, or few."""
    return 700 if number % 2 else 120


def value_of(number: int, row: int) -> str:
    """Return the value of a row."""
    return f"job {number:05} row {row:05} {'x' * 40}"


def number_of(value: bytes) -> int:
    """Return the number of the job that a value is of."""
    return int(value.split(maxsplit=2)[1])


def partition_of(row: int) -> int:
    """Return where a row goes."""
    return (0, 0, 0, 0, 0, 0, 0, 1, 1, 2)[row % 10]


def values_of(number: int) -> Counter[bytes]:
    """Return all that a job writes."""
    return Counter(value_of(number, row).encode() for row in range(row_count(number)))


def add_input(query: Path, number: int, files: int = 1) -> None:
    """Add the rows of a job to what a stream reads: ``query/input``, by turns to so many files."""
    directory = query / "input"
    directory.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        path = directory / f"{number:05}-{file}.tmp"
        rows = range(file, row_count(number), files)
        path.write_text("".join(f"{value_of(number, row)}\n" for row in rows), "utf-8")
        path.rename(path.with_suffix(".txt"))  # now the stream finds it
