"""What every encoder has in common: a value goes in, its payload comes out."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Protocol


def _integer(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)


JSON_VALUES = json.JSONDecoder(parse_float=Decimal, parse_int=_integer)
"""Reads JSON with all digits of its numbers, and the sign of zero."""


class UnencodableError(Exception):
    """A value does not follow the schema; ``path`` leads to it."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        path = self.path.removeprefix(".")
        return f"{path}: {self.reason}" if path else self.reason

    def within(self, step: str) -> UnencodableError:
        """Return the error as that of what holds the value."""
        return UnencodableError(self.reason, step + self.path)


class ValueEncoder(Protocol):
    """Encodes values by one schema.

    Attributes
    ----------
    indexes
        What is behind the schema's id: which message of the schema it is, of Protobuf.
    """

    indexes: bytes

    def encode(self, value: object) -> bytes:
        """Return the payload of a value; `UnencodableError` if it does not follow the schema."""
