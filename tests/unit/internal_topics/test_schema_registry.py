from __future__ import annotations

import base64
import hashlib
import json

import pytest

from pylog.errors import InvalidRecordError
from pylog.internal_topics.schema_registry import (
    SchemaReference,
    Subject,
    config_of,
    read_key,
    read_object,
    schema_value,
)
from tests.support.registry_records import (
    NOOP,
    ORDER,
    compact,
    context,
    karapace_schema,
    of_subject,
    schema,
    schema_key,
)

ASSOCIATION = (
    b'{"keytype":"ASSOC","tenant":"default","resourceName":"n","resourceNamespace":"s",'
    b'"resourceType":"topic","associationType":"value","subject":"orders-value","magic":0}'
)


def value_of(record: bytes | None) -> dict[str, object]:
    fields = read_object(record)
    assert fields is not None
    return dict(fields)


@pytest.mark.parametrize(
    "key",
    [
        schema_key("orders-value", 3),
        schema_key("ümläut 😀", 1),
        schema_key(':.dev:a"b\\c', 1),
        of_subject("CONFIG", None, {})[0],
        of_subject("MODE", "orders-value", {})[0],
        of_subject("DELETE_SUBJECT", "orders-value", {})[0],
        of_subject("CLEAR_SUBJECT", "orders-value", {})[0],
        NOOP[0],
        context(".dev")[0],
        ASSOCIATION,
    ],
)
def test_keys_of_confluents_classes_are_canonical(key: bytes) -> None:
    assert read_key(key).is_canonical


def test_a_key_has_subject_version_and_magic() -> None:
    key = read_key(schema_key("orders-value", 3, magic=0))
    assert (key.keytype, key.subject, key.version, key.magic) == ("SCHEMA", "orders-value", 3, 0)


@pytest.mark.parametrize(
    "key",
    [
        karapace_schema("s", 1, 1, ORDER, deprecated=True)[0],
        b'{"keytype":"CONFIG","subject":null,"magic":0}',  # Karapace's of the whole registry
        b'{"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}',
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1,"more":2}',
    ],
)
def test_other_bytes_of_the_same_key_are_read_and_not_canonical(key: bytes | None) -> None:
    assert not read_key(key).is_canonical


@pytest.mark.parametrize(
    ("key", "message", "stops"),
    [
        (None, "the key is null", True),
        (b"null", "JSON null", True),
        (b"", "no JSON", False),
        (b"{", "no JSON", False),
        (b"\xff\xfe\xfd", "no JSON", False),
        (b"[1]", "no JSON object", False),
        (b"{}", "keytype is null, expected one of SCHEMA, CONFIG", True),
        (b'{"keytype":7}', "keytype is 7", True),
        (b'{"keytype":["SCHEMA"]}', "keytype is a list", True),
        (b'{"keytype":"SCHEME"}', 'keytype is "SCHEME"', True),
        (b'{"keytype":"SCHEMA","version":1,"magic":1}', "no subject", False),
        (b'{"keytype":"SCHEMA","subject":7,"version":1,"magic":1}', "subject is 7", False),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":2}', "magic is 2", False),
        (b'{"keytype":"SCHEMA","subject":"s","version":{},"magic":1}', "is an object", False),
        (b'{"keytype":"SCHEMA","subject":"s","version":true,"magic":1}', "is true", False),
        (b'{"keytype":"SCHEMA","subject":"s","version":1e99,"magic":1}', "32 bits", False),
        (b'{"keytype":"SCHEMA","subject":"s","version":NaN,"magic":1}', "NaN", False),
        (b"[" * 200_000, "nested too deeply", False),
        (b"9" * 5_000, "no JSON", False),
    ],
)
def test_keys_that_a_registry_does_not_take(
    key: bytes | None, message: str, *, stops: bool
) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        read_key(key)
    assert message in str(caught.value)
    assert ("registry stops reading" in str(caught.value)) == stops


def test_a_value_is_what_was_registered() -> None:
    _, data = schema(
        *("orders-value", 2, 7, 'syntax = "proto3";'),
        kind="PROTOBUF",
        references=[("common.proto", "common", 1)],
    )
    found = schema_value(value_of(data))
    assert found[:5] == ("orders-value", 2, 7, "PROTOBUF", 'syntax = "proto3";')
    assert found.references == (SchemaReference("common.proto", "common", 1),)
    assert not found.deleted


def test_the_type_is_avro_where_none_is_stored() -> None:
    assert schema_value(value_of(schema("s", 1, 1, ORDER)[1])).type == "AVRO"


