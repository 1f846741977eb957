"""The examples in the docstrings of public functions and classes run and print what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
import pylog.duckdb
import pylog.polars
import pyspark_pylog
from tests.support.examples import examples_in, folder_of_examples, run_examples, sample

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["folder_of_examples", "sample"]

EXAMPLES = examples_in(pylog, pylog.jobs, pylog.logs, pylog.results, pylog.polars, pylog.duckdb)


def test_every_public_function_has_an_example() -> None:
    found = EXAMPLES | examples_in(pyspark_pylog)
    assert {"pylog.scan", "pylog.logs.LogManager", "pyspark_pylog.lag"} <= set(found)
    assert [name for name, examples in found.items() if not examples] == []


@pytest.mark.filterwarnings("ignore:.*_text is deprecated")  # what kafka-python calls
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_examples_print_what_they_show(name: str, folder_of_examples: Path) -> None:
    printed = run_examples(EXAMPLES[name])
    assert not printed, printed
