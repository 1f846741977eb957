"""Messages after a frame."""

from __future__ import annotations

import pytest

from pylog.errors import InvalidRecordError
from pylog.internal_topics.api_message import UnknownTypeError
from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.internal_topics.decoders import dump_decoder
from tests.support.metadata_log import topic_record


def test_a_null_is_a_text_where_a_topic_has_values_alone() -> None:
    text = "Error at 3, skipping. Error while reading frame version"
    assert dump_decoder("cluster-metadata").decode(None, None, 3) == (None, text)


VALUE = topic_record("t")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\0" + VALUE[1:], "frame version 0"),
        (b"\2" + VALUE[1:], r"frame version 2\(only frame version 1 is supported\)"),
        (VALUE + b"\0", r"Found 1 byte\(s\) of garbage after 2"),
        (VALUE[:-3], "Failed to deserialize record with type 2"),
        (b"", "Error while reading frame version"),
    ],
)
def test_a_frame_that_kafka_does_not_read_is_an_error(value: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecordError, match=reason):
        read_metadata_record(value)
    assert read_metadata_record(VALUE).fields["name"] == "t"


def test_a_type_that_is_not_known_is_an_error_of_its_own() -> None:
    with pytest.raises(UnknownTypeError):
        read_metadata_record(b"\1\x7f\0")
