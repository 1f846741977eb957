from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pylog.internal_topics.schema_registry import COMPATIBILITY_LEVELS
from pylog.typed.avro_compatibility import incompatibilities
from pylog.typed.avro_schema import AvroType, parse_schema
from tests.unit.typed.java_avro import JAVA

if TYPE_CHECKING:
    from collections.abc import Mapping


def record(*fields: Mapping[str, object], name: str = "R") -> AvroType:
    return parse_schema(json.dumps({"type": "record", "name": name, "fields": fields}))


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string"}
WITH_DEFAULT = {**NOTE, "default": ""}


@pytest.mark.parametrize(("writer", "reader"), JAVA["compatible"])
def test_what_java_reads_is_compatible(writer: str, reader: str) -> None:
    assert incompatibilities("BACKWARD", parse_schema(reader), [parse_schema(writer)]) == []
    assert incompatibilities("FORWARD", parse_schema(writer), [parse_schema(reader)]) == []


@pytest.mark.parametrize(("writer", "reader"), JAVA["incompatible"])
def test_what_java_does_not_read_is_not(writer: str, reader: str) -> None:
    assert incompatibilities("BACKWARD", parse_schema(reader), [parse_schema(writer)])


@pytest.mark.parametrize(
    ("new", "old", "levels"),
    [
        ([ID, WITH_DEFAULT], [ID], {"BACKWARD", "FORWARD", "FULL"}),
        ([ID, NOTE], [ID], {"FORWARD"}),
        ([ID], [ID, NOTE], {"BACKWARD"}),
        ([NOTE], [ID], set()),
    ],
)
def test_each_level_asks_who_can_read_whom(
    new: list[Mapping[str, object]], old: list[Mapping[str, object]], levels: set[str]
) -> None:
    found = {
        level
        for level in ("BACKWARD", "FORWARD", "FULL")
        if not incompatibilities(level, record(*new), [record(*old)])
    }

    assert found == levels


@pytest.mark.parametrize("level", COMPATIBILITY_LEVELS[1:])
def test_transitive_levels_look_at_all_versions(level: str) -> None:
    versions = [record({"name": "x", "type": "int"}), record(ID)]

    found = incompatibilities(level, record(ID), versions)

    assert bool(found) == level.endswith("_TRANSITIVE")


def test_the_path_says_where() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    fewer = {**enum, "symbols": ["A"]}
    old, new = (
        record({"name": "all", "type": {"type": "array", "items": each}}) for each in (enum, fewer)
    )

    (found,) = incompatibilities("BACKWARD", new, [old])

    assert found == (
        "the new schema cannot read: all[]: the reader's enum E has no symbol B, and no default"
    )


def test_records_have_to_keep_their_name() -> None:
    (found,) = incompatibilities("BACKWARD", record(ID, name="S"), [record(ID)])

    assert "the writer's record R has another name than record S" in found


def test_logical_types_have_to_agree() -> None:
    date = {"name": "id", "type": {"type": "int", "logicalType": "date"}}
    time = {"name": "id", "type": {"type": "int", "logicalType": "time-millis"}}

    assert incompatibilities("BACKWARD", record(date), [record(time)])
