"""``.proto`` text, of proto2, proto3 and editions, as what it says of messages.

Services, extensions and options that say nothing of how values are read are passed over. Groups are
refused: nobody writes them since 2008.

Source: the language specifications of proto2, proto3 and editions at protobuf.dev.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import Never

from pylog.typed.protobuf_schema import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    unescaped,
)

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>\.?[A-Za-z_][\w.]*)|(?P<number>\.?\d[\w.]*(?:(?<=[eE])[+-]\d+)?)"""
    r"""|(?P<sign>[-+{}\[\]()<>=;,:/.])""",
    re.DOTALL,
)
_LABELS = {"optional", "required", "repeated"}
_MOST_DEPTH = 60
_CLOSING = {"{": "}", "[": "]", "(": ")", "<": ">"}


def parse_proto(text: str) -> ProtoFile:
    """Return what a file says.

    Raises
    ------
    ValueError
        Says what was expected, and in which line.
    """
    return _Parser(text).file()


class _Parser:
    """Tokens of a file, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._places: list[int] = []
        self._next = 0
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._places = [at]
                self._refuse("a name, a number or a sign")
            if match.lastgroup != "space":
                self._tokens.append(match[0])
                self._places.append(at)
            at = match.end()
        self._places.append(len(text))
        self._edition = "proto2"
        self._features: dict[str, str] = {}
        self._result = ProtoFile()

    def file(self) -> ProtoFile:
        while self._peek():
            word = self._take()
            if word in {"syntax", "edition", "package", "import"}:
                self._head(word)
            elif word == "option":
                self._features |= self._statement_option()
            elif word == "message":
                self._result.messages.append(self._message(self._result.package, 0))
            elif word == "enum":
                self._result.enums.append(self._enum(self._result.package))
            elif word in {"service", "extend"}:
                self._name()
                self._skip_block()
            elif word != ";":
                self._next -= 1
                self._refuse("a message, an enum or another definition")
        return self._result

    def _head(self, word: str) -> None:
        if word == "package":
            self._result.package = self._name()
        elif word == "import":
            if self._peek() in {"public", "weak"}:
                self._take()
            self._result.imports.append(self._string())
        else:
            self._expect("=")
            self._edition = self._string()
        self._expect(";")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _refuse(self, expected: str) -> Never:
        at = self._places[min(self._next, len(self._places) - 1)]
        line = self._text.count("\n", 0, at) + 1
        found = repr(self._text[at : at + 20]) if self._text[at:].strip() else "the end"
        raise ValueError(f"line {line} of the schema: expected {expected}, found {found}")

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            self._refuse(repr(token))
        self._next += 1

    def _name(self) -> str:
        if not re.match(r"\.?[A-Za-z_]", self._peek()):
            self._refuse("a name")
        return self._take()

    def _string(self) -> str:
        parts = []
        while self._peek()[:1] in {'"', "'"}:
            parts.append(_unquoted(self._take()))
        if not parts:
            self._refuse("a string")
        return "".join(parts)

    def _integer(self) -> int:
        is_negative = self._peek() == "-"
        self._next += is_negative
        text = self._peek().lower()
        base = 16 if text.startswith("0x") else 8 if re.fullmatch("0[0-7]+", text) else 10
        if not re.fullmatch(r"0x[0-9a-f]{1,16}|\d{1,20}", text):
            self._refuse("a number")
        self._next += 1
        return -int(text, base) if is_negative else int(text, base)

    def _skip_block(self) -> list[str]:
        """Take what stands in brackets, however nested; return it."""
        start = self._next
        closing: list[str] = []
        while True:
            token = self._take()
            if not token:
                self._refuse("the end of a block")
            if token in _CLOSING:
                closing.append(_CLOSING[token])
            elif closing and token == closing[-1]:
                closing.pop()
            if not closing:
                return self._tokens[start : self._next]

    def _option(self) -> tuple[str, list[str]]:
        """Return an option's name, without blanks, and the tokens of its value."""
        name = ""
        while self._peek() not in {"=", ""}:
            name += self._take()
        self._expect("=")
        value: list[str] = []
        while self._peek() not in {",", ";", "]", ""}:
            value += self._skip_block() if self._peek() in _CLOSING else [self._take()]
        return name, value

    def _statement_option(self) -> dict[str, str]:
        name, value = self._option()
        self._expect(";")
        return _features(name, value)

    def _field_options(self) -> dict[str, list[str]]:
        options: dict[str, list[str]] = {}
        if self._peek() != "[":
            return options
        while self._peek() != "]":
            self._next += 1
            name, value = self._option()
            options.setdefault(name, []).extend(value)
            if self._peek() not in {",", "]"}:
                self._refuse("a comma or ]")
        self._next += 1
        return options

    def _message(self, scope: str, depth: int) -> ProtoMessage:
        name = self._name()
        if depth > _MOST_DEPTH:
            self._refuse(f"at most {_MOST_DEPTH} messages in each other")
        message = ProtoMessage(f"{scope}.{name}".removeprefix("."))
        self._expect("{")
        while self._peek() != "}":
            self._element(message, depth)
        self._next += 1
        return message

    def _element(self, message: ProtoMessage, depth: int) -> None:
        word = self._peek()
        following = self._tokens[self._next + 1] if self._next + 1 < len(self._tokens) else ""
        is_field = self._is_field()
        if word == ";":
            self._next += 1
        elif word == "message" and not is_field:
            self._next += 1
            message.messages.append(self._message(message.name, depth + 1))
        elif word == "enum" and not is_field:
            self._next += 1
            message.enums.append(self._enum(message.name))
        elif word == "oneof" and not is_field:
            self._next += 1
            self._oneof(message)
        elif word == "option" and not is_field:
            self._next += 1
            message.is_map_entry |= self._tokens[self._next :][:3] == ["map_entry", "=", "true"]
            self._statement_option()
        elif word in {"reserved", "extensions"} and not is_field:
            while self._peek() not in {";", ""}:
                self._take()
            self._expect(";")
        elif word == "extend" and not is_field:
            self._next += 1
            self._name()
            self._skip_block()
        elif word == "map" and following == "<":
            self._map(message)
        else:
            message.fields.append(self._field(""))

    def _is_field(self) -> bool:
        """Whether a type and a name, and a number after ``=``, come next."""
        following = self._tokens[self._next + 2 : self._next + 4]
        return len(following) == 2 and following[0] == "=" and following[1][0].isdecimal()

    def _oneof(self, message: ProtoMessage) -> None:
        name = self._name()
        self._expect("{")
        while self._peek() != "}":
            if self._peek() == ";":
                self._next += 1
            elif self._peek() == "option" and not self._is_field():
                self._next += 1
                self._statement_option()
            else:
                message.fields.append(self._field(name))
        self._next += 1

    def _field(self, oneof: str) -> ProtoField:
        label = ""
        if self._peek() in _LABELS and not self._is_field():
            label = self._take()
        kind = self._name()
        if kind == "group":
            self._next -= 1
            self._refuse("a type: groups are not read")
        name, number, options = self._rest_of_field()
        found = ProtoField(name, number, kind, label == "repeated", oneof=oneof)
        found.presence = self._presence(label, oneof, options)
        if "default" in options:
            found.default = _constant(options["default"])
            if kind == "string":
                with suppress(UnicodeError):  # bytes above 127 that stand there as they are
                    found.default = found.default.encode("latin-1").decode()
        found.decimal = _decimal(options)
        return found

    def _map(self, message: ProtoMessage) -> None:
        """Add a map as protoc does: a repeated field, and its message before those that follow."""
        self._next += 1
        self._expect("<")
        key = self._name()
        self._expect(",")
        value = self._name()
        self._expect(">")
        name, number, _ = self._rest_of_field()
        if key not in SCALARS or key in {"double", "float", "bytes"}:
            self._refuse(f"keys of integers, booleans or strings in map {name}")
        words = [word[:1].upper() + word[1:] for word in name.split("_")]
        presence = self._presence("", "", {})
        fields = [ProtoField("key", 1, key), ProtoField("value", 2, value)]
        entry = ProtoMessage(
            f"{message.name}.{''.join(words)}Entry",
            [replace(each, presence=presence) for each in fields],
            is_map_entry=True,
            is_implied=True,
        )
        message.messages.append(entry)
        of_entries = ProtoField(name, number, f".{entry.name}", is_repeated=True, presence="")
        message.fields.append(of_entries)

    def _rest_of_field(self) -> tuple[str, int, dict[str, list[str]]]:
        name = self._name()
        self._expect("=")
        number = self._integer()
        if not 0 < number < 1 << 29:
            self._next -= 1
            self._refuse("a number of a field")
        options = self._field_options()
        self._expect(";")
        return name, number, options

    def _presence(self, label: str, oneof: str, options: dict[str, list[str]]) -> str:
        features = dict(self._features)
        for name, value in options.items():
            features |= _features(name, value)
        if features.get("message_encoding") == "DELIMITED":
            self._refuse("fields with a length before them: groups are not read")
        if label == "repeated":
            return ""
        if label == "required":
            return "required"
        if oneof or label:
            return "explicit"
        if self._edition == "proto3":
            return "implicit"
        given = features.get("field_presence", "EXPLICIT")
        return {"IMPLICIT": "implicit", "LEGACY_REQUIRED": "required"}.get(given, "explicit")

    def _enum(self, scope: str) -> ProtoEnum:
        name = f"{scope}.{self._name()}".removeprefix(".")
        names: dict[int, str] = {}
        features = dict(self._features)
        first = None
        self._expect("{")
        while self._peek() != "}":
            word = self._name() if self._peek() != ";" else self._take()
            if word == "option" and self._peek() != "=":
                features |= self._statement_option()
            elif word == "reserved" and self._peek() != "=":
                while self._take() not in {";", ""}:
                    pass
            elif word != ";":
                self._expect("=")
                number = self._integer()
                names.setdefault(number, word)
                first = number if first is None else first
                self._field_options()
                self._expect(";")
        self._next += 1
        is_closed = self._edition == "proto2" or features.get("enum_type") == "CLOSED"
        return ProtoEnum(name, names, first or 0, is_closed)


