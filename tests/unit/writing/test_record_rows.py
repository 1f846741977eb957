"""Records that come one by one: they are handed on in pieces of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.writing.record_rows import ColumnNames, batches_of_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ColumnNames(key="key", value="value", timestamp=None, headers=None)


class EndlessRecords:
    """Gives the same record for ever, and counts how often."""

    def __init__(self, value: bytes) -> None:
        self.given = 0
        self._record = (b"k", value)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            self.given += 1
            yield self._record


@pytest.mark.parametrize(
    ("value_bytes", "most_records"), [(1, 16_384), (1 << 20, 8), (100 << 20, 1)]
)
def test_a_batch_is_given_before_many_records_are_in_memory(
    value_bytes: int, most_records: int
) -> None:
    records = EndlessRecords(bytes(value_bytes))
    batches = batches_of_objects(records, NAMES)
    for number in (1, 2):
        batch, partitions = next(batches)
        assert (batch.num_rows, partitions) == (most_records, None)
        assert records.given == number * most_records
