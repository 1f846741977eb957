"""The dump tool's text of a coordinator's records, in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.errors import InvalidRecordError
from pylog.internal_topics.message_json import json_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.internal_topics.coordinator_record import CoordinatorRecord, CoordinatorRecords

TOMBSTONE_TEXT = "<DELETE>"


def _own_value(record: CoordinatorRecord) -> Any:  # noqa: ANN401 - fields by name
    return record.value


class CoordinatorDecoder:
    """Prints a type and a version in front of a record's fields.

    Parameters
    ----------
    records
        What reads them.
    decoder_text
        What a tool calls itself where a record has no key.
    value_fields
        What is printed of a record that has a value, if not its fields as they are.
    version_name
        What the version of a value is called.
    """

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
