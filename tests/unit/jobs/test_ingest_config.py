"""The TOML file of ``ingest``: what it means, and what is said of each mistake."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.job import UsageError
from pylog_jobs.run_window import RunWindow
from tests.unit.jobs.ingest_files import (
    DAY,
    JOB_ID,
    RECORD,
    SOURCE,
    SOURCE_OF_JDBC,
    TARGET,
    fingerprint,
    read,
    refusal,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_with_every_key(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
        [source]
        format = "csv"
        path = ["/in/{date}/a.csv", "/in/{date}/b.csv"]
        schema = "id BIGINT, body STRING"
        sql = "SELECT * FROM source WHERE day = '{date}'"
        [source.options]
        header = true
        maxColumns = 20
        modifiedAfter = "{date}T00:00:00"
        [record]
        key = "CAST(id AS STRING)"
        value = "body"
        timestamp = "at"
        partition = "CAST(0 AS INT)"
        [record.headers]
        source = "'csv'"
        [target]
        directory = "/data/logs"
        topic = "orders"
        partitions = 3
        create_topic = true
        partitioner = "default"
        compression = "zstd"
        level = 5
        batch_size_bytes = 65536
        commit_timeout = "5 minutes"
        job_id = "orders-{date}"
        [target.properties]
        retention.ms = -1
        "cleanup.policy" = "compact"
        """,
    )
    assert config.source.path == ("/in/2026-11-22/a.csv", "/in/2026-11-22/b.csv")
    assert config.source.sql == "SELECT * FROM source WHERE day = '2026-11-22'"
    assert config.source.options == {
        "header": "true",
        "maxColumns": "20",
        "modifiedAfter": "2026-11-22T00:00:00",
    }
    assert config.record.headers == {"source": "'csv'"}
    assert config.target.write_options() == {
        "topic": "orders",
        "numPartitions": "3",
        "createTopic": "True",
        "partitioner": "default",
        "compression": "zstd",
        "level": "5",
        "batchSizeBytes": "65536",
        "commitTimeout": "5 minutes",
        "jobId": "orders-2026-11-22",
        "jobFingerprint": config.target.fingerprint,
        "topic.retention.ms": "-1",
        "topic.cleanup.policy": "compact",
    }
    assert not config.trigger.is_stream


