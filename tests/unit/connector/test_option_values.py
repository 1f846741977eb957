"""The option in which `pyspark_pylog.table` hands predicates to the reader."""

from __future__ import annotations

import pytest

from pylog import RecordFilter
from pyspark_pylog import option_values as values
from pyspark_pylog.option_values import format_record_filter
from pyspark_pylog.options import LoadOptions


def parse_record_filter(text: str | None) -> RecordFilter | None:
    given = {} if text is None else {"recordFilter": text}
    return LoadOptions.parse({"path": "/logs", **given}).where


WHOLE = RecordFilter(
    topics=frozenset({"a", "ü"}),
    partitions=frozenset({0, 7}),
    keys=frozenset({b"", b"\xff\x00"}),
    min_offset=3,
    max_offset=2**63,
    min_timestamp=-1,
    max_timestamp=5,
)


@pytest.mark.parametrize(
    "where",
    [RecordFilter(), WHOLE, RecordFilter(keys=frozenset()), RecordFilter(max_offset=-5)],
)
def test_what_is_written_is_read_again(where: RecordFilter) -> None:
    assert parse_record_filter(format_record_filter(where)) == where


def test_without_an_option_there_is_no_filter() -> None:
    assert parse_record_filter(None) is None


@pytest.mark.parametrize(
    "text",
    [
        "offset > 3",
        "[]",
        '{"topics": "orders"}',
        '{"topics": [1]}',
        '{"partitions": ["0"]}',
        '{"partitions": [true]}',
        '{"keys": ["not base64!"]}',
        '{"keys": ["aGk=!"]}',
        '{"min_offset": 1.5}',
        '{"min_offset": "3"}',
        '{"max_offset": null}',
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^option recordFilter is .*, expected what pyspark_pylog"
    ):
        parse_record_filter(text)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="has unknown fields min_ofset"):
        parse_record_filter('{"min_ofset": 3}')


@pytest.mark.parametrize(("text", "version"), [("3", 3), (" Latest", "latest"), ("union", "union")])
def test_a_version_is_a_number_or_a_word(text: str, version: int | str) -> None:
    assert values.version(text) == version


@pytest.mark.parametrize("text", ["0", "-1", "first", "1.5"])
def test_other_versions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number of 1 or more, latest or union"):
        values.version(text)
