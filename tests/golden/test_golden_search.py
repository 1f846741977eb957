"""Searches of golden partitions find what Kafka's consumer returned, in every format and codec."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.golden import Holds, golden_partitions, read_expected

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

_LEAST_BYTES = 4


def content_of(record: dict[str, Any], field: str) -> bytes:
    """Return a key or value; nothing for null, and for a long one, which is stored as a digest."""
    return base64.b64decode(record.get(field) or "")


def found_by(directory: object, **tests: Any) -> list[int]:  # noqa: ANN401 - of pylog.search
    found = pylog.search(str(directory), isolation="read_committed", columns=["offset"], **tests)
    offsets = [offset for batch in found for offset in batch.column("offset").to_pylist()]
    assert found.summary.unreadable == ()
    return offsets


@pytest.mark.parametrize("partition_id", golden_partitions(Holds.EXACTLY))
def test_keys_and_values_are_found_where_kafka_served_them(
    partition_id: str, golden_root: GoldenRoot
) -> None:
    partition = golden_root.partition(partition_id)
    path = partition.expected_path("committed")
    assert path is not None
    records = read_expected(path)
    for field, test in (("key", "key"), ("value", "value_contains")):
        contents = {record["offset"]: content_of(record, field) for record in records}
        unknown = {record["offset"] for record in records if field not in record}
        chosen = [each for each in contents.values() if len(each) >= _LEAST_BYTES]
        for content in {*chosen[:1], *chosen[-1:]}:
            found = found_by(partition.directory, **{test: content})
            expected = [
                offset
                for offset, each in contents.items()
                if (each == content if test == "key" else content in each)
            ]
            assert [offset for offset in found if offset not in unknown] == expected
