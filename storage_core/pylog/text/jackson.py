"""JSON as Jackson writes it, the library of Kafka, Avro and Confluent's registry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|.)")
_LEAST_PLAIN, _LEAST_SCIENTIFIC = 1e-3, 1e7


def jackson_text(value: object) -> str:
    """Return a value as compact JSON: members in their order, text beyond ASCII as it is."""
    if isinstance(value, str):
        plain = json.dumps(value, ensure_ascii=False)
        # Hexadecimal digits are the one difference: Jackson has them in upper case.
        return _ESCAPE.sub(lambda each: f"\\u{each[1].upper()}" if each[1] else each[0], plain)
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        members = (f"{jackson_text(str(k))}:{jackson_text(each)}" for k, each in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, Sequence):
        return f"[{','.join(map(jackson_text, value))}]"
    return json.dumps(value)


def _double(value: float) -> str:
    """Return a number as ``Double.toString`` of Java does."""
    if value == 0 or _LEAST_PLAIN <= abs(value) < _LEAST_SCIENTIFIC:
        return format(value, "f") if "e" in repr(value) else repr(value)
    sign, digits, exponent = _parts(value)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent + len(digits) - 1}"


def _parts(value: float) -> tuple[str, str, int]:
    """Return the sign, the digits and the power of ten of the shortest text of a number."""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) - len(fraction)
    stripped = digits.rstrip("0")
    return "-" if value < 0 else "", stripped, exponent + len(digits) - len(stripped)