def _unquoted(token: str) -> str:
    return unescaped(token[1:-1])


def _features(name: str, value: list[str]) -> dict[str, str]:
    """Return the features of an edition that an option sets."""
    if name.startswith("features."):
        return {name.removeprefix("features."): "".join(value)}
    if name != "features":
        return {}
    words = [token for token in value if token not in {"{", "}", ":", ",", ";"}]
    return dict(zip(words[::2], words[1::2], strict=False))


def _constant(tokens: list[str]) -> str:
    return "".join(_unquoted(each) if each[:1] in {'"', "'"} else each for each in tokens)


def _decimal(options: dict[str, list[str]]) -> tuple[int, int] | None:
    """Return precision and scale, which Confluent's converters keep as a field's metadata."""
    tokens = [
        token
        for name, value in options.items()
        if name.startswith("(confluent.field_meta)")
        for token in value
        if token not in {":", ",", ";"}
    ]
    found: dict[str, int] = {}
    for place in range(len(tokens) - 3):
        if tokens[place] == "key" and tokens[place + 2] == "value":
            key, value = (_unquoted(tokens[place + 1]), _unquoted(tokens[place + 3]))
            if re.fullmatch(r"-?\d{1,4}", value):
                found[key] = int(value)
    precision, scale = found.get("precision", 0), found.get("scale", 0)
    return (precision, scale) if 1 <= precision <= 38 and 0 <= scale <= precision else None
