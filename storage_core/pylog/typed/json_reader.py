"""One JSON text to one value, in plain Python: what the kernel's result has to equal.

It reads what the kernel leaves, and says what is wrong and where. JSON is that of RFC 8259, in
UTF-8; a byte order mark before it is passed over. Of a name that comes twice in an object the last
value counts, as it does for Python's ``json``.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from decimal import Decimal
from json.decoder import scanstring  # type: ignore[attr-defined]  # public, and untyped
from typing import TYPE_CHECKING, Any, Never

import numpy as np
import pyarrow as pa

from pylog.kernels import json_values as kernel
from pylog.typed.exact_texts import days_of, instant_of, time_of_day, unscaled
from pylog.typed.kernel_runs import UnreadablePayloadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.typed.json_types import JsonNode

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"null": None, "true": True, "false": False}
_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Floats that are no numbers in JSON, as strings: so `pylog cat` prints them, and Protobuf does."""
_PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_EXCERPT = 40


def _refuse(word: str) -> Never:
    raise json.JSONDecodeError(f"{word} is no number in JSON", word, 0)


_ANYTHING = json.JSONDecoder(
    parse_int=lambda _: 0, parse_float=lambda _: 0.0, parse_constant=_refuse
)


def read_json(payload: bytes, node: JsonNode) -> Any:  # noqa: ANN401 - as the type says
    """Return a value that Arrow takes for the node's type.

    Raises
    ------
    UnreadablePayloadError
        Says what is wrong, and where in the value.
    """
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        raise UnreadablePayloadError(
            f"it is not UTF-8: byte {payload[error.start]:#04x} at byte {error.start}"
        ) from None
    reader = _Reader(text, 1 if text.startswith("\ufeff") else 0)
    try:
        value = reader.value(node)
        reader.skip_space()
        if reader.at < len(text):
            raise reader.error("nothing more")
    except RecursionError:
        raise UnreadablePayloadError(f"{reader.place()}it is nested too deep") from None
    return value


