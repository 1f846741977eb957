"""Harmed values and schemas are errors, or what another library reads of them: nothing else.

Values lie behind the prefixes and headers of all registries, and are harmed as a whole. Judges are
fastavro, Google's library for Protobuf, and Python's ``json`` with the rules for each type.
"""

from __future__ import annotations

import base64
import io
import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.message import DecodeError

from pylog.errors import InvalidSchemaError
from pylog.typed.json_schema import field_of_json_schema
from pylog.typed.known_schemas import KnownSchema, KnownSchemas
from pylog.typed.schema_formats import reader_of
from pylog.typed.spark_ddl import field_of_ddl
from pylog.typed.typed_column import TypedColumn
from tests.property.test_avro_values import is_same
from tests.support.avro_schemas import AvroMaker, zigzag
from tests.support.framed_values import (
    GUIDS,
    HEADER,
    IDS,
    ROOT,
    Framed,
    RefusedError,
    changed_json,
    harmed,
    harmed_text,
    some_values,
    unframed,
)
from tests.support.json_rules import read_strictly, shaped, texts_read
from tests.support.json_texts import random_struct, random_type, random_value, write_text
from tests.support.protobuf_schemas import RandomSchema, fill
from tests.unit.typed.decoded import plain_values
from tests.unit.typed.test_protobuf_values import ensure_same, plain, python_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.conftest import HowMany

fastavro = pytest.importorskip("fastavro")

SEED = 56_40
GOOD = 8
HARMED = 40


class NoJudgementError(Exception):
    """The judge cannot say."""


@dataclass
class Tally:
    """How many harmed values were judged, by what came of them."""

    counts: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.counts.total()


def column_of(kind: str, texts: Sequence[str], reader: int) -> TypedColumn:
    """Return what decodes values of schemas by the fields of one of them."""
    schemas = [
        KnownSchema(number, kind, text, message="a.b.Root" if kind == "PROTOBUF" else None)
        for number, text in zip(IDS, texts, strict=False)
    ]
    known = KnownSchemas()
    for each in schemas:
        known.by_id[int(each.id or 0)] = each
        known.by_uuid[GUIDS[int(each.id or 0)]] = each
    chosen = schemas[reader]
    return TypedColumn("value", reader_of(chosen).type, {"t": chosen}, known)


def decode(column: TypedColumn, values: Sequence[Framed]) -> tuple[pa.Array, dict[int, Any]]:
    """Decode values as a scan does."""
    contents = pa.array([each.content for each in values], pa.binary())
    entry = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = pa.array(
        [
            None if each.header is None else [{"key": HEADER, "value": each.header}]
            for each in values
        ],
        pa.list_(entry),
    )
    found = column.decode(contents, headers, "t")
    found.values.validate(full=True)
    assert len(found.values) == len(values)
    return found.values, found.failures


def judge_all(
    column: TypedColumn,
    values: Sequence[Framed],
    judge: Callable[[Framed, Any], None],
    rows: Callable[[pa.Array], list[Any]],
    tally: Tally,
) -> None:
    """Compare what is read with what a judge reads: `judge` raises `AssertionError`."""
    found, failures = decode(column, values)
    try:
        plain_rows = rows(found)
    except (OverflowError, ValueError):  # Python has no such date
        plain_rows = []
        for row in range(len(found)):
            try:
                plain_rows += rows(found.slice(row, 1))
            except (OverflowError, ValueError):
                plain_rows.append(NoJudgementError)
    for row, value in enumerate(values):
        if row in failures:
            assert not found[row].is_valid
            tally.counts["error"] += 1
            continue
        if plain_rows[row] is NoJudgementError:
            tally.counts["no judgement"] += 1
            continue
        try:
            judge(value, plain_rows[row])
        except NoJudgementError:
            tally.counts["no judgement"] += 1
            continue
        except RefusedError:
            pytest.fail(f"the judge refuses {value}, and it was read as {plain_rows[row]!r}")
        tally.counts["right"] += 1


# Avro.


