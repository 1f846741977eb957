"""Control records: transaction markers and KRaft's own, never given to applications.

Key: int16 version (0), int16 type. Value of ABORT and COMMIT: int16 version (0), int32
coordinator epoch. The values of the KRaft types begin with an int16 version; pylog needs only
their type. A newer version is read as version 0, surplus bytes are ignored; version 0 is written.

A transaction marker is a control batch of one record, 78 bytes with transactional and control
flag, the producer's id and epoch, no sequence and no codec.

Source: ControlRecordType, EndTransactionMarker (Kafka 4.3); KIP-98, KIP-595.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pylog.errors import InvalidRecordError
from pylog.model import (
    ControlRecordType,
)

_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_CURRENT_VERSION = 0
_MARKER_TYPES = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
_KNOWN_TYPES = frozenset(int(kind) for kind in ControlRecordType if kind >= 0)


class EndTransactionMarker(NamedTuple):
    """What an ABORT or COMMIT record says."""

    control_type: ControlRecordType
    coordinator_epoch: int


def parse_control_record_type(key: bytes | None) -> ControlRecordType:
    """Return the type in a control record's key; unknown types become UNKNOWN."""
    if key is None or len(key) < _KEY.size:
        reason = f"control record key is {key!r}, expected at least {_KEY.size} bytes"
        raise InvalidRecordError(reason)
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        reason = f"control record key version is {version}"
        raise InvalidRecordError(reason)
    return ControlRecordType(type_id if type_id in _KNOWN_TYPES else -1)


def parse_end_transaction_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker:
    """Return the content of an ABORT or COMMIT record."""
    control_type = parse_control_record_type(key)
    if control_type not in _MARKER_TYPES:
        reason = f"control record is of type {control_type.name}, expected ABORT or COMMIT"
        raise InvalidRecordError(reason)
    if value is None or len(value) < _MARKER_VALUE.size:
        reason = f"transaction marker value is {value!r}, expected {_MARKER_VALUE.size} bytes"
        raise InvalidRecordError(reason)
    version, coordinator_epoch = _MARKER_VALUE.unpack_from(value)
    if version < 0:
        reason = f"transaction marker version is {version}"
        raise InvalidRecordError(reason)
    return EndTransactionMarker(control_type, coordinator_epoch)


def encode_control_record_key(control_type: ControlRecordType) -> bytes:
    """Return the 4 bytes of a control record's key; ``ValueError`` for UNKNOWN."""
    if control_type is ControlRecordType.UNKNOWN:
        msg = "a control record of type UNKNOWN cannot be written"
        raise ValueError(msg)
    return _KEY.pack(_CURRENT_VERSION, control_type)


def encode_end_transaction_value(marker: EndTransactionMarker) -> bytes:
    """Return the 6 bytes of an ABORT or COMMIT record's value."""
    if marker.control_type not in _MARKER_TYPES:
        name = marker.control_type.name
        msg = f"a transaction ends with a marker of type ABORT or COMMIT, not {name}"
        raise ValueError(msg)
    try:
        return _MARKER_VALUE.pack(_CURRENT_VERSION, marker.coordinator_epoch)
    except struct.error as error:
        msg = f"coordinator epoch {marker.coordinator_epoch} does not fit into 32 bits"
        raise ValueError(msg) from error
