"""Columns of JSON texts are what Python's ``json`` reads, and damage stays in its own text."""

from __future__ import annotations

import json
import random
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pylog.typed.decoder import Payloads
from pylog.typed.json_reader import read_json
from pylog.typed.json_types import JsonNode, as_text, node_of
from pylog.typed.json_values import JsonDecoder
from pylog.typed.kernel_runs import UnreadablePayloadError
from tests.support.json_texts import random_struct, random_type, random_value, write_text
from tests.support.payloads import payloads_of

SEED = 56_04


def decoded(kind: pa.DataType | pa.Field, *texts: str | bytes) -> list[Any]:
    """Return values; all texts are sound."""
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    result = JsonDecoder(kind).decode(payloads_of(raw))
    result.values.validate(full=True)
    assert result.failures == {}
    values: list[Any] = result.values.to_pylist()
    return values


def failure(kind: pa.DataType | pa.Field, text: str | bytes) -> str:
    """Return why a text cannot be read, between two that can."""
    raw = text.encode() if isinstance(text, str) else text
    result = JsonDecoder(kind).decode(payloads_of([b"null", raw, b"null"]))
    assert result.values.to_pylist() == [None] * 3
    assert list(result.failures) == [1]
    return result.failures[1]


def read_by_python(text: str, kind: pa.DataType) -> Any:  # noqa: ANN401
    """Return what Python's ``json`` makes of a text, shaped as Arrow shapes it."""
    return _shaped(json.loads(text, parse_float=Decimal), kind)


