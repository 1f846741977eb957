"""The same query gives the same rows in Python, Polars, DuckDB and ``pylog sql``, by reading alike.

What is read is counted by a proxy before the store that the logs lie in, not by pylog. Spark's
part is tests/spark/test_same_query_everywhere.py.
"""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import pytest

import pylog
import pylog.duckdb
import pylog.polars
from pylog.cli.main import run
from pylog.files import remote_storage
from pylog.files.remote_storage import KeptBytes
from tests.support.same_queries import COLUMNS, PLANNING, QUERIES, BucketOfLogs, Query, Row

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tests.support.s3_proxy import Proxy
    from tests.support.s3_server import Bucket

Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, bucket: Bucket) -> BucketOfLogs:
    return BucketOfLogs(tmp_path_factory.mktemp("same-query"), bucket)


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each query begin like a new process."""
    monkeypatch.setattr(remote_storage, "_KEPT", KeptBytes())


def rows_of(table: pa.Table) -> Rows:
    columns: list[list[Any]] = [
        [each // 1000 for each in table.column(name).cast("int64").to_pylist()]
        if name == "timestamp"
        else table.column(name).to_pylist()
        for name in table.column_names
    ]
    return list(zip(*columns, strict=True))


def by_python(uri: str, query: Query) -> Rows:
    names = dict.fromkeys([*query.columns, *(term.column for term in query.terms)])
    scan = pylog.scan(
        uri,
        isolation=query.isolation,  # type: ignore[arg-type]
        columns=names,
        where=pylog.RecordFilter(**query.filter_arguments()),
        limit=query.limit,
    )
    found = scan.to_table().to_pylist()
    for row in found:
        row["timestamp"] = row.get("timestamp") and int(row["timestamp"].timestamp() * 1000)
    # What a filter has no words for: nulls, and offsets between those of a list.
    rows = [Row(**dict.fromkeys(COLUMNS) | row) for row in found]
    return query.rows_of(rows)


def by_polars(uri: str, query: Query) -> Rows:
    frame = pylog.polars.scan(uri, isolation=query.isolation)
    return rows_of(query.polars(frame).collect().to_arrow())


def by_duckdb(uri: str, query: Query) -> Rows:
    with pylog.duckdb.connect(uri, isolation=query.isolation) as connection:
        return rows_of(connection.sql(query.duckdb()).to_arrow_table())


def by_command_line(uri: str, query: Query) -> Rows:
    arguments = ["sql", uri, query.duckdb(), "--isolation", query.isolation, "--json"]
    shown = io.StringIO()
    with redirect_stdout(shown):
        assert run(arguments) == 0
    objects = [json.loads(line) for line in shown.getvalue().splitlines()]
    return [tuple(_value(name, each[name]) for name in query.columns) for each in objects]


def _value(column: str, shown: Any) -> object:  # noqa: ANN401 - of JSON
    if column == "timestamp":
        return round(dt.datetime.fromisoformat(shown).timestamp() * 1000)
    if column in ("key", "value") and shown is not None:
        return base64.b64decode(shown["base64"]) if isinstance(shown, dict) else shown.encode()
    return shown


TOOLS: dict[str, Callable[[str, Query], Rows]] = {
    "Python": by_python,
    "Polars": by_polars,
    "DuckDB": by_duckdb,
    "pylog sql": by_command_line,
}


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.thorough(one_in=5)
def test_a_query_gives_the_rows_that_were_written_and_reads_no_more_than_it_needs(
    tool: str, query: Query, logs: BucketOfLogs, proxy: Proxy, bucket: Bucket
) -> None:
    proxy.begin()
    found = TOOLS[tool](bucket.uri(logs.PREFIX, endpoint=proxy.endpoint), query)
    read = logs.share(proxy.traffic())
    print(f"{tool}, {query.name}: {len(found)} rows, {read:.3f} of the bytes")  # noqa: T201
    expected = query.rows_of(logs.rows)
    if query.limit is None:
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    else:
        assert found == expected[: query.limit]
    assert read <= query.most_read + PLANNING


def test_what_says_nothing_about_places_reads_all(
    logs: BucketOfLogs, proxy: Proxy, bucket: Bucket
) -> None:
    proxy.begin()
    uri = bucket.uri(logs.PREFIX, endpoint=proxy.endpoint)
    with pylog.duckdb.LogDatabase(uri) as database:
        count = database.query('SELECT count(*) FROM records WHERE "offset" % 2 = 0').read_all()
    assert count.column(0).to_pylist() == [sum(row.offset % 2 == 0 for row in logs.rows)]
    assert logs.share(proxy.traffic()) >= 1
