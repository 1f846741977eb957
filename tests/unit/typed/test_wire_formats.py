from __future__ import annotations

import uuid
import zlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.typed.known_schemas import KnownSchema, KnownSchemas
from pylog.typed.wire_formats import FramedColumn, Framing, framed_values, whole_values

if TYPE_CHECKING:
    from collections.abc import Sequence

# Written by AvroSerializer of confluent-kafka 2.16.1, of {"id": 1}: with a prefix, and with
# header_schema_id_serializer, whose header follows.
PREFIXED = bytes.fromhex("000000000102")
BY_HEADER = bytes.fromhex("02")
VALUE_HEADER = bytes.fromhex("01dac6989db9864ae6b89ddfea3edc9d86")
GUID = "dac6989d-b986-4ae6-b89d-dfea3edc9d86"

ONE = KnownSchema(1, "AVRO", "one")
TWO = KnownSchema(2, "AVRO", "two")
THREE = KnownSchema(3, "PROTOBUF", "three")
KNOWN = KnownSchemas(
    by_id={1: ONE, 2: TWO, 3: THREE},
    by_uuid={GUID: ONE, str(uuid.UUID(int=5)): TWO, str(uuid.UUID(int=6)): THREE},
)


def framed(
    values: list[bytes | None],
    headers: Sequence[Sequence[tuple[str, bytes | None]] | None] | None = None,
    field: str = "value",
) -> FramedColumn:
    entries = None
    if headers is not None:
        rows = [
            each if each is None else [{"key": name, "value": value} for name, value in each]
            for each in headers
        ]
        other = [{"key": f"__{field}_schema_id", "value": VALUE_HEADER}]
        entries = pa.array([other, *rows, other], HEADERS_TYPE).slice(1, len(rows))
    # As a part of a column, whose first row and last one are others.
    column = pa.array([b"before", *values, b"after"], pa.binary()).slice(1, len(values))
    return framed_values(column, entries, field, KNOWN)


def payloads(column: FramedColumn) -> dict[int, tuple[KnownSchema, Framing, bytes]]:
    return {
        row: (group.schema, group.framing, column.data[start:end].tobytes())
        for group in column.groups
        for row, start, end in zip(
            group.rows.tolist(), group.starts.tolist(), group.ends.tolist(), strict=True
        )
    }


def test_the_prefix_of_confluent() -> None:
    column = framed([PREFIXED, None, b"\0\0\0\0\x02", b"\x01" + VALUE_HEADER[1:] + b"xy"])
    assert payloads(column) == {
        0: (ONE, Framing.CONFLUENT, b"\x02"),
        2: (TWO, Framing.CONFLUENT, b""),
        3: (ONE, Framing.CONFLUENT, b"xy"),
    }
    assert not column.failures


def test_headers_come_before_prefixes_and_the_last_one_counts() -> None:
    name = "__value_schema_id"
    column = framed(
        [BY_HEADER, PREFIXED, BY_HEADER, PREFIXED, BY_HEADER],
        [
            [(name, VALUE_HEADER)],
            [("other", b""), (name, b"\0\0\0\0\x01"), (name, b"\0\0\0\0\x02")],
            [("__key_schema_id", VALUE_HEADER)],
            None,
            [(name, b"\x01" + bytes(16))],
        ],
    )
    assert payloads(column) == {
        0: (ONE, Framing.CONFLUENT, b"\x02"),
        1: (TWO, Framing.CONFLUENT, PREFIXED),
        3: (ONE, Framing.CONFLUENT, b"\x02"),
    }
    assert column.failures == {
        2: "it starts with 02, which is no schema id, and no header has one",
        4: f"no schema has the id 01{'00' * 16} of header {name}",
    }


def test_message_indexes_are_in_the_header_behind_the_id() -> None:
    name = "__value_schema_id"
    guid = b"\x01" + uuid.UUID(int=6).bytes
    column = framed(
        [b"xy", b"z", b"", BY_HEADER, b"\0xy"],
        [
            [(name, guid + b"\0")],
            [(name, b"\0\0\0\0\x03\x02\x04")],
            [(name, guid + b"\x02\x02")],
            [(name, VALUE_HEADER + b"\0")],
            [(name, guid)],
        ],
    )
    assert payloads(column) == {
        0: (THREE, Framing.CONFLUENT, b"\0xy"),
        1: (THREE, Framing.CONFLUENT, b"\x02\x04z"),
        2: (THREE, Framing.CONFLUENT, b"\x02\x02"),
        4: (THREE, Framing.CONFLUENT, b"\0xy"),
    }
    assert list(column.failures) == [3]


