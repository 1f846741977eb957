"""Which records of a window are left out, in batches of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.model import TopicPartition
from pylog.record.batch_scan import Window, find_batches
from pylog.recovery.omitted_records import FoundOffsets, OmittedRecords
from pylog.recovery.retained_batches import BatchSelection
from tests.support.batch_parser import ParsedBatch, split_batches
from tests.support.batches import COMMIT, Stored, batch_v2, empty_batch_v2, joined, marker
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = TopicPartition("t", 0)


def keyed(start: int, keys: str, *, producer: int = -1, codec: str = "none") -> bytes:
    records = [Stored(start + at, 9, key.encode(), b"v") for at, key in enumerate(keys)]
    return batch_v2(
        records,
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 0,
        base_sequence=-1 if producer < 0 else start,
        codec=codec,
    ).data


# Offsets 0 to 2, 3 to 5, an empty batch at 6, a marker at 7, 8 to 9.
DATA = b"".join(
    [
        keyed(0, "aba"),
        keyed(3, "bbb", producer=5, codec="gzip"),
        empty_batch_v2(6, 6, producer_id=5).data,
        joined([marker(7, COMMIT, producer_id=5)]),
        keyed(8, "ca", producer=6),
    ]
)


def window() -> Window:
    return Window.of(find_batches(as_buffer(DATA)))


def having(*keys: str) -> pylog.RecordFilter:
    return pylog.RecordFilter(keys=frozenset(each.encode() for each in keys))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (having("a"), [0, 2, 9]),
        (having("b"), [1, 3, 4, 5]),
        (having("x"), []),
        (pylog.RecordFilter(min_offset=2, max_offset=4), [2, 3, 4]),
        (pylog.RecordFilter(partitions=frozenset({1})), []),
        (pylog.RecordFilter(topics=frozenset({"u"})), []),
        (pylog.RecordFilter(topics=frozenset({"t"})), [0, 1, 2, 3, 4, 5, 8, 9]),
    ],
)
def test_control_records_and_empty_batches_are_never_found(
    where: pylog.RecordFilter, expected: list[int]
) -> None:
    assert FoundOffsets(PLACE, where).of(window()).tolist() == expected


@pytest.mark.parametrize(
    ("options", "touched", "left"),
    [
        ({}, [], [0, 1, 2, 3, 4, 5, 7, 8, 9]),
        ({"exclude": having("x")}, [], [0, 1, 2, 3, 4, 5, 7, 8, 9]),
        ({"exclude": having("c")}, [4], [0, 1, 2, 3, 4, 5, 7, 9]),
        ({"exclude": having("b")}, [0, 1], [0, 2, 7, 8, 9]),
        ({"where": having("b")}, [0, 4], [1, 3, 4, 5, 7]),
        ({"where": having("a", "b", "c")}, [], [0, 1, 2, 3, 4, 5, 7, 8, 9]),
        ({"where": having("x")}, [0, 1, 4], [7]),
        ({"producers": [5]}, [1], [0, 1, 2, 7, 8, 9]),
        ({"producers": [6, 5], "exclude": having("a")}, [0, 1, 4], [1, 7]),
        ({"where": having("a", "c"), "exclude": having("c")}, [0, 1, 4], [0, 2, 7, 9]),
    ],
)
def test_batches_that_lose_records_are_named_and_the_others_stay(
    options: Mapping[str, object], touched: list[int], left: list[int]
) -> None:
    omitted = OmittedRecords(PLACE, **options)  # type: ignore[arg-type]
    assert omitted.batches(window()).nonzero()[0].tolist() == touched
    selection = BatchSelection(None, None, OmittedRecords(PLACE, **options))  # type: ignore[arg-type]
    parts = list(selection.select(window()))
    batches = [ParsedBatch.of(each) for part in parts for each in split_batches(bytes(part.data))]
    assert [record.offset for each in batches for record in each.records()] == left
    assert sum(part.left_out for part in parts) == 9 - len(left)
    assert len(batches) == 5  # the header of a batch stays without its records
