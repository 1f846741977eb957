"""Messages after a frame: version of the frame, number of the message's type, its version.

Three unsigned varints, then the message and nothing more. ``__cluster_metadata`` and
``__remote_log_metadata`` hold such values.

Source: AbstractApiMessageSerde, MetadataParseException (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.internal_topics.message_reader import Readable, read_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.internal_topics.schema import Message
    from pylog.internal_topics.versions import KafkaVersion

_FRAME_VERSION = 1
_MAX_INT16 = 0x7FFF


class UnknownTypeError(InvalidRecordError):
    """A message of a type that is not known, such as one of a later version of Kafka."""

    def __init__(self, type_id: int) -> None:
        super().__init__(
            "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id "
            f"{type_id}"
        )
        self.type_id = type_id


class ApiMessage(NamedTuple):
    """A message that has been read: its schema, its version and its fields."""

    message: Message
    version: int
    fields: dict[str, Any]


def read_api_message(
    value: bytes | None, messages: Mapping[int, Message], kafka_version: KafkaVersion
) -> ApiMessage:
    """Return the message in a record's value."""
    readable = Readable(value or b"")
    frame_version = _read_number(readable, "frame version")
    if frame_version == 0:
        reason = (
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
        raise InvalidRecordError(reason)
    if frame_version != _FRAME_VERSION:
        reason = (
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {_FRAME_VERSION} is supported)"
        )
        raise InvalidRecordError(reason)
    type_id = _read_number(readable, "type")
    version = _read_number(readable, "version")
    message = messages.get(type_id)
    if message is None:
        raise UnknownTypeError(type_id)
    try:
        fields = read_message(message, readable, version, kafka_version)
    except InvalidRecordError as error:
        reason = f"Failed to deserialize record with type {type_id}"
        raise InvalidRecordError(reason) from error
    if readable.remaining:
        reason = f"Found {readable.remaining} byte(s) of garbage after {type_id}"
        raise InvalidRecordError(reason)
    return ApiMessage(message, version, fields)


def _read_number(readable: Readable, what: str) -> int:
    try:
        number = readable.unsigned_varint()
    except InvalidRecordError as error:
        reason = f"Error while reading {what}"
        raise InvalidRecordError(reason) from error
    if number > _MAX_INT16:
        reason = f"Value for {what} was too large."
        raise InvalidRecordError(reason)
    return (number + 0x8000) % 0x10000 - 0x8000
