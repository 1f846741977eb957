"""The numbers of the drawing, and of the page around it, in a log that is made here."""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest

import pylog
from tests.website.lookup_drawing import BATCHES, INDEX_ENTRIES, SEGMENTS, WANTED, lookup_drawing

ROOT = Path(__file__).parents[3]
VALUE = bytes(98)  # a record of 107 bytes
INDEX_ENTRY = struct.Struct(">ii")


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a partition with the segments and batches of the drawing."""
    config = pylog.LogConfig(index_interval_bytes=300)
    with pylog.logs.LogManager([tmp_path], config) as manager:
        log = manager.get_or_create_log(pylog.TopicPartition("orders", 0))
        for before, after in pairwise(SEGMENTS):
            for batch in BATCHES if before == SEGMENTS[1] else ():
                builder = pylog.logs.RecordBatchBuilder(
                    base_offset=batch.first_offset, partition_leader_epoch=0
                )
                for _ in range(batch.first_offset, batch.last_offset + 1):
                    builder.append(1_730_999_991_709, None, VALUE)
                log.append_as_follower(builder.build())
            log.roll(after)
    return tmp_path / "orders-0"


def test_the_segments_are_named_as_in_the_drawing(partition: Path) -> None:
    names = sorted(file.name for file in partition.glob("*.log"))
    assert names == [f"{offset:020}.log" for offset in SEGMENTS]
    assert all(name in lookup_drawing() for name in names)


def test_batches_and_index_entries_are_where_the_drawing_has_them(partition: Path) -> None:
    batches = pylog.read_table(partition, "batches").to_pylist()
    assert [
        (each["base_offset"], each["last_offset"], each["position"], each["size_in_bytes"])
        for each in batches
    ] == list(BATCHES)
    index = (partition / f"{SEGMENTS[1]:020}.index").read_bytes()
    assert tuple(INDEX_ENTRY.iter_unpack(index)) == INDEX_ENTRIES


def test_the_page_tells_the_look_up_with_these_numbers() -> None:
    page = (ROOT / "docs/how-a-log-works.md").read_text("utf-8")
    [section] = re.findall(r"^## Finding an offset\n(.*?)(?=^## )", page, re.DOTALL | re.MULTILINE)
    numbers = {int(number) for number in re.findall(r"\d{3,}", section)}
    known = {*SEGMENTS, WANTED, *(each for batch in BATCHES for each in batch), 300, 4096}
    assert {WANTED, SEGMENTS[1], SEGMENTS[2]} <= numbers <= known
