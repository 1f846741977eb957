"""Which windows a run of ``ingest`` takes: none that is not over, none that is another's."""

from __future__ import annotations

import argparse
import datetime as dt
import logging
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog_jobs import clock, ingest
from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest_windows import choose_windows
from pylog_jobs.job import UsageError
from pylog_jobs.run_window import windows_of
from pylog_jobs.secret_values import SecretValues

if TYPE_CHECKING:
    from pathlib import Path

    from pylog_jobs.ingest_windows import ChosenWindows

BATCH = """
[source]
format = "csv"
path = "/in/{date}"
[record]
value = "body"
[target]
directory = "FOLDER/logs"
topic = "orders"
job_id = "orders-{date}"
"""
STREAM = BATCH.replace('job_id = "orders-{date}"', "") + (
    '[trigger]\nkind = "available_now"\ncheckpoint = "FOLDER/checkpoint"\n'
)
INCREMENTAL = BATCH.replace("{date}", "all") + '[incremental]\ncolumn = "id"\nlag = 0\n'
WITHOUT_WINDOW = BATCH.replace("{date}", "all")
WITHOUT_ID = BATCH.replace('job_id = "orders-{date}"', "")
HOURLY = BATCH.replace("{date}", "{start}")


@pytest.fixture(autouse=True)
def at_night(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: dt.datetime(2026, 11, 24, 3, 15, tzinfo=dt.UTC))


def choose(folder: Path, text: str, *arguments: str) -> ChosenWindows:
    path = folder / "ingest.toml"
    path.write_text(text.replace("FOLDER", str(folder)), "utf-8")
    parser = argparse.ArgumentParser()
    ingest.add_arguments(parser)
    secrets = argparse.Namespace(secrets=SecretValues())
    given = parser.parse_args(["--config", str(path), *arguments], secrets)
    windows = windows_of(given, clock.now())
    return choose_windows(ConfigFile(str(path), given.secrets), windows, given)


def commit(folder: Path, text: str, *arguments: str) -> None:
    """Commit the windows, without a row."""
    for config in choose(folder, text, *arguments).configs:
        config.target.write_job().commit([])


def days(chosen: ChosenWindows) -> list[str]:
    return [str(each.target.job_id).removeprefix("orders-2026-11-") for each in chosen.configs]


def test_a_run_without_a_date_is_for_the_last_whole_day(tmp_path: Path) -> None:
    assert days(choose(tmp_path, BATCH)) == ["23"]


@pytest.mark.parametrize(
    ("text", "arguments", "end"),
    [
        (BATCH, ("--date", "2026-11-24"), "2026-11-25T00:00:00Z"),
        (BATCH, ("--date", "2027-01-01"), "2027-01-02T00:00:00Z"),
        (WITHOUT_ID, ("--date", "2026-11-24"), "2026-11-25T00:00:00Z"),
        (
            HOURLY,
            ("--start", "2026-11-24T03:00Z", "--end", "2026-11-24T04:00Z"),
            "2026-11-24T04:00:00Z",
        ),
        (BATCH, ("--backfill", "2026-11-24..2026-11-26"), "2026-11-25T00:00:00Z"),
        (BATCH.replace("/in/{date}", "/in"), ("--date", "2026-11-24"), "2026-11-25T00:00:00Z"),
    ],
)
def test_a_window_that_is_not_over_is_refused(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    text: str,
    arguments: tuple[str, ...],
    end: str,
) -> None:
    with pytest.raises(UsageError, match=rf"is not over, .* It can run from {end}; --allow-open"):
        choose(tmp_path, text, *arguments)
    caplog.set_level(logging.WARNING, "pylog_jobs.ingest")
    allowed = choose(tmp_path, text, *arguments, "--allow-open-window")
    assert allowed.configs[0].window.is_open
    [said] = caplog.messages
    assert said.endswith("rows that come later would never be read; it is committed for good")
    choose(tmp_path, text, *arguments, "--dry-run")  # which writes nothing


