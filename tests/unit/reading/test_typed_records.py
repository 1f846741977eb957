from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from pylog.errors import UndecodableValueError
from pylog.reading.field_filter import FieldFilter
from pylog.record_lines.typed_json import typed_json_lines
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.registry_records import ORDER, schema, write_registry
from tests.unit.reading.typed_logs import (
    BY_HEADER,
    FIRST,
    HEADER,
    OF_USER,
    SECOND,
    write_orders,
    write_values,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.damage import ReadModeName

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


def found(scan: pylog.results.Scan) -> list[tuple[int, int]]:
    table = scan.to_table()
    places = zip(*(table.column(each).to_pylist() for each in ("partition", "offset")), strict=True)
    return list(places)


def test_a_condition_keeps_the_records_whose_fields_pass(malformed: Path) -> None:
    def scan(where: str, **arguments: Any) -> pylog.results.Scan:  # noqa: ANN401 - of pylog.scan
        return pylog.scan(
            malformed,
            topics="orders",
            value_format="auto",
            where=where,
            **{"mode": "DROPMALFORMED", **arguments},
        )

    second = scan("value.id = 2")
    assert found(second) == [(0, 2), (1, 4)]
    assert second.to_table().column("value").to_pylist() == [TWO, TWO]
    assert [str(each) for each in second.undecodable.errors] == NOT_DECODED * 2
    assert (second.count(), second.head(1).count()) == (2, 1)
    assert found(second.last(1)) == [(0, 2), (1, 4)]
    assert [each.value for each in second.records()] == [SECOND, SECOND]
    assert [second.reader_of(task).count() for task in second.plan()] == [1, 1]
    assert found(scan("value IS NULL")) == [(0, 1), (1, 3)]
    assert found(scan("value.id < 3", limit=2)) == [(0, 0), (0, 2)]
    assert scan("value.id = 2", columns="offset").to_table().column("offset").to_pylist() == [2, 4]
    counted = sum(batch.num_rows for batch in scan("value.id = 2", columns="topic").to_batches())
    assert counted == 2
    narrowed = second.narrowed(["topic", "partition"]).counted_batches()
    assert sum(batch.num_rows for batch in narrowed) == 2
    merged = pylog.merge_by_timestamp(second)
    assert sum(batch.num_rows for batch in merged) == 2


def test_what_a_condition_cannot_see_is_handled_by_the_mode(malformed: Path) -> None:
    def scan(mode: ReadModeName, where: str = "value.id IS NULL") -> pylog.results.Scan:
        columns = ["partition", "offset", "value", "_corrupt_record"]
        place: dict[str, Any] = {"assign": {"orders": [1]}, "value_format": "auto"}
        return pylog.scan(malformed, where=where, mode=mode, columns=columns, **place)

    batches = scan("FAILFAST", "value.id = 1").to_batches()
    assert next(batches).column("offset").to_pylist() == [0]
    with pytest.raises(UndecodableValueError, match="orders-1, offset 1: the value cannot be"):
        next(batches)
    failing = scan("FAILFAST")
    with pytest.raises(UndecodableValueError):
        failing.count()
    with pytest.raises(UndecodableValueError):
        failing.reader_of(failing.plan()[0]).count()
    assert found(scan("DROPMALFORMED")) == [(1, 3)]
    shown = scan("PERMISSIVE")
    assert found(shown) == [(1, 1), (1, 2), (1, 3)]
    assert shown.to_table().column("_corrupt_record").to_pylist() == [*NOT_DECODED, None]
    assert found(scan("PERMISSIVE", "value.id = 2")) == [(1, 4)]


def test_other_columns_are_decoded_of_records_that_pass_alone(logs: Path) -> None:
    records = [Stored(0, 1_000, OF_USER, FIRST), Stored(1, 1_000, b"text", SECOND)]
    write_partition(logs, {0: [batch_v2(records)]}, name="orders-1")

    def scan(where: str, **arguments: Any) -> pylog.results.Scan:  # noqa: ANN401 - of pylog.scan
        formats: dict[str, Any] = {"value_format": "auto", "key_format": "auto"}
        return pylog.scan(logs, assign={"orders": [1]}, where=where, **formats, **arguments)

    first = scan("value.id = 1").to_table()
    assert first.column("key").to_pylist() == [{"name": "ab"}]
    with pytest.raises(UndecodableValueError, match="offset 1: the key cannot be decoded"):
        scan("value.id = 2").to_table()
    with pytest.raises(UndecodableValueError, match="offset 1: the key cannot be decoded"):
        scan("key.name = 'ab' AND value.id = 2", columns="offset").to_table()
    dropped = scan("value.id IN (1, 2)", mode="DROPMALFORMED")
    assert found(dropped) == [(1, 0)]
    assert dict(dropped.undecodable.counts) == {("orders", "key"): 1}
    described = scan("value.id = 1", columns=["value_subject", "key_raw"]).to_table()
    assert described.to_pylist() == [{"value_subject": "orders-value", "key_raw": OF_USER}]


def test_a_condition_holds_for_what_threads_read_and_other_processes(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("orders-value", 1, 1, ORDER)])
    values = [b"\0\0\0\0\x01" + bytes([2 * (each % 50)]) for each in range(3000)]
    batches = [batch_v2([Stored(at, 1_000, bytes(400), value)]) for at, value in enumerate(values)]
    write_partition(tmp_path, {0: batches}, name="orders-0")
    wanted = [each for each in range(3000) if each % 50 == 7]
    arguments: dict[str, Any] = {
        "topics": "orders",
        "value_format": "auto",
        "where": "value.id = 7",
    }
    one = pylog.scan(tmp_path, columns="offset", window_bytes=1 << 16, **arguments)
    several = pylog.scan(tmp_path, columns="offset", threads=3, window_bytes=1 << 16, **arguments)
    assert one.to_table().column("offset").to_pylist() == wanted
    assert several.to_table().column("offset").to_pylist() == wanted
    [task], typed = pickle.loads(pickle.dumps((one.plan(), one.typed)))  # noqa: S301 - our own
    read = task.read(one.schema, typed=typed)
    assert [each for batch in read for each in batch.column(0).to_pylist()] == wanted


