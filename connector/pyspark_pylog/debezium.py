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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_pylog.relation import PylogTable

_NO_ENVELOPE = "the value is not a change event of Debezium in JSON: "


def debezium(records: DataFrame | PylogTable, row: str) -> DataFrame:
    """Return the changes that records hold, a row a record; tombstones are left out.

    Parameters
    ----------
    records
        Of a topic that Debezium writes in JSON, with or without schemas; with ``topic``,
        ``partition``, ``offset`` and ``value`` among the columns.
    row
        The columns of the database's table, as in ``CREATE TABLE``: ``"id BIGINT, name STRING"``.
        Others are left out; one that an event does not have is null.

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
    change = f"before STRUCT<{row}>, after STRUCT<{row}>, op STRING, ts_ms BIGINT"
    schema = f"{change}, payload STRUCT<{change}>, _corrupt_record STRING"
    text = sf.col("value").cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt_record"}
    parsed = records.where(sf.col("value").isNotNull()).select(
        *("topic", "partition", "offset"), sf.from_json(text, schema, options).alias("event")
    )
    wanted = [
        sf.coalesce(f"event.payload.{name}", f"event.{name}").alias(name)
        for name in ("op", "ts_ms", "before", "after")
    ]
    place = sf.concat_ws("-", "topic", "partition")
    error = sf.concat(sf.lit(_NO_ENVELOPE), place, sf.lit(" offset "), sf.col("offset"))
    op = sf.coalesce("event.payload.op", "event.op")
    is_broken = op.isNull() | sf.col("event._corrupt_record").isNotNull()
    checked = sf.when(is_broken, sf.raise_error(error)).otherwise(op).alias("op")
    changes = parsed.select("topic", "partition", "offset", checked, *wanted[1:])
    state = sf.when(sf.col("op") == "d", sf.col("before")).otherwise(sf.col("after"))
    return changes.withColumn("_row", state).select(*changes.columns, "_row.*")
