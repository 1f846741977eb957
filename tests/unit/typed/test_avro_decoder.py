from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pylog.kernels.decode_avro import EMPTY_ITEMS
from pylog.typed import avro_decoder
from pylog.typed.avro_decoder import AvroDecoder
from pylog.typed.avro_schema import parse_schema
from pylog.typed.decoder import DecodedTooLargeError, Payloads
from tests.support.avro_schemas import zigzag
from tests.unit.typed.decoded import decoded, payloads, plain_values, tagged

# Schemas, values in binary, and what fastavro 1.13.1 reads them as.
CHAINS = json.loads((Path(__file__).parent / "avro_chains.json").read_text())

TOO_LONG = "the length is 1, which is negative or more than the payload has left"
LONGS = '{"type":"array","items":"long"}'
NESTED = """{"type": "record", "name": "R", "fields": [
    {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
        {"name": "names", "type": {"type": "map", "values": "string"}}]}}}]}"""


def is_equal(left: Any, right: Any) -> bool:  # noqa: ANN401 - of JSON
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_equal(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_equal, left, right))
    if isinstance(left, float) and isinstance(right, (int, float)):
        return left == right or bool(np.float32(left) == np.float32(right))
    return type(left) is type(right) and bool(left == right)


@pytest.mark.parametrize("chain", CHAINS, ids=range(len(CHAINS)))
def test_values_are_those_that_fastavro_reads(chain: dict[str, Any]) -> None:
    reader = chain["reader"]
    result = decoded(
        json.dumps(chain["writer"]),
        [bytes.fromhex(each) for each in chain["values"]],
        None if reader is None else json.dumps(reader),
    )
    assert not result.failures
    found = [tagged(each) for each in plain_values(result.values)]
    assert is_equal(found, chain["expected"]), (found, chain["expected"])


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ('"long"', b"", "the payload ends within the value"),
        ('"long"', b"\xff" * 9 + b"\x02", "a number has more than 64 bits"),
        ('"int"', zigzag(1 << 31), "the number 2147483648 is out of range"),
        ('"boolean"', b"\x02", "a boolean is the byte 2, expected 0 or 1"),
        ('"string"', b"\x02\xff", "the text is not UTF-8"),
        (
            '"bytes"',
            b"\x03",
            "the length is -2, which is negative or more than the payload has left",
        ),
        (
            '"bytes"',
            zigzag(1 << 62),
            f"the length is {1 << 62}, which is negative or more than the",
        ),
        ('["null","long"]', b"\x04", "the union has no type 2"),
        ('["null","long","string"]', b"\x05", "the union has no type -3"),
        ('{"type":"enum","name":"E","symbols":["A"]}', b"\x02", "the enum has no symbol 1, or"),
        (LONGS, b"\x04\x02", "a block has 2 items, more than the payload has bytes left"),
        (LONGS, b"\x03\x09\x02\x02\0", "the size of a block is -5"),
        (LONGS, b"\xff" * 9 + b"\x01\x02\0", f"a block has {-(1 << 63)} items"),
        ('"long"', b"\x02\0", "1 bytes follow the value"),
        ('"double"', b"\0" * 7, "the payload ends within the value"),
        ('{"type":"fixed","name":"F","size":3}', b"\0\0", "the payload ends within the value"),
        (
            '{"type":"int","logicalType":"time-millis"}',
            zigzag(86_400_000),
            "the number 86400000 is out of range",
        ),
        (
            '{"type":"bytes","logicalType":"decimal","precision":2,"scale":1}',
            b"\x02\x64",
            "the decimal has more digits than its precision",
        ),
    ],
)
def test_what_is_wrong_with_a_payload_is_said(schema: str, value: bytes, reason: str) -> None:
    result = decoded(schema, [value])
    assert result.values.to_pylist() == [None]
    assert result.failures[0].startswith(reason)


def test_damage_in_one_payload_does_not_touch_the_others() -> None:
    item = b"\x02\x02k\x02v\0"  # {"names": {"k": "v"}}
    good = b"\x04" + item + item + b"\0"
    bad = b"\x04" + item + b"\x02\x02k\x02\xff\0\0"
    result = decoded(NESTED, [good, bad, good, bad[:-3], b"\0"])
    assert result.failures == {
        1: "items[1].names[0]: the text is not UTF-8",
        3: f"items[1].names[0]: {TOO_LONG}",
    }
    whole = {"items": [{"names": {"k": "v"}}] * 2}
    assert plain_values(result.values) == [whole, None, whole, None, {"items": []}]


def test_more_failures_than_a_call_notes_are_all_told() -> None:
    values = [b"\x02" if each % 2 else b"" for each in range(2001)]
    result = decoded('"long"', values)
    assert sorted(result.failures) == list(range(0, 2001, 2))
    assert result.values.null_count == 1001


