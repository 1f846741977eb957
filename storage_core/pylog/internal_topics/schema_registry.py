"""Records of ``_schemas``, in which Confluent's Schema Registry and Karapace keep schemas.

Keys and values are JSON. They are read as the registry's JSON library (Jackson) reads them: text
after the document is ignored, and a number may be a text of digits.

Source: SchemaRegistrySerializer, KafkaStoreReaderThread, SchemaKey and SchemaValue with their
neighbours, MD5, QualifiedSubject (Schema Registry 8.5); key_format.py, schema_registry.py
(Karapace, June 2026).
"""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.text.jackson import jackson_text

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMAS_TOPIC = "_schemas"
"""The default of ``kafkastore.topic``."""

COMPATIBILITY_LEVELS = (
    "NONE",
    *(f"{each}{end}" for each in ("BACKWARD", "FORWARD", "FULL") for end in ("", "_TRANSITIVE")),
)
"""How a new version of a subject has to agree with the versions before."""

DEFAULT_CONTEXT = "."
_GLOBAL_CONTEXT = ".__GLOBAL"

_OF_SUBJECT = ("keytype", "subject", "magic")
_KEY_FIELDS: Mapping[str, tuple[str, ...]] = {
    "SCHEMA": ("keytype", "subject", "version", "magic"),
    "CONFIG": _OF_SUBJECT,
    "MODE": _OF_SUBJECT,
    "DELETE_SUBJECT": _OF_SUBJECT,
    "CLEAR_SUBJECT": _OF_SUBJECT,
    "NOOP": ("keytype", "magic"),
    "CONTEXT": ("keytype", "tenant", "context", "magic"),
    "ASSOC": (
        *("keytype", "tenant", "resourceName", "resourceNamespace", "resourceType"),
        *("associationType", "subject", "magic"),
    ),
}
# Settings of a subject that are a word or a switch; the others are metadata and rules.
_CONFIG_FIELDS = (
    *("alias", "aliasForDeks", "normalize", "validateFields", "validateNewSchemas"),
    *("validateRules", "compatibilityLevel", "compatibilityPolicy", "compatibilityGroup"),
)
_STOPS = "; Confluent's registry stops reading here"


class Subject(NamedTuple):
    """A subject taken apart: ``:.dev:orders-value`` is ``orders-value`` in the context ``.dev``."""

    context: str
    name: str

    @classmethod
    def of(cls, qualified: str | None) -> Subject:
        """Return the parts of a subject as records have it."""
        text = qualified or ""
        if text.startswith(":."):
            context, _, name = text[1:].partition(":")
            return cls(context, name)
        if text.startswith(":*:"):
            return cls("*", text[3:])
        return cls(DEFAULT_CONTEXT, text)

    def covers(self, other: Subject) -> bool:
        """Whether clearing this one clears the other: a context without a name is all of it."""
        if self == other:
            return True
        return not self.name and self.context in (_GLOBAL_CONTEXT, other.context)


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one uses.

    Attributes
    ----------
    name
        What the schema's text calls it: a full name in Avro, the path of an import in Protobuf, a
        URL in JSON Schema.
    subject, version
        Where it is registered.
    """

    name: str
    subject: str
    version: int


class RegistryKey(NamedTuple):
    """A key; ``is_canonical`` if its bytes are those that Confluent's registry writes."""

    keytype: str
    subject: str | None
    version: int
    magic: int
    context: str | None
    is_canonical: bool


class SchemaValue(NamedTuple):
    """What is registered as a version of a subject; the subject may be missing in old records."""

    subject: str | None
    version: int | None
    id: int
    type: str
    schema: str
    references: tuple[SchemaReference, ...]
    guid: str | None
    deleted: bool


def read_key(key: bytes | None) -> RegistryKey:
    """Return a key; `InvalidRecordError` if the registry does not understand it either."""
    if key is None:
        raise InvalidRecordError(f"the key is null{_STOPS}")
    fields = _json(key, "key")
    if fields is None:
        raise InvalidRecordError(f"the key is the JSON null{_STOPS}")
    if not isinstance(fields, dict):
        raise InvalidRecordError("the key is no JSON object")
    keytype = fields.get("keytype")
    if not isinstance(keytype, str) or keytype not in _KEY_FIELDS:
        known = ", ".join(_KEY_FIELDS)
        shown = _shown(keytype)
        raise InvalidRecordError(f"keytype is {shown}, expected one of {known}{_STOPS}")
    magic = _integer(fields, "magic", 0)
    version = 0
    subject = _text(fields, "subject")
    if keytype == "SCHEMA":
        if magic not in (0, 1):
            raise InvalidRecordError(f"magic is {magic}, expected 1, or 0 in old records")
        if subject is None:
            raise InvalidRecordError("a SCHEMA key has no subject")
        version = _integer(fields, "version", 0)
    context = _text(fields, "context")
    return RegistryKey(keytype, subject, version, magic, context, _is_canonical(key, fields))


def schema_record(
    subject: str, version: int, schema_id: int, kind: str, schema: str
) -> tuple[bytes, bytes]:
    """Return key and value by which a registry enters a schema without references."""
    value: dict[str, Any] = {"subject": subject, "version": version, "id": schema_id}
    if kind != "AVRO":
        value["schemaType"] = kind
    value |= {"schema": schema, "deleted": False}
    return schema_key(subject, version), jackson_text(value).encode()


