"""Properties of a configuration: names, texts and bounds, as Kafka's ConfigDef has them.

===========  =================================================================================
kind         text
===========  =================================================================================
int, long    decimal digits with an optional sign; 32 and 64 bits
double       decimal digits with an optional sign, point and exponent
boolean      ``true`` or ``false`` in any case
string       one of the listed words, exactly
list         listed words between commas, each at most once, in any order; empty is allowed
===========  =================================================================================

Blanks around a value are not part of it.

Source: ConfigDef (Kafka 4.3).
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
# Stricter than int() and float(), which also take underscores and foreign digits.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class PropertyKind(ABC):
    """How a property is written, and which values it may have."""

    __slots__ = ()

    @abstractmethod
    def parse(self, text: str) -> object:
        """Return the value that ``text`` stands for; ``ValueError`` says what was expected."""

    @abstractmethod
    def find_defect(self, value: object) -> str | None:
        """Return what was expected instead of ``value``, None if it is allowed."""

    @abstractmethod
    def text(self, value: Any) -> str:  # noqa: ANN401 - what parse returns
        """Return the text that `parse` reads as ``value``."""


@dataclass(frozen=True, slots=True)
class Number(PropertyKind):
    """A number between two bounds, both inclusive."""

    at_least: float
    at_most: float
    is_whole: bool = True
    also_allowed: int | None = None
    """A value outside the bounds that stands for something else."""

    def parse(self, text: str) -> int | float:
        """Return the number; ``ValueError`` if it is none."""
        pattern = _WHOLE_NUMBER if self.is_whole else _NUMBER
        if pattern.fullmatch(text) is None:
            raise ValueError(text)
        return int(text) if self.is_whole else float(text)

    def find_defect(self, value: object) -> str | None:
        """Return which numbers are allowed, None if ``value`` is one of them."""
        allowed = f"{self.at_least} to {self.at_most}"
        if self.also_allowed is not None:
            allowed = f"{self.also_allowed} or {allowed}"
        expected = f"{'a whole' if self.is_whole else 'a'} number, {allowed}"
        kinds = (int,) if self.is_whole else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool):
            return expected
        in_bounds = self.at_least <= value <= self.at_most
        return None if in_bounds or value == self.also_allowed else expected

    def text(self, value: float) -> str:
        """Return the number in digits."""
        return repr(value)


@dataclass(frozen=True, slots=True)
class Boolean(PropertyKind):
    """``true`` or ``false``."""

    def parse(self, text: str) -> bool:
        """Return the truth value; ``ValueError`` if it is none."""
        return {"true": True, "false": False}[text.lower()]

    def find_defect(self, value: object) -> str | None:
        """Return which values are allowed; None if ``value`` is one of them."""
        return None if isinstance(value, bool) else "true or false"

    def text(self, value: bool) -> str:  # noqa: FBT001 - the value itself
        """Return the word."""
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Choice(PropertyKind):
    """One of several words, each of which stands for a value."""

    values: Mapping[str, object]

    def parse(self, text: str) -> object:
        """Return the value of the word; ``KeyError`` if it is not listed."""
        return self.values[text]

    def find_defect(self, value: object) -> str | None:
        """Return the words, None if one of them stands for ``value``."""
        return None if value in self.values.values() else f"one of {', '.join(self.values)}"

    def text(self, value: object) -> str:
        """Return the word that stands for ``value``."""
        return next(word for word, stated in self.values.items() if stated == value)


@dataclass(frozen=True, slots=True)
class WordList(PropertyKind):
    """Words between commas, as a frozenset."""

    words: tuple[str, ...]

    def parse(self, text: str) -> frozenset[str]:
        """Return the words; ``ValueError`` if one is there twice."""
        words = [word.strip() for word in text.split(",")] if text else []
        if len(set(words)) < len(words):
            raise ValueError(text)
        return frozenset(words)

    def find_defect(self, value: object) -> str | None:
        """Return the words, None if ``value`` is a frozenset of some of them."""
        if isinstance(value, frozenset) and value <= set(self.words):
            return None
        return f"some of {', '.join(self.words)}, each once"

    def text(self, value: frozenset[str]) -> str:
        """Return the words in a fixed order."""
        return ",".join(sorted(value))


def integer(
    at_least: int, *, at_most: int = INT32_MAX, also_allowed: int | None = None
) -> PropertyKind:
    """Return the kind of Kafka's INT, 32 bits."""
    return Number(at_least, at_most, also_allowed=also_allowed)


def long(at_least: int) -> PropertyKind:
    """Return the kind of Kafka's LONG, 64 bits."""
    return Number(at_least, INT64_MAX)


