"""Table ``latest``: the last record of each key, at any offset and time, in bounded memory.

Typed values are compared with what fastavro and Python's json make of the last record of each key.
"""

from __future__ import annotations

import io
import json
import random
from typing import TYPE_CHECKING, Any

import fastavro
import polars as pl
import pyarrow as pa
import pytest

import pylog
import pylog.duckdb
import pylog.polars
from pylog.errors import CorruptRecordError, InvalidSchemaError, UndecodableValueError
from pylog.model import LATEST
from pylog.tables.latest import latest_records
from tests.support.batches import ABORT, COMMIT, Stored, batch_v2, marker, message, wrapper
from tests.support.log_files import segment_path, write_partition
from tests.support.registry_records import ORDER, schema, write_registry
from tests.unit.reading.typed_logs import OF_USER, USER, write_orders, write_values

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 3_000
KEYS = 400
SEED = 35

Rows = dict[bytes, tuple[int, bytes]]


def written(directory: Path) -> list[tuple[bytes | None, bytes | None]]:
    """Write records of few keys, some without a key, some tombstones, one a millisecond."""
    chance = random.Random(SEED)
    records = [
        (
            None if chance.random() < 0.02 else b"key %d" % chance.randrange(KEYS),
            None if chance.random() < 0.2 else b"value %d" % number,
        )
        for number in range(RECORDS)
    ]
    keys, values = zip(*records, strict=True)
    pylog.write_topic(
        directory,
        "orders",
        pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp": pa.array(range(1, RECORDS + 1), pa.timestamp("ms", "UTC")),
            }
        ),
        timestamp="timestamp",
        batch_size=2_000,
        config={"segment.bytes": "20000"},
    )
    return records


def expected(records: list[tuple[bytes | None, bytes | None]], end: int = RECORDS) -> Rows:
    last = {key: (offset, value) for offset, (key, value) in enumerate(records[:end]) if key}
    return {key: (offset, value) for key, (offset, value) in last.items() if value is not None}


def rows(table: pa.Table) -> Rows:
    found = {row["key"]: (row["offset"], row["value"]) for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


@pytest.mark.parametrize("end", [0, 1, 2, 777, 1_500, RECORDS])
def test_the_state_at_any_offset_is_that_of_the_records_before_it(tmp_path: Path, end: int) -> None:
    records = written(tmp_path)
    table = pylog.read_table(tmp_path, "latest", end=end)
    assert rows(table) == expected(records, end)
    assert table["offset"].to_pylist() == sorted(table["offset"].to_pylist())


def test_the_state_at_a_time_is_that_of_the_records_before_it(tmp_path: Path) -> None:
    records = written(tmp_path)
    at = pylog.Timestamp(1_234)
    assert rows(pylog.read_table(tmp_path, "latest", end=at)) == expected(records, 1_233)


def test_more_keys_than_the_map_has_room_for_are_found_share_by_share(tmp_path: Path) -> None:
    records = written(tmp_path)
    [view] = pylog.open_directory(tmp_path).select()
    batches = list(latest_records(view, map_bytes=24 * 50))
    assert len(batches) > KEYS // 50
    assert rows(pa.Table.from_batches(batches)) == expected(records)


def test_duckdb_and_polars_have_it(tmp_path: Path) -> None:
    records = written(tmp_path)
    of_duckdb = pylog.duckdb.connect(tmp_path, end=777).sql(
        """SELECT key, "offset", value FROM latest WHERE "offset" >= 500"""
    )
    wanted = {key: row for key, row in expected(records, 777).items() if row[0] >= 500}
    assert {key: (offset, value) for key, offset, value in of_duckdb.fetchall()} == wanted
    frame = pylog.polars.table(tmp_path, "latest", end=777)
    assert rows(frame.collect().to_arrow()) == expected(records, 777)


def test_aborted_and_open_transactions_do_not_count(tmp_path: Path) -> None:
    def batch(offset: int, value: bytes, producer_id: int) -> Any:  # noqa: ANN401 - of batch_v2
        return batch_v2(
            [Stored(offset, 1, b"key", value)], producer_id=producer_id, is_transactional=True
        )

    write_partition(
        tmp_path,
        {
            0: [
                batch(0, b"committed", 7),
                marker(1, COMMIT, producer_id=7),
                batch(2, b"aborted", 8),
                marker(3, ABORT, producer_id=8),
                batch(4, b"open", 9),
                batch_v2([Stored(5, 1, b"key", b"behind the open one")]),
            ]
        },
    )
    assert rows(pylog.read_table(tmp_path, "latest")) == {b"key": (0, b"committed")}


def test_old_formats_are_cut_inside_of_a_wrapper(tmp_path: Path) -> None:
    inner = [Stored(offset, 1, b"key", b"%d" % offset) for offset in range(4)]
    write_partition(
        tmp_path,
        {0: [wrapper(inner, magic=1, codec="gzip"), message(Stored(4, 1, b"key", b"4"), magic=1)]},
    )
    assert rows(pylog.read_table(tmp_path, "latest", end=2)) == {b"key": (1, b"1")}
    assert rows(pylog.read_table(tmp_path, "latest")) == {b"key": (4, b"4")}


def test_damage_is_an_error_or_left_out(tmp_path: Path) -> None:
    batches = [batch_v2([Stored(offset, 1, b"key", b"%d" % offset)]) for offset in range(3)]
    path = segment_path(write_partition(tmp_path, {0: batches}), 0)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptRecordError, match=str(path)):
        pylog.read_table(tmp_path, "latest")
    found = pylog.read_table(tmp_path, "latest", mode="DROPMALFORMED")
    assert rows(found) == {b"key": (1, b"1")}


