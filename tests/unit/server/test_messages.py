"""The messages of the wire: fields as in Kafka's own schemas, bytes that are read as written."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.message_writer import (
    FileRange,
    Writable,
    size_of,
    write_message,
    write_message_to,
)
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION
from pylog.server.messages import APIS
from tests.support.message_schemas import (
    json_flexible_versions,
    json_shapes,
    json_versions,
    our_shapes,
    parse_json,
)
from tests.unit.internal_topics.random_messages import MessageBytes

MESSAGES = {
    message.name: message for api in APIS.values() for message in (api.request, api.response)
}
SEED = 7
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


@pytest.mark.parametrize("name", MESSAGES)
def test_what_is_written_is_what_was_read(name: str) -> None:
    message = MESSAGES[name]
    made = MessageBytes(Random(f"{SEED} {name}"))
    for version in message.versions:
        for _ in range(8):
            data = made.message(message, version)
            value = read_message(
                message, Readable(data), version, LATEST_KAFKA_VERSION, fills_defaults=True
            )
            written = write_message(message, value, version)
            again = Readable(written)
            assert (
                read_message(message, again, version, LATEST_KAFKA_VERSION, fills_defaults=True)
                == value
            )
            assert again.remaining == 0
            # Tags that are unknown, or at their default, are not written; true is 1.
            if version not in message.flexible_versions:
                assert len(written) == len(data)
            assert write_message(message, value, version) == written


EXAMPLE = parse_messages("""
    Example 0-2 flexible=1
      text string? null=1+
      more []int32 2+
      late string 2+ tag=3 default=never
      is_on bool default=true
      nested {Nested}? 1+ tag=0
        number int8
      records records?
""")["Example"]


def test_tagged_fields_at_their_default_take_no_room() -> None:
    value = {"text": "a", "more": [1], "late": "never", "is_on": True, "records": b"xyz"}
    assert write_message(EXAMPLE, value, 2) == b"\x02a\x02\0\0\0\1\1\4xyz\0"
    value |= {"late": "now", "nested": {"number": 5}}
    assert write_message(EXAMPLE, value, 2) == (b"\x02a\x02\0\0\0\1\1\4xyz\2\0\3\1\5\0\3\4\4now")


def test_fields_that_a_version_lacks_have_their_defaults_when_they_are_asked_for() -> None:
    data = write_message(EXAMPLE, {"text": "a", "is_on": False, "records": None}, 0)
    read = read_message(EXAMPLE, Readable(data), 0, LATEST_KAFKA_VERSION, fills_defaults=True)
    assert read == {
        "text": "a",
        "is_on": False,
        "records": None,
        "more": [],
        "late": "never",
        "nested": None,
    }


def test_null_is_refused_in_versions_that_do_not_allow_it() -> None:
    assert write_message(EXAMPLE, {"text": None}, 1)[0] == 0
    with pytest.raises(ValueError, match="text is null, which version 0 does not allow"):
        write_message(EXAMPLE, {"text": None}, 0)


def test_a_range_of_a_file_is_a_piece_of_its_own() -> None:
    writable = Writable()
    file_range = FileRange("a file", 1000, 5)
    write_message_to(writable, EXAMPLE, {"text": "a", "records": file_range}, 0)
    pieces = writable.finished()
    assert pieces == [bytearray(b"\0\1a\1\0\0\0\5"), file_range]
    assert size_of(pieces) == 13
