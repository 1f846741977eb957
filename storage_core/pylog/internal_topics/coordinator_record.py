"""Records of coordinators: a type before the key, a version before the value; null is a tombstone.

Source: CoordinatorRecordSerde (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.internal_topics.message_json import json_text
from pylog.internal_topics.message_reader import ENDS_EARLY, Readable, read_message
from pylog.internal_topics.versions import FIRST_KAFKA_VERSION, LATEST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pylog.internal_topics.schema import Message


NO_TEXT = "null"
"""What Java prints of an exception without a text."""


class CoordinatorRecordType(NamedTuple):
    """A type of records, and the versions of Kafka that know it, both inclusive."""

    key: Message
    value: Message
    since: KafkaVersion = FIRST_KAFKA_VERSION
    until: KafkaVersion = LATEST_KAFKA_VERSION


class CoordinatorRecord(NamedTuple):
    """A record that has been read."""

    type_id: int
    key: dict[str, Any]
    value_version: int | None
    value: dict[str, Any] | None


class CoordinatorRecords:
    """Reads the records of one coordinator's topic."""

    def __init__(
        self,
        types: Mapping[int, tuple[CoordinatorRecordType, ...]],
        kafka_version: KafkaVersion = LATEST_KAFKA_VERSION,
    ) -> None:
        self._kafka_version = kafka_version
        self._refuses_versions = kafka_version >= KafkaVersion.V4_0
        self._types = {
            type_id: each
            for type_id, successive in types.items()
            for each in successive
            if each.since <= kafka_version <= each.until
        }
        self._retired = {
            type_id
            for type_id, successive in types.items()
            if all(each.until < kafka_version for each in successive)
        }

    def type_id(self, key: bytes) -> int:
        """Return the number before a key; `InvalidRecordError` if it has less than 2 bytes."""
        return _read_version(Readable(key), "key")

    def is_known(self, type_id: int) -> bool:
        """Whether records of that number can be read."""
        return type_id in self._types

    def is_retired(self, type_id: int) -> bool:
        """Whether only earlier versions know records of that number: later brokers ignore them."""
        return type_id in self._retired

    def read(self, key: bytes, value: bytes | None) -> CoordinatorRecord:
        """Return a record."""
        readable_key = Readable(key)
        type_id = _read_version(readable_key, "key")
        record_type = self._types.get(type_id)
        if record_type is None:
            reason = f"record type {type_id} is not known"
            raise InvalidRecordError(reason)
        # To Kafka, the type is the version of the key.
        key_fields = self._read(record_type.key, readable_key, type_id, "key")
        if value is None:
            return CoordinatorRecord(type_id, key_fields, None, None)
        readable_value = Readable(value)
        version = _read_version(readable_value, "value")
        if self._refuses_versions and version not in record_type.value.versions:
            reason = f"Found an unknown record version {version} for {type_id} type"
            raise InvalidRecordError(reason)
        value_fields = self._read(record_type.value, readable_value, version, "value")
        return CoordinatorRecord(type_id, key_fields, version, value_fields)

    def _read(
        self, message: Message, readable: Readable, version: int, part: str
    ) -> dict[str, Any]:
        try:
            return read_message(message, readable, version, self._kafka_version)
        except InvalidRecordError as error:
            cause = NO_TEXT if error.reason == ENDS_EARLY else error.reason
            reason = (
                f"Could not read record with version {version} from {part}'s buffer due to: "
                f"{cause}."
            )
            raise InvalidRecordError(reason) from error


def _read_version(readable: Readable, part: str) -> int:
    try:
        return readable.int16()
    except InvalidRecordError as error:
        reason = f"Could not read version from {part}'s buffer."
        raise InvalidRecordError(reason) from error


TOMBSTONE_TEXT = "<DELETE>"


def _own_value(record: CoordinatorRecord) -> Any:  # noqa: ANN401 - fields by name
    return record.value


class CoordinatorDecoder:
    """Prints a type and a version in front of a record's fields."""

    def __init__(
        self,
        records: CoordinatorRecords,
        decoder_text: str = "the specified decoder",
        *,
        value_fields: Callable[[CoordinatorRecord], Any] = _own_value,
        version_name: str = "version",
    ) -> None:
        self._records = records
        self._decoder_text = decoder_text
        self._value_fields = value_fields
        self._version_name = version_name

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return the texts of a record; see `DumpDecoder`."""
        if key is None:
            raise missing_key(offset, self._decoder_text)
        try:
            type_id = self._records.type_id(key)
            if not self._records.is_known(type_id):
                return f"Unknown record type {type_id} at offset {offset}, skipping.", None
            record = self._records.read(key, value)
        except InvalidRecordError as error:
            return f"Error at offset {offset}, skipping. {error.reason}", None
        key_text = json_text({"type": str(type_id), "data": record.key})
        if record.value is None:
            return key_text, TOMBSTONE_TEXT
        version = str(record.value_version)
        fields = {self._version_name: version, "data": self._value_fields(record)}
        return key_text, json_text(fields)


def missing_key(offset: int, decoder_text: str) -> InvalidRecordError:
    """Return the error about a record without a key, at which Kafka's tool ends."""
    return InvalidRecordError(
        f"Failed to decode message at offset {offset} using {decoder_text} (message had a "
        "missing key)"
    )