def test_items_that_take_no_bytes_are_bounded() -> None:
    schema = '{"type":"array","items":"null"}'
    allowed = zigzag(EMPTY_ITEMS) + b"\0"
    result = decoded(schema, [allowed, zigzag(1 << 40) + b"\0", zigzag(EMPTY_ITEMS) * 9 + b"\0"])
    assert len(result.values[0].as_py()) == EMPTY_ITEMS
    assert [each.split(" ", 3)[3] for each in result.failures.values()] == [
        f"{1 << 40} items that take no bytes",
        f"{EMPTY_ITEMS} items that take no bytes",
    ]


def test_decoding_in_parts_of_any_size_gives_the_same() -> None:
    schema = parse_schema(NESTED)
    item = b"\x02\x02k\x02v\0"
    values = [zigzag(count) + item * count + b"\0" for count in (1, 300, 2, 5000, 3)]
    decoder = AvroDecoder(schema, schema)
    whole = decoder.decode(payloads(values)).values
    one_by_one = [AvroDecoder(schema, schema).decode(payloads([each])).values for each in values]
    assert pa.concat_arrays(one_by_one).equals(whole)
    assert [len(each["items"]) for each in whole.to_pylist()] == [1, 300, 2, 5000, 3]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_decoder, "MOST_BYTES", 1 << 16)
    schema = parse_schema(LONGS)
    many = zigzag(20_000) + b"\0" * 20_001
    with pytest.raises(DecodedTooLargeError):
        AvroDecoder(schema, schema).decode(payloads([many]))


def test_special_numbers() -> None:
    nan, inf = bytes.fromhex("000000000000f87f"), bytes.fromhex("000000000000f0ff")
    found = decoded('"double"', [nan, inf]).values.to_pylist()
    assert math.isnan(found[0])
    assert found[1] == -math.inf
    floats = decoded('"float"', [bytes.fromhex("0000c07f"), bytes.fromhex("cdcccc3d")])
    assert floats.values.to_pylist()[1] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "0.00"),
        ("7f", "1.27"),
        ("80", "-1.28"),
        ("ffffff80", "-1.28"),
        ("00" * 20 + "80", "1.28"),
        ("ff" * 20 + "00", "-2.56"),
        (f"{10**38 - 1:x}", "9" * 36 + ".99"),
        ("00" + f"{10**38:x}", None),
        (f"{2**128 - 10**38 + 1:x}", "-" + "9" * 36 + ".99"),
        (f"{2**128 - 10**38:x}", None),
        ("80" + "00" * 16, None),
    ],
)
def test_decimals_of_any_length(content: str, expected: str | None) -> None:
    value = bytes.fromhex(content.zfill(len(content) + len(content) % 2))
    schema = '{"type":"bytes","logicalType":"decimal","precision":38,"scale":2}'
    found = decoded(schema, [zigzag(len(value)) + value]).values.to_pylist()
    assert found == [None if expected is None else Decimal(expected)]


def test_bare_bytes_of_confluent_have_no_length() -> None:
    bytes_type = parse_schema('"bytes"')
    decoder = AvroDecoder(bytes_type, bytes_type, is_raw_bytes=True)
    result = decoder.decode(payloads([b"", b"\xff\xff", b"abc"]))
    assert result.values.to_pylist() == [b"", b"\xff\xff", b"abc"]


def test_bare_decimals_of_confluent_have_no_length() -> None:
    # Its serializers and deserializers look at the type alone, not at what it stands for.
    decimal = parse_schema('{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}')
    decoder = AvroDecoder(decimal, decimal, is_raw_bytes=True)
    result = decoder.decode(payloads([b"\x02\x64", b"\xff", b"\x7f" * 5]))
    assert result.values.to_pylist() == [Decimal("6.12"), Decimal("-0.01"), None]
    assert list(result.failures) == [2]
    either = parse_schema(
        '["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}]'
    )
    found = AvroDecoder(either, either, is_raw_bytes=True).decode(payloads([b"\x02\x02\x64"]))
    assert found.values.to_pylist() == [Decimal("1.00")]


def test_payloads_may_lie_anywhere_in_the_data() -> None:
    text = parse_schema('"string"')
    data = np.frombuffer(b"xx\x06abcyy\x02dz", dtype=np.uint8)
    starts, ends = np.array([8, 2]), np.array([10, 6])
    found = AvroDecoder(text, text).decode(Payloads(data, starts, ends))
    assert found.values.to_pylist() == ["d", "abc"]


def test_no_payloads_are_an_empty_column() -> None:
    assert len(decoded(NESTED, []).values) == 0