def config_field(
    kind: PropertyKind,
    default: object,
    *,
    unit: str = "",
    name: str | None = None,
    broker_name: str = "",
) -> Any:  # noqa: ANN401 - as dataclasses.field, whose type is the annotation's
    """Return a dataclass field that is a property, with Kafka's default.

    Its name is the field's with points for underscores, unless ``name`` says another one. A
    property of topics has another name in a broker's own configuration: ``broker_name``.
    """
    metadata = {"kind": kind, "unit": unit, "name": name, "broker_name": broker_name}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyConfig:
    """Base of frozen dataclasses whose fields come from `config_field`."""

    source: ClassVar[str]
    """What the properties configure, for errors."""

    removed: ClassVar[Mapping[str, str]] = {}
    """Properties that Kafka had once, with the version that removed them."""

    def __post_init__(self) -> None:
        for name, each in self._fields().items():
            value = getattr(self, each.name)
            defect = each.metadata["kind"].find_defect(value)
            if defect is not None:
                raise ValueError(_refusal(name, value, defect))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Return the configuration with these properties, and defaults for all others."""
        return cls(**cls._values(properties))

    def with_properties(self, properties: Mapping[str, str]) -> Self:
        """Return the configuration changed in these properties; errors as of `from_properties`."""
        return dataclasses.replace(self, **self._values(properties))

    @classmethod
    def _values(cls, properties: Mapping[str, str]) -> dict[str, Any]:
        """Return the fields that properties give, and their values."""
        fields = cls._fields()
        values: dict[str, Any] = {}
        for name, text in properties.items():
            if name in cls.removed:
                raise ValueError(removal(name, cls.removed[name]))
            if name not in fields:
                msg = f"{name} is not a property of {cls.source}{did_you_mean(name, fields)}"
                raise ValueError(msg)
            values[fields[name].name] = parse_property(name, text, fields[name].metadata["kind"])
        return values

    @classmethod
    def kinds(cls) -> dict[str, tuple[str, PropertyKind]]:
        """Return the name of the field, and the kind, of each property."""
        return {name: (each.name, each.metadata["kind"]) for name, each in cls._fields().items()}

    @classmethod
    def broker_names(cls) -> dict[str, str]:
        """Return the broker-wide name of each property that has one."""
        names = {name: each.metadata["broker_name"] for name, each in cls._fields().items()}
        return {name: broker_name for name, broker_name in names.items() if broker_name}

    def properties(self) -> dict[str, str]:
        """Return all properties, defaults included, as `from_properties` reads them."""
        return {
            name: each.metadata["kind"].text(getattr(self, each.name))
            for name, each in self._fields().items()
        }

    @classmethod
    def _fields(cls) -> dict[str, dataclasses.Field[Any]]:
        """Return the fields by the names of their properties."""
        return {
            each.metadata["name"] or each.name.replace("_", "."): each
            for each in dataclasses.fields(cls)
        }


def parse_property(name: str, text: str, kind: PropertyKind) -> object:
    """Return the value of the property ``name``; ``ValueError`` if it is not allowed."""
    stripped = str(text).strip()
    try:
        value = kind.parse(stripped)
    except (ValueError, KeyError) as error:
        raise ValueError(_refusal(name, text, kind.find_defect(None) or "")) from error
    defect = kind.find_defect(value)
    if defect is not None:
        shown = value if isinstance(value, int | float) else stripped
        raise ValueError(_refusal(name, shown, defect))
    return value


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question for the nearest known name, as the end of a sentence; may be empty."""
    near = get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def removal(name: str, version: str) -> str:
    """Return why a property that Kafka had once is refused."""
    return f"{name} was removed in Kafka {version}: remove it here, too"


def _refusal(name: str, value: object, expected: str) -> str:
    return f"property {name} is {value!r}, expected {expected}"


class ConfigSource(StrEnum):
    """Who says what a property is, those first that win over the ones after them.

    Those that Kafka has, too, have its names (ConfigEntry.ConfigSource).
    """

    GIVEN_FOR_THIS_RUN = "GIVEN_FOR_THIS_RUN"
    """Whoever runs it."""

    STORED_TOPIC_CONFIG = "STORED_TOPIC_CONFIG"
    """``pylog-topic-configs.json`` beside the logs."""

    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    """The cluster's metadata, of the topic."""

    INTERNAL_TOPIC_CONFIG = "INTERNAL_TOPIC_CONFIG"
    """What Kafka makes this topic with, where nothing else is known of it."""

    DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
    """The cluster's metadata, of this broker."""

    DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    """The cluster's metadata, of all brokers."""

    STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
    """The broker's ``server.properties``."""

    DEFAULT_CONFIG = "DEFAULT_CONFIG"
    """Kafka's default."""

    NO_LIMIT = "NO_LIMIT"
    """Nobody: Kafka's default would remove records, and is not assumed."""


class ConfigEntry(NamedTuple):
    """A property of a topic, its value as text, and where that comes from."""

    name: str
    value: str
    source: ConfigSource