def test_what_is_left_out_is_left_to_the_data_source(tmp_path: Path) -> None:
    config = read(tmp_path, SOURCE + RECORD + TARGET)
    assert config.target.write_options() == {"topic": "orders"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[sources]\n", "has no key 'sources'; did you mean 'source'? The keys are: source, "),
        (
            SOURCE + RECORD + TARGET.replace("topic", "topc"),
            "[target] has no key 'topc'; did you mean 'topic'? The keys are: directory, topic, ",
        ),
        (
            SOURCE + RECORD + TARGET.replace("topic", "zzz"),
            "[target] has no key 'zzz'. The keys are: directory, topic, ",
        ),
        (RECORD + TARGET, "[source]: format is missing; give a format, a query (sql), or both"),
        (
            SOURCE.replace('"csv"', '""') + RECORD + TARGET,
            "[source]: format is empty; leave it out if there is none",
        ),
        (
            SOURCE.replace('"csv"', "7") + RECORD + TARGET,
            "[source]: format is 7, expected a string",
        ),
        (
            SOURCE + "options = 3\n" + RECORD + TARGET,
            "[source]: options is 3, expected a table",
        ),
        (
            SOURCE + "options.list = [1]\n" + RECORD + TARGET,
            "[source]: options.list is [1], expected a string, number or true or false",
        ),
        (
            '[source]\nsql = "SELECT 1"\npath = "/in"\n' + RECORD + TARGET,
            "[source]: path belongs to a format, and there is none",
        ),
        (
            '[source]\nsql = "SELECT 1"\n'
            + RECORD
            + TARGET
            + '[trigger]\nkind = "available_now"\ncheckpoint = "/c"\n',
            "[source]: format is missing: a query alone reads tables as they are, not as a stream",
        ),
        (SOURCE + TARGET, "[record]: value is missing; give an expression, or the whole row by "),
        (
            SOURCE + RECORD + 'value_format = "json"\n' + TARGET,
            "[record]: give only one of value and value_format",
        ),
        (
            SOURCE + '[record]\nvalue_format = "jsn"\n' + TARGET,
            "[record]: value_format is 'jsn', expected one of json, avro; did you mean 'json'?",
        ),
        (
            SOURCE + RECORD + 'value_columns = ["a"]\n' + TARGET,
            "[record]: value_columns belongs to value_format, and there is none",
        ),
        (
            SOURCE + '[record]\nvalue_format = "json"\navro_schema = "{}"\n' + TARGET,
            '[record]: avro_schema belongs to value_format = "avro"',
        ),
        (
            SOURCE + RECORD + '[target]\ndirectory = "/data/logs"\n',
            "[record]: topic is missing, and so is topic of [target]; give one of them",
        ),
        (
            SOURCE + RECORD + "topic = \"'t'\"\n" + TARGET,
            "[record]: topic is given, and topic of [target], too; give one of them",
        ),
        (SOURCE + RECORD + '[target]\ntopic = "t"\n', "[target]: directory is missing"),
        (
            SOURCE + RECORD + TARGET.replace('"orders"', '"or/ders"'),
            "[target]: 'or/ders' is not a topic name: ",
        ),
        (
            SOURCE + RECORD + TARGET.replace("/data/logs", "s3://bucket/logs"),
            "[target]: path 's3://bucket/logs' is in an object store; ",
        ),
        (
            SOURCE + RECORD + TARGET.replace('"orders"', '"__consumer_offsets"'),
            "[target]: topic '__consumer_offsets' is one that Kafka keeps for itself, and nothing ",
        ),
        (
            SOURCE + RECORD + "topic = \"'__transaction_state'\"\n[target]\ndirectory = '/d'\n",
            "[record]: topic: topic '__transaction_state' is one that Kafka keeps for itself, ",
        ),
        (
            SOURCE + RECORD + "topic = \"'or/ders'\"\n[target]\ndirectory = '/d'\n",
            "[record]: topic: 'or/ders' is not a topic name: ",
        ),
        (
            SOURCE + RECORD + TARGET.replace('"orders"', f'"{"x" * 250}"'),
            f"[target]: '{'x' * 250}' is not a topic name: it has 250 characters",
        ),
        (
            SOURCE + '[record]\nvalue_format = "avro"\navro_schema = "{"\n' + TARGET,
            "[record]: avro_schema is not JSON: ",
        ),
        (
            SOURCE.replace('"/in/{date}.csv"', '["/a", "/b"]')
            + RECORD
            + TARGET
            + '[trigger]\nkind = "available_now"\ncheckpoint = "/c"\n',
            "[source]: path is a list of 2, and a stream reads one",
        ),
        (
            SOURCE + "[record]\nvalue = \"a || '{region}'\"\n" + TARGET,
            "[record]: value has '{region}'; the placeholders are {date}, {hour}, {start}, {end} ",
        ),
        (
            SOURCE + "options.a.b = '{region}'\n" + RECORD + TARGET,
            "[source]: options.a.b has '{region}'; the placeholders are ",
        ),
        (
            SOURCE.replace("{date}", "${date}") + RECORD + TARGET,
            "[source]: path: ${date} is no secret: these are ${env:NAME} and ${file:PATH}, and ",
        ),
        (
            SOURCE + "options.password = '${vault:x}'\n" + RECORD + TARGET,
            "[source]: options.password: ${vault:x} is no secret: these are ${env:NAME} and ",
        ),
    ],
)
def test_a_mistake_is_named_with_table_and_key(tmp_path: Path, text: str, expected: str) -> None:
    line = refusal(tmp_path, text)
    assert line.removeprefix(f"{tmp_path}/ingest.toml ").startswith(expected), line


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("partitions = 0", "[target]: partitions is 0, expected at least 1"),
        ("partitions = true", "[target]: partitions is True, expected a whole number"),
        (
            'compression = "zst"',
            (
                "[target]: compression is 'zst', expected one of none, gzip, snappy, lz4, zstd; "
                "did you mean 'zstd'?"
            ),
        ),
        (
            "properties.retention.mss = 1",
            (
                "[target]: properties: retention.mss is not a property of a topic; did you mean "
                "retention.ms?"
            ),
        ),
        ('compression = "zstd"\nlevel = 99', "[target]: zstd level is 99, expected "),
        ("level = 3", "[target]: compression none has no levels, 3 was given"),
        ("partitions = 100001", "[target]: a topic has 1 to 100000 partitions, not 100001"),
        ("batch_size_bytes = 99999999999999999999", "[target]: option batchSizeBytes "),
        ('partitioner = "random"', "[target]: option partitioner is 'random', expected "),
        (
            "[checks]\nmin_rows = 3\nmax_rows = 2",
            "[checks]: min_rows is 3, and max_rows 2: no run can have both",
        ),
        (
            'commit_timeout = "99999999999 hours"',
            "[target]: commit_timeout is '99999999999 hours', expected a duration such as ",
        ),
        (
            'commit_timeout = "soon"',
            "[target]: commit_timeout is 'soon', expected a duration such as ",
        ),
        (
            'job_id = "orders-{day}"',
            "[target]: job_id has '{day}'; the placeholders are {date}, {hour}, {start}, {end} ",
        ),
        (
            'job_id = "x"\n[trigger]\nkind = "interval"\ncheckpoint = "/c"',
            '[target]: job_id is for kind = "batch"; a stream is known by its checkpoint',
        ),
        (
            '[trigger]\nkind = "available_now"',
            "[trigger]: checkpoint is missing: a stream keeps there how far it is",
        ),
        (
            '[trigger]\ncheckpoint = "/c"',
            '[trigger]: checkpoint belongs to a stream, and kind is "batch"',
        ),
        ('[trigger]\ninterval = "1 minute"', '[trigger]: interval belongs to kind = "interval"'),
        (
            '[trigger]\nkind = "interval"\ncheckpoint = "/c"\ninterval = "0 seconds"',
            "[trigger]: interval is '0 seconds', expected a duration such as ",
        ),
    ],
)
def test_a_mistake_after_what_is_right_is_named_with_table_and_key(
    tmp_path: Path, more: str, expected: str
) -> None:
    line = refusal(tmp_path, SOURCE + RECORD + TARGET + more + "\n")
    assert line.startswith(expected), line


