"""``__cluster_metadata``: topics, partitions, brokers, configurations (KRaft)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError
from pylog.internal_topics.api_message import read_api_message
from pylog.internal_topics.message_json import json_text
from pylog.internal_topics.metadata_messages import FIRST_VERSION_WITH, METADATA_MESSAGES
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION

if TYPE_CHECKING:
    from pylog.internal_topics.api_message import ApiMessage
    from pylog.internal_topics.versions import KafkaVersion

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def read_metadata_record(value: bytes | None) -> ApiMessage:
    """Return the metadata record in a record's value.

    Raises
    ------
    InvalidRecordError
        It is not one, or one of a type that later versions of Kafka have.
    """
    return read_api_message(value, METADATA_MESSAGES, LATEST_KAFKA_VERSION)


class ClusterMetadataDecoder:
    """The decoder behind ``--cluster-metadata-decoder``; it prints no keys.

    Parameters
    ----------
    kafka_version
        Whose tool.
    """

    def __init__(self, kafka_version: KafkaVersion) -> None:
        self._kafka_version = kafka_version
        self._messages = {
            type_id: message
            for type_id, message in METADATA_MESSAGES.items()
            if FIRST_VERSION_WITH.get(type_id, kafka_version) <= kafka_version
        }

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return the text of a record's value; see `DumpDecoder`."""
        try:
            record = read_api_message(value, self._messages, self._kafka_version)
        except InvalidRecordError as error:
            return None, f"Error at {offset}, skipping. {error.reason}"
        type_name = _WORD_START.sub("_", record.message.name).upper()
        return None, json_text(
            {"type": type_name, "version": record.version, "data": record.fields}
        )
