"""JSON by the schemas of a registry, and by types in Spark's words."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.json_format import JsonReader
from pylog.typed.known_schemas import KnownSchema
from pylog.typed.wire_formats import Framing
from tests.support.payloads import payloads_of
from tests.unit.typed.confluent_values import CONFLUENT, payloads_behind_ids, stored_schema


def test_values_of_confluents_serializer() -> None:
    schema = stored_schema("json")
    reader = JsonReader(schema)
    stored = CONFLUENT["json"]
    result = reader.decoder(schema, Framing.CONFLUENT).decode(
        payloads_behind_ids([each["hex"] for each in stored])
    )
    assert result.failures == {}
    assert result.values.type == reader.type
    for found, each in zip(result.values.to_pylist(), stored, strict=True):
        expected = each["value"]
        for name in ("id", "customer", "price"):
            assert found[name] == expected.get(name)
        lines = [{"sku": None, "qty": None} | line for line in expected.get("lines", [])]
        assert (found["lines"] or []) == lines
        assert ("extra" in expected) == (found["extra"] is not None)
    first = result.values[0].as_py()
    assert json.loads(first["extra"]) == [1, {"x": 2.5}]
    assert first["at"].isoformat() == "2024-02-29T11:00:00+00:00"


def test_a_type_in_sparks_words_is_a_schema_too() -> None:
    schema = KnownSchema(None, "JSON", "id BIGINT, rest VARIANT\n")
    reader = JsonReader(schema)
    assert reader.type == pa.struct([("id", pa.int64()), ("rest", pa.string())])
    result = reader.decoder(schema, Framing.NONE).decode(payloads_of([b'{"id":1,"rest":[2]}']))
    assert result.values.to_pylist() == [{"id": 1, "rest": "[2]"}]


@pytest.mark.parametrize("text", ["", "{", "[1]", "id", '{"$ref":"x"}', "a MAP<INT, INT>"])
def test_a_schema_that_is_wrong_is_named(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match=r"^schema 5: "):
        JsonReader(KnownSchema(5, "JSON", text))


def test_values_of_another_type_of_schema_are_refused() -> None:
    reader = JsonReader(stored_schema("json"))
    with pytest.raises(InvalidSchemaError, match="of the type AVRO, expected JSON"):
        reader.decoder(KnownSchema(1, "AVRO", '"int"'), Framing.CONFLUENT)