AVRO_WORDS: tuple[Any, ...] = (
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string", "N1", "N2", "f0"),
    *(None, 0, -1, 2**40, True, [], {}, ["null", "int"], ["int", "int"], {"type": "int"}),
    *("type", "name", "fields", "items", "values", "symbols", "size", "logicalType", "aliases"),
    *(
        "decimal",
        "date",
        "record",
        "enum",
        "fixed",
        "array",
        "map",
        "precision",
        "scale",
        "default",
    ),
)


def _is_raw(schema: Any) -> bool:  # noqa: ANN401
    """Whether Confluent's serializers write values without a length."""
    return schema == "bytes" or (isinstance(schema, dict) and schema.get("type") == "bytes")


def avro_judge(
    texts: Sequence[str], reader: int, *, harms_schemas: bool
) -> Callable[[Framed, Any], None]:
    def parsed(text: str) -> Any:  # noqa: ANN401
        try:
            return fastavro.parse_schema(json.loads(text))
        except Exception:  # noqa: BLE001 - whatever it raises of what is no schema
            return None

    schemas = {number: parsed(text) for number, text in zip(IDS, texts, strict=False)}
    of_reader = parsed(texts[reader])
    # Names of records need not agree here, nor need decimals be right.
    lenient = (KeyError, fastavro.read.SchemaResolutionError) if harms_schemas else ()

    def judge(value: Framed, ours: Any) -> None:  # noqa: ANN401
        number, framing, payload = unframed(value)
        writer = schemas[number]
        if writer is None or of_reader is None:
            raise NoJudgementError
        both = texts[IDS.index(number)], texts[reader]
        if harms_schemas and both[0] != both[1] and "logicalType" in "".join(both):
            raise NoJudgementError  # fastavro's values are of the writer's logical type
        if framing == "Confluent" and _is_raw(json.loads(both[0])):
            payload = zigzag(len(payload)) + payload
        stream = io.BytesIO(payload)
        try:
            expected = fastavro.schemaless_reader(stream, writer, of_reader)
        except UnicodeDecodeError:
            raise RefusedError from None
        except (OverflowError, ValueError, *lenient) as error:
            raise NoJudgementError from error  # such as a date that Python has no value for
        assert stream.tell() == len(payload), (value, "bytes follow")
        assert is_same(ours, expected), (value, ours, expected, texts)

    return judge


def avro_round(seed: int, tally: Tally, *, harms_schemas: bool) -> None:
    chance = random.Random(seed)
    maker = AvroMaker(chance)
    first = maker.record(3) if chance.random() < 0.9 else maker.schema(2)
    second = maker.newer(first)
    schemas = [first, second]
    texts = [json.dumps(each) for each in schemas]
    payloads = [
        (number, maker.value(schemas[place]))
        for place, number in ((chance.randrange(2), 0) for _ in range(GOOD))
        for number in (IDS[place],)
    ]
    values = some_values(payloads, HARMED, chance, "AVRO")
    if not harms_schemas:
        column = column_of("AVRO", texts, 1)
        _, failures = decode(column, values[:GOOD])
        if not any(map(_is_raw, schemas)):  # whose values have no length in some framings
            assert not failures, (seed, texts, failures)
        judge_all(column, values, avro_judge(texts, 1, harms_schemas=False), plain_values, tally)
        return
    for _ in range(6):
        place = chance.randrange(2)
        if chance.random() < 0.3:
            text = harmed_text(texts[place], chance)
        else:
            text = json.dumps(changed_json(chance, schemas[place], AVRO_WORDS))
        some = [*texts]
        some[place] = text
        reader = chance.choice((place, 1))
        try:
            column = column_of("AVRO", some, reader)
        except InvalidSchemaError:
            tally.counts["schema refused"] += 1
            continue
        judge = avro_judge(some, reader, harms_schemas=True)
        judge_all(column, values, judge, plain_values, tally)


# Protobuf.