@pytest.mark.parametrize(
    ("query", "value"), [("'{{from}}'", None), ("'{x}'", "{to}"), ("'{x}'", "a{from}b")]
)
def test_no_text_is_taken_for_the_range_of_a_run(
    tmp_path: Path, query: str, value: str | None
) -> None:
    query = f"FROM orders SELECT {query} AS a WHERE id >= {{from}} AND id < {{to}}"
    text = SOURCE_OF_JDBC.replace('dbtable = "orders"', f'query = "{query}"') + RECORD + TARGET
    text += f'job_id = "o{"" if value is None else "-{x}"}"\n'
    text += '[incremental]\ncolumn = "id"\nlag = 1\n'
    window = RunWindow.of_day(DAY, {} if value is None else {"x": value})
    with pytest.raises(UsageError, match=r"\[incremental\] has its range put in for \{(to|from)\}"):
        read(tmp_path, text, window)
    ordinary = RunWindow.of_day(DAY, {} if value is None else {"x": "a"})
    read(tmp_path, text.replace("{{from}}", "from"), ordinary)


@pytest.mark.parametrize(
    ("text", "uses_window"),
    [
        (SOURCE + RECORD + TARGET, True),
        (SOURCE.replace("{date}", "all") + RECORD + TARGET + 'job_id = "o-{end}"\n', True),
        (SOURCE.replace("{date}", "all") + RECORD + TARGET + 'job_id = "o"\n', False),
        (
            SOURCE + RECORD + TARGET + '[trigger]\nkind = "interval"\ncheckpoint = "/c"\n',
            False,
        ),
        (
            SOURCE.replace("{date}", "all")
            + RECORD
            + TARGET
            + 'job_id = "o"\n[incremental]\ncolumn = "id"\nlag = 1\n',
            False,
        ),
    ],
)
def test_a_batch_uses_its_window_where_a_placeholder_names_it(
    tmp_path: Path, text: str, *, uses_window: bool
) -> None:
    assert read(tmp_path, text).uses_window is uses_window


@pytest.mark.parametrize(
    ("source", "record", "target"),
    [
        (SOURCE, RECORD, TARGET),
        ("[source]\nsql = \"SELECT * FROM t WHERE day = '{date}'\"\n", RECORD, TARGET),
        (
            '[source]\nformat = "csv"\npath = "/in"\noptions.modifiedAfter = "{date}T00:00"\n',
            RECORD,
            TARGET,
        ),
        ('[source]\nsql = "FROM t"\n', "[record]\nvalue = \"'{date}'\"\n", TARGET),
        ('[source]\nsql = "FROM t"\n', RECORD, TARGET.replace("orders", "orders-{date}")),
    ],
)
def test_one_job_id_for_all_days_is_refused_where_the_day_counts(
    tmp_path: Path, source: str, record: str, target: str
) -> None:
    assert refusal(tmp_path, source + record + target + 'job_id = "orders"\n').startswith(
        "[target]: job_id is 'orders' in every run, and {date} stands elsewhere in the file: "
    )
    config = read(tmp_path, source + record + target + JOB_ID)
    assert "{date}" not in str(config)
    assert str(config).count("2026-11-22") == 2
    read(tmp_path, source + record + target)  # without an id, each run writes


@pytest.mark.parametrize(
    ("old", "new", "is_the_same"),
    [
        ("shop", "lager", False),
        ('"jdbc"', '"parquet"', False),
        ('dbtable = "orders"', 'dbtable = "returns"', False),
        ("SELECT *", "SELECT DISTINCT *", False),
        ('topic = "orders"', 'topic = "returns"', False),
        ("hunter2", "hunter3", True),
        ('user = "etl"', 'user = "night"', True),
        ('value = "body"', 'value = "text"', True),
        ('job_id = "orders-{date}"', 'job_id = "o-{date}"', True),
    ],
)
def test_a_fingerprint_is_of_where_rows_come_from_and_go_to(
    tmp_path: Path, old: str, new: str, *, is_the_same: bool
) -> None:
    text = SOURCE_OF_JDBC + RECORD + TARGET + JOB_ID
    assert old in text
    assert (
        fingerprint(tmp_path, text) == fingerprint(tmp_path, text.replace(old, new))
    ) is is_the_same
    assert "hunter" not in str(read(tmp_path, text).target.write_options())


