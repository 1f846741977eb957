"""Types in Spark's words, as columns of JSON take them, are what Spark takes them for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import _parse_datatype_string

from pylog.typed.spark_ddl import field_of_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SAMPLES = [
    "id BIGINT, name STRING",
    "a tinyint, b BYTE, c smallint, d short, e int, f Integer, g long",
    "a float, b real, c double, d boolean, e binary, f date, g timestamp, h timestamp_ntz",
    "p DECIMAL(10, 2), q decimal, r NUMERIC(5), s DEC(38,38)",
    "`a b` INT, `c``d` STRING COMMENT 'it\\'s', e ARRAY<STRING> NOT NULL",
    "a: int, s STRUCT<x: INT, y: ARRAY<STRUCT<z: MAP<STRING, BIGINT>>>>, t struct<>",
    "struct<a: int, b: string not null comment 'x'>",
    "array<map<string,array<int>>>",
    "int INT, array ARRAY<INT>",
    "decimal(3,1)",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_a_type_is_what_spark_takes_it_for(spark: SparkSession, text: str) -> None:
    assert spark.version
    assert field_of_ddl(text).type == to_arrow_type(_parse_datatype_string(text), timezone="UTC")