def _shaped(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {each.name: _shaped(value.get(each.name), each.type) for each in kind}
    if pa.types.is_map(kind):
        return [(name, _shaped(each, kind.item_type)) for name, each in value.items()]
    if pa.types.is_list(kind):
        return [_shaped(each, kind.value_type) for each in value]
    if pa.types.is_float32(kind):
        return float(np.float32(float(value)))
    return _shaped_leaf(value, kind)


def _shaped_leaf(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    return datetime.fromisoformat(value).date() if pa.types.is_date(kind) else value


@pytest.mark.parametrize("part", range(8))
def test_random_values_of_random_types_are_read_as_they_were(part: int) -> None:
    rnd = random.Random(SEED + part)
    for _ in range(50):
        kind = random_type(rnd, 0) if rnd.random() < 0.2 else random_struct(rnd)
        values = [random_value(rnd, kind) for _ in range(40)]
        texts = [write_text(rnd, value, kind) for value in values]
        behind = bytes(100) if rnd.random() < 0.5 else b""
        given = payloads_of([text.encode() for text in texts], between=b"7\0", behind=behind)
        result = JsonDecoder(kind).decode(given)
        result.values.validate(full=True)
        assert result.failures == {}
        assert result.values.type == kind
        # Arrow's own conversion of Python's values: it knows nanoseconds and zones.
        assert result.values.equals(pa.array(values, kind)), (kind, texts)
        # Python cuts what pandas would be needed for: nanoseconds.
        if "ns" not in str(kind):
            assert [read_by_python(text, kind) for text in texts] == values


@pytest.mark.parametrize("part", range(4))
def test_a_changed_text_is_an_error_or_what_the_reader_reads(part: int) -> None:
    rnd = random.Random(SEED + 100 + part)
    readable = 0
    for _ in range(60):
        kind = random_struct(rnd)
        node = node_of(pa.field("", kind))
        texts = []
        for _ in range(40):
            changed = bytearray(write_text(rnd, random_value(rnd, kind), kind).encode())
            for _ in range(rnd.randrange(1, 4)):
                _change(rnd, changed)
            texts.append(bytes(changed))
        result = JsonDecoder(kind).decode(payloads_of(texts, behind=b"7" * 100))
        result.values.validate(full=True)
        for place, text in enumerate(texts):
            value, reason = _read_alone(text, node)
            readable += reason is None
            assert result.failures.get(place) == reason
            assert result.values.slice(place, 1).equals(pa.array([value], kind))
    assert readable > 100


def _read_alone(text: bytes, node: JsonNode) -> tuple[Any, str | None]:
    try:
        return read_json(text, node), None
    except UnreadablePayloadError as error:
        return None, str(error)


def _change(rnd: random.Random, text: bytearray) -> None:
    place = rnd.randrange(len(text) + 1)
    kind = rnd.randrange(5)
    if kind == 0 or place == len(text):
        text.insert(place, rnd.choice(b'"\\{}[],:0123456789.eE+-ntu \x80\xc3'))
    elif kind == 1:
        text[place] = rnd.randrange(256)
    elif kind == 2:
        text[place] = rnd.choice(b'"\\{}[],:09.eE+-ntu ')
    elif kind == 3:
        del text[place]
    else:
        other = rnd.randrange(len(text))
        text[place:place] = text[min(place, other) : max(place, other)]


def test_the_reader_is_asked_for_what_is_rare_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_text(payload: bytes, _: object) -> None:
        raise UnreadablePayloadError(f"the reader got {payload!r}")

    monkeypatch.setattr("pylog.typed.json_values.read_json", no_text)
    kind = pa.struct(
        [
            ("id", pa.int64()),
            ("größe", pa.float64()),
            ("price", pa.decimal128(12, 2)),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("tags", pa.list_(pa.struct([("t", pa.string()), ("on", pa.bool_())]))),
            ("by", pa.map_(pa.string(), pa.list_(pa.int32()))),
            as_text("rest"),
        ]
    )
    plain = [
        '{"id":-9223372036854775807,"größe":0.30000000000000004,"price":12.5,"rest":[{}]}',
        '{ "at" : "2024-02-29T23:59:59.123456Z", "day" : "2024-02-29", "id" : 9223372036854775807}',
        '{"by":{"a\\n":[1,2],"b":[],"c":null},"unknown":{"x":["\\u00e4",1e5,true]},"id":0}',
        '{"tags":[{"t":"\\ud83d\\ude00 é","on":true},{},null,{"on":false,"t":"x"}],"größe":1E-5}',
        *("{}", "null"),
    ]
    result = JsonDecoder(kind).decode(payloads_of([text.encode() for text in plain]))
    assert result.failures == {}


def test_floats_are_the_nearest_ones() -> None:
    rnd = random.Random(SEED + 200)
    texts = [
        *(repr(rnd.uniform(-1, 1) * 10.0 ** rnd.randrange(-320, 305)) for _ in range(20_000)),
        *(f"{rnd.randrange(10**19)}e{rnd.randrange(-345, 310)}" for _ in range(20_000)),
        *(f"{rnd.randrange(2**52, 2**54)}.5" for _ in range(2_000)),
        *(f"{rnd.randrange(2**53, 2**56) * 2 + 1}e{rnd.randrange(-5, 25)}" for _ in range(2_000)),
        *("0.0", "-0.0", "0e999999", "1e-400", "2.2250738585072014e-308", "1.7976931348623157e308"),
        *("9007199254740993", "9007199254740993.0", "123456789012345678901234567890"),
    ]
    sound = [text for text in texts if abs(float(text)) != float("inf")]
    assert len(sound) > 40_000
    found = decoded(pa.list_(pa.float64()), *[f"[{text}]" for text in sound])
    assert (
        np.array([each[0] for each in found]).tobytes()
        == np.array([float(text) for text in sound]).tobytes()
    )


@pytest.mark.parametrize("text", ["1e309", "-1e400", "1e999999999999"])
def test_a_float_that_is_too_large_is_no_infinity(text: str) -> None:
    assert "not too large" in failure(pa.float64(), text)
    assert "not too large" in failure(pa.float32(), "1e39")


def test_infinities_and_no_numbers_are_strings_as_cat_prints_them() -> None:
    texts = ['"Infinity"', '"-Infinity"', '"NaN"']
    assert repr(decoded(pa.float64(), *texts)) == "[inf, -inf, nan]"
    assert "NaN" in failure(pa.float64(), "NaN")
    assert "Infinity" in failure(pa.struct([]), '{"a":Infinity}')


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (pa.int8(), -(2**7), 2**7 - 1),
        (pa.uint8(), 0, 2**8 - 1),
        (pa.int16(), -(2**15), 2**15 - 1),
        (pa.uint16(), 0, 2**16 - 1),
        (pa.int32(), -(2**31), 2**31 - 1),
        (pa.uint32(), 0, 2**32 - 1),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.uint64(), 0, 2**64 - 1),
    ],
)
def test_an_integer_out_of_range_is_an_error(kind: pa.DataType, least: int, most: int) -> None:
    assert decoded(kind, str(least), str(most), "0", "-0") == [least, most, 0, 0]
    assert str(kind) in failure(kind, str(least - 1))
    assert str(kind) in failure(kind, str(most + 1))
    assert str(kind) in failure(kind, "9" * 5000)


