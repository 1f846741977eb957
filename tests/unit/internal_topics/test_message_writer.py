"""What is written is what was read; what a version lacks takes no room."""

from __future__ import annotations

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
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION
from tests.unit.internal_topics.random_messages import MessageBytes
from tests.unit.server.schema_messages import EXAMPLE, MESSAGES

SEED = 7


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


def test_tagged_fields_at_their_default_take_no_room() -> None:
    value = {"text": "a", "more": [1], "late": "never", "is_on": True, "records": b"xyz"}
    assert write_message(EXAMPLE, value, 2) == b"\x02a\x02\0\0\0\1\1\4xyz\0"
    value |= {"late": "now", "nested": {"number": 5}}
    assert write_message(EXAMPLE, value, 2) == (b"\x02a\x02\0\0\0\1\1\4xyz\2\0\3\1\5\0\3\4\4now")


def test_a_range_of_a_file_is_a_piece_of_its_own() -> None:
    writable = Writable()
    file_range = FileRange("a file", 1000, 5)
    write_message_to(writable, EXAMPLE, {"text": "a", "records": file_range}, 0)
    pieces = writable.finished()
    assert pieces == [bytearray(b"\0\1a\1\0\0\0\5"), file_range]
    assert size_of(pieces) == 13
