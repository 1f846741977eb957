"""The way from one snapshot of an Iceberg table to another."""

from __future__ import annotations

import pytest

from pylog_jobs.job import UsageError
from pylog_jobs.table_versions import Snapshot, changes_of, lineage_of

APPENDS = {
    1: Snapshot(1, None, "append"),
    2: Snapshot(2, 1, "append"),
    3: Snapshot(3, 2, "replace"),
    4: Snapshot(4, 3, "append"),
}


def test_the_way_has_all_snapshots_after_the_start_the_oldest_first() -> None:
    assert [each.number for each in lineage_of(APPENDS, 4, 1, "t")] == [2, 3, 4]
    assert lineage_of(APPENDS, 4, 4, "t") == []
    assert changes_of(lineage_of(APPENDS, 4, 1, "t")) == []


@pytest.mark.parametrize("operation", ["overwrite", "delete", "anything new"])
def test_what_does_not_append_is_named(operation: str) -> None:
    changed = APPENDS | {3: Snapshot(3, 2, operation)}
    assert [each.number for each in changes_of(lineage_of(changed, 4, 1, "t"))] == [3]


@pytest.mark.parametrize(
    ("snapshots", "current", "start", "message"),
    [
        (APPENDS, 2, 4, "has been rolled back or replaced: the last run ended with version 4"),
        (APPENDS | {5: Snapshot(5, 2, "append")}, 5, 4, "the newest version is 5"),
        ({4: APPENDS[4]}, 4, 1, "snapshot 3 of table t has expired"),
        (APPENDS, 2, 9, "has been rolled back or replaced"),
    ],
)
def test_where_there_is_no_way_the_error_says_how_to_start_over(
    snapshots: dict[int, Snapshot], current: int, start: int, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        lineage_of(snapshots, current, start, "t")
    assert message in str(caught.value)
    assert "--full reads everything again and replaces what the topic has" in str(caught.value)
