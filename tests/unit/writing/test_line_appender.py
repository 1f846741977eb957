from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import InvalidRecordError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog import LineAppender, LogManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[LogManager]:
    with pylog.own_log_directory(tmp_path / "logs") as opened:
        yield opened


def text_appender(manager: LogManager, **options: Any) -> LineAppender:  # noqa: ANN401
    return pylog.LineAppender(manager, source="it", line_format="text", topic="t", **options)


def test_lines_are_counted_over_all_calls(manager: LogManager) -> None:
    appender = text_appender(manager)
    appender.append([b"a\t1", b"b\t2"])
    assert appender.line_count == 2
    with pytest.raises(InvalidRecordError) as raised:
        appender.append([b"c\t3", b"no tab"])
    assert str(raised.value) == (
        "it, line 4: no tab between key and value; all lines before it have been appended "
        "(3 records)"
    )
    assert appender.line_count == 3


def test_what_was_appended_is_told_by_partition_in_order(manager: LogManager) -> None:
    appender = pylog.LineAppender(manager, source="it")
    lines = [
        b'{"topic": "u", "partition": 0, "value": null}',
        b'{"topic": "t", "partition": 2, "value": "YQ=="}',
        b"",
        b'{"topic": "t", "partition": 0, "value": "YQ=="}',
        b'{"topic": "t", "partition": 2, "value": null}',
    ]
    appender.append(lines)
    assert appender.line_count == 5
    assert [
        (*each.topic_partition, each.records, each.end_offset) for each in appender.partitions()
    ] == [("t", 0, 1, 1), ("t", 2, 2, 2), ("u", 0, 1, 1)]


def test_no_line_at_all_makes_no_topic(manager: LogManager) -> None:
    appender = text_appender(manager, partition=3)
    appender.append([])
    assert (appender.line_count, appender.partitions(), manager.logs) == (0, [], {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"line_format": "csv"}, "line format 'csv' is not one of jsonl, text"),
        ({"compression": "brotli"}, "compression 'brotli' is not one of none, gzip"),
        ({"topic": "a b", "partition": 0}, "'a b' is not a topic name"),
    ],
)
def test_wrong_options_are_refused_before_a_line_is_read(
    options: dict[str, Any], message: str, manager: LogManager
) -> None:
    with pytest.raises(ValueError, match=message):
        pylog.LineAppender(manager, source="it", **options)
