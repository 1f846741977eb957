"""Avro's resolution as Spark's from_avro does it: values of one version, read by a later one.

It differs in three ways. It has no decimals of more than 38 digits, which Avro allows. Of a union
of int, float and double it makes a struct; all of them are doubles by Avro's promotions. Bytes that
follow a value it passes over: a datum has none, so they say that it is another schema's.
"""

from __future__ import annotations

import base64
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyspark
import pytest

from tests.support.avro_schemas import AvroMaker
from tests.support.java_serdes import answers_of
from tests.unit.typed.decoded import decoded

if TYPE_CHECKING:
    from tests.conftest import HowMany

pytestmark = pytest.mark.broker

# The newest that Maven Central has; it runs in later versions of Spark, too.
PACKAGE = "org.apache.spark:spark-avro_2.13:4.2.0"
OPENED = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in ("java.lang", "java.nio")]
CHAINS = 300
VALUES = 5
SEED = 56_90
TOO_PRECISE = "[DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION] Decimal precision 60 exceeds"


def from_avro(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    return answers_of(
        "SparkAvro.java", "spark-avro", [PACKAGE], requests, java_options=OPENED, more_jars=spark
    )


def test_values_are_those_of_from_avro(how_many: HowMany) -> None:
    requests: list[dict[str, Any]] = []
    for number in range(how_many(60, CHAINS)):
        chance = random.Random(SEED + number)
        maker = AvroMaker(chance)
        writer = reader = maker.record(3)
        for _ in range(chance.randrange(1, 3)):
            reader = maker.newer(reader)
        requests.append(
            {
                "mode": chance.choice(("FAILFAST", "PERMISSIVE")),
                "writer": json.dumps(writer),
                "reader": json.dumps(reader),
                "payloads": [maker.value(writer) for _ in range(VALUES)],
            }
        )
    compared = 0
    for request, answer in zip(requests, from_avro(requests), strict=True):
        result = decoded(request["writer"], request["payloads"], request["reader"])
        assert result.failures == {}
        if "error" in answer:
            assert TOO_PRECISE in answer["error"]
            assert '"precision": 60' in request["reader"]
            continue
        for ours, theirs in zip(map(plain, result.values), answer["values"], strict=True):
            assert is_same(ours, theirs), (request["writer"], request["reader"])
            compared += 1
    assert compared > VALUES * len(requests) * 0.8


ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }
)
SOUND = b"\x02\x04ab"


def test_what_is_cut_is_no_value_and_bytes_behind_a_value_are_damage_for_us_alone() -> None:
    payloads = [SOUND, SOUND[:-1], SOUND[:1], SOUND + b"\x02"]
    request = {"mode": "PERMISSIVE", "writer": ORDER, "reader": ORDER, "payloads": payloads}
    [answer] = from_avro([request])
    value, nothing = {"id": 1, "note": "ab"}, {"id": None, "note": None}
    assert answer["values"] == [value, nothing, nothing, value]
    result = decoded(ORDER, payloads)
    assert list(result.failures) == [1, 2, 3]
    assert result.failures[3] == "1 bytes follow the value"


def plain(value: Any) -> Any:  # noqa: ANN401 - a scalar of Arrow's
    """Return a value with times as Spark's numbers: its TIME, which is time-micros, has nanos."""
    kind = value.type
    if not value.is_valid:
        return None
    if pa.types.is_struct(kind):
        return {each.name: plain(value[each.name]) for each in kind}
    if pa.types.is_map(kind):
        return {each["key"].as_py(): plain(each["value"]) for each in value.values}
    if pa.types.is_list(kind):
        return [plain(each) for each in value.values]
    if pa.types.is_timestamp(kind):
        return value.value * {"ms": 1000, "us": 1}[kind.unit]
    if pa.types.is_time64(kind):
        return value.value * 1000
    return value.value if pa.types.is_temporal(kind) else value.as_py()


def is_same(ours: Any, theirs: Any) -> bool:  # noqa: ANN401 - any values
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(is_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(ours, bytes):
        return bool(theirs == {"bytes": base64.b64encode(ours).decode()})
    if isinstance(ours, Decimal):
        return ours == Decimal(theirs)
    if isinstance(theirs, dict):  # of int, float and double
        [theirs] = [each for each in theirs.values() if each is not None]
    if isinstance(ours, float):
        return bool(ours == theirs or np.float32(ours) == np.float32(theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)
