from __future__ import annotations

import pytest

from pylog.model import ControlRecordType
from pylog.record.control_record import (
    EndTransactionMarker,
    encode_control_record_key,
    encode_end_transaction_value,
)

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
