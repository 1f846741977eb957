"""Verification: every finding of the library, found by Spark's tasks, and the exit status."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, cast

import pytest

from pylog_jobs import verify
from pylog_jobs.verify import VerifyParameters
from tests.support.batches import batch_v2, plain_records
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_partition
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome
    from tests.support.golden import GoldenRoot

pytestmark = NEEDS_SPARK


def run(spark: SparkSession, path: Path, *arguments: str) -> Outcome:
    return verify.run(spark, prepare(path, *arguments))


def prepare(path: Path, *arguments: str) -> VerifyParameters:
    parser = argparse.ArgumentParser()
    verify.add_arguments(parser)
    return verify.prepare(parser.parse_args([str(path), *arguments]))


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Give one sound partition, and one with a wrong checksum."""
    batches = [batch_v2(plain_records(0, 2)), batch_v2(plain_records(2, 2))]
    write_partition(tmp_path, {0: batches}, name="sound-0")
    directory = write_partition(tmp_path, {0: batches}, name="wrong-0")
    path = segment_path(directory, 0)
    flip(path, -1)
    return tmp_path


def test_a_broker_s_directory_is_sound_with_its_internal_topics(
    spark: SparkSession, golden_root: GoldenRoot
) -> None:
    outcome = run(spark, golden_root.case("4.3.0/internal-logdir"))
    assert outcome.status == 0
    counts = {
        name: outcome.summary[name] for name in ("topics", "partitions", "errors", "warnings")
    }
    assert counts == {"topics": 5, "partitions": 9, "errors": 0, "warnings": 0}


def test_damage_is_a_finding_with_its_place_and_status_1(
    spark: SparkSession, damaged: Path
) -> None:
    outcome = run(spark, damaged, "--fail-on", "error")
    assert outcome.status == 1
    assert outcome.summary["errors"] == 1
    first = cast("list[dict[str, object]]", outcome.summary["findings"])[0]
    place = [first[name] for name in ("severity", "code", "topic", "path")]
    path = segment_path(damaged / "wrong-0", 0)
    assert place == ["error", "damaged_batches", "wrong", str(path)]
    assert {"endPosition", "brokerAction"} <= first.keys()  # as `pylog doctor --json` has them


def test_other_topics_are_not_read_when_some_are_named(spark: SparkSession, damaged: Path) -> None:
    assert run(spark, damaged, "--topic", "sound", "--fail-on", "error").status == 0
    assert run(spark, damaged, "--pattern", "^wr", "--fail-on", "error").status == 1


def test_what_is_worth_failing_for_can_be_said() -> None:
    def failing(severity: str) -> tuple[str, ...]:
        given: dict[str, Any] = {"paths": (), "topics": (), "partitions": 0}
        return VerifyParameters(fail_on=severity, **given).failing

    assert failing("error") == ("error",)
    assert failing("warning") == ("error", "warning")
    assert failing("info") == ("error", "warning", "info")


def test_nothing_to_verify_is_an_error(damaged: Path) -> None:
    with pytest.raises(ValueError, match="there is nothing to verify"):
        prepare(damaged, "--pattern", "^nothing")
