"""Changes of a database's rows, as Debezium writes them in JSON, as columns.

An envelope is ``{"before": …, "after": …, "op": "c", "ts_ms": …, "source": {…}}``, or, where the
converter adds schemas, ``{"schema": …, "payload": envelope}``. ``op`` is c (created), u (updated),
d (deleted), r (read by a snapshot) or t (the table was truncated). A delete is followed by a
tombstone, a record without a value, which says nothing more.

Source: Debezium 3's documentation of its connectors, "Change event values".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyspark_pylog.relation import PylogTable

_PLACE = ("topic", "partition", "offset")
_CORRUPT = "_corrupt_record"
_NO_ENVELOPE = "the value is not a change event of Debezium in JSON: "
_NO_TIME = (
    "is a TIMESTAMP, and the value has no text of a time there; declare a number BIGINT, of which "
    "timestamp_millis() or timestamp_micros() makes a time: "
)


def debezium(records: DataFrame | PylogTable, row: str) -> DataFrame:
    """Return the changes that records hold, one row per record; tombstones are left out.

    Parameters
    ----------
    records
        Of a topic that Debezium writes in JSON, with or without schemas; with ``topic``,
        ``partition``, ``offset`` and ``value`` among the columns.
    row
        The columns of the database's table, as in ``CREATE TABLE``: ``"id BIGINT, name STRING"``.
        Others are left out; one that an event does not have is null. A ``TIMESTAMP`` is a text in
        the event (``io.debezium.time.ZonedTimestamp``); times that it has as numbers are ``BIGINT``
        or, those in days, ``INT``.

    Returns
    -------
    DataFrame
        ``topic``, ``partition``, ``offset``, ``op``, ``ts_ms``, ``before`` and ``after``, which are
        structs, and the columns of ``row``: after the change, or before it if it is a delete.

    Raises
    ------
    PySparkException
        When the rows are read: a value is no JSON or no envelope. The error names the record.

    Examples
    --------
    >>> event = '{"op": "c", "ts_ms": 1, "before": null, "after": {"id": 7, "name": "anna"}}'
    >>> summary = pylog.write_topic("logs", "db.customers", [{"key": "7", "value": event}])
    >>> customers = pyspark_pylog.table(spark, "logs", subscribe="db.customers")
    >>> pyspark_pylog.debezium(customers, "id BIGINT, name STRING").select("op", "name").collect()
    [Row(op='c', name='anna')]
    """
    columns = StructType.fromDDL(row)
    if not isinstance(columns, StructType):
        msg = f"row is {row!r}, expected columns such as 'id BIGINT, name STRING'"
        raise ValueError(msg)  # noqa: TRY004 - as all arguments that make no sense
    times = [each.name for each in columns if isinstance(each.dataType, TimestampType)]
    parsed = records.select(
        *_PLACE, "value", sf.from_json(sf.col("value").cast("string"), *_format(columns, times))
    ).toDF(*_PLACE, "value", "event")
    op, ts_ms, before, after = (
        sf.coalesce(f"event.payload.{name}", f"event.{name}")
        for name in ("op", "ts_ms", "before", "after")
    )
    is_broken = op.isNull() | sf.col(f"event.{_CORRUPT}").isNotNull()
    problem = sf.when(is_broken, sf.lit(_NO_ENVELOPE))
    for name in times:
        is_wrong = _is_no_time(before[name]) | _is_no_time(after[name])
        problem = problem.when(is_wrong, sf.lit(f"{name} {_NO_TIME}"))
    change = sf.struct(
        *(op.alias("op"), ts_ms.alias("ts_ms")),
        *(_with_times(before, times).alias("before"), _with_times(after, times).alias("after")),
    )
    place = sf.concat(sf.concat_ws("-", "topic", "partition"), sf.lit(" offset "), sf.col("offset"))
    # One record makes one element, none if it is a tombstone, or the error. Spark moves neither a
    # filter on an element nor a choice of columns to before explode(): each record is looked at,
    # once, whatever is asked for.
    checked = sf.when(
        sf.col("value").isNotNull(),
        sf.when(problem.isNotNull(), sf.raise_error(sf.concat(problem, place))).otherwise(
            sf.array(change)
        ),
    )
    changes = parsed.select(*_PLACE, sf.explode(checked).alias("change")).select(
        *_PLACE, "change.*"
    )
    state = sf.when(sf.col("op") == "d", sf.col("before")).otherwise(sf.col("after"))
    return changes.withColumn("_row", state).select(*changes.columns, "_row.*")


def _format(columns: StructType, times: list[str]) -> tuple[StructType, dict[str, str]]:
    """Return the schema and the options with which events are parsed; times are text in them."""
    as_text = StructType(
        [
            StructField(each.name, StringType() if each.name in times else each.dataType)
            for each in columns
        ]
    )
    change = [
        *(StructField("before", as_text), StructField("after", as_text)),
        *(StructField("op", StringType()), StructField("ts_ms", LongType())),
    ]
    payload = StructField("payload", StructType(change))
    schema = StructType([*change, payload, StructField(_CORRUPT, StringType())])
    return schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}


def _with_times(state: Column, times: list[str]) -> Column:
    """Return a row's state whose columns have times in the place of their texts."""
    for name in times:
        state = state.withField(name, _time(state[name]))
    return state


def _time(text: Column) -> Column:
    # Spark itself would take a number for seconds, where Debezium has milli- or microseconds.
    return sf.when(~text.rlike("^-?[0-9]+$"), sf.try_to_timestamp(text))


def _is_no_time(text: Column) -> Column:
    return text.isNotNull() & _time(text).isNull()
