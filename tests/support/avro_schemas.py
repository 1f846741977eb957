"""Random Avro schemas, values in their binary form, and what schemas may become.

Values are written as the specification says, blocks of arrays and maps in either of their forms.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_LOGICAL: tuple[dict[str, Any], ...] = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
    {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 20},
)
_TEXTS = ("", "a", "naïve", "数据", "\U0001f600", "x" * 40, '"\\\n')


class AvroMaker:
    """Makes schemas, values and newer versions of schemas from a source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names = 0

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def record(self, depth: int = 3) -> dict[str, Any]:
        """Return the schema of a record."""
        count = self._chance.randrange(1, 7)
        fields = [{"name": f"f{i}", "type": self.schema(depth - 1)} for i in range(count)]
        return {"type": "record", "name": self._name(), "fields": fields}

    def schema(self, depth: int) -> Any:  # noqa: ANN401 - JSON
        """Return any schema, nested at most ``depth`` deep."""
        kind = self._chance.choice(
            ["primitive"] * 6
            + ["logical"] * 2
            + ["enum", "fixed"]
            + ["array", "map", "nullable", "nullable", "union", "record"] * (depth > 0)
        )
        if kind == "primitive":
            return self._chance.choice(_PRIMITIVES)
        if kind == "logical":
            return dict(self._chance.choice(_LOGICAL))
        if kind == "enum":
            symbols = ["A", "B", "C", "D"][: self._chance.randrange(1, 5)]
            return {"type": "enum", "name": self._name(), "symbols": symbols}
        if kind == "fixed":
            return self._fixed()
        if kind == "array":
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind == "record":
            return self.record(depth)
        return self._union(depth - 1, is_nullable=kind == "nullable")

    def _fixed(self) -> dict[str, Any]:
        size = self._chance.choice([1, 4, 7, 16])
        made = {"type": "fixed", "name": self._name(), "size": size}
        if size == 7 and self._chance.random() < 0.5:
            made |= {"logicalType": "decimal", "precision": 9, "scale": 2}
        return made

    def _union(self, depth: int, *, is_nullable: bool) -> list[Any]:
        branches: list[Any] = []
        kinds = set()
        for _ in range(1 if is_nullable else self._chance.randrange(1, 5)):
            branch = self.schema(depth)
            if isinstance(branch, list) or branch == "null":
                branch = "string"
            is_word = isinstance(branch, str)
            name = branch if is_word else branch.get("name") or branch["type"]
            name = "text" if name in ("bytes", "string") else name  # each is read as the other
            if name not in kinds:
                kinds.add(name)
                branches.append(branch)
        if is_nullable or self._chance.random() < 0.5:
            branches.insert(self._chance.randrange(len(branches) + 1), "null")
        return branches

    def value(self, schema: Any) -> bytes:  # noqa: ANN401 - JSON
        """Return a value of a schema in binary."""
        chance = self._chance
        if isinstance(schema, list):
            number = chance.randrange(len(schema))
            return zigzag(number) + self.value(schema[number])
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = "" if isinstance(schema, str) else schema.get("logicalType", "")
        if kind == "record":
            return b"".join(self.value(each["type"]) for each in schema["fields"])
        if kind in ("array", "map"):
            return self._items(schema)
        if kind == "enum":
            return zigzag(chance.randrange(len(schema["symbols"])))
        if logical:
            return self._logical(schema)
        if kind == "fixed":
            return chance.randbytes(schema["size"])
        return self._primitive(kind)

    def _primitive(self, kind: str) -> bytes:
        chance = self._chance
        if kind == "null":
            return b""
        if kind == "boolean":
            return bytes([chance.randrange(2)])
        if kind in ("int", "long"):
            bits = chance.randrange(1, 32 if kind == "int" else 64)
            return zigzag(chance.randrange(-(1 << bits), 1 << bits))
        if kind == "float":
            return struct.pack("<f", chance.choice([0.0, 1.5, -2.25e10, 3.1e-20]))
        if kind == "double":
            return struct.pack("<d", chance.choice([0.0, chance.random(), -1e300]))
        content = chance.choice(_TEXTS).encode() if kind == "string" else chance.randbytes(5)
        return zigzag(len(content)) + content

    def _logical(self, schema: dict[str, Any]) -> bytes:
        chance = self._chance
        logical = schema["logicalType"]
        if logical == "decimal":
            value = chance.randrange(-(10 ** schema["precision"]) + 1, 10 ** schema["precision"])
            size = schema.get("size") or value.bit_length() // 8 + 1
            content = value.to_bytes(size, "big", signed=True)
            return content if "size" in schema else zigzag(size) + content
        if logical == "uuid":
            text = "-".join(chance.randbytes(n).hex() for n in (4, 2, 2, 2, 6)).encode()
            return zigzag(len(text)) + text
        if logical == "date":
            return zigzag(chance.randrange(-700_000, 2_900_000))
        if logical.startswith("time-"):
            return zigzag(chance.randrange(86_400_000))
        return zigzag(chance.randrange(-(10**12), 10**13))

    def _items(self, schema: dict[str, Any]) -> bytes:
        parts = []
        for _ in range(self._chance.randrange(3)):
            count = self._chance.randrange(1, 4)
            items = b"".join(self._item(schema) for _ in range(count))
            if self._chance.random() < 0.3:
                parts.append(zigzag(-count) + zigzag(len(items)) + items)
            else:
                parts.append(zigzag(count) + items)
        return b"".join([*parts, b"\0"])

    def _item(self, schema: dict[str, Any]) -> bytes:
        if schema["type"] == "array":
            return self.value(schema["items"])
        key = f"k{self._chance.randrange(10**6)}".encode()
        return zigzag(len(key)) + key + self.value(schema["values"])

    # What a schema may become.

    def newer(self, schema: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a schema that reads what ``schema`` has written."""
        chance = self._chance
        if isinstance(schema, list):
            branches = [self.newer(each) if isinstance(each, dict) else each for each in schema]
            if "null" not in branches and chance.random() < 0.3:
                branches.append("null")
            return branches
        if isinstance(schema, str):
            wider = {"int": ["long", "float", "double"], "long": ["double"], "float": ["double"]}
            if schema in wider and chance.random() < 0.4:
                return chance.choice(wider[schema])
            return [schema, "null"] if schema != "null" and chance.random() < 0.2 else schema
        made: dict[str, Any] = dict(schema)
        if schema["type"] == "record":
            made["fields"] = self._newer_fields(schema["fields"])
        elif schema["type"] in ("array", "map"):
            key = "items" if schema["type"] == "array" else "values"
            made[key] = self.newer(schema[key])
        elif schema["type"] == "enum":
            made["symbols"] = [*schema["symbols"], f"Z{len(schema['symbols'])}"]
        return made

    def _newer_fields(self, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
        chance = self._chance
        kept = []
        for each in fields:
            if chance.random() < 0.15:
                continue
            made = {**each, "type": self.newer(each["type"])}
            if chance.random() < 0.2:
                aliases = [*each.get("aliases", []), each["name"]]
                made = {**made, "name": f"{each['name']}x", "aliases": aliases}
            kept.append(made)
        for _ in range(chance.randrange(3)):
            kind, default = chance.choice(_WITH_DEFAULTS)
            name = f"g{self._names}"
            self._names += 1
            kept.append({"name": name, "type": kind, "default": default})
        chance.shuffle(kept)
        return kept


_WITH_DEFAULTS: tuple[tuple[Any, Any], ...] = (
    ("int", -7),
    ("string", "dé"),
    ("boolean", True),
    ("double", 2.5),
    (["null", "string"], None),
    (["long", "null"], 5),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "string"}, {"a": "b"}),
)


def zigzag(value: int) -> bytes:
    """Return a number as Avro writes it."""
    raw = (value << 1) ^ (value >> 63)
    parts = []
    while raw > 0x7F:
        parts.append((raw & 0x7F) | 0x80)
        raw >>= 7
    return bytes([*parts, raw])
