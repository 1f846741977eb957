"""Kafka's message schemas as its own JSON files have them, beside those of our notation."""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pylog.internal_topics.schema import Field, Message

_ALL = range(0x7FFF + 1)
_COMMENT = re.compile(r'^[ \t]*//.*$|[ \t]//[^"\n]*$', re.MULTILINE)
_ZEROS = {"bool": False, "string": "", "uuid": uuid.UUID(int=0), "bytes": b"", "records": b""}


class FieldShape(NamedTuple):
    """A field, by the names on the way to it, in those versions that are compared."""

    path: str
    type: str
    versions: range
    nullable: range
    tag: int | None
    default: object


def parse_json(text: str) -> dict[str, Any]:
    """Return a schema; its file has comments."""
    schema: dict[str, Any] = json.loads(_COMMENT.sub("", text))
    return schema


def json_versions(schema: dict[str, Any]) -> range:
    return _versions(schema["validVersions"])


def json_flexible_versions(schema: dict[str, Any]) -> range:
    return _both(_versions(schema["flexibleVersions"]), json_versions(schema))


def json_shapes(schema: dict[str, Any], within: range) -> list[FieldShape]:
    """Return the fields that a version of a range has, sorted."""
    structs = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}
    return sorted(_of_json(schema["fields"], "", within, structs))


def _of_json(
    fields: list[dict[str, Any]], path: str, within: range, structs: dict[str, Any]
) -> list[FieldShape]:
    found = []
    for each in fields:
        versions = _both(_versions(each["versions"]), within)
        if not versions:
            continue
        kind = each["type"].removeprefix("[]")
        below = each.get("fields") or structs.get(kind)
        name = f"{path}.{each['name']}".lower()
        nullable = _both(_versions(each.get("nullableVersions", "none")), versions)
        is_plain = not (each["type"].startswith("[]") or below)
        found.append(
            FieldShape(
                name,
                each["type"].replace(kind, "struct" if below else kind),
                versions,
                nullable,
                each.get("tag"),
                _json_default(each, kind) if is_plain and not nullable else "",
            )
        )
        found += _of_json(below or [], name, versions, structs)
    return found


def _json_default(field: dict[str, Any], kind: str) -> object:
    given = field.get("default")
    if given is None:
        return _ZEROS.get(kind, 0)
    if kind == "bool":
        return str(given).lower() == "true"
    return given if kind == "string" else int(str(given), base=0)


def our_shapes(message: Message, within: range) -> list[FieldShape]:
    """Return the fields of a message in our notation that a version of a range has, sorted."""
    return sorted(_of_ours(message.fields, "", within))


def _of_ours(fields: tuple[Field, ...], path: str, within: range) -> list[FieldShape]:
    found = []
    for each in fields:
        versions = _both(each.versions, within)
        if not versions:
            continue
        name = f"{path}.{each.name}".lower()
        nullable = _both(each.nullable_versions, versions)
        is_plain = not (each.is_array or each.fields)
        found.append(
            FieldShape(
                name,
                ("[]" if each.is_array else "") + each.type,
                versions,
                nullable,
                each.tag,
                each.default if is_plain and not nullable else "",
            )
        )
        found += _of_ours(each.fields, name, versions)
    return found


def _versions(text: str) -> range:
    if text in ("none", ""):
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), _ALL.stop)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _both(one: range, other: range) -> range:
    both = range(max(one.start, other.start), min(one.stop, other.stop))
    return both if both else range(0)
