from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.registry_records import (
    NOOP,
    ORDER,
    ORDER_2,
    context,
    delete_subject,
    karapace_schema,
    of_subject,
    schema,
    tombstone,
    write_registry,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    records = [
        NOOP,
        schema("common", 1, 5, '"string"'),
        schema("orders-value", 1, 7, ORDER),
        schema("orders-value", 2, 9, ORDER_2, references=[("s", "common", 1)]),
        delete_subject("orders-value", 1),
        of_subject("CONFIG", None, {"compatibilityLevel": "FULL"}),
        of_subject("MODE", "orders-value", {"mode": "READONLY"}),
        context(".dev"),
        karapace_schema("audit-value", 1, 9, ORDER_2, deprecated=True),
    ]
    write_registry(tmp_path, records)
    return tmp_path


def test_a_table_has_subjects_versions_and_states(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("schemas", logs)
    assert done.lines == [
        "SUBJECT       VERSION  ID  TYPE  STATE         REFERENCES",
        "audit-value         1   9  AVRO  active        -",
        "common              1   5  AVRO  active        -",
        "orders-value        1   7  AVRO  soft-deleted  -",
        "orders-value        2   9  AVRO  active        common 1",
        "",
        "4 schemas of 3 subjects",
    ]
    assert done.status == 0
    assert "1 key is not in the form that Confluent's registry writes, first at offset 8" in (
        done.error
    )


def test_json_is_what_other_programs_rely_on(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    document = json.loads(pylog_run("schemas", logs, "--json").output)
    assert document["schemaVersion"] == 1
    names = "id", "subject", "version", "type", "schema", "deleted"
    assert [{name: each[name] for name in names} for each in document["schemas"]] == [
        dict(zip(names, row, strict=True))
        for row in (
            (9, "audit-value", 1, "AVRO", ORDER_2, False),
            (5, "common", 1, "AVRO", '"string"', False),
            (7, "orders-value", 1, "AVRO", ORDER, True),
            (9, "orders-value", 2, "AVRO", ORDER_2, False),
        )
    ]
    assert document["schemas"][3]["references"] == [
        {"name": "s", "subject": "common", "version": 1}
    ]
    assert document["settings"] == [
        {"subject": None, "mode": None, "configs": {"compatibilityLevel": "FULL"}},
        {"subject": "orders-value", "mode": "READONLY", "configs": {}},
    ]
    assert document["contexts"] == [".dev"]
    assert [(each["code"], each["offset"]) for each in document["problems"]] == [("key_format", 8)]
    assert document["usage"] is None


def test_a_subject_is_shown_with_its_text(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("schemas", logs, "--subject", "orders-value", "--text")
    assert done.lines == [
        "orders-value version 1, id 7, AVRO, soft-deleted",
        ORDER,
        "",
        "orders-value version 2, id 9, AVRO, active",
        ORDER_2,
        "",
    ]
    done = pylog_run("schemas", logs, "--subject", "nobody")
    assert done.status == 2
    assert "no subject 'nobody' here; subjects found: audit-value, common" in done.error


def test_usage_names_ids_that_no_schema_has(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    values = [b"\0\0\0\0\x07\x02", b"\0\0\0\0\x09\x02", b"\0\0\0\0\x63\x02", b"{}"]
    stored = [Stored(offset, 1_000, b"key", each) for offset, each in enumerate(values)]
    write_partition(logs, {0: [batch_v2(stored)]}, name="orders-0")
    done = pylog_run("schemas", logs, "--usage", "--topic", "orders")
    assert done.status == 1
    assert done.lines[6:11] == [
        "TOPIC   FIELD  ID  RECORDS  SUBJECTS",
        "orders  value   7        1  orders-value",
        "orders  value   9        1  audit-value, orders-value",
        "orders  value  99        1  unknown id",
        "",
    ]
    assert "topic orders: 1 value with ids that no schema has: 99" in done.error


def test_an_id_that_is_given_twice_is_told_with_both_texts(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_registry(tmp_path, [schema("a", 1, 7, ORDER), schema("b", 1, 7, ORDER_2)])
    done = pylog_run("schemas", tmp_path)
    assert done.status == 1
    assert "offset 1: id 7 of b version 1 already belongs to a version 1" in done.error
    assert f"id 7: {ORDER}" in done.error
    assert f"id 7: {ORDER_2}" in done.error


def test_hostile_records_are_told_and_nothing_falls(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_registry(
        tmp_path,
        [
            schema("a", 1, 1, ORDER),
            (b"{", None),
            (None, b"{}"),
            (b"[" * 100_000, b"{}"),
            (schema("a", 2, 2, ORDER)[0], b'{"id":"x","schema":[]}'),
            (schema("b\x1b[31m", 1, 3, "\x1b[2J")),
            (of_subject("CONFIG", "a", {"compatibilityLevel": [[[]]]})),
            tombstone("z", 1),
        ],
    )
    done = pylog_run("schemas", tmp_path)
    assert done.status == 1
    assert "Traceback" not in done.error
    assert "\x1b" not in done.error + done.output.decode()
    assert "2 schemas of 2 subjects" in done.lines
    assert "offset 2: the key is null; Confluent's registry stops reading here" in done.error
    assert "2 more like these" in done.error
    assert "\x1b" not in pylog_run("schemas", tmp_path, "--text").output.decode()
    document = json.loads(pylog_run("schemas", tmp_path, "--json").output)
    assert [each["offset"] for each in document["problems"]] == [1, 2, 3, 4, 6]
