"""Random Protobuf schemas, as descriptors and as text, and messages by Google's own library."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    import random

_FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7,
    "bool": 8, "string": 9, "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16,
    "sint32": 17, "sint64": 18,
}  # fmt: skip
_KEYS = [name for name in SCALARS if name not in {"double", "float", "bytes"}]
_WELL_KNOWN = ("Timestamp", "Duration", "StringValue", "Int64Value", "BoolValue", "DoubleValue")
_STRUCTS = ("Struct", "Value", "ListValue", "FieldMask", "Any", "Empty")
_FILES = {
    "Timestamp": "timestamp", "Duration": "duration", "FieldMask": "field_mask", "Any": "any",
    "Empty": "empty", "Struct": "struct", "Value": "struct", "ListValue": "struct",
}  # fmt: skip
_RANGES = {
    "int32": (-(2**31), 2**31 - 1), "sint32": (-(2**31), 2**31 - 1),
    "sfixed32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1), "fixed32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1), "sint64": (-(2**63), 2**63 - 1),
    "sfixed64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1), "fixed64": (0, 2**64 - 1),
}  # fmt: skip


class RandomSchema:
    """A file with a message ``Root`` and others, in one package.

    Attributes
    ----------
    file
        Its descriptor.
    text
        The same as ``.proto`` text.
    """

    def __init__(self, rnd: random.Random, syntax: str) -> None:
        self._rnd = rnd
        self._syntax = syntax
        self.file = descriptor_pb2.FileDescriptorProto(
            name="random.proto", package="a.b", syntax=syntax
        )
        self._lines = [f'syntax = "{syntax}"; // a comment', "package a.b;"]
        self._enum(self.file.enum_type, "Color", 0)
        self._done: list[str] = []
        for name in ("Leaf", "Middle", "Root"):
            self._message(self.file.message_type.add(), name, 0)
            self._done.append(name)
        imports = "".join(f'import "{each}";\n' for each in self.file.dependency)
        self.text = "\n".join([*self._lines[:2], imports, *self._lines[2:]])

    def pool(self) -> Any:  # noqa: ANN401 - a class of Google's
        """Return a pool with the file."""
        pool = descriptor_pool.DescriptorPool()
        known = descriptor_pool.Default()
        for name in {*_FILES.values(), "wrappers"}:
            file = descriptor_pb2.FileDescriptorProto()
            __import__(f"google.protobuf.{name}_pb2")
            known.FindFileByName(f"google/protobuf/{name}.proto").CopyToProto(file)
            pool.Add(file)
        pool.Add(self.file)
        return pool

    def message_class(self, name: str = "a.b.Root") -> Any:  # noqa: ANN401 - made at run time
        """Return the class of a message."""
        return message_factory.GetMessageClass(self.pool().FindMessageTypeByName(name))

    def _enum(self, enums: Any, name: str, depth: int) -> None:  # noqa: ANN401
        enum = enums.add(name=name)
        self._line(depth, f"enum {name} {{")
        first = 0 if self._syntax == "proto3" else self._rnd.choice((0, 1, -3))
        numbers = [first, *self._rnd.sample(range(2, 9), 3), -1]
        for place, number in enumerate(numbers):
            value = f"{name.upper()}_{place}"
            enum.value.add(name=value, number=number)
            self._line(depth + 1, f"{value} = {number};")
        self._line(depth, "}")

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("  " * depth + text)

    def _message(self, message: Any, name: str, depth: int) -> None:  # noqa: ANN401
        message.name = name
        self._line(depth, f"message {name} {{")
        self._line(depth + 1, "reserved 9000 to 9010, 9020;")
        if depth < 2 and self._rnd.random() < 0.4:
            self._enum(message.enum_type, "Kind", depth + 1)
        if depth < 2 and self._rnd.random() < 0.5:
            self._message(message.nested_type.add(), f"In{name}", depth + 1)
        numbers = self._rnd.sample(range(1, 40), 12)
        for place in range(self._rnd.randrange(1, 9)):
            number = numbers[place] * (1 if self._rnd.random() < 0.9 else 3000)
            self._field(message, f"f{place}", number, depth + 1)
        if self._rnd.random() < 0.4:
            self._oneof(message, numbers[9:], depth + 1)
        if self._syntax == "proto3":
            self._add_synthetic_oneofs(message)
        self._line(depth, "}")

    def _add_synthetic_oneofs(self, message: Any) -> None:  # noqa: ANN401
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _field(self, message: Any, name: str, number: int, depth: int) -> None:  # noqa: ANN401
        kind = self._rnd.randrange(10)
        field = message.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
        if kind == 0:
            self._map(message, field, depth)
            return
        options = ""
        label = ""
        text = self._type(message, field)
        if kind <= 2:
            field.label = _FIELD.LABEL_REPEATED
            label = "repeated "
            if field.type not in {_FIELD.TYPE_STRING, _FIELD.TYPE_BYTES, _FIELD.TYPE_MESSAGE}:
                packed = self._rnd.random() < 0.5
                field.options.packed = packed
                options = f" [packed = {'true' if packed else 'false'}, deprecated=false]"
        elif self._syntax == "proto2":
            is_required = kind == 3 and field.type != _FIELD.TYPE_MESSAGE
            label = "required " if is_required else "optional "
            if is_required:
                field.label = _FIELD.LABEL_REQUIRED
            else:
                options = self._default(field)
        elif kind == 4 and field.type != _FIELD.TYPE_MESSAGE:
            field.proto3_optional = True
            label = "optional "
        self._line(depth, f"{label}{text} {name} = {number}{options};")

    def _default(self, field: Any) -> str:  # noqa: ANN401
        if self._rnd.random() < 0.5 or field.type in {_FIELD.TYPE_MESSAGE, _FIELD.TYPE_BYTES}:
            return ""
        if field.type == _FIELD.TYPE_ENUM:
            value = f"{field.type_name.rpartition('.')[2].upper()}_{self._rnd.randrange(3)}"
        elif field.type == _FIELD.TYPE_STRING:
            field.default_value = "a 'quoted' \\ text"
            return " [default = \"a 'quoted' \\\\ text\"]"
        elif field.type == _FIELD.TYPE_BOOL:
            value = "true"
        else:
            value = self._rnd.choice(("7", "0", "12"))
        field.default_value = value
        return f" [default = {value}]"

    def _map(self, message: Any, field: Any, depth: int) -> None:  # noqa: ANN401
        field.label = _FIELD.LABEL_REPEATED
        entry = message.nested_type.add(name=f"{field.name.capitalize()}Entry")
        entry.options.map_entry = True
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = f".{self._path(message)}.{entry.name}"
        key = self._rnd.choice(_KEYS)
        entry.field.add(name="key", number=1, label=1, type=SCALARS[key])
        value = entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL)
        text = self._type(message, value)
        while (
            value.type == _FIELD.TYPE_ENUM and self._syntax == "proto2"
        ):  # their first has to be 0
            value.ClearField("type_name")
            text = self._type(message, value)
        self._line(depth, f"map<{key}, {text}> {field.name} = {field.number};")

    def _path(self, message: Any) -> str:  # noqa: ANN401
        waiting = [("a.b", each) for each in self.file.message_type]
        while waiting:
            scope, each = waiting.pop()
            if each is message:
                return f"{scope}.{each.name}"
            waiting += [(f"{scope}.{each.name}", inner) for inner in each.nested_type]
        raise AssertionError

    def _oneof(self, message: Any, numbers: list[int], depth: int) -> None:  # noqa: ANN401
        self._line(depth, "oneof choice {")
        message.oneof_decl.add(name="choice")
        for place, number in enumerate(numbers):
            field = message.field.add(name=f"o{place}", number=number + 100, label=1, oneof_index=0)
            self._line(depth + 1, f"{self._type(message, field)} o{place} = {number + 100};")
        self._line(depth, "}")

    def _type(self, message: Any, field: Any) -> str:  # noqa: ANN401
        """Give a field a type; return its name in a text."""
        kind = self._rnd.randrange(14)
        if kind == 0:
            field.type, field.type_name = _FIELD.TYPE_ENUM, ".a.b.Color"
            return self._rnd.choice(("Color", "a.b.Color", ".a.b.Color", "b.Color"))
        if kind == 1 and message.enum_type:
            field.type = _FIELD.TYPE_ENUM
            field.type_name = f".{self._path(message)}.Kind"
            return "Kind"
        if kind == 2 and self._done:
            name = self._rnd.choice(self._done)
            field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".a.b.{name}"
            return name
        if kind == 3 and [each for each in message.nested_type if not each.options.map_entry]:
            name = str(message.nested_type[0].name)
            field.type = _FIELD.TYPE_MESSAGE
            field.type_name = f".{self._path(message)}.{name}"
            return name
        if kind == 4:
            return self._well_known(field)
        if kind == 5 and self._rnd.random() < 0.3:
            field.type = _FIELD.TYPE_MESSAGE
            field.type_name = f".{self._path(message)}"
            return str(message.name)
        name = self._rnd.choice(tuple(SCALARS))
        field.type = SCALARS[name]
        return name

    def _well_known(self, field: Any) -> str:  # noqa: ANN401
        name = self._rnd.choice((*_WELL_KNOWN, *_STRUCTS))
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".google.protobuf.{name}"
        path = f"google/protobuf/{_FILES.get(name, 'wrappers')}.proto"
        if path not in self.file.dependency:
            self.file.dependency.append(path)
        return f"google.protobuf.{name}"


def fill(rnd: random.Random, message: Any, depth: int = 0) -> None:  # noqa: ANN401
    """Set some fields of a message, those that are required in any case."""
    for field in message.DESCRIPTOR.fields:
        if rnd.random() < 0.3 and not field.is_required:
            continue
        _fill_field(rnd, message, field, depth)


def _fill_field(rnd: random.Random, message: Any, field: Any, depth: int) -> None:  # noqa: ANN401
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        values = getattr(message, field.name)
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        for _ in range(rnd.randrange(4)):
            if value.message_type is not None:
                _fill_message(rnd, values[_scalar(rnd, key)], depth + 1)
            else:
                values[_scalar(rnd, key)] = _scalar(rnd, value)
    elif field.is_repeated:
        values = getattr(message, field.name)
        for _ in range(rnd.choice((0, 1, 2, 5))):
            if entry is not None:
                _fill_message(rnd, values.add(), depth + 1)
            else:
                values.append(_scalar(rnd, field))
    elif entry is not None:
        value = getattr(message, field.name)
        value.SetInParent()
        _fill_message(rnd, value, depth + 1)
    else:
        setattr(message, field.name, _scalar(rnd, field))


def _fill_message(rnd: random.Random, message: Any, depth: int) -> None:  # noqa: ANN401
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds = rnd.randrange(-(2**33), 2**33)
        message.nanos = rnd.randrange(10**9)
    elif name == "google.protobuf.Duration":
        sign = rnd.choice((1, -1))
        message.seconds = sign * rnd.randrange(2**33)
        message.nanos = sign * rnd.randrange(10**9)
    elif name in {"google.protobuf.Struct", "google.protobuf.ListValue"}:
        if name.endswith("Struct"):
            message.update({"a": 1.5, "ä": [True, None, "x"], "s": {"n": rnd.random()}})
        else:
            message.extend(["x", rnd.random(), {"k": []}])
    elif name == "google.protobuf.Value":
        message.number_value = rnd.random()
    elif depth < 4:
        fill(rnd, message, depth)
    else:
        for field in message.DESCRIPTOR.fields:
            if field.is_required:
                _fill_field(rnd, message, field, depth)


def _scalar(rnd: random.Random, field: Any) -> Any:  # noqa: ANN401
    name = {number: name for name, number in SCALARS.items()}.get(field.type)
    if field.type == _FIELD.TYPE_ENUM:
        return rnd.choice([value.number for value in field.enum_type.values])
    if name in _RANGES:
        least, most = _RANGES[name]
        return rnd.choice((least, most, 0, 1, rnd.randint(least, most), rnd.randint(0, 300)))
    if name in {"double", "float"}:
        value = rnd.uniform(-1e9, 1e9)
        return rnd.choice((value, 0.0, float("inf"), 1.5))
    if name == "bool":
        return rnd.random() < 0.5
    text = "".join(rnd.choices(string.ascii_letters + "äß€😀\0", k=rnd.choice((0, 3, 40))))
    return text.encode("utf-16") if name == "bytes" else text
