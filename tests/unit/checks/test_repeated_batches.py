from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks.repeated_batches import first_repeated
from pylog.reading.damage import DamagedRange
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.log_files import mark_clean_shutdown, segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

FIRST = [batch_v2(plain_records(o, 5, timestamp=1_000 + o)) for o in (0, 5)]
SECOND = [batch_v2(plain_records(o, 5, timestamp=1_000 + o)) for o in (10, 15)]
SIZE = len(FIRST[0].data)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: FIRST, 10: SECOND})


@pytest.mark.parametrize("is_clean", [True, False])
def test_batches_that_come_again_are_served_with_their_offsets(
    directory: Path, *, is_clean: bool
) -> None:
    again = joined([*FIRST, FIRST[1], FIRST[1]])
    segment_path(directory, 0).write_bytes(again)
    if is_clean:
        mark_clean_shutdown(directory.parent)
    report = pylog.doctor(directory.parent)
    [finding] = report.findings
    assert (finding.severity, finding.code) == ("warning", "repeated_batches")
    assert (finding.position, finding.end_position) == (2 * SIZE, 4 * SIZE)
    assert (finding.next_offset, finding.end_offset) == (5, 10)
    assert finding.message.endswith(": offsets 5 to 9 are here again")
    assert finding.broker_action.startswith("it leaves these bytes: Java's consumer gets each ")
    # A client that is built on librdkafka gets them twice.
    assert [(each.from_offset, each.to_offset) for each in report.verdict.consumers] == [(5, 10)]
    assert report.verdict.lost_already == []


def test_a_batch_whose_offset_went_back_is_no_repetition_where_others_are_missing(
    directory: Path,
) -> None:
    lower = batch_v2(plain_records(2, 5, timestamp=1_005))
    segment_path(directory, 0).write_bytes(joined([FIRST[0], lower]))
    mark_clean_shutdown(directory.parent)
    report = pylog.doctor(directory.parent)
    [finding] = [each for each in report.findings if each.code == "damaged_batches"]
    assert finding.next_offset == 5


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 5),
        ({"end_offset": None}, None),  # nothing tells up to where
        ({"end_offset": 12}, None),  # there is room for other records
        ({"position": 0}, None),  # at the start of a file its name may be wrong
        ({"next_offset": 8}, None),  # the end of the batch is new
        ({"end_position": 3 * SIZE - 1}, None),  # and a part of a batch
    ],
)
def test_only_what_is_all_there_before_comes_again(
    directory: Path, fields: dict[str, int | None], expected: int | None
) -> None:
    path = segment_path(directory, 0)
    path.write_bytes(joined([*FIRST, FIRST[1]]))
    damaged = DamagedRange(str(path), 2 * SIZE, 3 * SIZE, 10, 10, "a reason")
    assert first_repeated(replace(damaged, **fields)) == expected  # type: ignore[arg-type]
