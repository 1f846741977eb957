"""Commands and jobs that remove records read one table of options."""

from __future__ import annotations

import argparse

import click
import pytest

import pylog
from pylog.cli.commands.compact import compact
from pylog.cli.commands.retention import retention
from pylog.writing.cleanup import CleanupSummary
from pylog_jobs.compact import JOB as COMPACT
from pylog_jobs.retention import JOB as RETENTION


@pytest.mark.parametrize(
    ("command", "job", "texts"),
    [
        (retention, RETENTION, {}),
        (
            compact,
            COMPACT,
            {"topics": "all compacted ones", "counted": "lags and delete horizons"},
        ),
    ],
)
def test_commands_and_jobs_have_the_same_options(
    command: click.Command, job: object, texts: dict[str, str]
) -> None:
    options = pylog.jobs.cleanup_options(**texts)
    parser = argparse.ArgumentParser()
    job.add_arguments(parser)  # type: ignore[attr-defined]
    of_job = {
        text.removeprefix("--"): action
        for action in parser._actions
        for text in action.option_strings
    }
    of_command = {
        text.removeprefix("--"): each
        for each in command.params
        if isinstance(each, click.Option)
        for text in each.opts
    }
    assert options.keys() <= of_job.keys()
    assert options.keys() <= of_command.keys()
    for name, option in options.items():
        parsed, clicked = of_job[name], of_command[name]
        assert parsed.metavar == option.metavar
        assert tuple(parsed.choices or ()) == option.choices
        assert clicked.multiple == option.is_repeated
        assert clicked.is_flag == (option.metavar is None and not option.choices)
        if name != "once":  # each says what its own pass is
            assert parsed.help == clicked.help == option.help


def test_a_summary_adds_up_all_partitions_and_those_of_each_topic() -> None:
    rows = pylog.results.PartitionRetention
    partitions = tuple(
        rows(topic_partition=pylog.TopicPartition(topic, number), size_bytes=size)
        for topic, number, size in (("b", 0, 1), ("a", 1, 2), ("b", 1, 4))
    )
    summary = pylog.results.RetentionSummary(partitions, 0, is_dry_run=True)
    assert isinstance(summary, CleanupSummary)
    assert summary.totals.size_bytes == 7
    assert {topic: each.size_bytes for topic, each in summary.by_topic.items()} == {"a": 2, "b": 5}
    assert list(summary.by_topic) == ["a", "b"]
