from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest

from pylog.typed.encoder import UnencodableError, ValueEncoder
from pylog.typed.known_schemas import KnownSchema
from pylog.typed.schema_formats import reader_of

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}


def encoder(schema: dict[str, Any] = SCHEMA) -> ValueEncoder:
    return reader_of(KnownSchema(3, "JSON", json.dumps(schema))).encoder(is_json=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"id": 2**40, "price": Decimal("1.10")}, '{"id":1099511627776,"price":1.10}'),
        ({"price": math.nan, "tags": ["é"]}, '{"price":"NaN","tags":["é"]}'),
        (
            {"at": dt.datetime(2026, 11, 30, 9, tzinfo=dt.UTC)},
            '{"at":"2026-11-30T09:00:00+00:00"}',
        ),
        ({"other": b"\0", "more": uuid.UUID(int=1)}, None),
    ],
)
def test_values_are_compact_json(value: object, expected: str | None) -> None:
    text = encoder().encode(value).decode()

    assert expected is None or text == expected
    assert json.loads(text).keys() == value.keys()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": "x"}, "id: "),
        ({"tags": ["a", 5]}, r"tags\[1\]: "),
        ({"id": object()}, "id: JSON has no object"),
        ({"tags": ["\ud800"]}, "half of a surrogate pair"),
    ],
)
def test_what_the_schema_does_not_take_is_an_error(value: object, reason: str) -> None:
    with pytest.raises(UnencodableError, match=reason):
        encoder().encode(value)
