from __future__ import annotations

import pyarrow as pa
import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_reader import AvroReader
from pylog.typed.known_schemas import KnownSchema
from pylog.typed.wire_formats import Framing
from tests.unit.typed.decoded import payloads


def test_values_are_read_as_the_reader_has_them_whoever_wrote_them() -> None:
    reader = AvroReader(KnownSchema(2, "AVRO", '"long"'))
    assert reader.type == pa.int64()
    decoder = reader.decoder(KnownSchema(1, "AVRO", '"int"'), Framing.CONFLUENT)
    assert decoder.decode(payloads([b"\x02"])).values.to_pylist() == [1]


def test_bare_bytes_are_the_payload_as_confluent_writes_them() -> None:
    schema = KnownSchema(1, "AVRO", '"bytes"')
    reader = AvroReader(schema)
    # Written by AvroSerializer of confluent-kafka 2.16.1: 0000000003726177.
    confluent = reader.decoder(schema, Framing.CONFLUENT).decode(payloads([b"raw"]))
    assert confluent.values.to_pylist() == [b"raw"]
    other = reader.decoder(schema, Framing.APICURIO).decode(payloads([b"\x06raw"]))
    assert other.values.to_pylist() == [b"raw"]


def test_references_are_used_and_errors_name_the_schema() -> None:
    size = ("Size", '{"type":"enum","name":"Size","symbols":["S","L"]}')
    text = '{"type":"array","items":"Size"}'
    schema = KnownSchema(3, "AVRO", text, (size,))
    decoder = AvroReader(schema).decoder(schema, Framing.NONE)
    assert decoder.decode(payloads([b"\x02\x02\0"])).values.to_pylist() == [["L"]]
    with pytest.raises(InvalidSchemaError, match="schema 4: type Size is not declared"):
        AvroReader(KnownSchema(4, "AVRO", text))