def proto_judge(roots: Sequence[Any], *, is_lax: bool) -> Callable[[Framed, Any], None]:
    """Return what Google's library reads; it is lax where it passes over what we refuse."""

    def judge(value: Framed, ours: Any) -> None:  # noqa: ANN401
        number, framing, payload = unframed(value)
        root = roots[IDS.index(number)]
        if framing != "Confluent" or payload[:2] != ROOT or root is None or "nan" in repr(ours):
            raise NoJudgementError  # among others, other ways of naming a message
        try:
            ensure_same(ours, python_value(root.FromString(payload[2:])))
        except (AssertionError, DecodeError, UnicodeDecodeError) as error:
            if is_lax:
                raise NoJudgementError from error
            if isinstance(error, AssertionError):
                raise
            raise RefusedError from error
        except (AttributeError, KeyError, ValueError, json_format.SerializeToJsonError) as error:
            raise NoJudgementError from error  # infinities in JSON, and entries of odd maps

    return judge


def is_lax(root: Any) -> bool:  # noqa: ANN401
    """Whether a message has maps, messages within themselves or JSON, of which Google's differs."""
    waiting, seen = [root.DESCRIPTOR], set()
    while waiting:
        message = waiting.pop()
        if message.full_name in seen:
            return True
        seen.add(message.full_name)
        for each in message.fields:
            if each.message_type is None:
                continue
            if each.message_type.GetOptions().map_entry:
                return True
            if each.message_type.full_name in JSON_MESSAGES:
                return True
            waiting.append(each.message_type)
    return False


JSON_MESSAGES = {f"google.protobuf.{each}" for each in ("Struct", "Value", "ListValue")}


def root_of(made: RandomSchema, content: bytes) -> Any:  # noqa: ANN401
    """Return Google's class of the message of a descriptor; None if there is none."""
    other = RandomSchema.__new__(RandomSchema)
    other.file = descriptor_pb2.FileDescriptorProto()
    try:
        other.file.ParseFromString(content)
        other.file.name = "harmed.proto"
        return other.message_class()
    except Exception:  # noqa: BLE001 - whatever it raises of what is no descriptor
        return None


def proto_round(seed: int, tally: Tally, *, harms_schemas: bool) -> None:
    chance = random.Random(seed)
    made = RandomSchema(chance, chance.choice(("proto2", "proto3")))
    root = made.message_class()
    payloads = []
    for _ in range(GOOD):
        message = root()
        fill(chance, message)
        payloads.append((IDS[0], message.SerializeToString(deterministic=True)))
    values = some_values(payloads, HARMED, chance, "PROTOBUF")
    descriptor = made.file.SerializeToString()
    if not harms_schemas:
        column = column_of("PROTOBUF", [made.text], 0)
        _, failures = decode(column, values[:GOOD])
        assert not failures, (seed, made.text, failures)
        judge = proto_judge([root], is_lax=is_lax(root))
        judge_all(column, values, judge, plain, tally)
        return
    for _ in range(6):
        content: bytes | None = harmed(descriptor, chance)
        text = base64.b64encode(content or b"").decode()
        if chance.random() < 0.3:
            text = harmed_text(made.text, chance)
            content = compiled(text)
        try:
            column = column_of("PROTOBUF", [text], 0)
        except InvalidSchemaError:
            tally.counts["schema refused"] += 1
            continue
        other = root_of(made, content) if content is not None else None
        lax = other is None or is_lax(other)
        judge_all(column, values, proto_judge([other], is_lax=lax), plain, tally)


def compiled(text: str) -> bytes | None:
    """Return the descriptor of a text by Google's compiler; None where there is no compiler."""
    return None


# JSON.


def json_rows(column: pa.Array) -> list[Any]:
    """Return values with days and ticks as numbers, and maps as dictionaries."""
    return plain_values(column.cast(_in_numbers(column.type)))


def _in_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_in_numbers(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _in_numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_numbers(kind.value_type)))
    return kind


DDL = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "string": "STRING",
    "float": "FLOAT", "double": "DOUBLE", "bool": "BOOLEAN", "date32[day]": "DATE",
    "timestamp[us, tz=UTC]": "TIMESTAMP", "timestamp[us]": "TIMESTAMP_NTZ",
}  # fmt: skip