def schema_key(subject: str, version: int) -> bytes:
    """Return the key of a version; with a null value it removes the version."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return jackson_text(key).encode()


def _is_canonical(key: bytes, fields: Mapping[str, Any]) -> bool:
    names = _KEY_FIELDS[fields["keytype"]]
    written = {name: fields[name] for name in names if fields.get(name) not in (None, "")}
    if any(isinstance(each, (dict, list)) for each in written.values()):
        return False
    text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") == key


def read_object(value: bytes | None) -> Mapping[str, Any] | None:
    """Return the fields of a value; None for a tombstone, `InvalidRecordError` if it is broken."""
    if value is None:
        return None
    fields = _json(value, "value")
    if fields is not None and not isinstance(fields, dict):
        raise InvalidRecordError("the value is no JSON object")
    return fields


def schema_value(fields: Mapping[str, Any]) -> SchemaValue:
    """Return the value of a SCHEMA record; `InvalidRecordError` if something in it is wrong."""
    schema = _text(fields, "schema")
    if schema is None:
        raise InvalidRecordError("the value has no schema")
    references = tuple(_references(fields.get("references")))
    return SchemaValue(
        _text(fields, "subject"),
        None if fields.get("version") is None else _integer(fields, "version"),
        _integer(fields, "id"),
        _text(fields, "schemaType") or "AVRO",
        schema,
        references,
        _guid(fields, schema, references),
        _is_true(fields, "deleted"),
    )


def deleted_subject(fields: Mapping[str, Any]) -> tuple[str | None, int]:
    """Return a subject, and the version up to which it is deleted."""
    return _text(fields, "subject"), _integer(fields, "version")


def subject_of(fields: Mapping[str, Any]) -> str | None:
    """Return the subject that a value names."""
    return _text(fields, "subject")


def config_of(fields: Mapping[str, Any]) -> dict[str, str | bool]:
    """Return the settings of a subject that are a word or a switch."""
    found = {name: fields[name] for name in _CONFIG_FIELDS if fields.get(name) is not None}
    for name, each in found.items():
        if not isinstance(each, (str, bool)):
            raise InvalidRecordError(f"{name} is {_shown(each)}, expected a text or true or false")
    return {
        name: _encodable(each) if isinstance(each, str) else each for name, each in found.items()
    }


def mode_of(fields: Mapping[str, Any]) -> str | None:
    """Return the mode of a subject: READWRITE, READONLY, IMPORT and the like."""
    return _text(fields, "mode")


def _json(data: bytes, what: str) -> Any:  # noqa: ANN401 - whatever is there
    try:
        text = data.decode(json.detect_encoding(data)).lstrip(" \t\r\n")
        return json.JSONDecoder().raw_decode(text)[0]
    except RecursionError:
        raise InvalidRecordError(f"the {what} is JSON that is nested too deeply") from None
    except ValueError as error:
        raise InvalidRecordError(f"the {what} is no JSON: {error}") from None


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRecordError(f"{name} is {_shown(value)}, expected a text")
    return _encodable(value)


def _encodable(text: str) -> str:
    """Return a text that UTF-8 can hold: half a surrogate pair is nothing."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_INT32 = range(-(1 << 31), 1 << 31)
_MOST_DIGITS = 11


def _integer(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value: Any = fields.get(name)
    if value is None and default is not None:
        return default
    is_text = isinstance(value, str) and len(value) <= _MOST_DIGITS and value.strip().isdecimal()
    if is_text or (isinstance(value, float) and value == value // 1):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value not in _INT32:
        raise InvalidRecordError(f"{name} is {_shown(value)}, expected a number of 32 bits")
    return value


def _is_true(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value in (None, False, "false", "False", "", 0):
        return False
    if isinstance(value, int) or value in ("true", "True"):
        return True
    raise InvalidRecordError(f"{name} is {_shown(value)}, expected true or false")


def _references(given: object) -> list[SchemaReference]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise InvalidRecordError(f"references is {_shown(given)}, expected a list")
    found = []
    for each in given:
        if not isinstance(each, dict):
            raise InvalidRecordError(f"a reference is {_shown(each)}, expected an object")
        name, subject = _text(each, "name"), _text(each, "subject")
        found.append(SchemaReference(name or "", subject or "", _integer(each, "version", 0)))
    return found


def _guid(
    fields: Mapping[str, Any], schema: str, references: tuple[SchemaReference, ...]
) -> str | None:
    """Return a schema's GUID: an MD5 digest that is stored, or that follows from the text.

    That of a schema with metadata or rules is not computed where it is not stored.
    """
    stored = _text(fields, "md5")
    if stored is not None:
        try:
            return str(uuid.UUID(bytes=base64.b64decode(stored, validate=True)))
        except ValueError:
            raise InvalidRecordError(f"md5 is {_shown(stored)}, expected 16 bytes") from None
    if fields.get("metadata") is not None or fields.get("ruleSet") is not None:
        return None
    import hashlib  # noqa: PLC0415 - every read imports this module, for the topic's name

    digest = hashlib.md5(schema.encode(), usedforsecurity=False)
    for each in references:
        digest.update((each.name + each.subject).encode())
        digest.update(each.version.to_bytes(4, "big", signed=True))
    return str(uuid.UUID(bytes=digest.digest()))


_MOST_SHOWN = 40


def _shown(value: object) -> str:
    """Return a value of JSON as messages have it."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value not in _INT32:
        return "a number of more than 32 bits"
    text = json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
