"""Table ``latest`` of what brokers' cleaners have not yet seen is what they left of it.

Of each case, ``after/`` is what a broker's cleaner made of ``before/`` up to its active segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.golden.test_compaction_pairs import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

COLUMNS = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]


def rows(directory: Path, ends: dict[tuple[str, int], int]) -> list[dict[str, object]]:
    """Return the records before some offsets that have a key and a value, by Kafka's own work."""
    table = pylog.scan(
        directory,
        assign=_assigned(ends),
        end=_specs(ends),
        isolation="read_committed",
        columns=COLUMNS,
        timestamp_unit="ms",
    ).to_table()
    return [row for row in table.to_pylist() if None not in (row["key"], row["value"])]


def _assigned(ends: dict[tuple[str, int], int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in ends:
        found.setdefault(topic, []).append(partition)
    return found


def _specs(ends: dict[tuple[str, int], int]) -> pylog.OffsetSpecs:
    return {pylog.TopicPartition(*place): end for place, end in ends.items()}


@pytest.mark.parametrize("case_id", CASES)
def test_the_last_records_are_those_that_a_broker_s_cleaner_left(
    golden_root: GoldenRoot, case_id: str
) -> None:
    case = golden_root.case(case_id)
    # The first offset of the active segment, up to which everything was cleaned.
    ends = {
        (view.topic, view.partition): view.segments[-1].base_offset
        for view in pylog.open_directory(case / "after").select()
        if len(view.segments) > 1
    }
    assert ends
    found = pylog.read_table(
        case / "before", "latest", assign=_assigned(ends), end=_specs(ends)
    ).to_pylist()
    expected = rows(case / "after", ends)
    assert found == expected
    # And what is left of it is the same again.
    again = pylog.read_table(
        case / "after", "latest", assign=_assigned(ends), end=_specs(ends)
    ).to_pylist()
    assert again == expected