class _Reader:
    """A place in a text, and the path to it."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.path: list[str | int] = []
        self._methods: dict[int, Callable[[JsonNode], Any]] = {
            kernel.STRUCT: self._struct,
            kernel.LIST: self._list,
            kernel.MAP: self._map,
            kernel.STRING: lambda _: self._string(),
            kernel.TEXT: lambda _: self._any(),
            kernel.INTEGER: self._integer,
            kernel.FLOAT: self._float,
            kernel.DECIMAL: self._decimal,
            kernel.BOOLEAN: lambda _: self._boolean(),
            kernel.TIMESTAMP: self._timestamp,
            kernel.DATE: lambda _: self._date(),
            kernel.OTHER: self._other,
        }

    def value(self, node: JsonNode) -> Any:  # noqa: ANN401 - as the type says
        self.skip_space()
        if self.text.startswith("null", self.at):
            if not node.is_nullable:
                raise self.error(f"{_article(node)}, which may not be null")
            self.at += 4
            return None
        return self._methods[node.kind](node)

    def skip_space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def place(self) -> str:
        """Return the path as the beginning of a message."""
        steps = [f"[{each}]" if isinstance(each, int) else f".{each}" for each in self.path]
        return f"{''.join(steps).removeprefix('.')}: " if steps else ""

    def error(self, expected: str) -> UnreadablePayloadError:
        found = self.text[self.at : self.at + _EXCERPT]
        position = len(self.text[: self.at].encode())
        what = _printable(found) if found else "the end"
        more = " …" if len(self.text) > self.at + _EXCERPT else ""
        return UnreadablePayloadError(
            f"{self.place()}expected {expected}, found {what}{more} at byte {position}"
        )

    def _is_next(self, sign: str) -> bool:
        self.skip_space()
        if not self.text.startswith(sign, self.at):
            return False
        self.at += 1
        return True

    def _name(self) -> str:
        self.skip_space()
        name = self._string()
        if not self._is_next(":"):
            raise self.error("a colon")
        return name

    def _struct(self, node: JsonNode) -> dict[str, Any]:
        if not self._is_next("{"):
            raise self.error("an object")
        fields = {each.name: each for each in node.children}
        found: dict[str, Any] = {}
        is_first = True
        while not self._is_next("}"):
            if not is_first and not self._is_next(","):
                raise self.error("a comma or the end of the object")
            is_first = False
            name = self._name()
            self.path.append(name)
            if name in fields:
                found[name] = self.value(fields[name])
            else:
                self.skip_space()
                self._any()
            self.path.pop()
        for each in node.children:
            if not each.is_nullable and each.name not in found:
                raise UnreadablePayloadError(
                    f"{self.place()}the object has no {each.name!r}, which is required"
                )
        return found

    def _list(self, node: JsonNode) -> list[Any]:
        if not self._is_next("["):
            raise self.error("an array")
        values: list[Any] = []
        while not self._is_next("]"):
            if values and not self._is_next(","):
                raise self.error("a comma or the end of the array")
            self.path.append(len(values))
            values.append(self.value(node.children[0]))
            self.path.pop()
        return values

    def _map(self, node: JsonNode) -> list[tuple[str, Any]]:
        if not self._is_next("{"):
            raise self.error("an object")
        values: dict[str, Any] = {}
        while not self._is_next("}"):
            if values and not self._is_next(","):
                raise self.error("a comma or the end of the object")
            name = self._name()
            self.path.append(name)
            values[name] = self.value(node.children[1])
            self.path.pop()
        return list(values.items())

    def _string(self) -> str:
        if not self.text.startswith('"', self.at):
            raise self.error("a string")
        try:
            value: str
            value, end = scanstring(self.text, self.at + 1, True)  # noqa: FBT003 - strict
        except json.JSONDecodeError as error:
            self.at = min(error.pos, len(self.text))
            raise self.error("a sound string") from None
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.error("a string without half a surrogate pair") from None
        self.at = end
        return value

    def _any(self) -> str:
        start = self.at
        try:
            _, self.at = _ANYTHING.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            if error.doc is self.text:
                self.at = min(error.pos, len(self.text))
            raise self.error("JSON") from None
        return self.text[start : self.at]

    def _number(self, node: JsonNode) -> str:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.error(_article(node))
        return match[0]

    def _integer(self, node: JsonNode) -> int:
        text = self._number(node)
        value = None
        if text.lstrip("-").isdigit():
            value = int(text) if len(text) <= 20 else None
        else:
            value = unscaled(text, 0, 20)
        if value is None or not node.least <= value <= node.most:
            raise self.error(_article(node))
        self.at += len(text)
        return value

    def _float(self, node: JsonNode) -> float:
        if self.text.startswith('"', self.at):
            start = self.at
            name = self._string()
            if name not in _NAMES:
                self.at = start
                raise self.error("a number")
            return _NAMES[name]
        text = self._number(node)
        with np.errstate(over="ignore"):
            value = float(node.type.to_pandas_dtype()(float(text)))
        if math.isinf(value):
            raise self.error(f"{_article(node)} that is not too large")
        self.at += len(text)
        return value

    def _decimal(self, node: JsonNode) -> Decimal:
        start = self.at
        text = self._string() if self.text.startswith('"', start) else self._number(node)
        value = None
        if _NUMBER.fullmatch(text):
            value = unscaled(text, node.type.scale, node.type.precision)
        if value is None:
            self.at = start
            raise self.error(_article(node))
        if self.at == start:
            self.at += len(text)
        sign, digits = int(value < 0), tuple(map(int, str(abs(value))))
        return Decimal((sign, digits, -node.type.scale))

    def _boolean(self) -> bool:
        for word, value in (("true", True), ("false", False)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        raise self.error("true or false")

    def _date(self) -> int:
        start = self.at
        text = self._string()
        days = days_of(text)
        if days is None:
            self.at = start
            raise self.error("a date such as 2026-11-30")
        return days

    def _timestamp(self, node: JsonNode) -> int:
        start = self.at
        text = self._string()
        value = instant_of(text, node.least, is_zoned=bool(node.most))
        if value is None:
            self.at = start
            sample = "09:15:00Z, with a zone" if node.most else "09:15:00, without zone"
            raise self.error(f"a time such as 2026-11-30T{sample}, that {node.type} holds")
        return value

    def _other(self, node: JsonNode) -> Any:  # noqa: ANN401 - as the type says
        start = self.at
        value: Any = None
        if pa.types.is_decimal256(node.type):
            return self._decimal(node)
        if pa.types.is_time(node.type):
            value = time_of_day(self._string(), _PLACES[node.type.unit])
        elif not pa.types.is_null(node.type):
            value = _from_base64(self._string(), node.type)
        if value is None:
            self.at = start
            raise self.error(_article(node))
        return value


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def _article(node: JsonNode) -> str:
    """Return what a node's values are, for a message."""
    if pa.types.is_null(node.type):
        return "null"
    names = {kernel.STRUCT: "an object", kernel.LIST: "an array", kernel.MAP: "an object"}
    kind = str(node.type)
    return names.get(node.kind) or f"{'an' if kind[0] in 'aeio' else 'a'} {kind}"


def _from_base64(text: str, kind: pa.DataType) -> bytes | None:
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    is_of_length = not pa.types.is_fixed_size_binary(kind) or len(value) == kind.byte_width
    return value if is_of_length else None
