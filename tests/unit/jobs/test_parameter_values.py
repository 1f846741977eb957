"""Values of ``--param`` in the texts of a configuration: each stays within its text."""

from __future__ import annotations

import datetime as dt
import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pylog_jobs.parameter_values import ParameterValues
from pylog_jobs.run_window import RunWindow
from pylog_jobs.sql_text import UNKNOWN, dialect_of_url

DAY = dt.date(2026, 11, 22)
SQL = ("source", "sql")
PATH = ("source", "path")


def values(**parameters: str) -> ParameterValues:
    window = RunWindow.of_day(DAY, parameters)
    return ParameterValues(window, dialect_of_url("jdbc:postgresql://db/shop"))


def option(name: str) -> tuple[str, ...]:
    return ("source", "options", *name.split("."))


def test_a_literal_of_a_query_is_a_parameter_marker() -> None:
    found = values(region="x' OR '1'='1", day="2026-11-22")
    text = "SELECT * FROM source WHERE r = '{region}' AND d = DATE'{day}' AND day = '{date}'"
    assert found.put(SQL, text) == (
        "SELECT * FROM source WHERE r =  :pylog_0  AND d = DATE'2026-11-22' AND day = '2026-11-22'"
    )
    assert found.markers == {"pylog_0": "x' OR '1'='1"}
    assert not found.has_escapes


def test_markers_of_a_query_are_told_apart() -> None:
    found = values(a="1", b="{a}")
    assert found.put(SQL, "x = '{a}' OR y = '{b}' OR z IN ('{a}')").split() == [
        *("x", "=", ":pylog_2", "OR", "y", "=", ":pylog_1", "OR", "z", "IN", "(", ":pylog_0", ")")
    ]
    assert found.markers == {"pylog_0": "1", "pylog_1": "{a}", "pylog_2": "1"}


@pytest.mark.parametrize(
    "keys",
    [
        ("source", "schema"),
        ("record", "key"),
        ("record", "value"),
        ("record", "headers", "source"),
        ("record", "timestamp"),
        ("record", "topic"),
        ("record", "partition"),
        ("incremental", "column"),
        ("incremental", "key"),
        ("checks", "not_null"),
        ("checks", "unique"),
        ("checks", "conditions"),
        option("customSchema"),
    ],
)
def test_expressions_are_spark_sql(keys: tuple[str, ...]) -> None:
    found = values(x="it's")
    assert found.put(keys, "a = '{x}'") == "a = 'it\\u0027s'"
    assert found.has_escapes
    with pytest.raises(ValueError, match=r"has \{x\}, which stands outside of a quoted literal"):
        found.put(keys, "a = {x}")


@pytest.mark.parametrize(
    "name", ["query", "dbtable", "prepareQuery", "SESSIONINITSTATEMENT", "partitionColumn"]
)
def test_options_of_jdbc_are_the_sql_of_the_database(name: str) -> None:
    assert values(x="it's").put(option(name), "a = '{x}'") == "a = 'it''s'"
    with pytest.raises(ValueError, match=r"has \{x\}, which stands outside of a quoted literal"):
        values(x="it's").put(option(name), "a = {x}")
    other = ParameterValues(RunWindow.of_day(DAY, {"x": "it's"}), UNKNOWN)
    with pytest.raises(ValueError, match="how this database reads that in a literal is not known"):
        other.put(option(name), "a = '{x}'")


PATHS = [
    PATH,
    ("target", "directory"),
    ("trigger", "checkpoint"),
    option("path"),
    option("basePath"),
    option("kafka.ssl.truststore.location"),
    option("pathGlobFilter"),
]


