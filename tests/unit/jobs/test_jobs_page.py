"""``docs/jobs.md`` and ``docs/cli.md`` against the jobs: keys, arguments, the example."""

from __future__ import annotations

import argparse
import datetime as dt
import re
from pathlib import Path

import pytest

from pylog_jobs import (
    compact,
    diff,
    exit_status,
    export,
    extract,
    ingest,
    merge,
    retention,
    verify,
)
from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest_config import TABLES, read_ingest_config
from pylog_jobs.run_window import RunWindow

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "jobs.md").read_text("utf-8")
EXIT_STATUSES = (DOCS / "cli.md").read_text("utf-8")


def test_the_table_of_keys_has_every_key_and_no_other() -> None:
    found: dict[str, list[str]] = {}
    table = ""
    for row in re.findall(r"^\| (?:`(\w+)`)? ?\| `(\w+)` \|", PAGE, re.MULTILINE):
        table = row[0] or table
        found.setdefault(table, []).append(row[1])
    assert {name: tuple(keys) for name, keys in found.items()} == TABLES


def test_the_table_of_exit_statuses_has_their_names() -> None:
    rows = dict(re.findall(r"^\| (\d) \| `(\w+)` \|", EXIT_STATUSES, re.MULTILINE))
    assert {int(status): name for status, name in rows.items()} == exit_status.STATUS_NAMES


def test_the_example_is_a_configuration(tmp_path: Path) -> None:
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "orders.toml").write_text(text, "utf-8")
    config = read_ingest_config(
        ConfigFile(str(tmp_path / "orders.toml")), RunWindow.of_day(dt.date(2026, 11, 22))
    )
    assert config.target.job_id == "orders-2026-11-22"


def test_the_example_of_an_incremental_ingest_is_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "correct horse")
    [text] = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "orders.toml").write_text(text, "utf-8")
    config = read_ingest_config(
        ConfigFile(str(tmp_path / "orders.toml")), RunWindow.of_day(dt.date(2026, 11, 22))
    )
    assert config.incremental is not None
    assert config.incremental.lag == 7_200_000_000


@pytest.mark.parametrize(
    "job",
    [ingest, export, verify, retention, compact, merge, extract, diff],
    ids=lambda job: job.JOB.name,
)
def test_every_argument_of_a_command_line_exists(job: object) -> None:
    of_job = job.JOB  # type: ignore[attr-defined]
    parser = argparse.ArgumentParser()
    of_job.add_arguments(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    lines = [line for line in PAGE.splitlines() if f"pylog_jobs.{of_job.name} " in line]
    assert lines
    for line in lines:
        assert set(re.findall(r" (--[a-z-]+)", line.split("#")[0])) <= known, line


def test_what_is_guaranteed_of_a_source_is_held_by_tests_that_exist() -> None:
    tests = {path.stem for path in Path(__file__).parents[2].rglob("test_*.py")}
    [table] = re.findall(r"\| source \| what is guaranteed \|.*?\n\n", PAGE, re.DOTALL)
    rows = table.strip().splitlines()[2:]
    assert len(rows) == 10
    for row in rows:
        named = set(re.findall(r"`(test_\w+)`", row.split("|")[-2]))
        assert named, row
        assert named <= tests, row