HOURLY = RunWindow(
    dt.datetime(2026, 11, 22, 3, tzinfo=dt.UTC),
    dt.datetime(2026, 11, 22, 4, tzinfo=dt.UTC),
    parameters={"region": "eu"},
)


@pytest.mark.parametrize(
    ("path", "job_id", "expected"),
    [
        ("/in/{date}/{hour}/{region}", "o-{date}-{hour}-{region}", "o-2026-11-22-03-eu"),
        ("/in/{date}/{hour}/{region}", "o-{start}-{region}", "o-2026-11-22T03:00:00Z-eu"),
        # What the file depends on and the id does not name is added: no window is another one.
        ("/in/{date}/{hour}/{region}", "o-{date}", "o-2026-11-22 hour=03 region=eu"),
        (
            "/in/{start}/{end}/{region}",
            "{region}",
            "eu end=2026-11-22T04:00:00Z start=2026-11-22T03:00:00Z",
        ),
    ],
)
def test_a_window_has_a_job_id_of_its_own(
    tmp_path: Path, path: str, job_id: str, expected: str
) -> None:
    text = SOURCE.replace("/in/{date}.csv", path) + RECORD + TARGET + f'job_id = "{job_id}"\n'
    config = read(tmp_path, text, HOURLY)
    assert config.target.job_id == expected
    assert "{" not in config.source.path[0]


@pytest.mark.parametrize(
    ("text", "window", "message"),
    [
        ('job_id = "o-{hour}"\n', None, "[target]: job_id needs an hour; give --start and --end"),
        ('job_id = "o-{date}"\n', HOURLY, "[target]: --param region has no {region} in the file"),
        (
            'job_id = "o"\n[incremental]\ncolumn = "id"\nlag = 1\n',
            None,
            "[target]: job_id is 'o' in every run, and {date} stands elsewhere in the file",
        ),
        (
            'job_id = "o-{date}"\n[incremental]\ncolumn = "id"\nlag = 1\n',
            None,
            "[incremental] reads on from its bookmark, and {date} stands in the file",
        ),
    ],
)
def test_what_a_window_cannot_be_is_named(
    tmp_path: Path, text: str, window: RunWindow | None, message: str
) -> None:
    (tmp_path / "ingest.toml").write_text(SOURCE + RECORD + TARGET + text)
    with pytest.raises(UsageError) as caught:
        read_ingest_config(
            ConfigFile(str(tmp_path / "ingest.toml")), window or RunWindow.of_day(DAY)
        )
    assert message in str(caught.value)


BY_ID = SOURCE.replace("{date}", "all") + RECORD + TARGET + 'job_id = "o"\n[incremental]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            BY_ID + 'column = "id"\nzone = "Berlin"\n',
            "[incremental]: zone is 'Berlin', expected a time zone such as",
        ),
        (
            BY_ID + 'column = "id"\non_change = "read"\n',
            "[incremental]: on_change is for versions of an Iceberg table",
        ),
        (
            BY_ID.replace('"csv"', '"delta"') + 'on_change = "skip"\n',
            "[incremental]: on_change is for Iceberg; Delta's change data has every change",
        ),
        (BY_ID + "lag = 3\n", "[incremental]: column is missing; only delta and iceberg tables"),
        (
            BY_ID.replace('"csv"', '"delta"') + "initial = 3\nlag = 1\n",
            "[incremental]: lag belongs to a column, and there is none",
        ),
        (
            BY_ID + 'column = "id"\nlag = "soon"\n',
            "[incremental]: lag is 'soon', expected a duration such as \"2 hours\", or a number",
        ),
        (
            BY_ID.replace('job_id = "o"\n', "") + 'column = "id"\nlag = 1\n',
            "[incremental]: job_id of [target] is missing: the bookmark is kept under it",
        ),
        (
            SOURCE + "options.query = \"id > '{from}'\"\n" + RECORD + TARGET,
            "[incremental]: column is missing, and {from} stands in [source]",
        ),
        (
            SOURCE + RECORD + TARGET + "[checks]\nmin_rows = -1\n",
            "[checks]: min_rows is -1, expected at least 0",
        ),
    ],
)
def test_a_mistake_in_a_bookmark_or_a_check_is_named(
    tmp_path: Path, text: str, message: str
) -> None:
    assert refusal(tmp_path, text).startswith(message)
