"""An Avro schema: its JSON text as a tree of types with resolved names.

Logical types that a schema has wrongly are passed over, as the specification has it: the type below
them is read. Recursive types have no columns; they are refused.

Source: Avro specification 1.12; Schema, LogicalTypes (Avro's Java library 1.12).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pylog.errors import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PRIMITIVES = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
)
_NAMED = frozenset(("record", "error", "enum", "fixed"))
MOST_NESTED = 64
"""How deep types may be nested."""
_LARGEST_FIXED = 1 << 24
_MOST_PRECISION = 76  # of Arrow's widest decimal

_LOGICAL_TYPES = {
    "int": {"date", "time-millis"},
    "long": {
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    },
    "string": {"uuid"},
    "bytes": {"decimal"},
    "fixed": {"decimal", "duration", "uuid"},
}
_SIZES = {"duration": 12, "uuid": 16}

MISSING = object()
"""The default of a field without one."""


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record; ``default`` is JSON, or `MISSING`."""

    name: str
    type: AvroType
    default: Any = MISSING
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AvroType:
    """A type of a schema; which attributes mean something depends on ``kind``.

    Attributes
    ----------
    kind
        A primitive type, or record, enum, fixed, array, map, union.
    name, aliases
        Full names of records, enums and fixed types.
    fields, symbols, size, branches
        Of a record, an enum, a fixed type and a union.
    items
        Of an array; of a map, its values.
    default
        The symbol that stands for unknown ones of an enum.
    logical, precision, scale
        The logical type, or "".
    min_bytes
        How many bytes a value takes at least.
    depth
        How many types are nested in it, itself included.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    items: AvroType | None = None
    branches: tuple[AvroType, ...] = ()
    default: str | None = None
    logical: str = ""
    precision: int = 0
    scale: int = 0
    min_bytes: int = field(default=0, compare=False)
    depth: int = field(default=1, compare=False)

    def __str__(self) -> str:
        """Return what messages call it."""
        if self.kind == "union":
            return f"a union of {', '.join(map(str, self.branches))}"
        return f"{self.kind} {self.name}" if self.name else self.kind

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]


def parse_schema(text: str, references: Iterable[str] = ()) -> AvroType:
    """Return the type that a schema's text declares.

    Parameters
    ----------
    text
        JSON; the bare name of a type is taken, too.
    references
        Texts of schemas whose named types it uses, those that others use first.

    Raises
    ------
    InvalidSchemaError
        The text is no schema, or uses a type within itself.
    """
    parser = _Parser()
    for each in references:
        parser.parse(_json(each), "", 0)
    return parser.parse(_json(text), "", 0)


def _json(text: str) -> Any:  # noqa: ANN401 - whatever is there
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():
            # Half a surrogate pair is nothing that UTF-8 can hold, so no name can have one.
            whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(whole.decode("utf-16", "replace"))
        return value  # noqa: TRY300 - the value of what is tried
    except RecursionError:
        raise InvalidSchemaError("the schema is JSON that is nested too deeply") from None
    except ValueError as error:
        word = text.strip()
        if word in PRIMITIVES:
            return word
        raise InvalidSchemaError(f"the schema is no JSON: {error}") from None


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}  # None: its end has not been read

    def parse(self, schema: object, namespace: str, depth: int) -> AvroType:
        _ensure_shallow(depth)
        if isinstance(schema, str):
            return self._reference(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if not isinstance(schema, dict):
            raise InvalidSchemaError(f"{_shown(schema)} is no type")
        kind = schema.get("type")
        if isinstance(kind, (dict, list)):
            return self.parse(kind, namespace, depth + 1)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in schema:
                raise InvalidSchemaError(f"{kind} has no {key}")
            items = self.parse(schema[key], namespace, depth + 1)
            return AvroType(kind, items=items, min_bytes=1, depth=_depth([items]))
        if kind in _NAMED:
            return self._declaration(str(kind), schema, namespace, depth)
        if not isinstance(kind, str):
            raise InvalidSchemaError(f"type is {_shown(kind)}, expected the name of a type")
        return _with_logical_type(self._reference(kind, namespace), schema)

    def _reference(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name, min_bytes=_MIN_BYTES[name])
        for full in (_full_name(name, namespace), name):
            if full in self._named:
                found = self._named[full]
                if found is None:
                    msg = (
                        f"type {full} contains itself: columns cannot hold values that are nested "
                        "without a limit"
                    )
                    raise InvalidSchemaError(msg)
                return found
        raise InvalidSchemaError(f"type {name} is not declared")

    def _union(self, schema: list[object], namespace: str, depth: int) -> AvroType:
        branches = tuple(self.parse(each, namespace, depth + 1) for each in schema)
        if not branches:
            raise InvalidSchemaError("a union has no types")
        kinds = set()
        for each in branches:
            if each.kind == "union":
                raise InvalidSchemaError("a union is directly in a union")
            if (kind := each.name or each.kind) in kinds:
                raise InvalidSchemaError(f"a union has {kind} twice")
            kinds.add(kind)
        least = 1 + min(each.min_bytes for each in branches)
        return AvroType("union", branches=branches, min_bytes=least, depth=_depth(branches))

    def _declaration(
        self, kind: str, schema: Mapping[str, object], namespace: str, depth: int
    ) -> AvroType:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidSchemaError(f"a {kind} has no name")
        own = schema.get("namespace")
        full = _full_name(name, own if isinstance(own, str) else namespace)
        if full in self._named:
            raise InvalidSchemaError(f"type {full} is declared twice")
        space = full.rpartition(".")[0]
        aliases = tuple(_full_name(each, space) for each in _texts(schema, "aliases"))
        self._named[full] = None
        if kind == "enum":
            made = _enum(schema, full, aliases)
        elif kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or isinstance(size, bool):
                raise InvalidSchemaError(f"fixed {full} has the size {_shown(size)}")
            if not 0 <= size <= _LARGEST_FIXED:
                raise InvalidSchemaError(f"fixed {full} has the size {size}, expected up to 2^24")
            made = AvroType("fixed", full, aliases, size=size, min_bytes=size)
            made = _with_logical_type(made, schema)
        else:
            fields = self._fields(schema, full, space, depth)
            least = sum(each.type.min_bytes for each in fields)
            depth = _depth([each.type for each in fields])
            made = AvroType("record", full, aliases, fields, min_bytes=least, depth=depth)
        self._named[full] = made
        return made

    def _fields(
        self, schema: Mapping[str, object], full: str, space: str, depth: int
    ) -> tuple[AvroField, ...]:
        given = schema.get("fields")
        if not isinstance(given, list):
            raise InvalidSchemaError(f"record {full} has no fields")
        fields = []
        names = set()
        for each in given:
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or "type" not in each:
                raise InvalidSchemaError(f"record {full} has a field without a name or a type")
            if name in names:
                raise InvalidSchemaError(f"record {full} has the field {name} twice")
            names.add(name)
            kind = self.parse(each["type"], space, depth + 1)
            default = each.get("default", MISSING)
            fields.append(AvroField(name, kind, default, tuple(_texts(each, "aliases"))))
        return tuple(fields)


def _depth(parts: Sequence[AvroType]) -> int:
    """Return the depth of a type with these parts, written out in it or named."""
    depth = 1 + max((each.depth for each in parts), default=0)
    _ensure_shallow(depth)
    return depth


def _ensure_shallow(depth: int) -> None:
    if depth > MOST_NESTED:
        raise InvalidSchemaError(f"types are nested more than {MOST_NESTED} levels deep")


_MIN_BYTES = {
    **dict.fromkeys(("boolean", "int", "long", "bytes", "string"), 1),
    "null": 0,
    "float": 4,
    "double": 8,
}


def _enum(schema: Mapping[str, object], full: str, aliases: tuple[str, ...]) -> AvroType:
    symbols = tuple(_texts(schema, "symbols"))
    if len(set(symbols)) < len(symbols):
        raise InvalidSchemaError(f"enum {full} has a symbol twice")
    default = schema.get("default")
    is_symbol = isinstance(default, str) and default in symbols
    return AvroType(
        "enum",
        full,
        aliases,
        symbols=symbols,
        default=str(default) if is_symbol else None,
        min_bytes=1,
    )


def _with_logical_type(base: AvroType, schema: Mapping[str, object]) -> AvroType:
    logical = schema.get("logicalType")
    if not isinstance(logical, str) or logical not in _LOGICAL_TYPES.get(base.kind, ()):
        return base
    if base.kind == "fixed" and base.size != _SIZES.get(logical, base.size):
        return base
    precision = scale = 0
    if logical == "decimal":
        precision, scale = schema.get("precision"), schema.get("scale", 0)  # type: ignore[assignment]
        if not _is_possible(base, precision, scale):
            return base
    return AvroType(
        base.kind,
        base.name,
        base.aliases,
        size=base.size,
        logical=logical,
        precision=precision,
        scale=scale,
        min_bytes=base.min_bytes,
    )


def _is_possible(base: AvroType, precision: object, scale: object) -> bool:
    """Whether a decimal has digits that its bytes, and Arrow's types, can hold."""
    if not isinstance(precision, int) or not isinstance(scale, int):
        return False
    if isinstance(precision, bool) or isinstance(scale, bool):
        return False
    most = _MOST_PRECISION
    if base.kind == "fixed":
        most = min(most, math.floor(math.log10(2) * (8 * base.size - 1)) if base.size else 0)
    return 0 < precision <= most and 0 <= scale <= precision


def _full_name(name: str, namespace: str) -> str:
    if "." in name:
        return name.removeprefix(".")
    return f"{namespace}.{name}" if namespace else name


def _texts(schema: Mapping[str, object], key: str) -> list[str]:
    given = schema.get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise InvalidSchemaError(f"{key} is {_shown(given)}, expected a list of texts")
    return given


_MOST_SHOWN = 40


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
