"""The messages of the wire: fields as in Kafka's own schemas, bytes that are read as written."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.message_schemas import (
    json_flexible_versions,
    json_shapes,
    json_versions,
    our_shapes,
    parse_json,
)
from tests.unit.server.schema_messages import MESSAGES

# kafka-python ships the JSON files of an earlier Kafka. It is not imported for them.
_KAFKA_PYTHON = find_spec("kafka")
assert _KAFKA_PYTHON is not None
assert _KAFKA_PYTHON.origin is not None
SCHEMAS = Path(_KAFKA_PYTHON.origin).parent / "protocol" / "schemas" / "resources"
KNOWN = [name for name in MESSAGES if (SCHEMAS / f"{name}.json").is_file()]


@pytest.mark.parametrize("name", KNOWN)
def test_a_message_has_the_fields_of_kafkas_schema(name: str) -> None:
    schema = parse_json((SCHEMAS / f"{name}.json").read_text("utf-8"))
    message = MESSAGES[name]
    theirs = json_versions(schema)
    both = range(max(theirs.start, message.versions.start), min(theirs.stop, message.versions.stop))
    assert both
    assert our_shapes(message, both) == json_shapes(schema, both)
    assert [each in message.flexible_versions for each in both] == [
        each in json_flexible_versions(schema) for each in both
    ]


def test_most_messages_are_compared() -> None:
    assert len(KNOWN) >= 30
