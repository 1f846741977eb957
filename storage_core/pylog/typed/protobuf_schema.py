"""What a Protobuf schema says, whether it came as ``.proto`` text or as a descriptor."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32"),
    *("fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)


@dataclass(slots=True)
class ProtoField:
    """A field of a message.

    Attributes
    ----------
    type
        One of `SCALARS`, or the name of a message or an enum: as written, and absolute, with a
        point before it, once the schema is `ProtoSchema`.
    is_map
        Whether ``type`` is the map's value; ``key`` is the type of its keys.
    presence
        ``implicit`` (absent is the default), ``explicit`` or ``required``; "" for repeated fields.
    default
        What stands in the schema, as text.
    oneof
        The name of the oneof that it belongs to.
    decimal
        Precision and scale, of a field of Confluent's type of decimals.
    """

    name: str
    number: int
    type: str
    is_repeated: bool = False
    is_map: bool = False
    key: str = ""
    presence: str = "explicit"
    default: str | None = None
    oneof: str = ""
    decimal: tuple[int, int] | None = None


@dataclass(slots=True)
class ProtoEnum:
    """Names by number, the first of several; what is closed knows no other numbers."""

    name: str
    names: dict[int, str]
    first: int = 0
    is_closed: bool = False


@dataclass(slots=True)
class ProtoMessage:
    """A message; ``name`` is absolute, without the point before it.

    A map is a repeated message, its entry, which is implied where a text says ``map<...>``.
    """

    name: str
    fields: list[ProtoField] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    is_map_entry: bool = False
    is_implied: bool = field(default=False, compare=False)


@dataclass(slots=True)
class ProtoFile:
    """A file."""

    package: str = ""
    imports: list[str] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)


class ProtoSchema:
    """A file and all that it imports, with names resolved.

    Raises
    ------
    ValueError
        A name is defined nowhere, or twice, or the entry of a map has no key and value.
    """

    def __init__(self, file: ProtoFile, imported: Iterable[ProtoFile] = ()) -> None:
        self.file = file
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: dict[str, ProtoEnum] = {}
        _ensure_defined_once(file)
        files = [*imported, file]
        for each in files:
            self.enums.update((enum.name, enum) for enum in each.enums)
            for message in all_messages(each.messages):
                self.messages[message.name] = message
                self.enums.update((enum.name, enum) for enum in message.enums)
        for message in self.messages.values():
            for each_field in message.fields:
                if each_field.type not in SCALARS:
                    each_field.type = f".{self._resolved(each_field.type, message.name)}"
        for message in self.messages.values():
            for each_field in message.fields:
                entry = self.messages.get(each_field.type[1:])
                if entry is not None and entry.is_map_entry and each_field.is_repeated:
                    _make_map(each_field, entry)

    def _resolved(self, name: str, scope: str) -> str:
        """Return the absolute name of what a name means within a message."""
        if name.startswith("."):
            candidates = [name[1:]]
        else:
            parts = scope.split(".")
            candidates = [".".join([*parts[:end], name]) for end in range(len(parts), -1, -1)]
        for each in candidates:
            if each in self.messages or each in self.enums:
                return each
        raise ValueError(f"the schema has no {name!r}, which a field of {scope} is of")


def _ensure_defined_once(file: ProtoFile) -> None:
    messages = [*all_messages(file.messages)]
    enums = [*file.enums, *(enum for each in messages for enum in each.enums)]
    names = [each.name for each in messages] + [each.name for each in enums]
    _ensure_unique(names, "the schema")
    for each in messages:
        _ensure_unique([field.name for field in each.fields], f"message {each.name}")
        _ensure_unique([field.number for field in each.fields], f"message {each.name}")


def _ensure_unique(names: list[str] | list[int], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(each for place, each in enumerate(names) if each in names[:place])
        raise ValueError(f"{what} has {twice} twice")


def _make_map(of_entries: ProtoField, entry: ProtoMessage) -> None:
    types = {each.number: each.type for each in entry.fields}
    if set(types) != {1, 2}:
        raise ValueError(f"the schema's map {of_entries.name!r} has no key and value")
    of_entries.key, of_entries.type = types[1], types[2]
    of_entries.is_map, of_entries.is_repeated = True, False


def all_messages(messages: Iterable[ProtoMessage]) -> Iterator[ProtoMessage]:
    """Yield messages, each before those within it."""
    waiting = list(messages)[::-1]
    while waiting:
        message = waiting.pop()
        yield message
        waiting += message.messages[::-1]


def unescaped(text: str) -> str:
    """Return what stands for bytes in a schema, a character for each byte."""
    if "\\" not in text:
        return text
    try:
        quoted = text.replace("'", "\\'")
        return str(ast.literal_eval(f"b'{quoted}'"), "latin-1")
    except (SyntaxError, ValueError):
        return text