def test_numbers_and_switches_may_be_texts_as_for_jackson() -> None:
    fields = {"id": "7", "version": 2.0, "schema": "{}", "deleted": "true"}
    found = schema_value(fields)
    assert (found.id, found.version, found.deleted) == (7, 2, True)


def test_what_follows_the_document_is_ignored() -> None:
    assert read_object(b' {"id":7} and more') == {"id": 7}


def test_half_a_surrogate_pair_is_replaced() -> None:
    found = schema_value({"id": 1, "schema": json.loads('"a\\ud800b"')})
    found.schema.encode()
    assert found.schema[0] == "a"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "id is null"),
        ({"id": 1 << 31}, "id is a number of more than 32 bits"),
        ({"id": "seven"}, 'id is "seven"'),
        ({"schema": None}, "no schema"),
        ({"schema": {"type": "string"}}, "schema is an object"),
        ({"schemaType": 1}, "schemaType is 1"),
        ({"references": "common"}, 'references is "common"'),
        ({"references": [1]}, "a reference is 1"),
        ({"references": [{"name": "n", "subject": [], "version": 1}]}, "subject is a list"),
        ({"deleted": []}, "deleted is a list"),
        ({"md5": "AAAA"}, 'md5 is "AAAA", expected 16 bytes'),
        ({"md5": "ä"}, "expected 16 bytes"),
        ({"subject": 1.5}, "subject is 1.5"),
    ],
)
def test_values_of_wrong_types_are_errors(change: dict[str, object], message: str) -> None:
    fields = {"subject": "s", "version": 1, "id": 1, "schema": "{}", "deleted": False} | change
    with pytest.raises(InvalidRecordError, match=r".") as caught:
        schema_value(fields)
    assert message in str(caught.value)


# Both digests are pinned in SchemaValuesTest of Confluent's registry.
PINNED = (
    '{"type":"record","name":"myrecord","fields":[{"type":"string","default":null,"name":"f"}]}'
)
DIGEST = bytes(
    each % 256
    for each in (29, 32, -53, -71, -27, -29, 94, -105, 84, -25, -38, 23, 11, 110, 93, -37)
)


def test_the_guid_is_confluents_digest_of_the_text() -> None:
    found = schema_value(value_of(schema("subject", 1, 1, PINNED, kind="AVRO")[1]))
    assert found.guid is not None
    assert found.guid.replace("-", "") == DIGEST.hex()


def test_the_guid_that_is_stored_counts() -> None:
    stored = base64.b64encode(DIGEST).decode()
    found = schema_value(value_of(schema("s", 1, 1, ORDER, md5=stored)[1]))
    assert found.guid is not None
    assert found.guid.replace("-", "") == DIGEST.hex()


def test_a_guid_with_metadata_is_known_only_where_it_is_stored() -> None:
    data = schema("s", 1, 1, ORDER, metadata={"properties": {"owner": "x"}})[1]
    assert schema_value(value_of(data)).guid is None


def test_references_are_part_of_the_digest_as_name_subject_and_version() -> None:
    data = schema("s", 1, 1, ORDER, references=[("n", "t", 258), ("m", "u", 1)])[1]
    digest = hashlib.md5(f"{ORDER}nt".encode() + b"\0\0\1\2mu\0\0\0\1", usedforsecurity=False)
    guid = schema_value(value_of(data)).guid
    assert guid is not None
    assert guid.replace("-", "") == digest.hexdigest()


@pytest.mark.parametrize(
    ("qualified", "expected"),
    [
        ("orders-value", (".", "orders-value")),
        (":.dev:orders-value", (".dev", "orders-value")),
        (":.:orders-value", (".", "orders-value")),
        (":.dev", (".dev", "")),
        (":.dev:", (".dev", "")),
        (":.dev:a:b", (".dev", "a:b")),
        (":*:a", ("*", "a")),
        (":dev:a", (".", ":dev:a")),
        (None, (".", "")),
    ],
)
def test_a_subject_has_a_context(qualified: str | None, expected: tuple[str, str]) -> None:
    assert Subject.of(qualified) == expected


def test_settings_are_words_and_switches() -> None:
    fields = value_of(
        compact(
            {
                "subject": "s",
                "alias": "t",
                "normalize": True,
                "compatibilityLevel": "FULL",
                "defaultMetadata": {"tags": {}},
            }
        )
    )
    assert config_of(fields) == {"alias": "t", "normalize": True, "compatibilityLevel": "FULL"}
    with pytest.raises(InvalidRecordError, match="alias is a list"):
        config_of({"alias": []})
