"""The text of an Avro schema as registries keep it: written by Avro's Java library.

Members have a fixed order, names are as short as their namespace allows, and what a type is called
by is written out where it is first met. Nothing is left out: comments, aliases and other properties
stay.

Source: Schema.toString, JsonProperties (Avro's Java library 1.12).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pylog.text.jackson import jackson_text
from pylog.typed.avro_schema import PRIMITIVES, parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OF_TYPES = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_OF_FIELDS = frozenset(("default", "doc", "name", "order", "type", "aliases"))


def canonical_text(text: str, references: Iterable[str] = ()) -> str:
    """Return a schema's text as Java writes it; `InvalidSchemaError` if it is no schema.

    ``references`` are the texts of schemas whose types it uses.
    """
    references = list(references)
    parse_schema(text, references)
    writer = _Writer()
    for each in references:
        writer.written(json.loads(each), "")
    try:
        schema = json.loads(text)
    except ValueError:  # the bare name of a type
        schema = text.strip()
    return jackson_text(writer.written(schema, ""))


class _Writer:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def written(self, schema: Any, space: str) -> Any:  # noqa: ANN401 - any value
        """Return a type as JSON whose members are in Java's order."""
        if isinstance(schema, str):
            return schema if schema in PRIMITIVES else self._reference(schema, space)
        if isinstance(schema, list):
            return [self.written(each, space) for each in schema]
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.written(kind, space)
        if kind in ("record", "error", "enum", "fixed"):
            return self._declaration(kind, schema, space)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            inner = {part: self.written(schema[part], space)}
            return {"type": kind, **inner, **_properties(schema, _OF_TYPES)}
        if kind not in PRIMITIVES:
            return self._reference(kind, space)
        more = _properties(schema, _OF_TYPES)
        return {"type": kind, **more} if more else kind

    def _reference(self, name: str, space: str) -> str:
        full = _full(name, space)
        return _shortest(full if full in self._known else name.removeprefix("."), space)

    def _declaration(self, kind: str, schema: Mapping[str, Any], space: str) -> dict[str, Any]:
        own = schema.get("namespace")
        full = _full(schema["name"], own if isinstance(own, str) else space)
        self._known.add(full)
        inner, _, name = full.rpartition(".")
        made: dict[str, Any] = {"type": kind, "name": name}
        if inner != space:
            made["namespace"] = inner
        if "doc" in schema:
            made["doc"] = schema["doc"]
        reserved = _OF_TYPES
        if kind == "enum":
            reserved |= {"default"}
            made["symbols"] = schema["symbols"]
            if "default" in schema:
                made["default"] = schema["default"]
        elif kind == "fixed":
            made["size"] = schema["size"]
        else:
            made["fields"] = [self._field(each, inner) for each in schema["fields"]]
        made |= _properties(schema, reserved)
        if schema.get("aliases"):
            made["aliases"] = [_shortest(_full(each, inner), inner) for each in schema["aliases"]]
        return made

    def _field(self, field: Mapping[str, Any], space: str) -> dict[str, Any]:
        made = {"name": field["name"], "type": self.written(field["type"], space)}
        made |= {name: field[name] for name in ("doc", "default") if name in field}
        if field.get("order", "ascending") != "ascending":
            made["order"] = field["order"]
        if field.get("aliases"):
            made["aliases"] = field["aliases"]
        return made | _properties(field, _OF_FIELDS)


def _properties(given: Mapping[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {name: each for name, each in given.items() if name not in reserved}


def _full(name: str, space: str) -> str:
    return name.removeprefix(".") if "." in name or not space else f"{space}.{name}"


def _shortest(full: str, space: str) -> str:
    inner, _, name = full.rpartition(".")
    return name if inner == space and name not in PRIMITIVES else full