def test_a_whole_number_may_be_written_as_a_float() -> None:
    assert decoded(pa.int64(), "1.0", "1e3", "-12.50e1", "0.0") == [1, 1000, -125, 0]
    assert "an int64" in failure(pa.int64(), "1.5")
    assert "an int64" in failure(pa.int64(), "1e999999999999999999999")


def test_a_decimal_keeps_its_digits_or_is_an_error() -> None:
    kind = pa.decimal128(6, 2)
    assert decoded(kind, "1.5", '"1234.56"', "-0.01", "1e2", "9999.99") == [
        *map(Decimal, ("1.50", "1234.56", "-0.01", "100.00", "9999.99"))
    ]
    for text in ("1.005", "10000", "1e9999999999", '"x"'):
        assert "a decimal128(6, 2)" in failure(kind, text)
    assert decoded(pa.decimal128(38, 0), "9" * 38) == [Decimal("9" * 38)]


def test_times_need_the_zone_that_the_type_has() -> None:
    zoned, plain = pa.timestamp("ms", "UTC"), pa.timestamp("ms")
    (value,) = decoded(zoned, '"2024-02-29T23:59:59.120-01:30"')
    assert value.isoformat() == "2024-03-01T01:29:59.120000+00:00"
    assert decoded(plain, '"2024-02-29 10:00"') == [datetime(2024, 2, 29, 10)]  # noqa: DTZ001
    assert "with a zone" in failure(zoned, '"2024-02-29T10:00:00"')
    assert "without zone" in failure(plain, '"2024-02-29T10:00:00Z"')
    for text in ("2023-02-29T10:00:00", "2024-02-29T24:00:00", "2024-01-01T00:00:00.0001"):
        assert "timestamp[ms]" in failure(plain, f'"{text}"')
    assert "timestamp[ns]" in failure(pa.timestamp("ns"), '"1600-01-01T00:00:00"')
    assert "a date" in failure(pa.date32(), '"2023-02-29"')


def test_bytes_are_base64_and_times_of_day_are_text() -> None:
    assert decoded(pa.binary(), '"AAEC"', '""') == [b"\0\1\2", b""]
    assert "a binary" in failure(pa.binary(), '"?"')
    assert decoded(pa.binary(2), '"AAE="') == [b"\0\1"]
    assert "fixed_size_binary[2]" in failure(pa.binary(2), '"AAEC"')
    (time,) = decoded(pa.time64("us"), '"23:59:59.000001"')
    assert time.isoformat() == "23:59:59.000001"
    assert decoded(pa.struct([("n", pa.null())]), '{"n":null}', "{}") == [{"n": None}] * 2


def test_the_last_value_of_a_name_counts() -> None:
    kind = pa.struct([("a", pa.int64()), ("s", pa.struct([("x", pa.int64()), ("y", pa.int64())]))])
    kind = pa.struct([*kind, ("t", pa.string()), ("m", pa.map_(pa.string(), pa.int64()))])
    texts = [
        '{"a":1,"a":2,"t":"x","t":"yy"}',
        '{"s":{"x":1},"s":{"y":2}}',
        '{"a":1,"a":null,"s":{"x":1},"s":null,"t":"x","t":null}',
        '{"m":{"k":1,"l":2,"k":3},"m":{"k":4,"k":5}}',
        '{"\\u0061":7}',
    ]
    assert decoded(kind, *texts) == [read_by_python(text, kind) for text in texts]


