from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import pylog
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_high_watermarks, write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

    Run = Callable[..., Outcome]

TIME = 1_780_000_000_123


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    records = [
        Stored(0, TIME, b"k1", b'{"user": 7}', (("h", b"x"),)),
        Stored(1, TIME + 1, None, None),
        Stored(2, TIME + 2, b"\xff\x1b", b"a,b\n"),
    ]
    write_partition(tmp_path / "logs", {0: [batch_v2(records)]})
    write_partition(tmp_path / "logs", {0: [batch_v2(plain_records(0, 9))]}, name="web-1")
    return tmp_path / "logs"


def test_the_rows_of_a_query_are_a_table(logs: Path, pylog_run: Run) -> None:
    query = "SELECT topic, partition, count(*) AS n FROM records GROUP BY ALL ORDER BY topic"
    done = pylog_run("sql", logs, query)
    assert (done.status, done.error) == (0, "")
    assert done.lines == [
        "topic   partition  n",
        "orders          0  3",
        "web             1  9",
        "2 rows",
    ]


def test_a_table_shows_nulls_and_escapes_what_is_not_text(logs: Path, pylog_run: Run) -> None:
    query = 'SELECT "offset", timestamp, key, value FROM records'
    done = pylog_run("sql", logs, query, "--topic", "orders")
    assert done.lines == [
        "offset  timestamp                 key       value",
        '     0  2026-05-28T20:26:40.123Z  k1        {"user": 7}',
        r"     1  2026-05-28T20:26:40.124Z  \N        \N",
        r"     2  2026-05-28T20:26:40.125Z  \xff\x1b  a,b\n",
        "3 rows",
    ]


def test_json_has_a_line_for_each_row(logs: Path, pylog_run: Run) -> None:
    query = 'SELECT "offset", timestamp, key, value, headers FROM records'
    done = pylog_run("sql", logs, query, "--topic", "orders", "--json")
    first, second, third = map(json.loads, done.lines)
    assert first == {
        "offset": 0,
        "timestamp": "2026-05-28T20:26:40.123Z",
        "key": "k1",
        "value": '{"user": 7}',
        "headers": [{"key": "h", "value": "x"}],
    }
    assert second["key"] is second["value"] is second["headers"] is None
    assert third["key"] == {"base64": "/xs="}


def test_csv_tells_null_from_empty(logs: Path, pylog_run: Run) -> None:
    query = "SELECT key, value, '' AS e, NULL AS n FROM records WHERE records.offset < 2"
    done = pylog_run("sql", logs, query, "--topic", "orders", "--csv")
    assert done.lines == ["key,value,e,n", 'k1,"{""user"": 7}","",', ',,"",']
    whole = pylog_run("sql", logs, "SELECT value FROM records", "--topic", "orders", "--csv")
    assert [*csv.reader(whole.output.decode().splitlines(keepends=True))][-1] == ["a,b\n"]


def test_metadata_tables_are_there_by_name(logs: Path, pylog_run: Run) -> None:
    query = "SELECT topic, records FROM segments WHERE partition = 1"
    assert pylog_run("sql", logs, query).lines == ["topic  records", "web          9", "1 row"]
    path = logs / "web-1" / f"{0:020}.log"
    done = pylog_run("sql", path, "SELECT count(*) AS n FROM records", "--start-offset", 4)
    assert done.lines == ["n", "5", "1 row"]


def test_a_query_may_write_a_file(logs: Path, tmp_path: Path, pylog_run: Run) -> None:
    target = tmp_path / "web.parquet"
    query = f"COPY (SELECT * FROM records WHERE topic = 'web') TO '{target}'"  # noqa: S608
    assert pylog_run("sql", logs, query).status == 0
    assert pq.read_table(target).num_rows == 9


