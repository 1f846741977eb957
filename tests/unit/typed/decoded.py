"""What tests of decoders share: payloads of a list of bytes, and values as they are compared."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.typed.avro_decoder import AvroDecoder
from pylog.typed.avro_schema import parse_schema
from pylog.typed.decoder import Payloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.typed.decoder import Decoded


def payloads(values: Sequence[bytes]) -> Payloads:
    """Return payloads that lie one after the other."""
    data = np.frombuffer(b"".join(values), dtype=np.uint8)
    bounds = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return Payloads(data, bounds[:-1].copy(), bounds[1:].copy())


def decoded(writer: str, values: Sequence[bytes], reader: str | None = None) -> Decoded:
    """Decode values of a schema; what comes of them is valid by Arrow's own check."""
    decoder = AvroDecoder(parse_schema(writer), parse_schema(reader or writer))
    result = decoder.decode(payloads(values))
    result.values.validate(full=True)
    assert len(result.values) == len(values)
    assert result.values.type == decoder.type
    return result


def plain_values(column: pa.Array) -> list[Any]:
    """Return values as Python has them: unions by their value, maps as dictionaries."""
    return [_plain(each, column.type) for each in column.to_pylist()]


def _plain(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - any value
    if value is None:
        return None
    if pa.types.is_struct(kind):
        members = [(each, value[each.name]) for each in kind]
        if members and members[0][0].metadata:
            present = [_plain(each, field.type) for field, each in members if each is not None]
            return present[0] if present else None
        return {field.name: _plain(each, field.type) for field, each in members}
    if pa.types.is_map(kind):
        return {name: _plain(each, kind.item_type) for name, each in value}
    if pa.types.is_list(kind):
        return [_plain(each, kind.value_type) for each in value]
    return value


def tagged(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return a value as JSON can keep it: what JSON has no type for is an object."""
    if isinstance(value, dict):
        return {"record": {name: tagged(each) for name, each in value.items()}}
    if isinstance(value, list):
        return [tagged(each) for each in value]
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, dt.datetime):
        in_utc = value.astimezone(dt.UTC) if value.tzinfo else value
        return {"datetime": in_utc.isoformat()}
    if isinstance(value, (dt.date, dt.time)):
        return {type(value).__name__: value.isoformat()}
    return str(value) if isinstance(value, uuid.UUID) else value