def test_keys_have_headers_of_their_own() -> None:
    headers = [[("__key_schema_id", VALUE_HEADER)], [("__value_schema_id", VALUE_HEADER)]]
    column = framed([b"\x02", b"\x02"], headers, "key")
    assert list(payloads(column)) == [0]


def test_ids_of_apicurio() -> None:
    column = framed(
        [b"\0" + (2).to_bytes(8) + b"y", b"z"],
        [None, [("apicurio.value.globalId", (2).to_bytes(8))]],
    )
    assert payloads(column) == {
        0: (TWO, Framing.APICURIO, b"y"),
        1: (TWO, Framing.APICURIO, b"z"),
    }
    by_content = framed([b"z"], [[("apicurio.value.contentId", (1).to_bytes(8))]])
    assert payloads(by_content) == {0: (ONE, Framing.APICURIO, b"z")}


def test_apicurio_names_the_message_in_a_header() -> None:
    of_three = ("apicurio.value.contentId", (3).to_bytes(8))
    named = ("apicurio.protobuf.type", b"Order")
    reference = b"\x07\x0a\x05Order"
    column = framed(
        [b"", b"ab", reference + b"ab", b"c", b"d"],
        [
            [of_three, named],
            [of_three, ("apicurio.protobuf.type", b"Old"), named],
            [of_three, named],
            [of_three, ("apicurio.protobuf.type.key", b"Order")],
            [("apicurio.value.contentId", (2).to_bytes(8)), named],
        ],
    )
    assert payloads(column) == {
        0: (THREE, Framing.APICURIO, reference),
        1: (THREE, Framing.APICURIO, reference + b"ab"),
        2: (THREE, Framing.APICURIO, reference + b"ab"),
        3: (THREE, Framing.APICURIO, b"c"),
        4: (TWO, Framing.APICURIO, b"d"),
    }


def test_avro_as_json_text_is_refused() -> None:
    of_two = ("apicurio.value.globalId", (2).to_bytes(8))
    headers = [
        [of_two, ("apicurio.value.encoding", b"JSON")],
        [of_two, ("apicurio.value.encoding", b"BINARY")],
    ]
    column = framed([b'{"id":1}', b"x"], headers)
    assert payloads(column) == {1: (TWO, Framing.APICURIO, b"x")}
    assert column.failures == {0: "it is Avro as JSON text, which is not read"}


def test_uuids_of_glue() -> None:
    prefix = uuid.UUID(int=5).bytes
    packed = zlib.compress(b"payload")
    column = framed(
        [
            b"\x03\x00" + prefix + b"plain",
            b"\x03\x05" + prefix + packed,
            b"\x03\x05" + prefix + packed[:-1],
            b"\x03\x07" + prefix,
            b"\x03\x00" + bytes(16),
            b"\x03\x05" + prefix + packed + b"more",
        ]
    )
    assert payloads(column) == {
        0: (TWO, Framing.GLUE, b"plain"),
        1: (TWO, Framing.GLUE, b"payload"),
    }
    assert column.failures == {
        2: "the payload is not one zlib stream of up to 64 MiB",
        3: "compression is 7, expected 0 or 5",
        4: "no schema has the UUID 00000000-0000-0000-0000-000000000000",
        5: "the payload is not one zlib stream of up to 64 MiB",
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "it is empty: no schema id, and no header with one"),
        (b"{}", "it starts with 7b 7d, which is no schema id, and no header has one"),
        (b"\0\0\0\0", "it starts with 00 00 00 00, which is no schema id"),
        (b"\0\0\0\0\x63rest", "no schema has the id 99"),
        (b"\0\0\0\0\0rest", "it starts with 00 00 00 00 00, which is no schema id"),
        (b"\x01" + b"x" * 16, "no schema has the UUID 78787878-7878-7878-7878-787878787878"),
        (b"\x04\0\0\0\x01", "it starts with 04 00 00 00 01, which is no schema id"),
    ],
)
def test_what_refers_to_no_schema_is_a_failure(value: bytes, reason: str) -> None:
    column = framed([PREFIXED, value])
    assert list(payloads(column)) == [0]
    assert column.failures[1].startswith(reason)


def test_values_without_a_prefix_are_whole() -> None:
    column = whole_values(pa.array([b"a", None, b""], pa.binary()), ONE)
    assert payloads(column) == {0: (ONE, Framing.NONE, b"a"), 2: (ONE, Framing.NONE, b"")}


def test_an_empty_column() -> None:
    assert framed([]).groups == []
    assert whole_values(pa.array([], pa.binary()), ONE).groups == []