def test_damage_is_an_error_or_left_out(tmp_path: Path, pylog_run: Run) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    logs = write_partition(tmp_path, {0: batches})
    query = "SELECT count(key) AS n FROM records"
    done = pylog_run("sql", logs, query)
    assert (done.status, done.output) == (1, b"")
    assert done.error.count("\n") == 1
    assert ".log at byte " in done.error
    done = pylog_run("sql", logs, query, "--mode", "DROPMALFORMED")
    assert (done.status, done.lines) == (1, ["n", "5", "1 row"])
    assert "records from offset 5 on may be missing" in done.error
    done = pylog_run("sql", logs, "SELECT severity FROM findings", "--json")
    assert (done.status, done.lines) == (0, ['{"severity":"error"}'])


def test_without_duckdb_the_extra_is_named(
    logs: Path, pylog_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "pylog.duckdb", raising=False)
    monkeypatch.delitem(vars(pylog), "duckdb", raising=False)
    done = pylog_run("sql", logs, "SELECT 1")
    assert done.status == 2
    assert f"pylog.duckdb needs DuckDB: {pylog.jobs.install_command('duckdb')}" in done.error


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("SELECT a.key FROM records a, range(1000000000000) b", b'{"key":'),
        # DuckDB works, and Python waits for the end of the statement.
        ("COPY (SELECT a.key FROM records a, range(1000000000000) b) TO '/dev/stdout'", b"key"),
    ],
)
def test_ctrl_c_ends_a_query_quietly(logs: Path, query: str, first: bytes) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pylog", "sql", str(logs), query, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Else deaf in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(first)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors) == (130, b"")


def test_checksums_and_keys_are_looked_at_where_that_is_asked_for(
    tmp_path: Path, pylog_run: Run
) -> None:
    keyed = [Stored(offset, TIME, key, b"v") for offset, key in enumerate((b"a", b"b", b"a"))]
    wrong = with_bad_crc(batch_v2(plain_records(3, 1)))
    write_partition(tmp_path, {0: [batch_v2(keyed)]}, name="sound-0")
    write_partition(tmp_path, {0: [batch_v2(keyed), wrong]}, name="wrong-0")
    write_high_watermarks(tmp_path, {("sound", 0): 3})
    crc = "SELECT is_valid_crc FROM batches WHERE topic = 'wrong' ORDER BY base_offset"
    live = "SELECT live_records FROM cleaning WHERE topic = 'sound'"
    for query, option, without, asked in (
        (crc, "--check-crc", ["\\N", "\\N"], ["true", "false"]),
        (live, "--check-keys", ["\\N"], ["2"]),
    ):
        for options, expected in (([], without), ([option], asked)):
            done = pylog_run("sql", tmp_path, query, *options)
            assert done.status == 0
            assert [line.strip() for line in done.lines[1:-1]] == expected


def test_one_far_time_ends_no_query(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    far = 1_763_769_600_000_000  # microseconds, taken for milliseconds
    write_partition(tmp_path, {0: [batch_v2([Stored(0, far, b"a", b"us")])]})
    expected = "+57861-08-20T00:00:00.000000Z"
    for query, options in (
        ("SELECT timestamp FROM records", ()),
        ("SELECT list(timestamp) FROM records", ()),
        ("SELECT {'at': timestamp} FROM records", ("--json",)),
        ("SELECT timestamp FROM records", ("--csv",)),
        ("SELECT * FROM segments", ("--json",)),
    ):
        done = pylog_run("sql", tmp_path, query, *options)
        assert (done.status, done.error) == (0, "")
        assert expected in done.output.decode()


def test_a_path_without_a_query_is_no_query(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("sql", tmp_path)
    assert done.status == 2
    assert f"give a query after the path: pylog sql {tmp_path} 'SELECT" in done.error


def test_a_day_after_those_that_python_knows_is_a_day(tmp_path: Path, pylog_run: Run) -> None:
    far = 1_700_000_000_000_000  # microseconds that a producer took for milliseconds
    write_partition(tmp_path, {0: [batch_v2([Stored(0, far, b"k", b"v")])]})
    query = "SELECT timestamp::DATE AS day, [day] AS days FROM records"
    done = pylog_run("sql", tmp_path, query, "--csv")
    assert done.lines == ["day,days", '+55840-11-08,"[""+55840-11-08""]"']