def test_other_tables_have_no_end(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(ValueError, match="end is for table 'latest', table 'segments' is about"):
        pylog.read_table(tmp_path, "segments", end=5)
    assert pylog.read_table(tmp_path, "segments", end=LATEST).num_rows > 1


SENT = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},
  {"name": "state", "type": ["null", "string"], "default": null}]}"""
BY_ID = {1: ORDER, 2: SENT}
STATES = [None, "new", "sent", "returned"]

Values = dict[bytes, dict[str, Any]]


def framed(schema_id: int, value: dict[str, Any]) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(BY_ID[schema_id])), value)
    return out.getvalue()


def typed_orders(directory: Path) -> Values:
    """Write orders of few keys by two schemas; return the last value of each key, by fastavro."""
    write_registry(directory, [schema("orders-value", each, each, BY_ID[each]) for each in BY_ID])
    chance = random.Random(SEED)
    records: list[tuple[bytes, bytes | None]] = []
    for number in range(RECORDS):
        which = chance.choice([1, 2])
        value = {"id": number, "state": chance.choice(STATES)}
        key = b"key %d" % chance.randrange(KEYS)
        records.append((key, None if chance.random() < 0.2 else framed(which, value)))
    columns = zip(*records, strict=True)
    names = ["key", "value"]
    arrays = [pa.array(each, pa.binary()) for each in columns]
    table = pa.Table.from_arrays(arrays, names)
    pylog.write_topic(directory, "orders", table, batch_size=2_000, partitions=1)
    read: dict[bytes, Any] = {}
    for key, stored in dict(records).items():
        if stored is not None:
            writer = fastavro.parse_schema(json.loads(BY_ID[stored[4]]))
            reader = fastavro.parse_schema(json.loads(SENT))
            read[key] = fastavro.schemaless_reader(io.BytesIO(stored[5:]), writer, reader)
    return read


def values(table: pa.Table) -> Values:
    found = {row["key"]: row["value"] for row in table.select(["key", "value"]).to_pylist()}
    assert len(found) == table.num_rows
    return found


def test_values_are_those_that_fastavro_reads_of_the_last_records(tmp_path: Path) -> None:
    wanted = typed_orders(tmp_path)
    found = pylog.read_table(tmp_path, "latest", topics="orders", value_format="auto")
    assert values(found) == wanted
    assert found.schema.names == pylog.read_table(tmp_path, "latest", topics="orders").schema.names


@pytest.mark.parametrize("state", ["new", "sent", "returned", None])
def test_a_condition_is_about_the_last_value_of_a_key(tmp_path: Path, state: str | None) -> None:
    every = typed_orders(tmp_path)
    wanted = {key: value for key, value in every.items() if value["state"] == state}
    assert 0 < len(wanted) < len(every)
    condition = "value.state IS NULL" if state is None else f"value.state = '{state}'"
    found = pylog.read_table(tmp_path, "latest", value_format="auto", where=condition)
    assert values(found) == wanted

    frame = pylog.polars.table(tmp_path, "latest", topics="orders", value_format="auto")
    kept = pl.col("value").struct.field("state").eq_missing(state)
    assert values(frame.filter(kept).select("key", "value").collect().to_arrow()) == wanted

    connection = pylog.duckdb.connect(tmp_path, topics="orders", value_format="auto")
    rows = connection.sql("SELECT key, value FROM latest").filter(condition).fetchall()
    assert dict(rows) == wanted


def test_conditions_on_offsets_bring_back_no_older_value(tmp_path: Path) -> None:
    every = typed_orders(tmp_path)
    wanted = {key: value for key, value in every.items() if value["id"] < RECORDS // 2}
    connection = pylog.duckdb.connect(tmp_path, topics="orders", value_format="auto")
    rows = connection.sql('SELECT key, value, "offset" FROM latest')
    kept = rows.filter(f'"offset" < {RECORDS // 2} AND value.id >= 0')
    assert {key: value for key, value, _ in kept.fetchall()} == wanted


def test_typed_values_are_found_share_by_share(tmp_path: Path) -> None:
    wanted = typed_orders(tmp_path)
    scan = pylog.scan(
        tmp_path,
        topics="orders",
        value_format="auto",
        columns=["value", "key"],
        timestamp_unit="ms",
        where="value.state = 'sent'",
    )
    assert scan.typed is not None
    table = pylog.jobs.decoded_latest(scan.typed, scan.schema)
    [view] = pylog.open_directory(tmp_path).select(topics=["orders"])
    batches = list(table.record_batches(view, map_bytes=24 * 50))
    assert len(batches) > KEYS // 50
    sent = {key: value for key, value in wanted.items() if value["state"] == "sent"}
    assert values(pa.Table.from_batches(batches)) == sent


def test_a_last_value_that_cannot_be_decoded_hides_the_older_one(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("orders-value", 1, 1, ORDER)])
    good, broken = framed(1, {"id": 7}), b"\0\0\0\0\x01"
    write_values(tmp_path, "orders-0", [good, broken], key=b"a")
    arguments: dict[str, Any] = {"topics": "orders", "value_format": "auto"}
    with pytest.raises(UndecodableValueError, match="orders-0, offset 1"):
        pylog.read_table(tmp_path, "latest", **arguments)
    left = pylog.read_table(tmp_path, "latest", mode="DROPMALFORMED", **arguments)
    assert left.num_rows == 0
    columns = ["offset", "value", "value_raw", "_corrupt_record"]
    [row] = pylog.read_table(
        tmp_path, "latest", mode="PERMISSIVE", columns=columns, **arguments
    ).to_pylist()
    assert (row["offset"], row["value"], row["value_raw"]) == (1, None, broken)
    assert "orders-0, offset 1" in row["_corrupt_record"]


def test_a_tombstone_passes_no_condition(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("orders-value", 1, 1, ORDER)])
    write_values(tmp_path, "orders-0", [framed(1, {"id": 7}), None], key=b"a")
    arguments: dict[str, Any] = {"topics": "orders", "value_format": "auto"}
    for condition in ("value IS NULL", "value.id IS NULL", "value.id = 7", "NOT value.id = 8"):
        found = pylog.read_table(tmp_path, "latest", where=condition, **arguments)
        assert found.num_rows == 0
    found = pylog.read_table(tmp_path, "latest", end=1, where="value.id = 7", **arguments)
    assert values(found) == {b"a": {"id": 7}}


def test_keys_are_the_same_by_their_bytes(tmp_path: Path) -> None:
    """As a cleaner has it: the same key by two schemas is two keys."""
    write_registry(tmp_path, [schema("orders-key", 1, 3, USER), schema("orders-key", 2, 4, USER)])
    other = OF_USER[:4] + b"\x04" + OF_USER[5:]
    stored = [Stored(offset, 1, key, b"x") for offset, key in enumerate([OF_USER, other, OF_USER])]
    write_partition(tmp_path, {0: [batch_v2(stored)]}, name="orders-0")
    found = pylog.read_table(tmp_path, "latest", topics="orders", key_format="auto")
    assert found.select(["offset", "key"]).to_pylist() == [
        {"offset": 1, "key": {"name": "ab"}},
        {"offset": 2, "key": {"name": "ab"}},
    ]


def test_topics_without_a_schema_are_left_out_and_those_with_other_fields_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_orders(tmp_path)
    write_values(tmp_path, "plain-0", [b"text"], key=b"a")
    assert pylog.read_table(tmp_path, "latest", value_format="auto").num_rows == 1
    assert "not read, for there is no schema: _schemas, plain" in caplog.text
    write_values(tmp_path, "users-0", [OF_USER], key=b"a")
    with pytest.raises(InvalidSchemaError, match="orders and of users have schemas with other"):
        pylog.read_table(tmp_path, "latest", value_format="auto")


def test_sql_has_typed_values_if_there_is_one_topic(tmp_path: Path) -> None:
    write_orders(tmp_path)
    write_values(tmp_path, "users-0", [OF_USER], key=b"a")
    sql = "SELECT typeof(value) FROM latest WHERE topic = 'users'"
    with pylog.duckdb.LogDatabase(tmp_path, topics="users", value_format="auto") as database:
        assert database.query(sql).read_all().to_pydict() == {
            'typeof("value")': ['STRUCT("name" VARCHAR)']
        }
    with pylog.duckdb.LogDatabase(tmp_path, value_format="auto") as database:
        assert database.query(sql).read_all().to_pydict() == {'typeof("value")': ["BLOB"]}


def test_other_tables_have_no_fields(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(ValueError, match="are for table 'latest', not for 'segments'"):
        pylog.read_table(tmp_path, "segments", where="value.id = 7")
    with pytest.raises(ValueError, match="a condition is about decoded fields: give --value-form"):
        pylog.read_table(tmp_path, "latest", where="value.id = 7")


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    written(tmp_path)
    assert pylog.read_table(tmp_path, "segments", columns=["path"]).schema.names == ["path"]
    with pytest.raises(ValueError, match="table 'segments' has no column 'value': it has topic"):
        pylog.read_table(tmp_path, "segments", columns=["value"])
