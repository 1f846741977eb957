"""Whatever a test asks of doctor, table ``findings`` is asked, too: both give the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import pylog
import pylog.tables.tables  # before a test becomes a user that may import nothing
from pylog.files.looks import DIRECTORY_PAUSES
from pylog.model import INTERNAL_TOPICS
from tests.unit.checks.examined import three_segments

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import DoctorReport

AtThirdPause = Callable[[Callable[[], object]], None]

_OF_DOCTOR_ALONE = ("as_user", "kafka_version", "partitions")
_REAL: Callable[..., DoctorReport] = pylog.doctor


def _rows_of_table(
    known: set[str],
    *paths: Any,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> list[dict[str, Any]]:
    if "topics" not in options and known & INTERNAL_TOPICS:
        options["topics"] = sorted(known)  # doctor looks at them unasked
    rows: list[dict[str, Any]] = pylog.read_table(paths, "findings", **options).to_pylist()
    return rows


def _identities(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items(), key=str)) for row in rows)


def _doctor_and_table(*paths: Any, **options: Any) -> DoctorReport:  # noqa: ANN401
    report = _REAL(*paths, **options)
    if any(name in options for name in _OF_DOCTOR_ALONE):
        return report
    of_both = {
        name: value for name, value in options.items() if name not in ("threads", "progress")
    }
    try:
        known = set(pylog.open_directory(*paths).topics)
    except pylog.errors.LogDirectoryError:  # what no table can be made of: a partition lies twice
        return report
    rows = _rows_of_table(known, *paths, **of_both)
    assert _identities(rows) == _identities(report.to_table().to_pylist())
    return report


@pytest.fixture(autouse=True)
def doctor_and_table_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pylog, "doctor", _doctor_and_table)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Give a partition of three segments."""
    return three_segments(tmp_path)


@pytest.fixture
def at_third_pause(monkeypatch: pytest.MonkeyPatch) -> AtThirdPause:
    """Give a function that has something done at the third pause between looks."""

    def do(what: Callable[[], object]) -> None:
        pauses = []

        def sleep(seconds: float) -> None:
            if seconds >= DIRECTORY_PAUSES[0]:  # others wait for the clock of the file system
                pauses.append(seconds)
                if len(pauses) == 3:
                    what()

        monkeypatch.setattr(time, "sleep", sleep)

    return do
