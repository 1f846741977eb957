from __future__ import annotations

import pytest

from pylog.reading.value_format import ValueFormat


def test_a_name_stands_for_a_format() -> None:
    assert ValueFormat.of("avro") == ValueFormat(format="avro")
    assert ValueFormat.of(None) is None
    given = ValueFormat(subject="a")
    assert ValueFormat.of(given) is given


def test_unknown_formats_and_versions_are_refused() -> None:
    with pytest.raises(ValueError, match="the format of values is 'xml', expected one of 'auto'"):
        ValueFormat.of("xml")
    with pytest.raises(ValueError, match="version is 'last', expected a number, 'latest' or"):
        ValueFormat(version="last")


def test_unknown_ways_of_naming_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="message_indexes is 'zigzag', expected one of 'spec'"):
        ValueFormat(message_indexes="zigzag")
