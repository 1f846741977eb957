"""Kernel files repeat constants, since code is kept by file; here they are held together."""

from __future__ import annotations

import pytest

from pylog import model
from pylog.kernels import (
    decode_avro,
    decode_headers,
    decode_legacy,
    decode_records,
    json_values,
    protobuf_values,
    scan_batches,
)
from pylog.model import ControlRecordType
from pylog.record import batch_header
from tests.unit.kernels.conftest import MODULES

# Names that a kernel has under another one than the layout.
RENAMED = {
    "MIN_SIZE_V0": batch_header.RECORD_OVERHEAD_V0,
    "MIN_SIZE_V1": batch_header.RECORD_OVERHEAD_V1,
    "MIN_SIZE_V2": batch_header.RECORD_BATCH_OVERHEAD - batch_header.LOG_OVERHEAD,
    "MIN_ENTRY_SIZE": batch_header.MIN_ENTRY_SIZE_V0,
    "UNKNOWN_RECORD_COUNT": batch_header.UNKNOWN_RECORD_COUNT,
    "HEADER_BYTES": batch_header.RECORD_BATCH_OVERHEAD,
    "NO_SEQUENCE": model.NO_SEQUENCE,
    "NO_TIMESTAMP": model.NO_TIMESTAMP,
    "NONE": model.NO_PRODUCER_ID,
    "UNKNOWN": ControlRecordType.UNKNOWN,
}
# A kernel's own: statuses, rows of its tables and totals, flags of what is wanted.
OWN_PREFIXES = (
    "STATUS_",
    "BATCH_",
    "SET_",
    "WANT_",
    "PIECE_",
    "TOTAL_",
    "HEADERS_",
    "SEEN_",
    "RUN_",
    "TRAIT_",
    "STYLE_",
    "STATE_",
    "ENTRY_",
    "OPEN_",
)
OWN = {
    *("COMMON_HEADER_BYTES", "TOTALS", "NO_OFFSET"),
    *("SETTINGS", "SPARE_BYTES", "MAX_BATCH_BYTES", "NULL_KEY", "TYPE_CHECKING"),
    *("CRC32_POLYNOMIAL", "CRC32C_POLYNOMIAL", "NULL_TIMESTAMP", "NO_RECORD"),
    *("REPLACEMENT_SIZE", "KEY_BYTES", "REPLACED_KEY_BYTES", "VALUE_BYTES", "MEASURES"),
    *("NEEDS_REFERENCE", "ENTRY_WORDS", "MOST_ADDED_BYTES", "MOST_OVERHEAD", "PLACES"),
    *("FETCHED_AHEAD", "CACHE_LINE_BYTES", "ROW_FIELDS", "IS_REWRITTEN", "FOLLOWS_A_GAP"),
    *("POSITION", "SIZE_BYTES", "OFFSET", "LAST_OFFSET", "MAGIC", "CRC", "ATTRIBUTES"),
    *("PARTITION_LEADER_EPOCH", "BASE_TIMESTAMP", "MAX_TIMESTAMP", "PRODUCER_ID"),
    *("PRODUCER_EPOCH", "BASE_SEQUENCE", "RECORD_COUNT", "FIELD_COUNT"),
    *("STEP_FIELDS", "LITERAL", "NUMBER", "CHOICE", "SKIP_UNLESS", "TIMESTAMP", "KEY_SIZE"),
    *("VALUE_SIZE", "SEQUENCE", "VALIDITY", "HEADER_NAMES", "KEY", "VALUE", "SKIP_BY_KEY"),
    *("SKIP_BY_VALUE", "DETAIL", "STATES", "NUMBER_BYTES", "LITERAL_PADDING", "HEADERS"),
}


OF_VALUES = (decode_avro, json_values, protobuf_values)
OF_BATCHES = [each for each in MODULES if each not in OF_VALUES]


@pytest.mark.parametrize("kernel", OF_BATCHES, ids=lambda kernel: kernel.__name__.split(".")[-1])
def test_every_constant_of_a_kernel_is_the_layouts(kernel: object) -> None:
    for name, value in vars(kernel).items():
        if not name.isupper() or name.startswith("_") or name in OWN:
            continue
        if name.startswith(OWN_PREFIXES):
            continue
        expected = RENAMED[name] if name in RENAMED else getattr(batch_header, name)
        assert value == expected, name


def test_the_kernels_agree_on_what_is_wanted() -> None:
    assert decode_legacy.WANT_KEY == decode_records.WANT_KEY
    assert decode_legacy.WANT_VALUE == decode_records.WANT_VALUE
    assert decode_legacy.WANT_TIMESTAMP == decode_records.WANT_TIMESTAMP


def test_the_decoding_kernels_agree_on_where_a_batch_lies_and_on_what_columns_need() -> None:
    assert decode_legacy.SET_START == decode_records.BATCH_START
    assert decode_legacy.SET_END == decode_records.BATCH_END
    assert decode_legacy.TOTAL_KEY_BYTES == decode_records.TOTAL_KEY_BYTES
    assert decode_legacy.TOTAL_VALUE_BYTES == decode_records.TOTAL_VALUE_BYTES
    assert decode_legacy.TOTAL_NULL_KEYS == decode_records.TOTAL_NULL_KEYS
    assert decode_legacy.TOTAL_NULL_VALUES == decode_records.TOTAL_NULL_VALUES


@pytest.mark.parametrize(
    ("kernel", "prefix", "length"),
    [
        (decode_records, "TOTAL_", "TOTALS"),
        (decode_records, "HEADERS_", "HEADERS_TOTALS"),
        (decode_legacy, "TOTAL_", "TOTALS"),
    ],
)
def test_totals_are_numbered_without_gaps(kernel: object, prefix: str, length: str) -> None:
    numbers = [
        value for name, value in vars(kernel).items() if name.startswith(prefix) and name != length
    ]
    assert sorted(numbers) == list(range(getattr(kernel, length)))


def test_the_sizes_that_the_legacy_and_the_scanning_kernel_demand_are_the_same() -> None:
    assert decode_legacy.MIN_SIZE_V0 == scan_batches.MIN_SIZE_V0
    assert decode_legacy.MIN_SIZE_V1 == scan_batches.MIN_SIZE_V1


def test_the_header_fields_are_numbered_without_gaps() -> None:
    names = (*(name for name in OWN if name != "FIELD_COUNT"),)
    numbers = sorted(getattr(decode_headers, name, -1) for name in names)
    assert [number for number in numbers if number >= 0] == list(range(decode_headers.FIELD_COUNT))


def test_the_smallest_v2_record_is_that_of_the_format() -> None:
    smallest = bytes([batch_header.MIN_RECORD_SIZE_V2 * 2 - 2]) + b"\x00\x00\x00\x01\x01\x00"
    assert len(smallest) == batch_header.MIN_RECORD_SIZE_V2
