"""The same query gives the same rows in Spark, classic and by Connect, and reads as much.

What is read is counted by a proxy before the store that the logs lie in, not by pylog or Spark. The
queries are those of tests/remote/test_same_query_everywhere.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_pylog import table
from tests.spark.test_connect import needs_connect, run_client
from tests.support.s3_proxy import Proxy, Traffic
from tests.support.s3_server import CREDENTIALS, STORE_VARIABLES, Bucket, S3Server
from tests.support.same_queries import PLANNING, QUERIES, BucketOfLogs, Query, Row
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = NEEDS_SPARK

USER_INFO = ":".join(CREDENTIALS.values()).replace("/", "%2F").replace("+", "%2B")
# Spark asks for the first rows of a plain limit, task by task; each opens what it may read.
_MOST_READ = {"limit": 1.0}
_PLANNING = 3 * PLANNING
"""The plan also finds where the range of a task ends, and a task reads one request beyond it."""


class Logs(BucketOfLogs):
    """A log directory in a bucket behind a proxy."""

    def __init__(self, directory: Path, bucket: Bucket, proxy: Proxy) -> None:
        super().__init__(directory, bucket)
        self.directory = directory
        self.proxy = proxy
        self.uri = bucket.uri(self.PREFIX, endpoint=proxy.endpoint, user_info=USER_INFO)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logs]:
    with S3Server() as server, Proxy(server.endpoint) as proxy:
        bucket = Bucket(server, "kafka")
        yield Logs(tmp_path_factory.mktemp("same-query"), bucket, proxy)


def check(query: Query, found: Sequence[tuple[object, ...]], rows: Sequence[Row]) -> None:
    """Hold rows, in any order, against those that were written."""
    expected = query.rows_of(rows)
    if query.limit is None:
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    else:
        assert len(found) == query.limit == len(set(found) & set(expected))


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_table_gives_the_rows_that_were_written_and_reads_no_more_than_it_needs(
    spark: SparkSession, logs: Logs, query: Query
) -> None:
    logs.proxy.begin()
    frame = table(spark, logs.uri, isolationLevel=query.isolation).where(query.spark())
    narrow = frame.select(*query.columns)
    if query.limit is not None:
        narrow = narrow.limit(query.limit)
    found = _rows_of(narrow)
    read = logs.share(logs.proxy.traffic())
    print(f"Spark, {query.name}: {len(found)} rows, {read:.3f} of the bytes")  # noqa: T201
    check(query, found, logs.rows)
    assert read <= _MOST_READ.get(query.name, query.most_read) + _PLANNING


def _rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    return [
        tuple(_plain(name, each) for name, each in row.asDict().items()) for row in frame.collect()
    ]


def _plain(column: str, value: Any) -> object:  # noqa: ANN401 - of Spark
    if column == "timestamp":
        return round(value.timestamp() * 1000)
    return bytes(value) if isinstance(value, bytearray) else value


def test_a_table_of_the_catalog_gives_the_same_rows(spark: SparkSession, logs: Logs) -> None:
    spark.sql(f"CREATE TABLE same USING pylog OPTIONS (path '{logs.directory}')")
    try:
        for query in QUERIES:
            if query.isolation == "read_uncommitted":
                frame = spark.table("same").where(query.spark()).select(*query.columns)
                rows = frame.limit(query.limit) if query.limit else frame
                check(query, _rows_of(rows), logs.rows)
    finally:
        spark.sql("DROP TABLE same")


def test_what_says_nothing_about_places_reads_all(spark: SparkSession, logs: Logs) -> None:
    logs.proxy.begin()
    found = table(spark, logs.uri).where("offset % 2 = 0").select("offset").count()
    assert found == sum(row.offset % 2 == 0 for row in logs.rows)
    assert logs.share(logs.proxy.traffic()) >= 1


_CLIENT = """
import json, sys, urllib.error, urllib.request
from functools import reduce
from operator import and_
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark_pylog import table

def column_of(name, operator, value):
    column = F.col(name)
    values = [literal(name, each) for each in (value if isinstance(value, list) else [value])]
    compared = {
        "=": column.__eq__, "<": column.__lt__, ">": column.__gt__, ">=": column.__ge__,
        "between": column.between, "in": column.isin, "is null": lambda _: column.isNull(),
    }
    return compared[operator](*values)

def literal(name, value):
    if name == "timestamp":
        return F.timestamp_millis(F.lit(value))
    return F.lit(bytes.fromhex(value) if name == "key" and value is not None else value)

uri, endpoint, queries = sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
found = []
for number, (isolation, condition, columns, limit) in enumerate(queries):
    if not isinstance(condition, str):
        condition = reduce(and_, [column_of(*term) for term in condition], F.lit(True))
    frame = table(spark, uri, isolationLevel=isolation).where(condition)
    columns = [F.unix_millis(F.col(c)).alias(c) if c == "timestamp" else
               F.hex(c).alias(c) if c in ("key", "value") else F.col(c) for c in columns]
    frame = frame.select(*columns)
    if limit is not None:
        frame = frame.limit(limit)
    found.append([list(row) for row in frame.collect()])
    try:
        urllib.request.urlopen(f"http://{endpoint}/kafka/done-{number}")
    except urllib.error.HTTPError:
        pass
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.thorough
@needs_connect
def test_connect_gives_the_rows_that_were_written_and_reads_no_more_than_it_needs(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in STORE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    whole = Query("what says nothing about places", 2.0)
    asked = [*QUERIES, whole]
    # Conditions made of columns: those that are text narrow nothing there.
    described = [(each.isolation, each.terms, each.columns, each.limit) for each in QUERIES] + [
        ("read_uncommitted", "offset % 2 = 0 OR offset % 2 = 1", whole.columns, None)
    ]
    logs.proxy.begin()
    found: Any = run_client(
        _CLIENT,
        logs.directory,
        monkeypatch,
        logs.uri,
        logs.proxy.endpoint,
        json.dumps(described, default=bytes.hex),
    )
    shares = [logs.share(each) for each in _split(logs.proxy.traffic())]
    assert len(found) == len(asked)
    assert len(shares) == len(asked) + 1  # the last has what follows the last query
    for query, rows, share in zip(asked, found, shares[:-1], strict=True):
        print(f"Connect, {query.name}: {len(rows)} rows, {share:.3f} of the bytes")  # noqa: T201
        check(query, [_decoded(query, row) for row in rows], logs.rows)
        assert share <= _MOST_READ.get(query.name, query.most_read) + _PLANNING, query.name
    assert shares[len(QUERIES)] >= 1


def _decoded(query: Query, row: Sequence[Any]) -> tuple[object, ...]:
    return tuple(
        bytes.fromhex(each) if name in ("key", "value") and each is not None else each
        for name, each in zip(query.columns, row, strict=True)
    )


def _split(traffic: Traffic) -> list[Traffic]:
    """Return the traffic up to each request by which the client says that a query is done."""
    parts = [Traffic([])]
    for each in traffic.requests:
        if "/kafka/done-" in each.path:
            parts.append(Traffic([]))
        else:
            parts[-1].requests.append(each)
    return parts
