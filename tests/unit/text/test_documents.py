"""Results as JSON has them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pylog import TopicPartition
from pylog.jobs import document_of


class Kind(StrEnum):
    LATE = "late"


class Part(NamedTuple):
    topic_partition: TopicPartition
    size_bytes: int
    kind: Kind


@dataclass
class Whole:
    first_parts: tuple[Part, ...]
    by_name: dict[str, Part]
    error: Exception


def test_names_are_in_camel_case_at_every_depth() -> None:
    part = Part(TopicPartition("orders", 3), 10, Kind.LATE)
    as_json = {"topic": "orders", "partition": 3, "sizeInBytes": 10, "kind": "late"}
    assert document_of(Whole((part,), {"a_b": part}, ValueError("no"))) == {
        "firstParts": [as_json],
        "byName": {"a_b": as_json},
        "error": "no",
    }


def test_attributes_may_have_other_names_or_none() -> None:
    part = Part(TopicPartition("orders", 3), 10, Kind.LATE)
    assert document_of([part], {"size_bytes": "removedBytes", "kind": None}) == [
        {"topic": "orders", "partition": 3, "removedBytes": 10}
    ]
