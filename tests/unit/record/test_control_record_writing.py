from __future__ import annotations

import pytest

from pylog.model import ControlRecordType
from pylog.record.control_record import (
    EndTransactionMarker,
    encode_control_record_key,
    encode_end_transaction_value,
    end_transaction_marker,
    parse_end_transaction_marker,
)
from pylog.record.record_batch import RecordBatch
from tests.support.batches import marker
from tests.support.peers import PEERS, peer_batches

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
COMMIT_MARKER = (
    "00000000000000050000004200000000023db9319500300000000000000000000003e800000000000003e8"
    "00000000000000010000ffffffff000000012000000008000000010c00000000000000"
)


def test_a_commit_marker_is_written_byte_for_byte() -> None:
    written = end_transaction_marker(
        COMMIT,
        offset=5,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=1_000,
        partition_leader_epoch=0,
    )
    assert written.hex() == COMMIT_MARKER
    assert len(written) == 78


@pytest.mark.parametrize("control_type", [ABORT, COMMIT])
def test_any_marker_has_the_described_bytes_and_is_read_by_all(
    control_type: ControlRecordType,
) -> None:
    written = end_transaction_marker(
        control_type,
        offset=2**40,
        producer_id=2**50,
        producer_epoch=32_767,
        coordinator_epoch=2**31 - 1,
        timestamp=1_700_000_000_000,
        partition_leader_epoch=9,
    )
    expected = marker(
        2**40,
        int(control_type),
        producer_id=2**50,
        producer_epoch=32_767,
        coordinator_epoch=2**31 - 1,
        timestamp=1_700_000_000_000,
        leader_epoch=9,
    )
    assert written == expected.data
    for peer in PEERS:
        (batch,) = peer_batches(peer, written)
        assert batch.is_control_batch
        assert batch.is_transactional
        assert (batch.producer_id, batch.producer_epoch) == (2**50, 32_767)
        (record,) = batch
        assert (record.offset, record.timestamp) == (2**40, 1_700_000_000_000)
        assert bytes(record.key) == bytes([0, 0, 0, control_type])
        assert bytes(record.value) == b"\x00\x00\x7f\xff\xff\xff"
    ours = RecordBatch(written)
    ours.ensure_valid()
    (record,) = ours.records()
    assert parse_end_transaction_marker(record.key, record.value) == (control_type, 2**31 - 1)


def test_the_leader_epoch_is_unknown_unless_given() -> None:
    written = end_transaction_marker(
        ABORT, offset=0, producer_id=1, producer_epoch=0, coordinator_epoch=3, timestamp=-1
    )
    assert written == marker(0, 0, coordinator_epoch=3, timestamp=-1, leader_epoch=-1).data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"producer_id": -1}, "needs a producer id and epoch, not -1 and 0"),
        ({"producer_epoch": -1}, "needs a producer id and epoch, not 1 and -1"),
        ({"timestamp": -2}, "timestamp is -2, expected -1 to"),
        ({"coordinator_epoch": 2**31}, "coordinator epoch 2147483648 does not fit into 32 bits"),
        ({"producer_epoch": 2**15}, "does not fit its width"),
    ],
)
def test_a_marker_that_no_broker_takes_is_refused(change: dict[str, int], reason: str) -> None:
    fields = {
        "offset": 0,
        "producer_id": 1,
        "producer_epoch": 0,
        "coordinator_epoch": 0,
        "timestamp": 0,
    }
    with pytest.raises(ValueError, match=reason):
        end_transaction_marker(COMMIT, **(fields | change))


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
    with pytest.raises(ValueError, match=f"of type ABORT or COMMIT, not {kind.name}"):
        end_transaction_marker(
            kind, offset=0, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=0
        )
