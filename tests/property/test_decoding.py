"""Compiled decoding equals what was written, and the plain-Python reference."""

from __future__ import annotations

from itertools import accumulate

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pylog.columnar.arrow_schema import column_names, record_schema
from tests.support import strategies
from tests.support.batches import Built, Stored, joined
from tests.support.decoding import (
    FILE_POSITION,
    PARTITION,
    kernel_batches,
    kernel_records,
    reference_records,
)
from tests.support.reading import rows

ANY_TIME = strategies.segments(strategies.any_batch(strategies.ANY_TIMESTAMP))
ALL_COLUMNS = column_names(include_headers=True, include_batch_metadata=True)


def all_records(batches: list[Built]) -> list[Stored]:
    return [record for built in batches for record in built.records]


@given(ANY_TIME)
def test_kernels_reference_and_what_was_written_are_the_same(batches: list[Built]) -> None:
    data = joined(batches)
    assert kernel_records(data) == all_records(batches)
    assert reference_records(data) == all_records(batches)


@given(strategies.segments(), st.data())
def test_a_range_of_offsets_is_cut_exactly(batches: list[Built], data: st.DataObject) -> None:
    records = all_records(batches)
    offsets = sorted({record.offset + near for record in records for near in (0, 1)} | {0})
    start = data.draw(st.sampled_from(offsets))
    end = data.draw(st.sampled_from(offsets))
    schema = record_schema(include_headers=True, timestamp_unit="ms")
    found = rows(kernel_batches(joined(batches), schema, start, end))
    assert found == [record for record in records if start <= record.offset < end]


@given(
    strategies.segments(),
    st.lists(st.sampled_from(ALL_COLUMNS), unique=True),
    st.sampled_from(("us", "ms")),
)
def test_a_projection_is_the_same_columns_in_the_order_asked_for(
    batches: list[Built], names: list[str], unit: str
) -> None:
    data = joined(batches)
    whole_schema = record_schema(ALL_COLUMNS, timestamp_unit=unit)
    whole = pa.Table.from_batches(kernel_batches(data, whole_schema), whole_schema)
    schema = record_schema(names, timestamp_unit=unit)
    found = pa.Table.from_batches(kernel_batches(data, schema), schema)
    assert found.schema.names == names
    assert found.num_rows == whole.num_rows
    assert found.to_pydict() == whole.select(names).to_pydict()


@given(strategies.segments())
def test_microseconds_are_a_thousand_times_milliseconds(batches: list[Built]) -> None:
    columns = ["offset", "timestamp"]
    milli, micro = (
        pa.Table.from_batches(kernel_batches(joined(batches), schema), schema)
        for schema in (record_schema(columns, timestamp_unit=unit) for unit in ("ms", "us"))
    )
    assert micro.column("timestamp").cast(pa.int64()).to_pylist() == [
        1000 * stamp for stamp in milli.column("timestamp").cast(pa.int64()).to_pylist()
    ]


@given(strategies.segments())
def test_batch_metadata_and_constant_columns_are_each_rows_own(batches: list[Built]) -> None:
    schema = record_schema(["offset", "topic", "partition", "batch"])
    table = pa.Table.from_batches(kernel_batches(joined(batches), schema), schema)
    positions = accumulate((len(built.data) for built in batches), initial=FILE_POSITION)
    expected = [
        {
            "offset": record.offset,
            "topic": PARTITION.topic,
            "partition": PARTITION.partition,
            "baseOffset": built.base_offset,
            "lastOffset": built.last_offset,
            "producerId": None if built.producer_id < 0 else built.producer_id,
            "isTransactional": built.is_transactional,
            "magic": built.magic,
            "compression": built.codec,
            "sizeInBytes": len(built.data),
            "segment": "00000000000000000000.log",
            "position": position,
        }
        for built, position in zip(batches, positions, strict=False)
        for record in built.records
    ]
    found = [
        {name: value for name, value in ({**row, **row["batch"]}).items() if name in expected[0]}
        for row in table.to_pylist()
    ]
    assert found == expected
