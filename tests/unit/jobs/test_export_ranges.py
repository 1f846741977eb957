"""Which offsets a run covers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pylog_jobs.export_ranges import (
    ExportedPartition,
    ExportPlan,
    LeftOutPartition,
    PartitionRange,
    RecreatedTopic,
    find_ranges,
    read_options,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ID, OTHER_ID = "RVsaA6ukRsm1uW_Met5mHQ", "RoLrm-3tTyKhJ-Fnk5bZqQ"


def partitions(
    start: int | None = 10,
    end: int | None = 30,
    stable: int | None = 25,
    topic_id: str | None = ID,
    defects: tuple[str, ...] = (),
) -> pa.Table:
    """Make the columns of table ``partitions`` that count here."""
    return pa.table(
        {
            "topic": ["orders"],
            "partition": [2],
            "log_start_offset": pa.array([start], pa.int64()),
            "log_end_offset": pa.array([end], pa.int64()),
            "last_stable_offset": pa.array([stable], pa.int64()),
            "topic_id": pa.array([topic_id], pa.string()),
            "defects": pa.array([defects], pa.list_(pa.string())),
        }
    )


def plan(
    table: pa.Table,
    exported: int | None = None,
    *,
    isolation: str = "read_uncommitted",
    fails: bool = True,
    restart: Sequence[str] = (),
) -> ExportPlan:
    before = {} if exported is None else {("orders", 2): ExportedPartition(exported, ID)}
    return find_ranges(
        table, before, isolation=isolation, fails_on_data_loss=fails, restart=restart
    )


def ranges(
    table: pa.Table,
    exported: int | None = None,
    *,
    isolation: str = "read_uncommitted",
    fails: bool = True,
) -> list[PartitionRange]:
    found = plan(table, exported, isolation=isolation, fails=fails)
    assert found.is_whole
    return list(found.ranges)


def test_the_first_run_covers_all_that_is_there() -> None:
    assert ranges(partitions()) == [PartitionRange("orders", 2, 10, 30, 0, ID)]


def test_a_later_run_begins_where_the_last_one_ended() -> None:
    assert ranges(partitions(), 20) == [PartitionRange("orders", 2, 20, 30, 0, ID)]


def test_nothing_new_is_an_empty_range() -> None:
    [found] = ranges(partitions(), 30)
    assert (found.start, found.end, found.offsets) == (30, 30, 0)


def test_read_committed_ends_before_the_first_open_transaction() -> None:
    [found] = ranges(partitions(), 20, isolation="read_committed")
    assert (found.start, found.end) == (20, 25)


def test_an_open_transaction_at_the_start_of_the_log_is_an_empty_range() -> None:
    [found] = ranges(partitions(start=26), isolation="read_committed")
    assert (found.start, found.end) == (26, 26)


def test_a_partition_whose_records_were_deleted_before_their_export_is_left_out() -> None:
    found = plan(partitions(), 7)
    assert found.ranges == []
    [stopped] = found.stopped
    assert (stopped.topic, stopped.partition) == ("orders", 2)
    assert stopped.error.startswith("offsets 7 to 9 were deleted before they were exported; go on")
    assert "--allow-data-loss" in stopped.error


def test_or_counted_where_that_is_allowed() -> None:
    assert ranges(partitions(), 7, fails=False) == [PartitionRange("orders", 2, 10, 30, 3, ID)]


def test_a_log_that_ends_before_what_was_exported_is_left_out_until_it_starts_over() -> None:
    found = plan(partitions(), 31)
    assert found.ranges == []
    [stopped] = found.stopped
    assert stopped.error.startswith("it ends at offset 30, and was exported up to offset 31: ")
    assert "--restart-topic orders" in stopped.error
    again = plan(partitions(), 31, restart=["orders"])
    assert again.ranges == [PartitionRange("orders", 2, 10, 30, 0, ID)]
    assert (again.is_whole, again.restarted) == (True, {"orders"})


def test_a_topic_that_was_created_again_is_left_out_until_it_starts_over() -> None:
    found = plan(partitions(topic_id=OTHER_ID), 20)
    assert (found.ranges, found.stopped) == ([], [])
    assert found.recreated == [RecreatedTopic("orders", ID, OTHER_ID)]
    again = plan(partitions(topic_id=OTHER_ID), 20, restart=["orders"])
    assert again.ranges == [PartitionRange("orders", 2, 10, 30, 0, OTHER_ID)]
    assert again.recreated == []


@pytest.mark.parametrize("exported", [None, 20])
def test_a_topic_that_is_what_was_exported_does_not_start_over(exported: int | None) -> None:
    found = plan(partitions(), exported, restart=["orders"])
    assert found.restarted == set()
    assert found.ranges == [PartitionRange("orders", 2, exported or 10, 30, 0, ID)]


def test_where_no_id_says_what_a_topic_is_it_starts_over_when_asked() -> None:
    found = plan(partitions(topic_id=None), 20, restart=["orders"])
    assert found.ranges == [PartitionRange("orders", 2, 10, 30, 0, None)]
    assert found.restarted == {"orders"}


def test_a_topic_or_partition_that_is_left_out_holds_up_no_other_one() -> None:
    others = [partitions(), partitions(topic_id=OTHER_ID)]
    places = [("orders", 2), ("orders", 3), ("made-again", 2), ("new", 2)]
    rows = pa.concat_tables([others[0], others[0], others[1], others[1]])
    rows = rows.set_column(0, "topic", pa.array([topic for topic, _ in places]))
    rows = rows.set_column(1, "partition", pa.array([number for _, number in places]))
    before = {
        ("orders", 2): ExportedPartition(31, ID),
        ("orders", 3): ExportedPartition(20, ID),
        ("made-again", 2): ExportedPartition(20, ID),
        ("deleted", 0): ExportedPartition(20, ID),
    }
    found = find_ranges(rows, before, isolation="read_uncommitted", fails_on_data_loss=True)
    assert [(each.topic, each.partition) for each in found.ranges] == [("orders", 3), ("new", 2)]
    assert [(each.topic, each.partition) for each in found.stopped] == [("orders", 2)]
    assert [each.topic for each in found.recreated] == ["made-again"]


def test_a_directory_without_a_topic_id_may_be_the_same() -> None:
    [found] = ranges(partitions(topic_id=None), 20)
    assert (found.start, found.topic_id) == (20, None)


@pytest.mark.parametrize("missing", [{"start": None}, {"end": None}])
def test_a_partition_that_cannot_be_read_is_left_out_with_its_cause(
    missing: dict[str, None],
) -> None:
    table = partitions(**missing, defects=("/logs/orders-2: not readable",))
    for fails_on_damage in (True, False):
        assert find_ranges(
            table,
            {},
            isolation="read_uncommitted",
            fails_on_data_loss=True,
            fails_on_damage=fails_on_damage,
        ).damaged == [LeftOutPartition("orders", 2, "/logs/orders-2: not readable")]


def test_one_with_a_defect_and_an_end_is_read_only_where_damage_may_be_left_out() -> None:
    table = partitions(defects=("/logs/orders-2/x.log: not a regular file",))
    counts = [
        len(
            find_ranges(
                table,
                {},
                isolation="read_uncommitted",
                fails_on_data_loss=True,
                fails_on_damage=fails_on_damage,
            ).ranges
        )
        for fails_on_damage in (True, False)
    ]
    assert counts == [0, 1]


def test_the_options_read_exactly_the_ranges() -> None:
    options = read_options(
        [
            PartitionRange("a", 0, 1, 5, 0, None),
            PartitionRange("a", 1, 2, 6, 0, None),
            PartitionRange("b", 0, 3, 7, 0, None),
        ]
    )
    assert {name: json.loads(text) for name, text in options.items()} == {
        "assign": {"a": [0, 1], "b": [0]},
        "startingOffsets": {"a": {"0": 1, "1": 2}, "b": {"0": 3}},
        "endingOffsets": {"a": {"0": 5, "1": 6}, "b": {"0": 7}},
    }
