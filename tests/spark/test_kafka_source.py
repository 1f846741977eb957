"""Spark's own Kafka source reads what `pylog.serve` serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

import pylog
from tests.support.golden import Isolation, differences, read_expected
from tests.support.kafka_broker_jars import (
    FROM_PYSPARK,
    KAFKA_SOURCE,
    KafkaNotFoundError,
    fetch_jars,
    give_up_without_kafka,
)
from tests.support.spark_session import NEEDS_SPARK, SPARK_VERSION, require_java

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

pytestmark = [
    *NEEDS_SPARK,
    pytest.mark.thorough,
    pytest.mark.skipif(SPARK_VERSION < (4, 2), reason="the source is that of Spark 4.2"),
]

BUILD = Path(__file__).parents[2] / "build" / "spark-kafka"
SECONDS = 240


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    java_home = require_java()
    try:
        jars = fetch_jars(KAFKA_SOURCE, BUILD, without=FROM_PYSPARK)
    except KafkaNotFoundError as error:
        give_up_without_kafka("Spark's Kafka source", error)
    submit = f"--master local[2] --jars {','.join(map(str, jars))} pyspark-shell"
    return {**os.environ, "JAVA_HOME": str(java_home), "PYSPARK_SUBMIT_ARGS": submit}


@pytest.mark.parametrize("isolation", get_args(Isolation))
def test_spark_reads_what_the_broker_served(
    golden_root: GoldenRoot, environment: dict[str, str], tmp_path: Path, isolation: Isolation
) -> None:
    command = [sys.executable, "-m", "tests.spark.kafka_source"]
    with pylog.serve(golden_root.case("4.3.0/txn")) as server:
        command += [server.address, "payments", f"read_{isolation}", str(tmp_path)]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, timeout=SECONDS, check=True
        )
    found = {each["way"]: each["lines"] for each in map(json.loads, done.stdout.splitlines())}
    assert list(found) == ["batch", "stream 1", "stream 2"]
    for number in (0, 1):
        path = golden_root.partition(f"4.3.0/txn:payments-{number}").expected_path(isolation)
        assert path is not None
        expected = [{**line, "partition": number} for line in read_expected(path)]
        for line in expected:
            line.pop("leaderEpoch", None)
        for way, lines in found.items():
            read = [line for line in lines if line["partition"] == number]
            assert differences(expected, read) == [], way
