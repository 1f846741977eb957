"""Values to JSON text, held against the type that a schema says by reading them again."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pylog.text.jackson import jackson_text
from pylog.typed.encoder import UnencodableError
from pylog.typed.json_reader import read_json
from pylog.typed.json_types import node_of
from pylog.typed.kernel_runs import UnreadablePayloadError

if TYPE_CHECKING:
    import pyarrow as pa

_NO_NUMBERS = {math.inf: "Infinity", -math.inf: "-Infinity"}


class JsonEncoder:
    """Encodes values as JSON; names that the schema does not have are written, as it allows."""

    indexes = b""

    def __init__(self, field: pa.Field) -> None:
        self._node = node_of(field)

    def encode(self, value: object) -> bytes:
        """Return a value as text; `UnencodableError` if it does not follow the schema."""
        try:
            payload = jackson_text(_plain(value, "")).encode()
            read_json(payload, self._node)
        except UnreadablePayloadError as error:
            raise UnencodableError(str(error)) from None
        except UnicodeEncodeError:
            raise UnencodableError("half of a surrogate pair is no character") from None
        return payload


def _plain(value: Any, path: str) -> Any:  # noqa: ANN401 - any value
    """Return a value as JSON has it."""
    if value is None or isinstance(value, (str, int, Decimal)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _NO_NUMBERS.get(value, "NaN")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each, f"{path}.{name}") for name, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(each, f"{path}[{place}]") for place, each in enumerate(value)]
    raise UnencodableError(f"JSON has no {type(value).__name__}", path)
