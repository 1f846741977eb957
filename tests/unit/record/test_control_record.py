from __future__ import annotations

import struct

import pytest

from pylog.errors import InvalidRecordError
from pylog.model import ControlRecordType
from pylog.record.control_record import (
    EndTransactionMarker,
    encode_control_record_key,
    encode_end_transaction_value,
    parse_control_record_type,
    parse_end_transaction_marker,
)


def key(kind: int, version: int = 0) -> bytes:
    return struct.pack(">hh", version, kind)


@pytest.mark.parametrize("kind", [kind for kind in ControlRecordType if kind >= 0])
def test_every_type_is_known(kind: ControlRecordType) -> None:
    assert parse_control_record_type(key(kind)) is kind


@pytest.mark.parametrize("kind", [7, 100, -1, -5])
def test_other_types_are_unknown_and_no_error(kind: int) -> None:
    assert parse_control_record_type(key(kind)) is ControlRecordType.UNKNOWN


def test_a_newer_version_is_read_as_version_0_and_surplus_bytes_are_ignored() -> None:
    assert parse_control_record_type(key(1, version=3) + b"more") is ControlRecordType.COMMIT
    value = struct.pack(">hi", 2, 8) + b"more"
    assert parse_end_transaction_marker(key(0), value) == EndTransactionMarker(
        ControlRecordType.ABORT, 8
    )


@pytest.mark.parametrize("bad", [None, b"", b"\x00\x00\x00", key(0, version=-1)])
def test_a_key_that_is_none_is_invalid(bad: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="control record key"):
        parse_control_record_type(bad)


@pytest.mark.parametrize("bad", [None, b"", b"\x00\x00\x00\x00\x00", struct.pack(">hi", -1, 0)])
def test_a_marker_value_that_is_none_is_invalid(bad: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="transaction marker v"):
        parse_end_transaction_marker(key(1), bad)


def test_only_abort_and_commit_are_markers() -> None:
    with pytest.raises(InvalidRecordError, match="of type LEADER_CHANGE, expected ABORT or COMMIT"):
        parse_end_transaction_marker(key(2), struct.pack(">hi", 0, 0))


ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
KEYS = {
    ControlRecordType.ABORT: "00000000",
    ControlRecordType.COMMIT: "00000001",
    ControlRecordType.LEADER_CHANGE: "00000002",
    ControlRecordType.SNAPSHOT_HEADER: "00000003",
    ControlRecordType.SNAPSHOT_FOOTER: "00000004",
    ControlRecordType.KRAFT_VERSION: "00000005",
    ControlRecordType.KRAFT_VOTERS: "00000006",
}


def test_keys_are_written_as_version_0() -> None:
    assert {kind: encode_control_record_key(kind).hex() for kind in KEYS} == KEYS
    assert set(KEYS) | {ControlRecordType.UNKNOWN} == set(ControlRecordType)


def test_an_unknown_type_is_never_written() -> None:
    with pytest.raises(ValueError, match="of type UNKNOWN cannot be written"):
        encode_control_record_key(ControlRecordType.UNKNOWN)


def test_values_are_written_as_version_0() -> None:
    assert encode_end_transaction_value(EndTransactionMarker(COMMIT, 5)).hex() == "000000000005"
    assert encode_end_transaction_value(EndTransactionMarker(ABORT, -1)).hex() == "0000ffffffff"


@pytest.mark.parametrize(
    "kind", [kind for kind in ControlRecordType if kind not in (ABORT, COMMIT)]
)
def test_no_other_type_ends_a_transaction(kind: ControlRecordType) -> None:
    with pytest.raises(ValueError, match=f"of type ABORT or COMMIT, not {kind.name}"):
        encode_end_transaction_value(EndTransactionMarker(kind, 0))
