"""What the control records of KRaft say, as fields and as JSON; no markers of transactions.

Source: ControlRecordUtils (Kafka 4.3); KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

from typing import Any

from pylog.internal_topics.message_json import json_text
from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.message_writer import write_message
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion
from pylog.model import ControlRecordType

_MESSAGES = parse_messages("""
    common Voter
      voterId int32
      voterDirectoryId uuid 1+
    LeaderChangeMessage 0-1 flexible=0
      version int16
      leaderId int32
      voters []Voter
      grantingVoters []Voter
    SnapshotHeaderRecord 0 flexible=0
      version int16
      lastContainedLogTimestamp int64
    SnapshotFooterRecord 0 flexible=0
      version int16
    KRaftVersionRecord 0 flexible=0
      version int16
      kRaftVersion int16
    VotersRecord 0 flexible=0
      version int16
      voters []{Voter}
        voterId int32
        voterDirectoryId uuid
        endpoints []{Endpoint}
          name string
          host string
          port uint16
        kRaftVersionFeature {KRaftVersionFeature}
          minSupportedVersion int16
          maxSupportedVersion int16
""")

_BY_TYPE = {
    ControlRecordType.LEADER_CHANGE: _MESSAGES["LeaderChangeMessage"],
    ControlRecordType.SNAPSHOT_HEADER: _MESSAGES["SnapshotHeaderRecord"],
    ControlRecordType.SNAPSHOT_FOOTER: _MESSAGES["SnapshotFooterRecord"],
    ControlRecordType.KRAFT_VERSION: _MESSAGES["KRaftVersionRecord"],
    ControlRecordType.KRAFT_VOTERS: _MESSAGES["VotersRecord"],
}


def has_control_json(
    control_type: ControlRecordType, kafka_version: KafkaVersion = LATEST_KAFKA_VERSION
) -> bool:
    """Whether that version's dump tool prints what such a control record says."""
    if control_type is ControlRecordType.LEADER_CHANGE and kafka_version < KafkaVersion.V4_1:
        return False
    return control_type in _BY_TYPE


def control_fields(
    control_type: ControlRecordType,
    value: bytes,
    kafka_version: KafkaVersion = LATEST_KAFKA_VERSION,
) -> dict[str, Any]:
    """Return the fields of a control record of KRaft."""
    # The version is the first field, and read as version 0 whatever it is.
    return read_message(_BY_TYPE[control_type], Readable(value), 0, kafka_version)


def write_control_message(control_type: ControlRecordType, fields: dict[str, Any]) -> bytes:
    """Return the value of a control record of KRaft."""
    return write_message(_BY_TYPE[control_type], fields, 0)


def control_json(
    control_type: ControlRecordType,
    value: bytes,
    kafka_version: KafkaVersion = LATEST_KAFKA_VERSION,
) -> str:
    """Return what a control record of KRaft says, as the dump tool prints it."""
    return json_text(control_fields(control_type, value, kafka_version))
