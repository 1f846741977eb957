"""The type of JSON texts out of a sample of them.

Numbers are int64, or float64 if one of them has a fraction; strings stay strings, whatever they
look like. A place where values of several types were seen, or none, is kept as JSON text. An object
with more names than a table has columns is a map.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.typed.json_types import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_NAMES = 500
_MOST_DEPTH = 60
_EXACT = 1 << 53
"""Up to here every whole number is a float."""
_SIMPLE = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
}
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string"}


@dataclass(frozen=True, slots=True)
class InferredType:
    """What a sample of texts has in common.

    Attributes
    ----------
    field
        The type; texts in it are marked.
    conflicts
        A sentence for each place where types differ, which is kept as text.
    texts
        How many there were.
    unreadable
        How many of them are no JSON; they count for nothing.
    """

    field: pa.Field
    conflicts: tuple[str, ...]
    texts: int
    unreadable: int


def infer_type(texts: Iterable[bytes]) -> InferredType:
    """Return the type of texts."""
    seen = _Seen()
    count = unreadable = 0
    for text in texts:
        count += 1
        try:
            seen.add(json.loads(text.decode(), parse_int=_whole), 0)
        except (ValueError, RecursionError):
            unreadable += 1
    conflicts: list[str] = []
    return InferredType(seen.field("", "", conflicts), tuple(conflicts), count, unreadable)


def _whole(digits: str) -> int | str:
    """Return a number; one that no int64 holds as something that is no number."""
    value = int(digits) if len(digits) <= 20 else 1 << 64
    return value if -(1 << 63) <= value < 1 << 63 else _TooLarge()


class _TooLarge(str):
    """An integer that no column of integers holds."""

    __slots__ = ()


def _is_text(name: str) -> bool:
    """Return whether a name has no half of a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class _Seen:
    """What was seen at one place."""

    kinds: set[str] = field(default_factory=set)
    has_large: bool = False
    """An integer that a float would round."""
    names: dict[str, _Seen] = field(default_factory=dict)
    items: _Seen | None = None
    is_map: bool = False

    def add(self, value: Any, depth: int) -> None:  # noqa: ANN401 - JSON
        if value is None:
            return
        if isinstance(value, _TooLarge):
            self.kinds.add("an integer above 64 bits")
        elif depth == _MOST_DEPTH:
            self.kinds.add("nested too deep")
        elif isinstance(value, dict):
            self.kinds.add("object")
            self._add_object(value, depth)
        elif isinstance(value, list):
            self.kinds.add("array")
            self._add_items(value, depth)
        else:
            self.kinds.add(_NAMES[type(value)])
            self.has_large |= isinstance(value, int) and abs(value) > _EXACT

    def _add_object(self, value: dict[str, Any], depth: int) -> None:
        if len(self.names.keys() | value.keys()) > _MOST_NAMES:
            self.is_map = True
            self._forget_names()
        if self.is_map:
            self._add_items(value.values(), depth)
            return
        for name, each in value.items():
            if not _is_text(name):  # no column can be called so
                continue
            self.names.setdefault(name, _Seen()).add(each, depth + 1)

    def _add_items(self, values: Iterable[Any], depth: int) -> None:
        self.items = self.items or _Seen()
        for each in values:
            self.items.add(each, depth + 1)

    def merge(self, other: _Seen) -> None:
        """Add what was seen at another place."""
        self.kinds |= other.kinds
        self.has_large |= other.has_large
        self.is_map |= other.is_map
        if other.items is not None:
            self.items = self.items or _Seen()
            self.items.merge(other.items)
        for name, each in other.names.items():
            self.names.setdefault(name, _Seen()).merge(each)
        if self.is_map:
            self._forget_names()

    def _forget_names(self) -> None:
        """Have what was seen below each name be what was seen of the map's values."""
        self.items = self.items or _Seen()
        for each in self.names.values():
            self.items.merge(each)
        self.names.clear()

    def field(self, name: str, path: str, conflicts: list[str]) -> pa.Field:
        """Return a field of what was seen."""
        kinds = set(self.kinds)
        if kinds == {"integer", "number"} and not self.has_large:
            kinds = {"number"}
        if len(kinds) > 1:
            conflicts.append(
                f"{path or 'the value'} is {' and '.join(sorted(kinds))}: kept as text"
            )
            return as_text(name)
        kind = self._type(kinds.pop() if kinds else "", path, conflicts)
        return as_text(name) if kind is None else pa.field(name, kind)

    def _type(self, kind: str, path: str, conflicts: list[str]) -> pa.DataType | None:
        if kind == "object" and not self.is_map:
            dot = f"{path}." if path else ""
            fields = [
                each.field(name, f"{dot}{name}", conflicts) for name, each in self.names.items()
            ]
            return pa.struct(fields) if fields else None
        if kind in {"object", "array"} and self.items is not None:
            item = "value" if kind == "object" else "item"
            inner = self.items.field(item, f"{path}[]", conflicts)
            return pa.map_(pa.string(), inner) if kind == "object" else pa.list_(inner)
        return _SIMPLE.get(kind)
