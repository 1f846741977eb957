from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import UnknownTopicOrPartitionError
from tests.support.batches import Stored, batch_v2, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.registry_records import ORDER, ORDER_2, schema, tombstone, write_registry

if TYPE_CHECKING:
    from pathlib import Path

# Written by AvroSerializer of confluent-kafka 2.16.1, of {"id": 1} and {"id": 2, "note": "x"}.
SERIALIZED = bytes.fromhex("000000000102"), bytes.fromhex("0000000002040278")


def write_values(
    directory: Path, name: str, records: list[tuple[bytes | None, bytes | None]]
) -> None:
    stored = [Stored(offset, 1_000, *each) for offset, each in enumerate(records)]
    write_partition(directory, {0: [batch_v2(stored)]}, name=name)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    records = [
        schema("orders-value", 1, 1, ORDER),
        schema("orders-value", 2, 2, ORDER_2),
        schema("old-orders-value", 1, 1, ORDER),
        tombstone("old-orders-value", 1),
    ]
    write_registry(tmp_path, records)
    first, second = SERIALIZED
    write_values(
        tmp_path, "orders-0", [(b"user-1", first), (None, second), (first, None), (b"", b"")]
    )
    write_values(tmp_path, "orders-1", [(None, first), (None, b"\0\0\0\0\x63rest")])
    write_values(tmp_path, "plain-0", [(b"k", b"text")])
    return tmp_path


def test_usage_is_not_counted_unless_asked_for(logs: Path) -> None:
    listing = pylog.jobs.schemas(logs)
    assert listing.usage is None
    assert [each.subject for each in listing.schemas] == [
        "old-orders-value",
        "orders-value",
        "orders-value",
    ]


def test_topics_are_counted_by_the_ids_that_their_records_start_with(logs: Path) -> None:
    usage = pylog.jobs.schemas(logs, usage=True).usage
    assert usage is not None
    both = ("old-orders-value", "orders-value")
    assert [(each.topic, each.field, each.id, each.records, each.subjects) for each in usage] == [
        ("orders", "key", 1, 1, both),
        ("orders", "value", 1, 2, both),
        ("orders", "value", 2, 1, ("orders-value",)),
        ("orders", "value", 99, 1, ()),
    ]


def test_topics_can_be_chosen(logs: Path) -> None:
    assert pylog.jobs.schemas(logs, usage=True, topics=["plain"]).usage == []
    with pytest.raises(UnknownTopicOrPartitionError, match="nothing"):
        pylog.jobs.schemas(logs, usage=True, topics=["nothing"])
    with pytest.raises(ValueError, match="give usage=True"):
        pylog.jobs.schemas(logs, topics=["orders"])


def test_ids_beyond_the_first_thousand_unknown_ones_are_counted_together(tmp_path: Path) -> None:
    write_registry(tmp_path, [schema("a", 1, 5_000, ORDER)])
    ids = [*range(1, 1_501), 5_000]
    write_values(tmp_path, "raw-0", [(None, b"\0" + each.to_bytes(4)) for each in ids])
    usage = pylog.jobs.schemas(tmp_path, usage=True).usage
    assert usage is not None
    assert len(usage) == 1_002
    assert (usage[-1].id, usage[-1].records) == (None, 500)
    assert [each.subjects for each in usage if each.id == 5_000] == [("a",)]


def test_a_registry_may_have_another_topic(logs: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'registry' here"):
        pylog.jobs.schemas(logs, registry_topic="registry")
    write_registry(logs, [schema("b", 1, 1, ORDER)], name="registry-0")
    listing = pylog.jobs.schemas(logs, registry_topic="registry")
    assert [each.subject for each in listing.schemas] == ["b"]


def test_several_partitions_are_a_problem(logs: Path) -> None:
    write_registry(logs, [schema("b", 1, 7, '"int"')], name="_schemas-1")
    listing = pylog.jobs.schemas(logs)
    assert [each.code for each in listing.problems] == ["several_partitions"]
    assert "b" in {each.subject for each in listing.schemas}


def test_what_is_damaged_is_left_out_and_named(tmp_path: Path) -> None:
    batches = [
        batch_v2([Stored(0, 1_000, *schema("a", 1, 1, ORDER))]),
        with_bad_crc(batch_v2([Stored(1, 1_000, *schema("b", 1, 2, ORDER_2))])),
        batch_v2([Stored(2, 1_000, *schema("c", 1, 3, '"int"'))]),
    ]
    write_partition(tmp_path, {0: batches}, name="_schemas-0")
    value = batch_v2([Stored(0, 1_000, None, SERIALIZED[0])])
    write_partition(tmp_path, {0: [with_bad_crc(value)]}, name="orders-0")
    listing = pylog.jobs.schemas(tmp_path, usage=True)
    assert [each.subject for each in listing.schemas] == ["a", "c"]
    assert [each.path.split("/")[-2] for each in listing.damage] == ["_schemas-0", "orders-0"]


def test_a_notebook_shows_a_table(logs: Path) -> None:
    html = pylog.jobs.schemas(logs)._repr_html_()
    assert "3 schemas" in html
    assert "orders-value" in html
