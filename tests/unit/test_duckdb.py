"""Views over logs: what they give, and how much is read for it.

That the rows are right for any predicate is tests/property/test_query_tools.py.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

import pylog
import pylog.duckdb
from pylog.errors import CorruptRecordError, InvalidSchemaError, UndecodableValueError
from pylog.pushdown.log_datasets import RecordsDataset
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_high_watermarks, write_partition
from tests.support.registry_records import schema, write_registry
from tests.unit.reading.typed_logs import FIRST, OF_USER, SECOND, write_orders, write_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.tables import TableName
    from tests.support.golden import GoldenRoot

RECORDS = 400
TEXTS = ("key_text", "value_text", "value_json")
BATCH = 4


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for number in range(3):
        batches = [
            batch_v2(plain_records(at, BATCH, timestamp=1_000 + at))
            for at in range(0, RECORDS, BATCH)
        ]
        write_partition(tmp_path, {0: batches}, name=f"t-{number}")
    return tmp_path


@pytest.fixture
def database(directory: Path) -> Iterator[pylog.duckdb.LogDatabase]:
    with pylog.duckdb.LogDatabase(directory, window_bytes=300) as opened:
        yield opened


def bytes_of(database: pylog.duckdb.LogDatabase, sql: str) -> int:
    before = database.records.scanned.size_bytes
    database.query(sql).read_all()
    return database.records.scanned.size_bytes - before


def values(database: pylog.duckdb.LogDatabase, sql: str) -> list[object]:
    found: list[object] = database.query(sql).read_all().column(0).to_pylist()
    return found


def test_records_are_those_of_a_scan(golden_root: GoldenRoot) -> None:
    path = golden_root.partition("4.3.0/txn:payments-0").directory
    names = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value"]
    expected = pylog.scan(path, isolation="read_committed", columns=[*names, "headers"]).to_table()
    with pylog.duckdb.LogDatabase(path, isolation="read_committed") as database:
        rows = database.query("SELECT * FROM records").read_all()
    assert rows.column_names == [*expected.column_names, *TEXTS]
    assert rows.select(expected.column_names).to_pylist() == expected.to_pylist()
    assert rows.num_rows > 0


@pytest.mark.parametrize("name", pylog.TABLE_NAMES)
def test_every_metadata_table_is_a_view(golden_root: GoldenRoot, name: TableName) -> None:
    path = golden_root.partition("4.3.0/txn:payments-0").directory
    expected = pylog.read_table(path, name)
    with pylog.duckdb.LogDatabase(path) as database:
        rows = database.query(f"SELECT * FROM {name}").read_all()  # noqa: S608 - our own names
    assert rows.column_names == [*expected.column_names, *(TEXTS if name == "latest" else ())]
    assert rows.select(expected.column_names).to_pylist() == expected.to_pylist()


def test_filters_decide_what_is_read(database: pylog.duckdb.LogDatabase) -> None:
    whole = bytes_of(database, "SELECT key FROM records")
    for where, share in (
        ("partition = 1", 0.34),
        ("partition IN (0, 2)", 0.67),
        (f'"offset" >= {RECORDS - 4}', 0.05),
        ("records.offset BETWEEN 8 AND 11", 0.05),
        ("partition = 1 AND records.offset < 4 AND key <> 'k2'", 0.02),
        ("topic = 'nobody'", 0),
        (f"records.offset IN ({', '.join(map(str, range(8, 38)))})", 0.1),
        (f"partition IN ({', '.join(map(str, range(2, 5_000)))})", 0.34),
        ("records.offset = 8 OR records.offset = 11", 0.05),
    ):
        assert bytes_of(database, f"SELECT key FROM records WHERE {where}") <= share * whole, where  # noqa: S608
    for where in ("records.offset < 4 OR partition = 1", "records.offset % 2 = 5"):
        assert bytes_of(database, f"SELECT key FROM records WHERE {where}") == whole, where  # noqa: S608


def test_times_decide_what_is_read_where_batches_are_trusted(
    directory: Path, database: pylog.duckdb.LogDatabase
) -> None:
    whole = bytes_of(database, "SELECT key FROM records")
    trusting = pylog.RecordFilter(trusts_batch_timestamps=True)
    with pylog.duckdb.LogDatabase(directory, window_bytes=300, where=trusting) as trusted:
        for where in (
            "timestamp >= '1970-01-01 00:00:01.396'",
            "timestamp > TIMESTAMPTZ '1970-01-01 02:00:01.395+02'",
            "timestamp IN ('1970-01-01 00:00:01.396', '1970-01-01 00:00:01.399')",
            "date_trunc('second', timestamp) = '1970-01-01 00:00:02'",
        ):
            sql = f"SELECT key FROM records WHERE {where}"  # noqa: S608 - our own names
            assert bytes_of(trusted, sql) <= 0.05 * whole, where
            assert bytes_of(database, sql) == whole, where
            assert values(trusted, sql) == values(database, sql)


def test_a_limit_ends_the_read(database: pylog.duckdb.LogDatabase) -> None:
    whole = bytes_of(database, "SELECT key FROM records")
    assert 0 < bytes_of(database, "SELECT * FROM records LIMIT 3") < whole / 2


def test_only_the_columns_of_a_query_are_read(directory: Path) -> None:
    late = [Stored(0, 1 << 60, b"k", b"v")]  # a time that fits no column
    write_partition(directory, {0: [batch_v2(late)]}, name="late-0")
    with pylog.duckdb.LogDatabase(directory, topics="late") as database:
        assert values(database, "SELECT key FROM records WHERE records.offset = 0") == [b"k"]
        with pytest.raises(pylog.LogStorageError, match="microseconds"):
            database.query("SELECT timestamp FROM records").read_all()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_count_is_of_the_rows_that_there_are(golden_root: GoldenRoot, isolation: str) -> None:
    path = golden_root.partition("4.3.0/txn:payments-0").directory
    with pylog.duckdb.LogDatabase(path, isolation=isolation) as database:
        keys = values(database, "SELECT key FROM records")
        assert values(database, "SELECT count(*) FROM records") == [len(keys)]
        assert database.query("SELECT topic FROM records").read_all().num_rows == len(keys) > 0


def test_rows_are_counted_by_batch_headers(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    write_partition(tmp_path, {0: batches}, name="t-0")
    write_partition(tmp_path, {0: batches[:1]}, name="u-2")
    with pylog.duckdb.LogDatabase(tmp_path) as database:
        counts = database.query("SELECT topic, partition, count(*) FROM records GROUP BY ALL")
        rows = [tuple(row.values()) for row in counts.read_all().to_pylist()]
        assert sorted(rows) == [("t", 0, 10), ("u", 2, 5)]
        assert values(database, "SELECT count(*) FROM records") == [15]
        assert values(database, "SELECT count(*) FROM records WHERE topic = 'u'") == [5]
        assert database.records.scanned.size_bytes == 0
        # What asks for anything else of a record reads it.
        with pytest.raises(CorruptRecordError):
            database.query("SELECT count(key) FROM records").read_all()
    # Only who looks at all knows what is damaged.
    with pylog.duckdb.LogDatabase(tmp_path, mode="DROPMALFORMED") as database:
        assert values(database, "SELECT count(*) FROM records") == [10]
        assert len(database.records.damage) == 1


def test_times_are_of_the_zone_of_the_connection(directory: Path) -> None:
    sql = "SELECT count(*) FROM records WHERE timestamp < '1970-01-01 00:00:01.100'"
    with pylog.duckdb.connect(directory, topics="t") as utc:
        assert utc.sql(sql).fetchall() == [(3 * 100,)]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        scan = pylog.duckdb.register(connection, directory)
        # There, that is five hours later.
        assert connection.sql(sql).fetchall() == [(3 * RECORDS,)]
        assert scan.scanned.size_bytes > 0
        sql = "SELECT count(*) FROM records WHERE timestamp < '1969-12-31 19:00:01.100'"
        assert connection.sql(sql).fetchall() == [(3 * 100,)]


def test_metadata_of_other_partitions_is_not_read(tmp_path: Path) -> None:
    sound, broken = batch_v2(plain_records(0, 4)), with_bad_crc(batch_v2(plain_records(0, 4)))
    write_partition(tmp_path, {0: [sound, batch_v2(plain_records(4, 4))]}, name="t-0")
    write_partition(tmp_path, {0: [broken, batch_v2(plain_records(4, 4))]}, name="t-1")
    (tmp_path / "t-1" / f"{0:020}.log").write_bytes(b"\0" * 30 + sound.data)
    with pylog.duckdb.LogDatabase(tmp_path) as database:
        sql = "SELECT records FROM segments WHERE partition = 0 AND topic IN ('t', 'u')"
        assert values(database, sql) == [8]
        with pytest.raises(pylog.LogStorageError):
            database.query("SELECT records FROM segments").read_all()


def test_batches_and_cleaning_are_checked_where_that_is_asked_for(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    write_partition(tmp_path, {0: batches, 10: [batch_v2(plain_records(10, 1))]}, name="t-0")
    keyed = [Stored(offset, 0, key, b"v") for offset, key in enumerate((b"a", b"b", b"a"))]
    write_partition(tmp_path, {0: [batch_v2(keyed)]}, name="u-0")
    write_high_watermarks(tmp_path, {("u", 0): 3})
    crc = "SELECT is_valid_crc FROM batches WHERE topic = 't' ORDER BY base_offset"
    keys = "SELECT live_records FROM cleaning WHERE topic = 'u'"
    with pylog.duckdb.LogDatabase(tmp_path) as database:
        assert values(database, crc) == [None, None, None]
        assert values(database, keys) == [None]
    with pylog.duckdb.LogDatabase(tmp_path, check_crc=True, check_keys=True) as database:
        assert values(database, crc) == [True, False, True]
        assert values(database, keys) == [2]
    with pylog.duckdb.connect(tmp_path, check_crc=True) as connection:
        assert connection.sql(crc).fetchall() == [(True,), (False,), (True,)]


def test_arguments_choose_for_all_views(directory: Path) -> None:
    write_partition(directory, {0: [batch_v2(plain_records(0, 4))]}, name="other-0")
    with pylog.duckdb.LogDatabase(directory, topics=["other"], start=1) as database:
        assert values(database, "SELECT count(*) FROM records") == [3]
        assert values(database, "SELECT DISTINCT topic FROM segments") == ["other"]


def test_a_view_is_joined_with_itself_and_with_other_tables(
    database: pylog.duckdb.LogDatabase,
) -> None:
    sql = """
        SELECT count(*) FROM records a JOIN records b ON a.key = b.key
        JOIN segments s ON s.partition = a.partition
        WHERE a.partition = 0 AND b.partition = 1 AND a.offset < 10
    """
    assert values(database, sql) == [10]


def test_the_limit_of_the_scan_is_of_the_rows_before_the_filter(directory: Path) -> None:
    with pylog.duckdb.LogDatabase(directory, limit=5) as database:
        sql = "SELECT records.offset FROM records WHERE records.offset >= 3"
        assert values(database, sql) == [3, 4]


def test_a_damaged_log_is_our_error_or_left_out(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    path = write_partition(tmp_path, {0: batches})
    with pylog.duckdb.LogDatabase(path) as database:
        with pytest.raises(CorruptRecordError) as caught:
            database.query("SELECT * FROM records").read_all()
        assert caught.value.position is not None
        # The next query is not charged with it.
        with pytest.raises(ValueError, match="nothing does not exist"):
            database.query("SELECT * FROM nothing")
    with pylog.duckdb.LogDatabase(path, mode="DROPMALFORMED") as database:
        assert values(database, "SELECT count(*) FROM records") == [5]
        assert values(database, "SELECT count(*) FROM records") == [5]
        assert len(database.records.damage) == 1
    with (
        pylog.duckdb.connect(path) as connection,
        pytest.raises(duckdb.Error, match="batch CRC stored 0x"),
    ):
        connection.sql("SELECT * FROM records").fetchall()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError("too much")])
def test_whatever_a_read_raises_comes_out_of_a_query(
    database: pylog.duckdb.LogDatabase, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def rows(*_: object) -> Iterator[pa.RecordBatch]:
        yield from ()
        raise error

    monkeypatch.setattr(RecordsDataset, "rows", rows)
    with pytest.raises(type(error)) as caught:
        database.query("SELECT key FROM records").read_all()
    assert caught.value is error


def test_a_connection_keeps_no_error_of_a_query(tmp_path: Path) -> None:
    path = write_partition(tmp_path, {0: [with_bad_crc(batch_v2(plain_records(0, 5)))]})
    with pylog.duckdb.connect(path) as connection:
        with pytest.raises(duckdb.Error, match="batch CRC stored 0x"):
            connection.sql("SELECT * FROM records").fetchall()
        gc.collect()
        kept = [each for each in gc.get_objects() if type(each) is CorruptRecordError]
    assert [each for each in kept if str(path) in str(each)] == []


def test_a_query_is_ended_by_another_thread(database: pylog.duckdb.LogDatabase) -> None:
    endless = database.query("SELECT a.key FROM records a, range(1000000000000) b")
    assert endless.read_next_batch().num_rows > 0
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(database.interrupt)
        with pytest.raises(ValueError, match="Interrupted"):
            endless.read_all()
        ended.result()
    assert values(database, "SELECT count(*) FROM records") == [3 * RECORDS]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "SELECT offset FROM records",
            r"^Parser Error: syntax error at or near [^\n]*; offset is a keyword of SQL: write ",
        ),
        ("SELECT nope FROM records", "^Binder Error: Referenced column .*nope[^\n]*$"),
        ("SELEC 1", "^Parser Error: syntax error at or near .SELEC.$"),
        ("SELECT error('no')", "^Invalid Input Error: no$"),
    ],
)
def test_what_duckdb_refuses_is_said_in_one_line(
    database: pylog.duckdb.LogDatabase, sql: str, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        database.query(sql).read_all()


def test_statements_without_rows_give_none(database: pylog.duckdb.LogDatabase) -> None:
    assert database.query("").read_all().num_rows == 0
    database.query("CREATE TABLE kept AS SELECT * FROM records").read_all()
    assert values(database, "SELECT count(*) FROM kept") == [3 * RECORDS]


def test_a_query_ends_the_one_before_and_never_cuts_its_rows_in_silence(
    database: pylog.duckdb.LogDatabase,
) -> None:
    before = database.query("SELECT * FROM records")
    assert before.read_next_batch().num_rows > 0
    assert values(database, "SELECT count(*) FROM records") == [3 * RECORDS]
    with pytest.raises(ValueError, match="another query of this database has ended this one"):
        before.read_all()
    assert values(database, "SELECT count(*) FROM records") == [3 * RECORDS]
    unread = database.query("SELECT * FROM records")
    unread.close()
    assert values(database, "SELECT count(*) FROM records") == [3 * RECORDS]


def test_what_duckdb_reads_is_a_dataset_to_nobody_else(directory: Path) -> None:
    dataset = RecordsDataset(pylog.scan(directory), [])
    assert dataset.scanner(columns=["offset"]).to_reader().read_all().num_rows == 3 * RECORDS
    for method in ("get_fragments", "join", "sort_by", "filter", "replace_schema"):
        with pytest.raises(NotImplementedError, match="DuckDB reads this object"):
            getattr(dataset, method)()
    none = dataset.scanner(columns=[]).to_reader()
    assert sum(batch.num_rows for batch in none) == 3 * RECORDS
    assert none.schema == pa.schema([])


def test_variables_of_python_are_not_tables(database: pylog.duckdb.LogDatabase) -> None:
    with pytest.raises(ValueError, match="Catalog Error: Table with name sql does not exist"):
        database.query("SELECT * FROM sql")


def test_what_does_not_fit_into_memory_is_not_put_into_the_working_directory(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    before = sorted(directory.rglob("*"))
    with pylog.duckdb.LogDatabase(directory) as database:
        [spilled] = values(database, "SELECT current_setting('temp_directory')")
        assert Path(str(spilled)).is_dir()
        assert directory not in Path(str(spilled)).parents
        database.query("SET memory_limit = '20MB'").read_all()
        sql = "SELECT count(*) FROM (SELECT i FROM range(3000000) t(i) ORDER BY hash(i))"
        assert values(database, sql) == [3_000_000]
    assert sorted(directory.rglob("*")) == before
    assert not Path(str(spilled)).exists()


def test_without_duckdb_the_extra_is_named() -> None:
    code = "import sys; sys.modules['duckdb'] = None; import pylog; pylog.duckdb.LogDatabase"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith(
        f"ModuleNotFoundError: pylog.duckdb needs DuckDB: {pylog.jobs.install_command('duckdb')}\n"
    )


VALUES = 'SELECT value FROM {} ORDER BY "offset"'


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    write_orders(tmp_path)
    write_values(tmp_path, "plain-0", [b"text"])
    write_values(tmp_path, "mixed-0", [FIRST, OF_USER])
    return tmp_path


def test_a_topic_with_a_schema_has_typed_values_and_records_have_bytes(typed: Path) -> None:
    with pylog.duckdb.LogDatabase(typed, value_format="auto") as database:
        rows = database.query("SELECT value.id, value.note FROM orders ORDER BY ALL").read_all()
        assert rows.to_pydict() == {"id": [1, 2, None], "note": ["", "x", None]}
        assert database.typed.keys() == {"orders"}
        counted = database.query("SELECT count(*) FROM orders WHERE value.id = 2").read_all()
        assert counted.to_pydict() == {"count_star()": [1]}
        kept = database.query(VALUES.format("records") + " LIMIT 1").read_all()
        assert pa.types.is_binary(kept.schema.field("value").type)


def test_a_topic_without_a_schema_has_bytes(typed: Path) -> None:
    with pylog.duckdb.LogDatabase(typed, value_format="auto") as database:
        assert database.query(VALUES.format("plain")).read_all().to_pylist() == [{"value": b"text"}]


def test_a_topic_whose_schema_is_not_clear_is_an_error_where_it_is_asked_for(typed: Path) -> None:
    with pylog.duckdb.LogDatabase(typed, value_format="auto") as database:
        query = "SELECT count(*) AS mixed FROM orders"
        assert database.query(query).read_all().to_pydict() == {"mixed": [3]}
        with pytest.raises(InvalidSchemaError, match="have schemas of several subjects"):
            database.query("SELECT * FROM mixed")


def test_a_registered_connection_has_typed_topics(typed: Path) -> None:
    connection = pylog.duckdb.connect(typed, topics=["orders", "plain"], value_format="auto")
    ids = connection.sql("SELECT value.id FROM orders ORDER BY ALL").fetchall()
    assert ids == [(1,), (2,), (None,)]
    chosen = pylog.duckdb.connect(typed, assign={"orders": [0]}, value_format="auto")
    assert chosen.sql("SELECT max(value.id) FROM orders").fetchall() == [(2,)]


def test_typed_keys_of_a_schema_of_bytes_come_without_their_prefix(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("t-key", 1, 1, '"string"')])
    write_values(tmp_path, "t-0", [b"v"], key=b"\0\0\0\0\x01\x06abc")
    with pylog.duckdb.LogDatabase(tmp_path, key_format="auto") as database:
        rows = database.query("SELECT key, value_text FROM t WHERE key = 'abc'").read_all()
        assert rows.to_pylist() == [{"key": "abc", "value_text": "v"}]


def test_a_typed_key_of_bytes_is_compared_without_its_prefix(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("t-key", 1, 1, '"bytes"')])
    write_values(tmp_path, "t-0", [b"v"], key=b"\0\0\0\0\x01abc")
    with pylog.duckdb.LogDatabase(tmp_path, key_format="auto") as database:
        rows = database.query("SELECT key FROM t WHERE key = 'abc'::BLOB").read_all()
        assert rows.to_pylist() == [{"key": b"abc"}]


CONDITIONS = [
    "value.id = 2",
    "value.id <> 1",
    "value.id IS NULL",
    "value.id IN (2, 3)",
    "value.note = 'x' AND \"offset\" > 0",
    "value.id > 1 OR partition = 1",
    "NOT (value.id > 1)",
    "value IS NULL",
    "value IS NOT NULL AND value.id < 2",
    "length(value.note) = 1",
    '"offset" % 2 = 0',
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_predicates_on_fields_give_what_duckdb_keeps_of_all_rows(
    typed: Path, condition: str, mode: str
) -> None:
    write_values(typed, "orders-1", [SECOND, b"text", FIRST, None])
    connection = pylog.duckdb.connect(typed, topics="orders", value_format="auto", mode=mode)
    columns = 'partition, "offset", value.id, value.note'
    connection.execute("CREATE TABLE whole AS SELECT * FROM orders")
    query = "SELECT {} FROM {} WHERE {} ORDER BY ALL"
    found = connection.sql(query.format(columns, "orders", condition)).fetchall()
    assert found == connection.sql(query.format(columns, "whole", condition)).fetchall()
    [counted] = connection.sql(f"SELECT count(*) FROM orders WHERE {condition}").fetchall()  # noqa: S608
    assert counted == (len(found),)


def test_other_columns_are_decoded_of_rows_that_pass_alone(typed: Path) -> None:
    records = [Stored(0, 1_000, OF_USER, SECOND), Stored(1, 1_000, b"text", FIRST)]
    write_partition(typed, {0: [batch_v2(records)]}, name="orders-1")
    formats = {"value_format": "auto", "key_format": "auto"}
    with pylog.duckdb.LogDatabase(typed, assign={"orders": [1]}, **formats) as database:
        found = database.query("SELECT key.name FROM orders WHERE value.id = 2").read_all()
        assert found.to_pylist() == [{"name": "ab"}]
        with pytest.raises(UndecodableValueError, match="offset 1: the key cannot be decoded"):
            database.query("SELECT key.name FROM orders WHERE value.id = 1").read_all()


def test_what_cannot_be_decoded_is_a_reason_that_can_be_looked_for(typed: Path) -> None:
    write_values(typed, "orders-1", [SECOND, b"text"])
    columns = ["offset", "value", "_corrupt_record"]
    arguments = {"mode": "PERMISSIVE", "columns": columns, "value_format": "auto"}
    connection = pylog.duckdb.connect(typed, topics="orders", **arguments)
    query = 'SELECT "offset", value.id FROM orders WHERE _corrupt_record IS NOT NULL'
    assert connection.sql(query).fetchall() == [(1, None)]