@given(
    value=st.text(st.sampled_from("./\\*?[]{}%a:@ \0"), max_size=8),
    template=st.sampled_from(
        ["/data/in/{x}", "/data/in/.{x}/b", "/data/in/{x}.", "/data/in/{x}{x}", "/data/in/a{x}b/c"]
    ),
)
@example(value="../..", template="/data/in/{x}")
@example(value=".", template="/data/in/{x}{x}")
@example(value="/../..", template="/data/in/a{x}b/c")
def test_no_value_leaves_the_directory_before_it(value: str, template: str) -> None:
    for keys in PATHS:
        try:
            path = values(x=value).put(keys, template)
        except ValueError:
            continue
        assert not set(path) & set("\\*?[]{}%\0")
        whole = posixpath.normpath(path)
        assert whole.startswith("/data/in/")
        assert whole.count("/") == len([each for each in path.split("/") if each])


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("/in/{x}", "..", "that cannot be a part of a path"),
        ("/in/.{x}", ".", "that cannot be a part of a path"),
        ("/in/.{x}", "./a", "would be '/in/../a', which leaves the directory before a placeholder"),
        ("/in/{x}", "a/../../b", "which leaves the directory before a placeholder"),
        ("/in/{x}", "/etc", "that would leave the directory before it"),
        ("/in/{x}", "", "that cannot be a part of a path"),  # all files of /in
        ("/in/{x}", "*", "that cannot be a part of a path"),
        ("/in/{x}", "%2e%2e", "that cannot be a part of a path"),
        ("s3://{x}/in", "other/../b", "that cannot be the name of a host or bucket"),
        ("abfss://{x}@store/in", "c@evil", "that cannot be the name of a host or bucket"),
        ("{x}/in", "/a/..", "which leaves the directory before a placeholder"),
    ],
)
def test_a_path_that_a_value_cannot_be_in_is_named(text: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.").replace("'", ".")):
        values(x=value).put(PATH, text)


@pytest.mark.parametrize(
    ("keys", "text", "value", "expected"),
    [
        (PATH, "/in/{date}/{x}", "eu/west", "/in/2026-11-22/eu/west"),
        (PATH, "{x}", "/data/in", "/data/in"),  # there is no directory to leave
        (PATH, "{x}/a", "s3://bucket/in", "s3://bucket/in/a"),
        (PATH, "/in/../{x}", "eu", "/in/../eu"),
        (option("url"), "jdbc:postgresql://{x}/shop", "db:5432", "jdbc:postgresql://db:5432/shop"),
        (option("url"), "{x}", "jdbc:postgresql://db/shop?ssl=true", None),
        (option("subscribe"), "orders-{x}", "eu.west", "orders-eu.west"),
        (option("nullValue"), "{x}", "'\"", None),
        (option("modifiedAfter"), "{x}T00:00", "2026-11-22", "2026-11-22T00:00"),
        (("target", "topic"), "orders-{x}", "eu", "orders-eu"),
        (("target", "job_id"), "orders-{x}", "it's", "orders-it's"),
    ],
)
def test_an_ordinary_value_is_put_as_it_is(
    keys: tuple[str, ...], text: str, value: str, expected: str | None
) -> None:
    assert values(x=value).put(keys, text) == (value if expected is None else expected)


@pytest.mark.parametrize(
    ("keys", "text", "value"),
    [
        (option("url"), "jdbc:postgresql://db/{x}", "shop?socketFactory=evil"),
        (option("url"), "jdbc:sqlite:/data/{x}.db", "../../etc/x"),
        (option("subscribe"), "orders-{x}", "eu,payments"),
        (option("subscribePattern"), "orders-{x}", "eu|.*"),
        (option("assign"), '{{"orders-{x}": [0]}}', 'eu": [0], "b'),
        (option("es.query"), '{{"match": "{x}"}}', '"}, "a": {"b'),
        (("source", "format"), "{x}", "com.example/Evil"),
        (("record", "avro_schema"), '["{x}"]', '"]'),
        (("target", "topic"), "a{x}", "${env:HOME}"),
    ],
)
def test_a_value_that_is_more_than_a_value_is_refused(
    keys: tuple[str, ...], text: str, value: str
) -> None:
    with pytest.raises(ValueError, match=r"has \{x\}, which is|which leaves the directory"):
        values(x=value).put(keys, text)


def test_a_name_without_a_value_is_an_error_and_two_braces_are_one() -> None:
    for keys in (SQL, PATH, ("record", "value"), ("target", "topic"), option("query")):
        with pytest.raises(ValueError, match=r"has '\{region\}'; .* write \{\{region\}\} for the"):
            values().put(keys, "a {region}")
        assert values(x="1").put(keys, "{{region}}-{{x}}-{2}-{{3}}-{ }") == (
            "{region}-{x}-{2}-{{3}}-{ }"
        )
    with pytest.raises(ValueError, match="needs an hour; give --start and --end"):
        values().put(PATH, "/in/{hour}")


def test_the_range_of_an_incremental_run_is_for_the_source_alone() -> None:
    for keys in (SQL, option("query")):
        assert values().put(keys, "a >= '{from}' AND a < {to}") == "a >= '{from}' AND a < {to}"
    for keys in (PATH, ("record", "value"), ("target", "topic"), ("source", "schema")):
        with pytest.raises(ValueError, match=r"has '\{from\}', the range of an incremental run"):
            values().put(keys, "{from}")
