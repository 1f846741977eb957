from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spark_session import spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["spark"]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """Give a session of its own, whose views and settings no other test has."""
    return spark.newSession()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with an empty one for inputs, ``in``."""
    (tmp_path / "in").mkdir()
    return tmp_path
