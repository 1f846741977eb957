"""What the Java serializers of Apicurio Registry and AWS Glue write is decoded to what it was."""

from __future__ import annotations

import base64
import io
import json
import random
import uuid
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.typed.known_schemas import KnownSchema, KnownSchemas
from pylog.typed.schema_formats import reader_of
from pylog.typed.typed_column import TypedColumn
from tests.property.test_avro_values import is_same
from tests.support.avro_schemas import AvroMaker
from tests.support.java_serdes import written_by
from tests.support.protobuf_schemas import RandomSchema, fill
from tests.unit.typed.decoded import plain_values
from tests.unit.typed.test_protobuf_values import ensure_same, plain, python_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.conftest import HowMany
    from tests.support.java_serdes import Written

pytestmark = pytest.mark.broker

SCHEMAS = 300
VALUES = 3
SEED = 56_70
_SERDE = "apicurio.registry"
_BY_HEADERS = {f"{_SERDE}.headers.enabled": "true"}
_VALIDATION = f"{_SERDE}.serde.validation-enabled"


def _by_prefix(handler: str) -> dict[str, str]:
    return {f"{_SERDE}.id-handler": f"io.apicurio.registry.serde.{handler}"}


def _apicurio(*handlers: str) -> list[dict[str, Any]]:
    """Return ways to write: each handler of ids and headers, with either id."""
    return [
        {"config": {**way, f"{_SERDE}.use-id": which}}
        for way in ({}, _BY_HEADERS, *map(_by_prefix, handlers))
        for which in ("contentId", "globalId")
    ]


WAYS: dict[str, list[dict[str, Any]]] = {
    "apicurio-2": _apicurio("Legacy4ByteIdHandler", "DefaultIdHandler"),
    "apicurio-3": _apicurio(
        "Default4ByteIdHandler", "Legacy8ByteIdHandler", "OptimisticFallbackIdHandler"
    ),
    "glue": [{"compression": "NONE"}, {"compression": "ZLIB"}],
}


class Topic:
    """A topic whose values several schemas wrote, the last of which columns are of."""

    def __init__(self, chance: random.Random, number: int, schemas: Sequence[KnownSchema]) -> None:
        self.chance = chance
        self.field = chance.choice(("key", "value"))
        self._first = number
        self._schemas = schemas
        self._ids = [uuid.UUID(bytes=chance.randbytes(16)) for _ in schemas]
        self._rows: list[Written] = []
        self.expected: list[Any] = []

    def requests(
        self, name: str, version: int, schema: str, payloads: list[bytes], message: str = ""
    ) -> list[dict[str, Any]]:
        """Return requests that write the payloads of a version in each way."""
        return [
            {
                "format": self._schemas[version].type,
                "field": self.field,
                "contentId": self._first + version,
                "globalId": self._first + version + 100_000,
                "uuid": str(self._ids[version]),
                "schema": schema,
                "message": message,
                "payloads": payloads,
                **_unchecked(way, self._schemas[version].type),
            }
            for way in WAYS[name]
        ]

    def add(self, written: Sequence[Written], expected: Sequence[Any]) -> None:
        self._rows += written
        self.expected += expected

    def decoded(self) -> pa.Array:
        """Return all values as the last schema has them."""
        known = KnownSchemas()
        for version, schema in enumerate(self._schemas):
            known.by_id[self._first + version] = schema
            known.by_id[self._first + version + 100_000] = schema
            known.by_uuid[str(self._ids[version])] = schema
        column = TypedColumn(
            self.field,
            reader_of(self._schemas[-1]).type,
            {"topic": self._schemas[-1]},
            known,
        )
        entries = [
            [{"key": name, "value": value} for name, value in row.headers] for row in self._rows
        ]
        result = column.decode(
            pa.array([row.value for row in self._rows], pa.binary()),
            pa.array(entries, HEADERS_TYPE),
            "topic",
        )
        result.values.validate(full=True)
        assert result.failures == {}, [self._rows[row] for row in result.failures]
        return result.values


def _unchecked(way: dict[str, Any], kind: str) -> dict[str, Any]:
    """Have Protobuf's messages not compared with the text of a schema, which is not given."""
    if kind != "PROTOBUF" or "config" not in way:
        return way
    return {"config": {**way["config"], _VALIDATION: "false"}}


def _written(
    name: str,
    topics: Sequence[Topic],
    asked: Sequence[tuple[Topic, list[dict[str, Any]], list[Any]]],
) -> None:
    """Have a serializer write all that is asked for, and its topics hold it."""
    answers = iter(written_by(name, [each for _, requests, _ in asked for each in requests]))
    for topic, requests, expected in asked:
        for _ in requests:
            topic.add(next(answers), expected)
    assert all(topic.expected for topic in topics)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of float32, which NumPy warns of
def test_avro_of_several_versions(name: str, how_many: HowMany) -> None:
    topics, asked = [], []
    for number in range(how_many(15, SCHEMAS)):
        chance = random.Random(SEED + number)
        maker = AvroMaker(chance)
        versions = [maker.record(3)]
        for _ in range(chance.randrange(3)):
            versions.append(maker.newer(versions[-1]))
        texts = [json.dumps(each) for each in versions]
        known = [KnownSchema(place, "AVRO", each) for place, each in enumerate(texts)]
        topic = Topic(chance, 1 + 10 * number, known)
        topics.append(topic)
        for place, each in enumerate(versions):
            payloads = [maker.value(each) for _ in range(VALUES)]
            expected = [_avro_value(payload, texts[place], texts[-1]) for payload in payloads]
            asked.append((topic, topic.requests(name, place, texts[place], payloads), expected))
    _written(name, topics, asked)
    for topic in topics:
        for ours, (theirs,) in zip(_plain_rows(topic.decoded()), topic.expected, strict=True):
            assert None in (ours, theirs) or is_same(ours, theirs[0])


