"""The layout is a chain; structs, kernels and the chain agree."""

from __future__ import annotations

import struct

from pylog.record import batch_header
from pylog.record import batch_header as layout


def test_the_chain_of_a_v2_header_ends_at_61() -> None:
    assert layout.RECORDS_OFFSET == layout.RECORD_BATCH_OVERHEAD == 61


def test_each_v2_field_begins_where_the_one_before_ends() -> None:
    names = [
        "PARTITION_LEADER_EPOCH",
        "MAGIC",
        "CRC",
        "ATTRIBUTES",
        "LAST_OFFSET_DELTA",
        "BASE_TIMESTAMP",
        "MAX_TIMESTAMP",
        "PRODUCER_ID",
        "PRODUCER_EPOCH",
        "BASE_SEQUENCE",
        "RECORDS_COUNT",
    ]
    at = layout.LOG_OVERHEAD
    for name in names:
        assert getattr(layout, f"{name}_OFFSET") == at, name
        at += getattr(layout, f"{name}_LENGTH")
    assert at == layout.RECORDS_OFFSET


def test_positions_are_those_of_the_format() -> None:
    assert layout.SIZE_OFFSET == 8
    assert layout.LOG_OVERHEAD == 12
    assert layout.MAGIC_OFFSET == 16
    assert layout.HEADER_SIZE_UP_TO_MAGIC == 17
    assert (layout.KEY_SIZE_OFFSET_V0, layout.KEY_SIZE_OFFSET_V1) == (18, 26)
    assert (layout.RECORD_OVERHEAD_V0, layout.RECORD_OVERHEAD_V1) == (14, 22)
    assert (layout.MIN_ENTRY_SIZE_V0, layout.MIN_ENTRY_SIZE_V1) == (26, 34)


def test_struct_and_chain_agree_on_the_header() -> None:
    assert batch_header._V2.size == layout.RECORDS_OFFSET
    assert struct.calcsize(">qiIbBq") == layout.KEY_SIZE_OFFSET_V1 == batch_header._LEGACY_V1.size
    assert batch_header._LEGACY_V0.size == layout.KEY_SIZE_OFFSET_V0