@pytest.mark.parametrize("text", [STREAM, INCREMENTAL, WITHOUT_WINDOW])
def test_a_file_that_looks_at_no_window_runs_at_any_date(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    caplog.set_level(logging.WARNING, "pylog_jobs.ingest")
    assert choose(tmp_path, text, "--date", "2026-11-24").configs
    [said] = caplog.messages
    assert said == f"no window stands in {tmp_path}/ingest.toml: --date and --start change nothing"
    caplog.clear()
    assert choose(tmp_path, text).configs
    assert caplog.messages == []


def test_a_backfill_stops_before_the_first_window_that_is_not_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pylog_jobs.ingest")
    chosen = choose(tmp_path, BATCH, "--backfill", "2026-11-22..2026-11-27")
    assert days(chosen) == ["22", "23"]
    assert [str(each.start.date()) for each in chosen.waiting] == [
        f"2026-11-{day}" for day in (24, 25, 26)
    ]
    assert caplog.messages == [
        "3 windows are not over; the first can run from 2026-11-25T00:00:00Z"
    ]
    allowed = choose(tmp_path, BATCH, "--backfill", "2026-11-22..2026-11-27", "--allow-open-window")
    assert (len(allowed.configs), allowed.waiting) == (5, ())


def test_the_last_windows_start_after_the_first_that_is_committed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pylog_jobs.ingest")
    last = ("--backfill", "last:7d")
    assert days(choose(tmp_path, BATCH, *last)) == ["23"]  # nobody knows when the job began
    assert "no window from 2026-11-17T00:00:00Z on is committed yet" in caplog.text
    caplog.clear()
    commit(tmp_path, BATCH, "--date", "2026-11-18")
    commit(tmp_path, BATCH, "--date", "2026-11-21")
    assert days(choose(tmp_path, BATCH, *last)) == ["19", "20", "22", "23"]
    other_source = BATCH.replace("/in/", "/other/")
    assert days(choose(tmp_path, other_source, *last)) == ["19", "20", "22", "23"]
    commit(tmp_path, BATCH, *last)
    assert days(choose(tmp_path, BATCH, *last)) == ["23"]  # a repetition of it
    assert caplog.messages == []
    with pytest.raises(ValueError, match="with 0 records from another source"):
        choose(tmp_path, other_source, *last)


def test_a_run_that_finds_the_ambiguous_id_of_before_refuses(tmp_path: Path) -> None:
    text = BATCH.replace("orders-{date}", "{a}-{b}-{date}")
    arguments = ("--param", "a=1-2", "--param", "b=3")
    [config] = choose(tmp_path, text, *arguments).configs
    assert config.target.ambiguous_job_id == "1-2-3-2026-11-23"
    commit(tmp_path, BATCH.replace("orders-{date}", "1-2-3-{date}"))
    with pytest.raises(UsageError, match="has job '1-2-3-2026-11-23', which may be this window"):
        choose(tmp_path, text, *arguments)
    assert choose(tmp_path, text, "--param", "a=1", "--param", "b=3").configs


@pytest.mark.parametrize(
    ("made", "directory", "message"),
    [
        ("a", "a", "is no directory"),
        ("a", "a/b/c", "directory"),
        ("logs/orders-0/00000000000000000000.log", "logs/orders-0", "topic-partition directory"),
        (None, "x" * 300, "name too long"),
    ],
)
def test_a_directory_that_cannot_be_one_is_named_before_spark_starts(
    tmp_path: Path, made: str | None, directory: str, message: str
) -> None:
    if made is not None:
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made).write_bytes(b"")
    with pytest.raises((UsageError, LogDirectoryError, OSError), match=f"(?i){message}"):
        choose(tmp_path, BATCH.replace("FOLDER/logs", f"FOLDER/{directory}"))
    if made == "a":
        with pytest.raises(UsageError, match=r"\[trigger\]: checkpoint cannot be "):
            choose(tmp_path, STREAM.replace("FOLDER/checkpoint", f"FOLDER/{directory}"))


def test_a_directory_without_the_right_to_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    with pytest.raises(UsageError, match=rf"directory cannot be .*: {tmp_path} may not be written"):
        choose(tmp_path, BATCH)


def test_topics_beside_others_are_looked_at_before_spark_starts(tmp_path: Path) -> None:
    for name in ("orders.eu-0", "payments-0"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "00000000000000000000.log").write_bytes(b"")
    with pytest.raises(ValueError, match=r"'orders_eu' would collide with 'orders\.eu'"):
        choose(tmp_path, BATCH.replace('"orders"', '"orders_eu"'))
    with pytest.raises(UnknownTopicOrPartitionError, match="did you mean 'payments'"):
        choose(tmp_path, BATCH.replace('"orders"', '"payment"'))
    created = BATCH.replace('"orders"', '"payment"\ncreate_topic = true')
    assert choose(tmp_path, created).configs
