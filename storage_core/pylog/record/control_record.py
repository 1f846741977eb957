"""Control records: transaction markers and KRaft's own, never given to applications.

Key: int16 version (0), int16 type. Value of ABORT and COMMIT: int16 version (0), int32
coordinator epoch. The values of the KRaft types begin with an int16 version; pylog needs only
their type. A newer version is read as version 0, surplus bytes are ignored.

Source: ControlRecordType, EndTransactionMarker (Kafka 4.3); KIP-98, KIP-595.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pylog.errors import InvalidRecordError
from pylog.model import ControlRecordType

_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_KNOWN_TYPES = frozenset(int(kind) for kind in ControlRecordType if kind >= 0)


class EndTransactionMarker(NamedTuple):
    """What an ABORT or COMMIT record says."""

    control_type: ControlRecordType
    coordinator_epoch: int


def parse_control_record_type(key: bytes | None) -> ControlRecordType:
    """Return the type in a control record's key; unknown types become UNKNOWN.

    Raises
    ------
    InvalidRecordError
        The key is null, shorter than 4 bytes, or has a negative version.
    """
    if key is None or len(key) < _KEY.size:
        reason = f"control record key is {key!r}, expected at least {_KEY.size} bytes"
        raise InvalidRecordError(reason)
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        reason = f"control record key version is {version}"
        raise InvalidRecordError(reason)
    return ControlRecordType(type_id if type_id in _KNOWN_TYPES else -1)


def parse_end_transaction_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker:
    """Return the content of an ABORT or COMMIT record.

    Raises
    ------
    InvalidRecordError
        The key is of another type, or the value is null, short or of a negative version.
    """
    control_type = parse_control_record_type(key)
    if control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
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