def test_a_condition_needs_a_format_and_its_fields(logs: Path) -> None:
    with pytest.raises(ValueError, match="give --value-format auto"):
        pylog.scan(logs, topics="orders", where="value.id = 1")
    with pytest.raises(ValueError, match="value has no field 'nr': it has id, note"):
        pylog.scan(logs, topics="orders", value_format="auto", where="value.nr = 1")
    fields = FieldFilter.of("value.id = 1", {"value": pa.struct([("id", pa.int64())])})
    with pytest.raises(ValueError, match="a scan with value_format or key_format"):
        pylog.scan(logs, topics="orders").narrowed(where=fields)
    limited = pylog.scan(logs, topics="orders", value_format="auto", limit=1)
    with pytest.raises(ValueError, match="a scan with a limit cannot be narrowed"):
        limited.narrowed(where=fields)


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


def test_reasons_are_there_also_without_the_typed_columns(tmp_path: Path) -> None:
    logs = write_orders(tmp_path)
    write_values(logs, "orders-1", [FIRST, b"text", SECOND])
    columns = ["partition", "offset", "_corrupt_record"]
    options: dict[str, Any] = {"topics": "orders", "value_format": "auto"}
    scan = pylog.scan(logs, **options, columns=columns, mode="PERMISSIVE")
    failed = [row for row in scan.to_table().to_pylist() if row["_corrupt_record"] is not None]
    assert [(row["partition"], row["offset"]) for row in failed] == [(1, 1)]
    assert failed[0]["_corrupt_record"].startswith("orders-1, offset 1: the value cannot be")
    alone = pylog.scan(logs, **options, columns="_corrupt_record", mode="PERMISSIVE").to_table()
    assert alone.column(0).null_count == 5
    with pytest.raises(UndecodableValueError, match="orders-1, offset 1"):
        pylog.scan(logs, **options, columns=columns).to_table()
