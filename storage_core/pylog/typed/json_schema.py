"""JSON Schema, draft-04 to 2020-12, as the type of columns.

Only what says something of types counts: ``type``, ``properties``, ``items``, ``prefixItems``,
``additionalProperties``, ``patternProperties``, ``enum``, ``const``, ``oneOf``, ``anyOf``,
``allOf``, ``$ref``, and the formats ``date`` and ``date-time``. What it allows several types for,
what has no fields that it names, and what refers to itself, is kept as JSON text.

Values are not validated: every column may be null, also where ``required`` says otherwise.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

import pyarrow as pa

from pylog.typed.json_types import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FORMATS = {"date": pa.date32(), "date-time": pa.timestamp("us", "UTC")}
_SIMPLE = {"boolean": pa.bool_(), "number": pa.float64(), "null": pa.null()}
_BIG = pa.decimal128(38, 0)
"""Of integers that may be larger than an int64."""
_MOST_NODES = 20_000
_MOST_DEPTH = 60


def field_of_json_schema(text: str, references: Mapping[str, str] | None = None) -> pa.Field:
    """Return the type of the values that a schema allows.

    Parameters
    ----------
    text
        The schema.
    references
        Other schemas that it refers to, by the names it uses.

    Raises
    ------
    ValueError
        It is no JSON Schema, or refers to what is not there.
    """
    documents = {name: _loaded(each, name) for name, each in (references or {}).items()}
    return _Schemas(_loaded(text, "the schema"), documents).field()


def _loaded(text: str, name: str) -> Any:  # noqa: ANN401 - JSON
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no JSON: {error}") from None
    if not isinstance(document, dict | bool):
        raise ValueError(  # noqa: TRY004 - the text is wrong, and no argument's type
            f"{name} is {text[:40]!r}, expected a JSON Schema: an object"
        )
    return document


class _Schemas:
    """A schema and those that it refers to."""

    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:  # noqa: ANN401 - JSON
        base = _identifier(root)
        self._root = (base, root)
        self._documents: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        for name, each in {"": root, base: root, **references}.items():
            self._documents[name] = each
            self._register(each, name)
        self._within: list[int] = []
        """Schemas that are being looked at: those that refer to themselves come twice."""
        self._count = 0

    def field(self) -> pa.Field:
        base, root = self._root
        return _kept(self._field("", root, base))

    def _register(self, document: Any, name: str) -> None:  # noqa: ANN401 - JSON
        """Take note of all schemas with an identifier or an anchor."""
        waiting = [(document, name)]
        while waiting:
            schema, base = waiting.pop()
            if isinstance(schema, list):
                waiting += [(each, base) for each in schema]
            elif isinstance(schema, dict):
                if identifier := _identifier(schema):
                    base = urljoin(base, identifier)
                    self._documents.setdefault(urldefrag(base).url, schema)
                    if "#" in identifier:
                        self._anchors.setdefault(base, schema)
                anchor = schema.get("$anchor")
                if isinstance(anchor, str):
                    self._anchors.setdefault(f"{urldefrag(base).url}#{anchor}", schema)
                waiting += [(each, base) for each in schema.values()]

    def _resolved(self, reference: str, base: str) -> tuple[Any, str]:
        """Return the schema that a reference means, and the base of its own references."""
        whole = urljoin(base, reference)
        if whole in self._anchors:
            return self._anchors[whole], urldefrag(whole).url
        location, fragment = urldefrag(whole)
        for place in (location, urldefrag(reference).url):
            if place not in self._documents:
                continue
            found = self._documents[place]
            if f"{place}#{fragment}" in self._anchors:
                return self._anchors[f"{place}#{fragment}"], place
            try:
                for step in _steps(fragment):
                    found = found[int(step) if isinstance(found, list) else step]
            except (LookupError, ValueError, TypeError):
                break
            return found, place
        raise ValueError(f"the schema refers to {reference!r}, which is not there")

    def _field(self, name: str, schema: Any, base: str) -> pa.Field:  # noqa: ANN401 - JSON
        """Return a field of the type that a schema allows."""
        kind = None
        self._count += 1
        if self._count > _MOST_NODES:
            raise ValueError(f"the schema describes more than {_MOST_NODES} places")
        is_new = id(schema) not in self._within and len(self._within) < _MOST_DEPTH
        if isinstance(schema, dict) and is_new:
            self._within.append(id(schema))
            if identifier := _identifier(schema):
                base = urljoin(base, identifier)
            kind = self._type(schema, base)
            self._within.pop()
        return as_text(name) if kind is None else pa.field(name, kind)

    def _type(self, schema: dict[str, Any], base: str) -> pa.DataType | None:
        """Return a type; None for what is kept as text."""
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target, base = self._resolved(reference, base)
            return _unmarked(self._field("", target, base))
        for name in ("oneOf", "anyOf"):
            if isinstance(schema.get(name), list):
                return self._one_of(schema, schema[name], base)
        if isinstance(schema.get("allOf"), list):
            return self._all_of(schema, base)
        kinds = _kinds(schema)
        if kinds == {"integer", "number"}:
            kinds = {"number"}
        if len(kinds) != 1:
            return pa.null() if "type" in schema and schema["type"] == "null" else None
        return self._of_kind(kinds.pop(), schema, base)

    def _of_kind(self, kind: str, schema: dict[str, Any], base: str) -> pa.DataType | None:
        if kind == "string":
            return _FORMATS.get(str(schema.get("format")), pa.string())
        if kind == "integer":
            return _BIG if any(_is_big(schema.get(each)) for each in _BOUNDS) else pa.int64()
        if kind == "object":
            return self._object(schema, base)
        return self._array(schema, base) if kind == "array" else _SIMPLE.get(kind)

    def _object(self, schema: dict[str, Any], base: str) -> pa.DataType | None:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            fields = (self._field(name, each, base) for name, each in properties.items())
            return pa.struct([_kept(each) for each in fields])
        patterns = schema.get("patternProperties")
        others = [schema.get("additionalProperties")]
        if isinstance(patterns, dict):
            others = [*patterns.values(), *(each for each in others if isinstance(each, dict))]
        if len(others) == 1 and isinstance(others[0], dict):
            return pa.map_(pa.string(), _kept(self._field("value", others[0], base)))
        return None

    def _array(self, schema: dict[str, Any], base: str) -> pa.DataType | None:
        items = schema.get("items")
        first = schema.get("prefixItems", items if isinstance(items, list) else [])
        elements = list(first) if isinstance(first, list) else []
        if isinstance(items, dict | bool):
            elements.append(items)
        fields = [self._field("item", each, base) for each in elements]
        same = _same(fields)
        return None if same is None else pa.list_(_kept(same))

    def _one_of(
        self, schema: dict[str, Any], choices: Sequence[Any], base: str
    ) -> pa.DataType | None:
        rest = {name: each for name, each in schema.items() if name not in {"oneOf", "anyOf"}}
        if (
            "properties" in rest
        ):  # the choices say what is required, or which fields belong together
            return self._type(rest, base)
        fields = [self._field("", each, base) for each in choices]
        kinds = [each for each in fields if each.type != pa.null()]
        same = _same(kinds)
        if same is None:
            return pa.null() if fields and not kinds else None
        return _unmarked(same)

    def _all_of(self, schema: dict[str, Any], base: str) -> pa.DataType | None:
        parts = [{name: each for name, each in schema.items() if name != "allOf"}]
        parts += schema["allOf"]
        fields = [self._field("", each, base) for each in parts if each not in ({}, True)]
        says_types = [each for each in fields if _unmarked(each) is not None]
        structs = [each for each in says_types if pa.types.is_struct(each.type)]
        if structs and len(structs) == len(says_types):
            merged = {inner.name: inner for each in structs for inner in each.type}
            return pa.struct(list(merged.values()))
        same = _same(says_types)
        return None if same is None else _unmarked(same)


_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def _identifier(schema: Any) -> str:  # noqa: ANN401 - JSON
    found = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    return found if isinstance(found, str) else ""


def _steps(fragment: str) -> Iterator[str]:
    """Yield the steps of a JSON pointer."""
    if fragment:
        for step in unquote(fragment).removeprefix("/").split("/"):
            yield step.replace("~1", "/").replace("~0", "~")


def _kinds(schema: dict[str, Any]) -> set[str]:
    """Return the types that a schema allows, but for null."""
    given = schema.get("type")
    if isinstance(given, str):
        kinds = {given}
    elif isinstance(given, list):
        kinds = {str(each) for each in given}
    elif isinstance(schema.get("enum"), list):
        kinds = {_kind_of(each) for each in schema["enum"]}
    elif "const" in schema:
        kinds = {_kind_of(schema["const"])}
    elif "properties" in schema:
        kinds = {"object"}
    elif "items" in schema or "prefixItems" in schema:
        kinds = {"array"}
    else:
        kinds = set()
    return kinds - {"null"}


def _kind_of(value: object) -> str:
    for name, kind in (
        *(("null", type(None)), ("boolean", bool), ("integer", int), ("number", float)),
        *(("string", str), ("array", list)),
    ):
        if isinstance(value, kind):
            return name
    return "object"


def _is_big(bound: object) -> bool:
    return isinstance(bound, int | float) and not -(1 << 63) <= bound < 1 << 63


def _same(fields: Sequence[pa.Field]) -> pa.Field | None:
    """Return the one field that all are; None if they differ, or there is none."""
    if not fields or any(not each.equals(fields[0], check_metadata=True) for each in fields):
        return None
    return fields[0]


def _kept(field: pa.Field) -> pa.Field:
    """Return a field for a column: one of nulls alone has a type that few engines know."""
    return as_text(field.name) if field.type == pa.null() else field


def _unmarked(field: pa.Field) -> pa.DataType | None:
    """Return a field's type; None for one of texts."""
    return None if field.metadata else field.type
