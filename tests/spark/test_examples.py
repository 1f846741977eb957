"""The examples in the docstrings of `pyspark_pylog` run and print what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyspark_pylog
from tests.support.examples import examples_in, folder_of_examples, run_examples, sample
from tests.support.spark_session import NEEDS_SPARK, SPARK_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["folder_of_examples", "sample"]

pytestmark = NEEDS_SPARK

EXAMPLES = examples_in(pyspark_pylog)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_examples_print_what_they_show(
    name: str, folder_of_examples: Path, spark: SparkSession
) -> None:
    if name == "pyspark_pylog.lag" and SPARK_VERSION < (4, 2):
        pytest.skip("Spark 4.0 and 4.1 do not say what a stream's latest offsets are")
    for example in EXAMPLES[name]:  # Spark's processes have another working directory
        example.source = example.source.replace('"kafka/', f'"{folder_of_examples}/kafka/')
        example.source = example.source.replace('"logs"', f'"{folder_of_examples}/logs"')
    printed = run_examples(EXAMPLES[name], spark=spark, pyspark_pylog=pyspark_pylog)
    assert not printed, printed
