from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import UndecodableValueError
from pylog.record_lines.typed_json import typed_json_lines
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.registry_records import schema, write_registry
from tests.unit.reading.typed_logs import (
    BY_HEADER,
    FIRST,
    HEADER,
    SECOND,
    write_orders,
    write_values,
)

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = {"id": 1, "note": ""}, {"id": 2, "note": "x"}
MALFORMED = [FIRST, b"text", SECOND + b"!", None, SECOND]
NO_ID = "it starts with 74 65 78 74, which is no schema id, and no header has one"
NOT_DECODED = [
    f"orders-1, offset 1: the value cannot be decoded: {NO_ID}",
    "orders-1, offset 2: the value cannot be decoded by schema 2: 1 bytes follow the value",
]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_orders(tmp_path)


@pytest.fixture
def malformed(logs: Path) -> Path:
    write_values(logs, "orders-1", MALFORMED)
    return logs


def test_values_are_a_struct_of_the_latest_version(logs: Path) -> None:
    scan = pylog.scan(logs, topics="orders", value_format="auto")
    assert scan.schema.field("value").type == pa.struct([("id", pa.int64()), ("note", pa.string())])
    table = scan.to_table()
    assert table.column("value").to_pylist() == [ONE, None, TWO]
    assert table.column("key").type == pa.binary()
    assert scan.count() == 3


def test_schemas_may_be_named_by_headers(logs: Path) -> None:
    records = [
        Stored(0, 1_000, None, BY_HEADER, (("__value_schema_id", HEADER),)),
        Stored(1, 1_000, None, SECOND, (("trace", b"1"),)),
    ]
    write_partition(logs, {0: [batch_v2(records)]}, name="orders-7")
    scan = pylog.scan(logs, assign={"orders": [7]}, value_format="auto", columns="value")
    assert scan.to_table().column("value").to_pylist() == [ONE, TWO]


def test_keys_are_decoded_beside_values(logs: Path) -> None:
    columns = ["value_raw", "key", "value", "key_raw"]
    scan = pylog.scan(
        logs, topics="orders", value_format="auto", key_format="avro", columns=columns
    )
    table = scan.to_table()
    assert table.column_names == columns
    assert table.column("key").to_pylist() == [{"name": "ab"}] * 3
    assert table.column("value_raw").to_pylist() == [FIRST, None, SECOND]


def test_schema_ids_and_subjects_are_columns(logs: Path) -> None:
    columns = ["value_subject", "value_schema_id"]
    scan = pylog.scan(logs, topics="orders", value_format="auto", columns=columns)
    table = scan.to_table()
    assert table.column_names == columns
    assert table.column("value_schema_id").to_pylist() == [1, None, 2]
    assert table.column("value_subject").to_pylist() == ["orders-value", None, "orders-value"]
    raw = pylog.scan(logs, topics="orders", value_format="auto", columns="value_raw")
    assert raw.to_table().column("value_raw").to_pylist() == [FIRST, None, SECOND]


def test_the_first_value_that_cannot_be_decoded_is_an_error(malformed: Path) -> None:
    scan = pylog.scan(
        malformed, assign={"orders": [1]}, value_format="auto", columns=["offset", "value"]
    )
    batches = scan.to_batches()
    assert next(batches).column("offset").to_pylist() == [0]
    with pytest.raises(UndecodableValueError) as caught:
        next(batches)
    error = caught.value
    assert str(error) == NOT_DECODED[0]
    assert (error.topic_partition, error.offset, error.column) == ("orders-1", 1, "value")


def test_what_cannot_be_decoded_is_left_out_and_reported(malformed: Path) -> None:
    scan = pylog.scan(
        malformed, topics="orders", value_format="auto", mode="DROPMALFORMED", columns="value"
    )
    assert scan.to_table().column("value").to_pylist() == [ONE, None, TWO, ONE, None, TWO]
    assert [str(each) for each in scan.undecodable.errors] == NOT_DECODED
    assert dict(scan.undecodable.counts) == {("orders", "value"): 2}
    assert len(scan.undecodable) == 2


def test_what_cannot_be_decoded_is_null_beside_its_reason_and_bytes(malformed: Path) -> None:
    scan = pylog.scan(
        malformed,
        assign={"orders": [1]},
        value_format="auto",
        mode="PERMISSIVE",
        columns=["offset", "value", "value_raw", "_corrupt_record"],
    )
    table = scan.to_table()
    assert table.column("value").to_pylist() == [ONE, None, None, None, TWO]
    assert table.column("value_raw").to_pylist() == MALFORMED
    assert table.column("_corrupt_record").to_pylist() == [None, *NOT_DECODED, None, None]


def test_columns_that_are_not_asked_for_are_not_decoded(malformed: Path) -> None:
    scan = pylog.scan(malformed, assign={"orders": [1]}, value_format="auto", columns="offset")
    assert scan.to_table().num_rows == 5
    narrowed = scan.narrowed(["value"], limit=1)
    assert narrowed.to_table().column("value").to_pylist() == [ONE]


def test_records_and_threads(logs: Path) -> None:
    scan = pylog.scan(logs, topics="orders", value_format="auto", threads=2)
    assert [each.value for each in scan.records()] == [FIRST, None, SECOND]
    assert scan.last(1).to_table().column("value").to_pylist() == [TWO]


def test_filters_see_bytes_and_the_rest_is_decoded(logs: Path) -> None:
    where = pylog.RecordFilter(keys=frozenset([b"\0\0\0\0\x03\x04ab"]), min_timestamp=0)
    scan = pylog.scan(logs, topics="orders", value_format="auto", where=where, columns="value")
    assert scan.to_table().column("value").to_pylist() == [ONE, None, TWO]


def test_values_of_the_bare_type_bytes_are_typed_too(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("raw-value", 1, 1, '"bytes"')])
    # Confluent's serializers write such a value as it is, without its length.
    write_values(tmp_path, "raw-0", [b"\0\0\0\0\x01ab\0", b"\0\0\0\0\x01"])
    scan = pylog.scan(tmp_path, topics="raw", value_format="auto", columns="value")
    assert scan.to_table().column("value").to_pylist() == [b"ab\0", b""]
    columns = pylog.jobs.LineFormat.typed_json(["value"]).columns
    batches = pylog.scan(tmp_path, topics="raw", value_format="auto", columns=columns).to_batches()
    lines = b"".join(each for batch in batches for each in typed_json_lines(batch)).splitlines()
    assert [json.loads(each)["value"] for each in lines] == ["YWIA", ""]
