"""Who may do what, by records of the metadata, one after the other."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pylog.internal_topics.access_image import AccessImage

Record = tuple[str, dict[str, Any]]


def acl(number: int, **fields: object) -> Record:
    common = {
        "id": uuid.UUID(int=number),
        "resourceType": 2,
        "resourceName": "t",
        "patternType": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permissionType": 3,
    }
    return "AccessControlEntryRecord", common | fields


def user(name: str, mechanism: int, iterations: int) -> Record:
    secrets = {"salt": b"s", "storedKey": b"secret", "serverKey": b"secret"}
    fields = {"name": name, "mechanism": mechanism, "iterations": iterations}
    return "UserScramCredentialRecord", fields | secrets


def quota(key: str, value: float, *entity: tuple[str, str | None], remove: bool = False) -> Record:
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
    return "ClientQuotaRecord", {"entity": parts, "key": key, "value": value, "remove": remove}


def image(*records: Record) -> AccessImage:
    found = AccessImage()
    for name, fields in records:
        found.apply(name, fields)
    return found


@pytest.mark.parametrize(
    ("fields", "at", "expected"),
    [
        ({"resourceType": 5}, 0, "TRANSACTIONAL_ID"),
        ({"resourceType": 99}, 0, "UNKNOWN(99)"),  # of a later Kafka
        ({"patternType": 4}, 2, "PREFIXED"),
        ({"operation": 15}, 5, "TWO_PHASE_COMMIT"),
        ({"operation": 0}, 5, "UNKNOWN(0)"),
        ({"permissionType": 2}, 6, "DENY"),
    ],
)
def test_an_acl_is_in_the_words_of_kafkas_tool(
    fields: dict[str, object], at: int, expected: str
) -> None:
    [entry] = image(acl(1, **fields)).acls
    plain = ["TOPIC", "t", "LITERAL", "User:a", "*", "READ", "ALLOW"]
    assert list(entry) == [*plain[:at], expected, *plain[at + 1 :]]


def test_acls_go_by_their_ids_and_come_sorted() -> None:
    gone = "RemoveAccessControlEntryRecord", {"id": uuid.UUID(int=1)}
    records = [acl(1, principal="User:c"), acl(2, principal="User:b"), acl(3, principal="User:a")]
    assert [each.principal for each in image(*records).acls] == ["User:a", "User:b", "User:c"]
    assert [each.principal for each in image(*records, gone, gone).acls] == ["User:a", "User:b"]
    assert [each.principal for each in image(acl(1), acl(1, principal="User:z")).acls] == ["User:z"]


def test_of_a_credential_only_its_kind_is_kept() -> None:
    gone = "RemoveUserScramCredentialRecord", {"name": "b", "mechanism": 1}
    found = image(user("b", 1, 4096), user("b", 2, 8192), user("a", 9, 1), gone)
    assert [tuple(each) for each in found.users] == [
        *(("a", "UNKNOWN(9)", 1), ("b", "SCRAM-SHA-512", 8192))
    ]
    assert "secret" not in repr(vars(found))


def test_quotas_are_of_entities_whatever_the_order_of_their_parts() -> None:
    one, other = ("user", "u"), ("client-id", "c")
    found = image(
        quota("producer_byte_rate", 1, one, other),
        quota("consumer_byte_rate", 2, other, one),
        quota("producer_byte_rate", 3, ("user", None)),
        quota("producer_byte_rate", 4, ("user", "")),
        quota("producer_byte_rate", 9, ("user", "gone")),
        quota("producer_byte_rate", 0, ("user", "gone"), remove=True),
        quota("producer_byte_rate", 0, ("user", "never"), remove=True),
    )
    assert [(each.entity, each.limits) for each in found.quotas] == [
        ({"client-id": "c", "user": "u"}, {"consumer_byte_rate": 2, "producer_byte_rate": 1}),
        ({"user": None}, {"producer_byte_rate": 3}),
        ({"user": ""}, {"producer_byte_rate": 4}),
    ]


def test_a_record_that_names_a_part_twice_is_no_end() -> None:
    """No Kafka writes it; a changed byte may."""
    found = image(quota("rate", 1, ("user", "u"), ("user", None)))
    assert [each.limits for each in found.quotas] == [{"rate": 1}]


def test_other_records_change_nothing() -> None:
    found = image(("TopicRecord", {"name": "t"}))
    assert (found.acls, found.users, found.quotas) == ([], [], [])
