"""Kafka's message schemas, in a notation of our own.

::

    OffsetCommitValue 0-4 flexible=4
      offset int64
      leaderEpoch int32 3+
      metadata string
      expireTimestamp int64 1
      topicId uuid 4+ tag=0 since=4.1

A message begins with its name, its versions and the first flexible one, if it has any. A field
has its name, its type and the versions that have it, where that is not all of them. ``[]T`` is an
array, ``T?`` may be null. The fields of a type ``{T}`` follow, indented. Those of a type that
several fields have stand under its name, after ``struct`` or, where Kafka calls it a common struct,
after ``common``::

    struct Endpoint
      host string

``tag`` makes a field a tagged one. ``default`` is its value where it is left out, or where a
version does not have it (else null, zero or empty; ``empty``: not null, though it may be that).
``null=1+`` are the versions in which a ``T?`` may be null, where that is not all of them. ``since``
is the first version of Kafka whose schema has the field: tools of earlier ones do not know it. A
message of which Kafka has made new versions says what there was, as in ``before=4.3:0-3``.

Source: the JSON files of message schemas (Kafka 3.9, 4.0, 4.1, 4.2 and 4.3); KIP-482.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.internal_topics.versions import FIRST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FIXED_CODES = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "float64": "d",
    "bool": "?",
}
"""Types whose values have one size, as the module ``struct`` calls them."""

_ALL = range(0x7FFF + 1)
_ZEROS: Mapping[str, object] = {
    "uuid": uuid.UUID(int=0),
    "string": "",
    "bool": False,
    "bytes": b"",
    "records": b"",
}


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a message or of a struct in one."""

    name: str
    type: str
    versions: range
    is_array: bool
    nullable_versions: range
    struct: str
    fields: tuple[Field, ...]
    is_common: bool
    tag: int | None
    default: Any
    since: KafkaVersion

    @property
    def is_nullable(self) -> bool:
        """Whether the field may be null in any version."""
        return bool(self.nullable_versions)


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message and its fields, in all versions."""

    name: str
    versions: range
    flexible_versions: range
    fields: tuple[Field, ...] = field(repr=False)
    earlier: tuple[KafkaVersion, range] | None = None

    def versions_of(self, kafka_version: KafkaVersion) -> range:
        """Return the versions that exist for a version of Kafka."""
        if self.earlier is not None and kafka_version < self.earlier[0]:
            return self.earlier[1]
        return self.versions


class _Struct(NamedTuple):
    """The fields of a type, and whether it is a common struct."""

    fields: tuple[Field, ...] = ()
    is_common: bool = False


def parse_messages(text: str) -> dict[str, Message]:
    """Return the messages of a text in this notation, by name."""
    messages = {}
    structs: dict[str, _Struct] = {}
    for header, lines in _blocks(text.splitlines()):
        name, *words = header.split()
        if name in ("struct", "common"):
            structs[words[0]] = _Struct(_fields(lines, _ALL, structs), name == "common")
            continue
        versions = _versions(words[0])
        options = _options(words[1:])
        first_flexible = int(options.get("flexible", versions.stop))
        messages[name] = Message(
            name,
            versions,
            range(first_flexible, versions.stop),
            _fields(lines, versions, structs),
            _earlier(options.get("before")),
        )
    return messages


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each line that is indented least, and the lines below it that are indented more."""
    lines = [line for line in lines if line.strip()]
    if not lines:
        return
    margin = min(map(_indentation, lines))
    starts = [number for number, line in enumerate(lines) if _indentation(line) == margin]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start].strip(), lines[start + 1 : stop]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _fields(lines: list[str], versions: range, structs: Mapping[str, _Struct]) -> tuple[Field, ...]:
    return tuple(_field(header, below, versions, structs) for header, below in _blocks(lines))


def _field(header: str, below: list[str], versions: range, structs: Mapping[str, _Struct]) -> Field:
    name, type_text, *words = header.split()
    if words and "=" not in words[0]:
        own = _versions(words.pop(0))
        versions = range(own.start, min(own.stop, versions.stop))
    options = _options(words)
    is_array = type_text.startswith("[]")
    nullable = range(0)
    if type_text.endswith("?"):
        nullable = _versions(options["null"]) if "null" in options else _ALL
    kind = type_text.removeprefix("[]").removesuffix("?")
    name_of_struct = kind.strip("{}")
    if kind.startswith("{"):
        struct = _Struct(_fields(below, versions, structs))
    else:
        struct = structs.get(kind, _Struct())
    return Field(
        name,
        "struct" if struct.fields else kind,
        versions,
        is_array=is_array,
        nullable_versions=nullable,
        struct=name_of_struct if struct.fields else "",
        fields=struct.fields,
        is_common=struct.is_common,
        tag=int(options["tag"]) if "tag" in options else None,
        default=_default(options.get("default"), kind, struct.fields, (is_array, bool(nullable))),
        since=KafkaVersion.parse(options.get("since", str(FIRST_KAFKA_VERSION))),
    )


def _versions(text: str) -> range:
    """Return the versions that ``3``, ``0-4`` or ``3+`` names."""
    if text.endswith("+"):
        return range(int(text[:-1]), _ALL.stop)
    first, dash, last = text.partition("-")
    return range(int(first), int(last if dash else first) + 1)


def _options(words: list[str]) -> dict[str, str]:
    return dict(word.split("=") for word in words)


def _earlier(text: str | None) -> tuple[KafkaVersion, range] | None:
    if text is None:
        return None
    kafka_version, _, versions = text.partition(":")
    return KafkaVersion.parse(kafka_version), _versions(versions)


def _default(
    text: str | None, kind: str, fields: tuple[Field, ...], is_array_is_nullable: tuple[bool, bool]
) -> object:
    is_array, is_nullable = is_array_is_nullable
    if text is not None and text != "empty":
        return _literal(text, kind)
    if is_nullable and text is None:
        return None
    if is_array:
        return []
    if fields:
        return {each.name: each.default for each in fields}
    return _ZEROS.get(kind, 0)


def _literal(text: str, kind: str) -> object:
    match kind:
        case "bool":
            return text == "true"
        case "string":
            return text
        case "float64":
            return float(text)
        case _:
            return int(text, base=0)


def _is_of_one_size(each: Field) -> bool:
    return not each.is_array and each.type in FIXED_CODES


def runs(fields: Iterable[Field]) -> list[tuple[list[Field], struct.Struct | None]]:
    """Return the fields in their order: those of one size together, with how they lie; else one."""
    found: list[tuple[list[Field], struct.Struct | None]] = []
    for is_fixed, run in groupby(
        fields, lambda each: not each.is_array and each.type in FIXED_CODES
    ):
        if is_fixed:
            together = list(run)
            codes = "".join(FIXED_CODES[each.type] for each in together)
            found.append((together, struct.Struct(f">{codes}")))
        else:
            found += [([each], None) for each in run]
    return found
