"""What a line says of a control record after its metadata.

Source: DumpLogSegments.printControlRecord (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError
from pylog.internal_topics.control_messages import control_json, has_control_json
from pylog.internal_topics.versions import KafkaVersion
from pylog.model import ControlRecordType
from pylog.record.control_record import parse_control_record_type, parse_end_transaction_marker

if TYPE_CHECKING:
    from pylog.inspect.dump.dump_options import DumpOptions

_MARKERS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
_NAMES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}
_TYPE_ID = struct.Struct(">h")
_TYPE_ID_POSITION = 2


def control_detail(key: bytes | None, value: bytes | None, options: DumpOptions) -> str:
    """Return the end of a control record's line.

    Raises
    ------
    InvalidRecordError
        Its key or value breaks the format.
    """
    kind = parse_control_record_type(key)
    if kind in _MARKERS:
        marker = parse_end_transaction_marker(key, value)
        if options.is_json:
            return f',"endTxnMarker":"{kind.name}","coordinatorEpoch":{marker.coordinator_epoch}'
        return f" endTxnMarker: {kind.name} coordinatorEpoch: {marker.coordinator_epoch}"
    if has_control_json(kind) and _is_decoded(kind, options.kafka_version):
        if value is None:
            reason = f"control record of type {kind.name} has no value"
            raise InvalidRecordError(reason)
        text = control_json(kind, value, options.kafka_version)
        if options.is_json:
            return f',"controlType":"{kind.name}","data":{text}'
        return f" {_NAMES[kind]} {text}"
    (type_id,) = _TYPE_ID.unpack_from(key or b"", _TYPE_ID_POSITION)
    if options.is_json:
        return f',"controlType":"{kind.name}","controlTypeId":{type_id}'
    return f" controlType: {kind.name}({type_id})"


def _is_decoded(kind: ControlRecordType, version: KafkaVersion) -> bool:
    return kind is not ControlRecordType.LEADER_CHANGE or version >= KafkaVersion.V4_1