def test_a_map_of_many_keys_is_read() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    text = json.dumps({f"key{number}": number for number in range(500)})
    assert decoded(kind, text) == [[(f"key{number}", number) for number in range(500)]]


def test_what_cannot_be_typed_is_kept_as_text() -> None:
    kind = pa.struct([as_text("any"), pa.field("n", pa.int64())])
    texts = ['{"any": {"a": [1, 2.50]} ,"n":1}', '{"any":"x\\u0000"}', '{"any":null}', "{}"]
    assert decoded(kind, *texts) == [
        {"any": '{"a": [1, 2.50]}', "n": 1},
        {"any": '"x\\u0000"', "n": None},
        *[{"any": None, "n": None}] * 2,
    ]
    assert decoded(as_text(""), "12.50", "[ ]") == ["12.50", "[ ]"]
    assert not JsonDecoder(kind).type.field("any").metadata


def test_a_required_field_that_is_missing_is_an_error() -> None:
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    kind = pa.struct([("s", pa.list_(inner))])
    assert decoded(kind, '{"s":[{"x":1}]}', "{}") == [{"s": [{"x": 1}]}, {"s": None}]
    assert failure(kind, '{"s":[{"x":1},{}]}') == "s[1]: the object has no 'x', which is required"
    assert "s[0].x: expected an int64, which may not be null" in failure(kind, '{"s":[{"x":null}]}')


def test_a_failure_names_the_path_and_the_byte() -> None:
    kind = pa.struct([("a", pa.list_(pa.struct([("b", pa.map_(pa.string(), pa.int32()))])))])
    message = failure(kind, '{"é":1,"a":[{},{"b":{"k":"x"}}]}')
    assert message == 'a[1].b.k: expected an int32, found "x"}}]} at byte 26'
    assert failure(kind, '{"a":[') == "a[0]: expected an object, found the end at byte 6"
    assert failure(kind, "{} x") == "expected nothing more, found x at byte 3"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "the end"),
        (b"\xff", "not UTF-8"),
        (b'"\xc3"', "not UTF-8"),
        (b'"\\ud800"', "half a surrogate pair"),
        (b'"\\ud800\\u0041"', "half a surrogate pair"),
        (b'"a\nb"', "a sound string"),
        (b'"a', "a sound string"),
        (b'"\\x"', "a sound string"),
        (b"'a'", "a string"),
        (b"1", "a string"),
    ],
)
def test_a_string_that_is_not_sound_is_an_error(text: bytes, expected: str) -> None:
    assert expected in failure(pa.string(), text)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert decoded(pa.int64(), b"\xef\xbb\xbf12") == [12]


def test_depth_is_limited() -> None:
    kind = pa.struct([("a", pa.int64())])
    for text in ("[" * 100_000, '{"b":' * 100_000):
        assert "too deep" in failure(kind, f'{{"b":{text}')
    many = "[" * 400 + "]" * 400
    assert decoded(kind, f'{{"b":{many},"a":1}}') == [{"a": 1}]


def test_many_elements_take_as_much_room_as_they_need() -> None:
    kind = pa.list_(pa.list_(pa.int64()))
    texts = ["[]"] * 100 + [json.dumps([[1] * 1000] * 50)] + ["[[]]"] * 100
    assert decoded(kind, *texts) == [json.loads(text) for text in texts]


def test_no_payloads_are_no_values() -> None:
    result = JsonDecoder(pa.int64()).decode(payloads_of([]))
    assert result.values.equals(pa.array([], pa.int64()))


def test_payloads_outside_their_bytes_are_refused() -> None:
    data = np.zeros(10, dtype=np.uint8)
    places = np.array([11], dtype=np.int64), np.array([10], dtype=np.int64)
    with pytest.raises(ValueError, match="expected a place within"):
        JsonDecoder(pa.int64()).decode(Payloads(data, *places))
