"""``__transaction_state``: the transactions of each transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError
from pylog.internal_topics.coordinator_record import (
    TOMBSTONE_TEXT,
    CoordinatorDecoder,
    CoordinatorRecord,
    CoordinatorRecords,
    CoordinatorRecordType,
    missing_key,
)
from pylog.internal_topics.scala_set import scala_set_order
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    from typing import Any

_MESSAGES = parse_messages("""
    TransactionLogKey 0
      transactionalId string
    TransactionLogValue 0-1 flexible=1
      producerId int64
      previousProducerId int64 1+ tag=0 default=-1 since=4.0
      nextProducerId int64 1+ tag=1 default=-1 since=4.0
      producerEpoch int16
      nextProducerEpoch int16 1+ tag=3 default=-1 since=4.1
      transactionTimeoutMs int32
      transactionStatus int8
      transactionPartitions []{PartitionsSchema}?
        topic string
        partitionIds []int32
      transactionLastUpdateTimestampMs int64
      transactionStartTimestampMs int64
      clientTransactionVersion int16 1+ tag=2 since=4.0
""")
_TRANSACTION = CoordinatorRecordType(
    _MESSAGES["TransactionLogKey"], _MESSAGES["TransactionLogValue"]
)
TRANSACTION_RECORD_TYPES = {0: (_TRANSACTION,)}
TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Names of ``transactionStatus``, by number (Kafka: TransactionState)."""
_EMPTY = 0


def transaction_records(kafka_version: KafkaVersion = LATEST_KAFKA_VERSION) -> CoordinatorRecords:
    """Return what reads the records of ``__transaction_state``."""
    return CoordinatorRecords(TRANSACTION_RECORD_TYPES, kafka_version)


def transaction_state_decoder(
    kafka_version: KafkaVersion,
) -> CoordinatorDecoder | TransactionTextDecoder:
    """Return the decoder behind ``--transaction-log-decoder``."""
    if kafka_version < KafkaVersion.V4_1:
        return TransactionTextDecoder(kafka_version)
    records = transaction_records(kafka_version)
    if kafka_version < KafkaVersion.V4_4:
        return CoordinatorDecoder(records)
    return CoordinatorDecoder(records, value_fields=_with_state_name)


def _with_state_name(record: CoordinatorRecord) -> dict[str, Any]:
    fields = dict(record.value or {})
    status = fields["transactionStatus"]
    if 0 <= status < len(TRANSACTION_STATES):
        fields["transactionStatus"] = TRANSACTION_STATES[status]
    return fields


class TransactionTextDecoder:
    """The decoder up to Kafka 4.0: a few of the fields, as ``name:value`` and ``name=value``."""

    def __init__(self, kafka_version: KafkaVersion) -> None:
        self._records = transaction_records(kafka_version)

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return the texts of a record; see `DumpDecoder`. Damage ends this tool, too."""
        if key is None:
            raise missing_key(offset, "transaction log decoder")
        version = self._records.type_id(key)
        if version != 0:
            return f"unknown::version={version}", None
        record = self._records.read(key, value)
        key_text = f"transaction_metadata::transactionalId={record.key['transactionalId']}"
        if record.value is None:
            return key_text, TOMBSTONE_TEXT
        if record.value_version not in _TRANSACTION.value.versions:
            reason = (
                f"Unknown version {record.value_version} from the transaction log message value"
            )
            raise InvalidRecordError(reason)
        return key_text, _value_text(record.value)


def _value_text(fields: dict[str, Any]) -> str:
    status = fields["transactionStatus"]
    if not 0 <= status < len(TRANSACTION_STATES):
        reason = f"Unknown transaction status id {status}"
        raise InvalidRecordError(reason)
    topics = [] if status == _EMPTY else fields["transactionPartitions"]
    if topics is None:
        reason = f"state {TRANSACTION_STATES[status]} has null for its partitions"
        raise InvalidRecordError(reason)
    shown = scala_set_order((each["topic"], each["partitionIds"]) for each in topics)
    return (
        f"producerId:{fields['producerId']},"
        f"producerEpoch:{fields['producerEpoch']},"
        f"state={TRANSACTION_STATES[status]},"
        f"partitions=[{','.join(f'{topic}-{number}' for topic, number in shown)}],"
        f"txnLastUpdateTimestamp={fields['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={fields['transactionTimeoutMs']}"
    )
