"""Arguments of the jobs that do one thing with each partition."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog_jobs.by_partition import (
    PartitionParameters,
    add_arguments,
    milliseconds_of,
    partition_parameters,
)
from pylog_jobs.job import UsageError
from tests.unit.recovery.test_merge import log, replica

if TYPE_CHECKING:
    from pathlib import Path


def parameters(*arguments: object, with_internal: bool = True) -> PartitionParameters:
    parser = argparse.ArgumentParser()
    options = pylog.jobs.extract_options()
    add_arguments(parser, options)
    parsed = parser.parse_args(list(map(str, arguments)))
    return partition_parameters(parsed, options, with_internal=with_internal)


def names(found: PartitionParameters) -> list[str]:
    return list(map(str, found.partitions))


def test_partitions_are_chosen_by_topic_and_number(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "users-0", "__consumer_offsets-7"):
        replica(tmp_path / "1", {0: log(0, 5)}, name=name)
    to = ("--to", tmp_path / "out")
    assert names(parameters(tmp_path / "1", *to)) == [
        *("__consumer_offsets-7", "orders-0", "orders-1", "users-0"),
    ]
    assert names(parameters(tmp_path / "1", *to, with_internal=False))[0] == "orders-0"
    chosen = ("--topic", "orders,users", "--partition", 0)
    found = parameters(tmp_path / "1", *to, *chosen)
    assert (names(found), found.by_name) == (["orders-0", "users-0"], True)
    found = parameters(tmp_path / "1" / "orders-1", *to)
    assert (names(found), found.by_name, found.to) == (["orders-1"], False, str(tmp_path / "out"))
    with pytest.raises(UsageError, match="no partition of topic other"):
        parameters(tmp_path / "1", *to, "--topic", "orders,other")
    with pytest.raises(UsageError, match="no partition that is wanted"):
        parameters(tmp_path / "1", *to, "--partition", 9)


def test_a_time_that_makes_no_sense_is_told_with_its_option() -> None:
    assert milliseconds_of("end-timestamp", "1970-01-02") == 86_400_000
    assert milliseconds_of("end-timestamp", None) is None
    with pytest.raises(UsageError, match="--end-timestamp"):
        milliseconds_of("end-timestamp", "soon")
