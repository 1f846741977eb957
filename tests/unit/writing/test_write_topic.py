from __future__ import annotations

import errno
import uuid
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

import pylog
from pylog.errors import KafkaStorageError, LogDirectoryError, LogLockedError
from pylog.log.log_context import LogContext
from pylog.model import NO_TIMESTAMP, TimestampType
from pylog.record.record import Record, RecordHeader
from pylog.testing import ManualClock
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.support.registry_records import ORDER, ORDER_2
from tests.unit.writing.written_topics import rows, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture
def context() -> LogContext:
    return LogContext(clock=ManualClock(NOW_MS))


# What is taken


@pytest.mark.parametrize("kind", ["table", "batch", "reader", "chunks", "slice", "stream"])
def test_arrow_data_of_every_kind_is_written(
    kind: str, tmp_path: Path, context: LogContext
) -> None:
    whole = table()

    class DataFrame:
        """Whatever exports an Arrow stream, as data frames do."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return whole.__arrow_c_stream__(requested_schema)

    given: dict[str, Any] = {
        "table": whole,
        "batch": whole.combine_chunks().to_batches()[0],
        "reader": whole.to_reader(max_chunksize=2),
        "chunks": pa.concat_tables([whole.slice(0, 1), whole.slice(1, 4), whole.slice(5)]),
        "slice": pa.concat_tables([whole, whole]).combine_chunks().slice(6),
        "stream": DataFrame(),
    }
    summary = pylog.write_topic(tmp_path, "t", given[kind], context=context)
    assert (summary.topic, summary.records, summary.end_offsets) == ("t", 6, {0: 6})
    assert rows(tmp_path, "key", "value", "offset", "timestamp") == [
        (b"k%d" % number, b"v%d" % number, number, NOW_MS) for number in range(6)
    ]


def test_columns_are_found_by_their_names(tmp_path: Path, context: LogContext) -> None:
    given = pa.table(
        {
            "value": pa.array(["wrong"] * 3),
            "id": pa.array(["a", None, "c"]),
            "text": pa.array([b"1", b"", None], pa.large_binary()),
            "at": pa.array([5, None, NO_TIMESTAMP], pa.int64()),
            "more": pa.array([[("h", b"1"), ("h", None)], None, []], HEADERS),
        }
    )
    pylog.write_topic(
        tmp_path,
        "t",
        given,
        key="id",
        value="text",
        timestamp="at",
        headers="more",
        context=context,
    )
    assert rows(tmp_path, "key", "value", "timestamp", "headers") == [
        (b"a", b"1", 5, [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]),
        (None, b"", NOW_MS, None),
        (b"c", None, NO_TIMESTAMP, None),
    ]


def test_what_a_scan_gives_can_be_written(tmp_path: Path, context: LogContext) -> None:
    headers = pa.array([[("h", b"1")], None], HEADERS)
    stamps = pa.array([7, 8], pa.timestamp("us", "UTC"))
    given = pa.table({"key": [b"a", None], "value": [None, b"b"]})
    given = given.append_column("headers", headers).append_column("timestamp", stamps)
    pylog.write_topic(tmp_path / "a", "t", given, context=context)
    columns = ("key", "value", "partition", "timestamp", "headers")
    read = pylog.scan(tmp_path / "a", columns=list(columns)).to_reader()
    pylog.write_topic(tmp_path / "b", "t", read, partition="partition")
    assert rows(tmp_path / "b", *columns) == rows(tmp_path / "a", *columns)


def test_the_recipe_for_a_copy_keeps_partitions_headers_and_order(
    tmp_path: Path, context: LogContext
) -> None:
    headers = pa.array([[("h", b"%d" % number)] for number in range(50)], HEADERS)
    given = table(50).append_column("headers", headers)
    pylog.write_topic(tmp_path / "a", "t", given, partitions=3, context=context)
    source = pylog.scan(
        tmp_path / "a", topics="t", isolation="read_committed", include_headers=True
    )
    pylog.write_topic(tmp_path / "b", "t", source, partitions=3, partition="partition")
    columns = ("key", "value", "partition", "offset", "timestamp", "headers")
    assert rows(tmp_path / "b", *columns) == rows(tmp_path / "a", *columns)


def test_records_may_come_one_by_one(tmp_path: Path, context: LogContext) -> None:
    header = RecordHeader("h", None)
    given: list[object] = [
        (b"a", "é"),
        (None, None, 5),
        ("k", bytearray(b"v"), None, [("x", b"1"), ("y", "2")]),
        {"value": b"only"},
        {"key": b"d", "value": memoryview(b"m"), "timestamp": 6, "headers": {"z": None}},
        Record(99, 7, TimestampType.LOG_APPEND_TIME, b"r", None, (header,)),
    ]
    summary = pylog.write_topic(tmp_path, "t", iter(given), context=context)
    assert summary.records == 6
    assert rows(tmp_path, "key", "value", "timestamp", "headers") == [
        (b"a", "é".encode(), NOW_MS, None),
        (None, None, 5, None),
        (b"k", b"v", NOW_MS, [{"key": "x", "value": b"1"}, {"key": "y", "value": b"2"}]),
        (None, b"only", NOW_MS, None),
        (b"d", b"m", 6, [{"key": "z", "value": None}]),
        (b"r", None, 7, [{"key": "h", "value": None}]),
    ]


def test_mappings_may_have_other_names_and_a_partition(tmp_path: Path) -> None:
    given = [{"id": b"a", "text": b"1", "to": 2}, {"id": b"b", "text": b"2", "to": 0}]
    pylog.write_topic(tmp_path, "t", given, partitions=3, key="id", value="text", partition="to")
    assert rows(tmp_path, "partition", "key") == [(0, b"b"), (2, b"a")]


def test_the_topic_is_made_even_if_there_is_nothing_to_write(tmp_path: Path) -> None:
    summary = pylog.write_topic(tmp_path, "t", [], partitions=2)
    assert (summary.records, summary.size_bytes, summary.end_offsets) == (0, 0, {0: 0, 1: 0})
    assert pylog.write_topic(tmp_path, "t", table(0)).end_offsets == {0: 0, 1: 0}


# Where it goes


def test_a_topic_may_grow_and_not_shrink(tmp_path: Path) -> None:
    first = pylog.write_topic(tmp_path, "t", table(3))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        pylog.write_topic(tmp_path, "t", table(3), partitions=2)
    assert str(caught.value) == (
        "partitions=2 would add 1 to topic 't', which has 1; leave partitions out to write to "
        "those that it has, or pass add_partitions=True, after which keys go to other partitions "
        "than before"
    )
    assert not (tmp_path / "t-1").exists()
    with pytest.raises(ValueError, match="a topic has 1 to 100000 partitions, not 100001"):
        pylog.write_topic(tmp_path, "t", table(3), partitions=100_001, add_partitions=True)
    second = pylog.write_topic(tmp_path, "t", table(3), partitions=2, add_partitions=True)
    assert first.topic_id == second.topic_id
    assert sum(second.end_offsets.values()) == 6
    assert set(pylog.write_topic(tmp_path, "t", table(3)).end_offsets) == {0, 1}
    with pytest.raises(ValueError, match="'t' has partitions up to 1, more than 1 in all"):
        pylog.write_topic(tmp_path, "t", table(3), partitions=1)


def test_the_topic_id_may_be_given_once(tmp_path: Path) -> None:
    topic_id = uuid.UUID("edb192bb-bb81-443b-8499-94d0db0e05fe")
    assert pylog.write_topic(tmp_path, "t", [], topic_id=topic_id).topic_id == topic_id
    metadata = (tmp_path / "t-0" / "partition.metadata").read_text()
    assert metadata == "version: 0\ntopic_id: 7bGSu7uBRDuEmZTQ2w4F_g"
    assert pylog.write_topic(tmp_path, "t", [], topic_id=topic_id).topic_id == topic_id
    with pytest.raises(ValueError, match="has id edb192bb"):
        pylog.write_topic(tmp_path, "t", [], topic_id=uuid.UUID(int=1_000))


# What is refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "records are a int, expected"),
        ("text", "records are a str, expected"),
        ({"value": 1}, "records are a dict, expected"),
        (pa.table({"v": [b"a"]}), "no column 'value' for value; columns: v"),
        (pa.table({"value": [1]}), "column 'value' is of type int64"),
        (pa.table([[b"a"], [b"b"]], names=["value", "value"]), "more than one column 'value'"),
        ([(b"k", b"v"), 5], "record 1: int is neither a Record"),
        ([(b"k",)], "record 0: tuple is neither a Record"),
        ([(b"k", b"v", 1, (), 0)], "record 0: tuple is neither a Record"),
        ([{"key": b"k"}], "record 0: it has no 'value'; it has 'key'"),
        ([(1, b"v")], "record 0: its key is of type int"),
        ([(b"k", b"v", "now")], "record 0: its timestamp is 'now'"),
        ([(b"k", b"v", 1, [1])], "record 0: its headers are not pairs"),
        ([(b"k", b"v", 1, [(b"h", b"1")])], "record 0: a header's name is b'h'"),
        ([(b"k", b"v", 1, [("h", 1)])], "record 0: its header 'h' is of type int"),
        ([(b"k", b"v", -5)], "row 0: timestamp -5 ms is below 0"),
    ],
)
def test_what_is_not_a_record_is_a_clear_error(given: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        pylog.write_topic(tmp_path, "t", given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "none"}, "no column 'none' for key; columns: key, value, ignored"),
        (
            {"partition": "value"},
            "column 'value' is of type binary; a record's partition is an integer",
        ),
        ({"compression": "brotli"}, "compression 'brotli' is not one of none, gzip, snappy"),
        ({"compression": "gzip", "level": 10}, "gzip level is 10"),
        ({"partitioner": "random"}, "'random' is neither a function nor one of default"),
        ({"partitions": 0}, "a topic has 1 to 100000 partitions, not 0"),
        ({"partitioner": lambda batch: [9] * batch.num_rows}, "row 0 goes to partition 9 of"),
        ({"partitioner": lambda _: [0]}, "expected 6 integers"),
        ({"partitioner": "integer_key"}, "row 0: key b'k0' is not a decimal number"),
        ({"config": {"segment.byte": "1"}}, "did you mean segment.bytes"),
        ({"batch_size": 0}, "batch_size_bytes is 0"),
    ],
)
def test_wrong_options_are_clear_errors(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        pylog.write_topic(tmp_path, "t", table(), **options)
    assert message in str(caught.value)
    if (tmp_path / "t-0").exists():
        assert pylog.write_topic(tmp_path, "t", []).end_offsets == {0: 0}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"price": [1.5]},
            {"value": "price"},
            (
                "column 'price' is of type double; a record's value is binary or text: cast the "
                "column, for example table.set_column(table.schema.get_field_index('price'), "
                "'price', table['price'].cast('string'))"
            ),
        ),
        (
            {"id": [7], "value": [b"v"]},
            {"key": "id"},
            "column 'id' is of type int64; a record's key",
        ),
        (
            {"at": ["now"], "value": [b"v"]},
            {"timestamp": "at"},
            (
                "column 'at' is of type string; a record's timestamp is a timestamp, or int64 "
                "milliseconds: cast the column, for example table.set_column("
                "table.schema.get_field_index('at'), 'at', table['at'].cast('timestamp[ms]'))"
            ),
        ),
        (
            {"tags": [["a"]], "value": [b"v"]},
            {"headers": "tags"},
            (
                "column 'tags' is of type list<item: string>; a record's headers are "
                "list<struct<key: string, value: binary>>"
            ),
        ),
        (
            {"tags": [[{"key": "a", "value": 1}]], "value": [b"v"]},
            {"headers": "tags"},
            "; a record's headers are list<struct<key: string, value: binary>>",
        ),
        (
            {"shard": ["0"], "value": [b"v"]},
            {"partition": "shard"},
            (
                "column 'shard' is of type string; a record's partition is an integer: cast the "
                "column, for example table.set_column(table.schema.get_field_index('shard'), "
                "'shard', table['shard'].cast('int32'))"
            ),
        ),
    ],
)
def test_a_column_of_a_wrong_type_is_named_as_the_user_does_with_a_cast(
    columns: dict[str, list[object]], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        pylog.write_topic(tmp_path / "logs", "t", pa.table(columns), **options)
    assert message in str(caught.value)
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("name", ["price", "at", "shard"])
def test_the_cast_that_a_message_suggests_helps(name: str, tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "value": [b"v"],
        "price": [1.5],
        "at": ["2024-05-01"],
        "shard": ["0"],
    }
    table = pa.table(columns)
    options: dict[str, Any] = {
        "price": {"key": "price"},
        "at": {"timestamp": "at"},
        "shard": {"partition": "shard"},
    }[name]
    with pytest.raises(ValueError, match="for example ") as caught:
        pylog.write_topic(tmp_path, "t", table, **options)
    suggested = str(caught.value).partition("for example ")[2].partition("; in pandas")[0]
    table = eval(suggested, {"table": table, "pa": pa})  # noqa: S307 - our own words
    assert pylog.write_topic(tmp_path, "t", table, **options).records == 1


def test_integer_keys_of_pandas_are_refused_with_a_line_that_helps(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [7, 8], "value": ["a", "b"]})
    with pytest.raises(
        ValueError, match="column 'id' is of type int64; a record's key is"
    ) as caught:
        pylog.write_topic(tmp_path, "t", frame, key="id")
    line = "frame['id'] = frame['id'].astype('string')"
    assert str(caught.value).endswith(f"; in pandas, {line}")
    exec(line, {"frame": frame})  # noqa: S102 - our own words
    pylog.write_topic(tmp_path, "t", frame, key="id")
    assert rows(tmp_path, "key", "value") == [(b"7", b"a"), (b"8", b"b")]


@pytest.mark.parametrize(
    ("records", "options"),
    [
        (pa.table({"value": [1]}), {}),
        (pa.table({"v": [b"a"]}), {}),
        (pa.table({"value": [b"a"], "n": [None]}), {"key": "none"}),
        (pa.table({"value": [b"a"], "n": pa.array([None], "int32")}), {"partition": "n"}),
        ([(b"k", 1)], {}),
        ([{"key": b"k"}], {}),
        ([None], {}),
        ([(b"k", b"v")], {"compression": "brotli"}),
        ([(b"k", b"v")], {"compression": "gzip", "level": 10}),
        ([(b"k", b"v")], {"batch_size": 0}),
        ([(b"k", b"v")], {"partitioner": "random"}),
        ([(b"k", b"v")], {"partitions": 0}),
        ([(b"k", b"v")], {"config": {"segment.byte": "1"}}),
        (
            [(b"k", b"v")],
            {"config": {"compression.type": "gzip", "compression.gzip.level": "99"}},
        ),
    ],
)
def test_a_call_that_cannot_succeed_leaves_no_new_topic(
    records: object, options: dict[str, Any], tmp_path: Path
) -> None:
    pylog.write_topic(tmp_path, "other", [(b"k", b"v")])
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are compared elsewhere
        pylog.write_topic(tmp_path, "new", records, **options)
    after = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    assert [path for path in after if "new" in str(path)] == []
    assert set(before) <= set(after)
    assert pylog.write_topic(tmp_path, "new", [(b"k", b"v")], partitions=2).records == 1


def test_what_came_before_a_wrong_record_is_kept(tmp_path: Path) -> None:
    def records() -> Iterator[object]:
        yield b"a", b"1"
        yield b"b", b"2"
        yield None

    with pytest.raises(ValueError, match="record 2: NoneType is neither"):
        pylog.write_topic(tmp_path, "t", records())
    assert rows(tmp_path, "key", "value") == [(b"a", b"1"), (b"b", b"2")]


def test_only_local_log_directories_are_written_to(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="only local directories can be written to"):
        pylog.write_topic("s3://bucket/logs", "t", [])
    pylog.write_topic(tmp_path, "t", [])
    with pytest.raises(LogDirectoryError, match="this is a topic-partition directory: give"):
        pylog.write_topic(tmp_path / "t-0", "t", [])
    assert not (tmp_path / "t-0" / ".lock").exists()


def test_a_directory_that_is_open_is_refused(tmp_path: Path) -> None:
    with (
        pylog.logs.LogManager([tmp_path]),
        pytest.raises(LogLockedError, match="log directory is locked by this process"),
    ):
        pylog.write_topic(tmp_path, "t", table())


def test_a_full_disk_is_the_error_and_not_what_follows_from_it(tmp_path: Path) -> None:
    fault = Fault(
        kinds=frozenset({Kind.WRITE}),
        path_end=".log",
        at=1,
        forever=True,
        error_number=errno.ENOSPC,
    )
    context = LogContext(io=FaultyIO(fault))
    given = pa.table({"value": [b"v" * 600] * 3})
    with pytest.raises(KafkaStorageError, match="No space left on device") as caught:
        pylog.write_topic(tmp_path, "t", given, batch_size=700, context=context)
    assert caught.value.errno == errno.ENOSPC
    assert ": I/O error, cannot write" in str(caught.value)
    assert not getattr(caught.value, "__notes__", None)
    assert pylog.write_topic(tmp_path, "t", given).end_offsets == {0: 3}


def test_ctrl_c_leaves_a_directory_that_its_next_owner_looks_at(tmp_path: Path) -> None:
    def records() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"1"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pylog.write_topic(tmp_path, "t", records())
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / ".lock").exists()
    assert pylog.write_topic(tmp_path, "t", table(2)).end_offsets == {0: 2}


# Typed values


def test_values_are_encoded_by_a_schema_that_is_registered(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER_2)
    given = [{"key": "a", "value": {"id": 1, "note": "x"}}, {"key": "b", "value": None}]

    pylog.write_topic(tmp_path / "logs", "orders", given, value_schema=file)

    typed = pylog.scan(tmp_path / "logs", topics="orders", value_format="auto").to_table()
    assert typed.column("value").to_pylist() == [{"id": 1, "note": "x"}, None]
    pylog.write_topic(tmp_path / "logs", "copies", typed, value_schema=file)
    raw = pylog.scan(tmp_path / "logs", topics=["orders", "copies"], columns="value").to_table()
    assert set(raw.column("value").to_pylist()) == {None, b"\0\0\0\0\1\2\2x"}


def test_nothing_is_written_if_any_row_cannot_be_encoded(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    good = [{"value": {"id": number}} for number in range(20_000)]
    rows_of_table = pa.table({"value": [each["value"] for each in good] + [{"id": None}]})

    for given in ([*good, {"value": {"id": "x"}}], rows_of_table):
        with pytest.raises(ValueError, match=r"(record|row) 20000: the value cannot be encoded by"):
            pylog.write_topic(tmp_path / "logs", "orders", given, value_schema=file)
    assert not (tmp_path / "logs").exists()


def test_tuples_have_typed_keys_and_headers(tmp_path: Path) -> None:
    file = tmp_path / "key.avsc"
    file.write_text('"long"')
    schema = pylog.jobs.WriterSchema(schema=file, framing="header")

    pylog.write_topic(tmp_path, "t", [(5, "v", None, [("h", b"1")])], key_schema=schema)

    (row,) = pylog.scan(tmp_path, topics="t", include_headers=True).to_table().to_pylist()
    assert row["key"] == b"\n"
    assert [each["key"] for each in row["headers"]] == ["h", "__key_schema_id"]
    typed = pylog.scan(tmp_path, topics="t", key_format="auto").to_table()
    assert typed.column("key").to_pylist() == [5]
