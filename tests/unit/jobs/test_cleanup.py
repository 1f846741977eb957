"""Arguments of the jobs that remove records: what is meant by mistake removes nothing."""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import pytest

import pylog
from pylog_jobs.cleanup import add_arguments, cleanup_outcome, parameters_of


def parsed(*arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_arguments(parser, topics="all", counted="ages", once="one pass")
    return parameters_of(parser.parse_args(["/data/logs", *arguments]))


def test_without_a_topic_all_are_meant() -> None:
    assert parsed()["topics"] is None
    assert parsed("--topic", "a,b", "--topic", "c")["topics"] == ("a", "b", "c")


@pytest.mark.parametrize("text", ["", ",", ",,"])
def test_an_empty_topic_does_not_stand_for_all(text: str) -> None:
    with pytest.raises(ValueError, match="names no topic"):
        parsed("--topic", text)


@pytest.mark.parametrize("text", ["1774000000000000", "253402300800000"])
def test_a_now_in_microseconds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="after the year 9999"):
        parsed("--now", text)


def test_a_now_is_in_milliseconds_or_an_iso_time() -> None:
    assert parsed("--now", "253402300799999")["now_ms"] == 253402300799999
    assert parsed("--now", "2026-11-27")["now_ms"] == 1795737600000
    assert parsed("--now", "2026-11-27T01:00+01:00")["now_ms"] == 1795737600000


def test_a_now_may_be_as_long_ago_as_the_commands_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_795_737_600.5)
    assert parsed("--now=-2h")["now_ms"] == 1_795_737_600_500 - 7_200_000
    with pytest.raises(ValueError, match=r"^--now '2h' is not a time: give an ISO date or time"):
        parsed("--now", "2h")


def test_a_wrong_checksum_that_becomes_right_is_logged_and_a_finding(
    caplog: pytest.LogCaptureFixture,
) -> None:
    partition = pylog.results.PartitionCompaction(
        topic_partition=pylog.TopicPartition("orders", 3),
        damaged_records=2,
        damage="0.log at byte 7",
    )
    summary = pylog.results.CompactionSummary((partition,), now_ms=0, is_dry_run=False)
    outcome = cleanup_outcome(
        *("/logs", summary),
        logger=logging.getLogger("job"),
        failure="%s: %s",
        removed=lambda _totals: ("nothing", 0, 0),
    )
    assert outcome.status == 1
    assert outcome.summary["damage"] == [
        {"partition": "orders-3", "records": 2, "damage": "0.log at byte 7"}
    ]
    (told,) = caplog.messages
    assert told.startswith("orders-3: a wrong checksum becomes right, as by a broker's cleaner, ")
    assert told.endswith(
        "in records: 2, the first one at 0.log at byte 7; compare with another replica"
    )