def _plain_rows(values: pa.Array) -> list[Any]:
    rows = []
    for row in range(len(values)):
        try:
            rows += plain_values(values.slice(row, 1))
        except (OverflowError, ValueError):
            rows.append(None)  # a date that Python has no value for
    return rows


def _avro_value(payload: bytes, writer: str, reader: str) -> tuple[Any]:
    schemas = [fastavro.parse_schema(json.loads(each)) for each in (writer, reader)]
    try:
        return ((fastavro.schemaless_reader(io.BytesIO(payload), schemas[0], schemas[1]),),)
    except (OverflowError, ValueError):
        return (None,)  # a date that Python has no value for


@pytest.mark.parametrize("name", WAYS)
def test_protobuf(name: str, how_many: HowMany) -> None:
    topics, asked = [], []
    for number in range(how_many(15, SCHEMAS)):
        chance = random.Random(SEED + number)
        schema = RandomSchema(chance, chance.choice(("proto2", "proto3")))
        path = _message(chance, schema, is_nested=name == "glue")
        known = KnownSchema(1, "PROTOBUF", schema.text, message=f"a.b.{path}")
        topic = Topic(chance, 1 + number, [known])
        topics.append(topic)
        message_class = schema.message_class(f"a.b.{path}")
        messages = [message_class() for _ in range(VALUES)]
        for each in messages:
            fill(chance, each)
        payloads = [each.SerializeToString() for each in messages]
        expected = [python_value(each) for each in messages]
        descriptor = base64.b64encode(schema.file.SerializeToString()).decode()
        asked.append((topic, topic.requests(name, 0, descriptor, payloads, path), expected))
    _written(name, topics, asked)
    for topic in topics:
        for ours, theirs in zip(plain(topic.decoded()), topic.expected, strict=True):
            ensure_same(ours, theirs)


def _message(chance: random.Random, schema: RandomSchema, *, is_nested: bool) -> str:
    """Return one of the messages: Apicurio's serializers know those that are in no other."""
    outer = chance.choice(schema.file.message_type)
    inner = [each.name for each in outer.nested_type if not each.options.map_entry]
    if is_nested and inner and chance.random() < 0.5:
        return f"{outer.name}.{inner[0]}"
    return str(outer.name)


@pytest.mark.parametrize("name", WAYS)
def test_json(name: str, how_many: HowMany) -> None:
    topics, asked = [], []
    for number in range(how_many(15, SCHEMAS)):
        chance = random.Random(SEED + number)
        schema, make = _json_object(chance, 2)
        topic = Topic(chance, 1 + number, [KnownSchema(1, "JSON", json.dumps(schema))])
        topics.append(topic)
        values = [make() for _ in range(VALUES)]
        payloads = [json.dumps(each, ensure_ascii=False).encode() for each in values]
        requests = topic.requests(name, 0, json.dumps(schema), payloads)
        asked.append((topic, requests, [_with_nulls(each, schema) for each in values]))
    _written(name, topics, asked)
    for topic in topics:
        assert plain_values(topic.decoded()) == topic.expected


def _json_object(
    chance: random.Random, depth: int
) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """Return the schema of an object, and what makes values of it."""
    members = {f"f{place}": _json_schema(chance, depth) for place in range(chance.randrange(1, 7))}
    schema = {
        "type": "object",
        "properties": {name: each for name, (each, _) in members.items()},
        "additionalProperties": False,
    }

    def make() -> dict[str, Any]:
        return {name: make() for name, (_, make) in members.items() if chance.random() < 0.8}

    return schema, make


def _json_schema(chance: random.Random, depth: int) -> tuple[dict[str, Any], Callable[[], Any]]:
    kind = chance.randrange(7 if depth else 4)
    if kind == 0:
        return {"type": "integer"}, lambda: chance.randrange(-(2**63), 2**63)
    if kind == 1:
        return {"type": "number"}, lambda: chance.choice((chance.uniform(-1e9, 1e9), 1e300, 0.25))
    if kind == 2:
        return {"type": "boolean"}, lambda: chance.random() < 0.5
    if kind == 3:
        texts = ("", "a", "naïve", "数据", "\U0001f600", '"\\\n\x7f', "x" * 40)
        return {"type": "string"}, lambda: chance.choice(texts)
    if kind == 4:
        return _json_object(chance, depth - 1)
    inner, make = _json_schema(chance, depth - 1)
    if kind == 5:
        schema: dict[str, Any] = {"type": "array", "items": inner}
        return schema, lambda: [make() for _ in range(chance.randrange(4))]
    schema = {"type": "object", "additionalProperties": inner}
    return schema, lambda: {f"k{place}": make() for place in range(chance.randrange(4))}


def _with_nulls(value: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return a value with the fields that it lacks."""
    if schema["type"] == "array":
        return [_with_nulls(each, schema["items"]) for each in value]
    if "properties" in schema:
        return {
            name: _with_nulls(value[name], each) if name in value else None
            for name, each in schema["properties"].items()
        }
    if schema["type"] == "object":
        inner = schema["additionalProperties"]
        return {name: _with_nulls(each, inner) for name, each in value.items()}
    return value
