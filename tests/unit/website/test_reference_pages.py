"""Exit statuses and environment variables on the page about commands, against the code."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pylog.cli.exit_status as of_commands
import pylog_jobs.exit_status as of_jobs

ROOT = Path(__file__).parents[3]
PACKAGES = ("storage_core", "connector", "jobs")
READ_BY_OTHERS = {
    # Spark and its Java, the shell's completion by click, and Arrow's S3.
    *("SPARK_CONF_DIR", "_PYLOG_COMPLETE"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
}
# Where a module names a variable: in a call, in a subscript, or as a constant.
_VARIABLE = re.compile(
    r"(?:environ(?:\.get|\.setdefault)?[\[(]|_is_set\(|^_?[A-Z_]+ = \(?)\"(_?[A-Z][A-Z0-9_]+)\""
    r"(?:, \"([A-Z][A-Z0-9_]+)\")?",
    re.MULTILINE,
)


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text("utf-8")


def section(name: str, heading: str) -> str:
    [text] = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page(name), re.MULTILINE | re.DOTALL)
    return str(text)


def statuses(module: object) -> set[int]:
    return {value for name, value in vars(module).items() if name.isupper() and name[0] != "_"}


def first_numbers(text: str) -> set[int]:
    cells = re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE)
    return {int(number) for cell in cells for number in cell.split(",")}


def test_every_exit_status_of_commands_is_on_the_page() -> None:
    assert first_numbers(section("cli", "Exit statuses of commands")) == statuses(of_commands)


def test_every_exit_status_of_jobs_is_on_the_page() -> None:
    stopped = {of_jobs.OF_SIGNALS + each for each in (signal.SIGINT, signal.SIGTERM)}
    assert first_numbers(section("cli", "Exit statuses of jobs")) == {
        *of_jobs.STATUS_NAMES,
        *stopped,
    }


def test_every_environment_variable_that_is_read_is_on_the_page() -> None:
    sources = [file for folder in PACKAGES for file in (ROOT / folder).rglob("*.py")]
    read = {
        name
        for source in sources
        if "environ" in (text := source.read_text("utf-8"))
        for names in _VARIABLE.findall(text)
        for name in names
        if name
    }
    rows = re.findall(r"^\| (`.*?`) \|", section("cli", "Environment variables"), re.MULTILINE)
    shown = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {"PYLOG_NUM_THREADS", "NUMBA_DISABLE_JIT", "AWS_ENDPOINT_URL"} <= read
    assert shown == read | READ_BY_OTHERS
