"""Which records about access count, and come along."""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.recovery.access_records import access_records, bound_records, effective_records
from pylog.recovery.metadata_batches import metadata_record
from tests.support.adopted_disks import (
    LEVEL,
    old,
    run,
)
from tests.support.metadata_log import (
    ABORT,
    BEGIN,
    BROKER,
    END,
    TOPIC,
    config_record,
    topic_record,
    write_metadata_log,
)
from tests.support.metadata_rows import fields_of

if TYPE_CHECKING:
    from pathlib import Path


def test_the_old_metadata_give_configurations_and_access(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new", [acl("User:there", 1)])
    values = [
        *LEVEL,
        topic_record("t"),
        config_record(2, "t", "retention.ms", "-1"),
        config_record(4, "", "log.retention.hours", "1"),
        config_record(4, "1", "log.retention.hours", "2"),
        acl("User:there", 2),
        acl("User:kept", 3),
        acl("User:gone", 4),
        metadata_record("RemoveAccessControlEntryRecord", 0, {"id": uuid.UUID(int=4)}),
        scram("alice"),
        scram("bob"),
        metadata_record("RemoveUserScramCredentialRecord", 0, {"name": "bob", "mechanism": 1}),
    ]
    write_metadata_log(source, values)
    shutil.copytree(target, tmp_path / "other")
    summary = pylog.adopt(source, into=target)
    configs = {
        (each["resourceType"], each["resourceName"]): each["value"]
        for each in fields_of(target, "ConfigRecord")
    }
    assert configs == {(2, "t"): "-1", (4, ""): "1"}
    principals = [each["principal"] for each in fields_of(target, "AccessControlEntryRecord")]
    assert principals == ["User:there", "User:kept"]
    [user] = fields_of(target, "UserScramCredentialRecord")
    assert (user["name"], bytes(user["storedKey"])) == ("alice", b"stored-key")
    assert "stored-key" not in repr(summary)
    assert any("what was revoked" in each for each in summary.notes)
    pylog.adopt(source, into=tmp_path / "other", with_access=False)
    assert fields_of(tmp_path / "other", "UserScramCredentialRecord") == []


def acl(principal: str, number: int) -> bytes:
    fields = {
        "id": uuid.UUID(int=number),
        "resourceType": 2,
        "resourceName": "t",
        "patternType": 3,
        "principal": principal,
        "host": "*",
        "operation": 3,
        "permissionType": 3,
    }
    return metadata_record("AccessControlEntryRecord", 0, fields)


def scram(name: str) -> bytes:
    fields = {
        "name": name,
        "mechanism": 1,
        "salt": b"salt",
        "storedKey": b"stored-key",
        "serverKey": b"server-key",
        "iterations": 4096,
    }
    return metadata_record("UserScramCredentialRecord", 0, fields)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([topic_record("a"), topic_record("b")], "ab"),
        ([None, topic_record("a")], "a"),
        ([b"\x01\x7f\x00", topic_record("a")], "a"),  # of a type that is not known
        ([BEGIN, topic_record("a"), END, topic_record("b")], "ab"),
        ([BEGIN, topic_record("a"), ABORT, topic_record("b")], "b"),
        ([topic_record("a"), BEGIN, topic_record("b")], "a"),
        ([topic_record("a"), END, topic_record("b")], "ab"),
        ([BEGIN, topic_record("a"), BEGIN, topic_record("b"), END], "b"),
    ],
)
def test_records_of_a_transaction_count_once_it_has_ended(
    values: list[bytes | None], expected: str
) -> None:
    found = list(effective_records(values))
    assert "".join(record.fields["name"] for _, record in found) == expected
    assert [value for value, _ in found] == [topic_record(name) for name in expected]


def quota(user: str | None, value: float, *, remove: bool = False) -> bytes:
    entity = [{"entityType": "user", "entityName": user}]
    fields = {"entity": entity, "key": "producer_byte_rate", "value": value, "remove": remove}
    return metadata_record("ClientQuotaRecord", 0, fields)


def gone(number: int) -> bytes:
    return metadata_record("RemoveAccessControlEntryRecord", 0, {"id": uuid.UUID(int=number)})


def unscram(name: str) -> bytes:
    fields = {"name": name, "mechanism": 1}
    return metadata_record("RemoveUserScramCredentialRecord", 0, fields)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([acl("User:a", 1), acl("User:b", 2)], [0, 1]),
        ([acl("User:a", 1), gone(1)], []),
        ([acl("User:a", 1), gone(2)], [0]),  # one that was never there
        ([acl("User:a", 1), acl("User:a", 2)], [1]),  # the same ACL under another id
        ([scram("a"), scram("b"), unscram("a")], [1]),
        ([scram("a"), unscram("a"), scram("a")], [2]),
        ([quota("u", 1), quota("u", 2)], [1]),
        ([quota("u", 1), quota(None, 2), quota("", 3)], [0, 1, 2]),  # the default is no user ""
        ([quota("u", 1), quota("u", 0, remove=True)], []),
        ([config_record(BROKER, "", "a", "1"), config_record(BROKER, "7", "a", "2")], [0]),
        ([config_record(BROKER, "", "a", "1"), config_record(BROKER, "", "a", None)], []),
        ([config_record(TOPIC, "t", "a", "1"), config_record(32, "g", "a", "2")], [1]),
    ],
)
def test_the_last_record_of_each_thing_stays(values: list[bytes], expected: list[int]) -> None:
    assert list(access_records(values).values()) == [values[at] for at in expected]


def test_what_is_bound_to_brokers_and_tokens_is_counted_while_it_is_there() -> None:
    token = {
        "owner": "User:a",
        "requester": "User:a",
        "renewers": [],
        "issueTimestamp": 1,
        "maxTimestamp": 2,
        "expirationTimestamp": 3,
    }
    values = [
        *(metadata_record("DelegationTokenRecord", 0, {**token, "tokenId": each}) for each in "ab"),
        metadata_record("RemoveDelegationTokenRecord", 0, {"tokenId": "b"}),
        config_record(4, "", "log.retention.hours", "1"),
        config_record(4, "1", "log.retention.hours", "2"),
        config_record(4, "2", "log.retention.hours", "2"),
        config_record(4, "2", "log.retention.hours", None),
        config_record(16, "m", "interval.ms", "1000"),
        config_record(2, "t", "retention.ms", "1"),
    ]
    assert bound_records(values) == [
        "1 delegation token",
        "the configuration of broker 1",
        "the configuration of client metrics m",
    ]
