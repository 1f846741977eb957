"""Fields that a version lacks, and null where it may not be."""

from __future__ import annotations

import pytest

from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.message_writer import write_message
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION
from tests.unit.server.schema_messages import EXAMPLE


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