def ddl_of(kind: pa.DataType) -> str | None:
    """Return a type in Spark's words; None if they have none for it."""
    if pa.types.is_struct(kind):
        inner = [(each.name.replace("`", "``"), ddl_of(each.type)) for each in kind]
        if any(text is None for _, text in inner) or not inner:
            return None
        return f"STRUCT<{', '.join(f'`{name}`: {text}' for name, text in inner)}>"
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        item = ddl_of(kind.item_type if pa.types.is_map(kind) else kind.value_type)
        name = "MAP<STRING, " if pa.types.is_map(kind) else "ARRAY<"
        return None if item is None else f"{name}{item}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return DDL.get(str(kind))


def json_judge(text: str) -> Callable[[Framed, Any], None]:
    of = field_of_json_schema(text, {}) if is_json(text) else field_of_ddl(text)

    def judge(value: Framed, ours: Any) -> None:  # noqa: ANN401
        _, _, payload = unframed(value)
        try:
            expected = shaped(read_strictly(payload), of)
            found = texts_read(ours, of)
        except RecursionError:
            raise NoJudgementError from None
        assert repr(found) == repr(expected), (payload, found, expected, of.type)

    return judge


def is_json(text: str) -> bool:
    """Whether a schema is a JSON Schema, and not a type in Spark's words."""
    return re.match(r"\s*(?:\{|true\b|false\b|\[|\Z)", text) is not None


SCHEMA_WORDS: tuple[Any, ...] = (
    *("object", "array", "string", "integer", "number", "boolean", "null", "date", "date-time"),
    *("type", "properties", "items", "additionalProperties", "format", "enum", "oneOf", "$ref"),
    *(None, True, False, 0, [], {}, ["string", "null"], {"type": "string"}, {"$ref": "#"}),
)


def json_schema_of(kind: pa.DataType) -> Any:  # noqa: ANN401
    """Return a JSON Schema whose values a type can hold."""
    if pa.types.is_struct(kind):
        return {
            "type": "object",
            "properties": {each.name: json_schema_of(each.type) for each in kind},
        }
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": json_schema_of(kind.item_type)}
    if pa.types.is_list(kind):
        return {"type": "array", "items": json_schema_of(kind.value_type)}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"type": "number"}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_timestamp(kind) and kind.tz:
        return {"type": "string", "format": "date-time"}
    return {"type": "string", **({"format": "date"} if pa.types.is_date(kind) else {})}


def json_round(seed: int, tally: Tally, *, harms_schemas: bool) -> None:
    chance = random.Random(seed)
    kind = random_type(chance, 0) if chance.random() < 0.1 else random_struct(chance)
    payloads = [
        (IDS[0], write_text(chance, random_value(chance, kind), kind).encode()) for _ in range(GOOD)
    ]
    values = some_values(payloads, HARMED, chance, "JSON")
    if not harms_schemas:
        text = ddl_of(kind)
        is_exact = text is not None and kind not in (pa.struct([]),)
        text = text if is_exact else json.dumps(json_schema_of(kind))
        assert text is not None
        column = column_of("JSON", [text], 0)
        judge_all(column, values, json_judge(text), json_rows, tally)
        return
    for _ in range(6):
        schema = json_schema_of(kind)
        text = json.dumps(changed_json(chance, schema, SCHEMA_WORDS))
        if chance.random() < 0.3:
            text = harmed_text(ddl_of(kind) or json.dumps(schema), chance)
        try:
            column = column_of("JSON", [text], 0)
        except InvalidSchemaError:
            tally.counts["schema refused"] += 1
            continue
        judge_all(column, values, json_judge(text), json_rows, tally)


ROUNDS = {"avro": avro_round, "protobuf": proto_round, "json": json_round}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of float32, which NumPy warns of
@pytest.mark.parametrize("harms_schemas", [False, True], ids=["values", "schemas"])
@pytest.mark.parametrize("kind", ROUNDS)
def test_what_is_harmed_is_an_error_or_what_others_read(
    kind: str, how_many: HowMany, *, harms_schemas: bool
) -> None:
    tally = Tally()
    for number in range(how_many(10, 100)):
        ROUNDS[kind](SEED * 1_000_000 + number, tally, harms_schemas=harms_schemas)
    assert tally.counts["right"] > tally.total // 20, tally
    assert tally.counts["error"] > tally.total // 20, tally
