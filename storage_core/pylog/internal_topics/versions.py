"""The versions of Kafka whose texts and record types differ from each other."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class KafkaVersion(IntEnum):
    """A minor version of Kafka; a later one is greater."""

    V3_9 = 309
    V4_0 = 400
    V4_1 = 401
    V4_2 = 402
    V4_3 = 403
    V4_4 = 404

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the version that ``text`` names, such as ``4.3``.

        Raises
        ------
        ValueError
            It is not one of those that are told apart here.
        """
        for version in cls:
            if str(version) == text:
                return version
        known = ", ".join(map(str, cls))
        msg = f"Kafka version {text!r} is not known, expected one of {known}"
        raise ValueError(msg)

    def __str__(self) -> str:
        return f"{self // 100}.{self % 100}"


FIRST_KAFKA_VERSION = KafkaVersion.V3_9
"""The earliest one that is told apart from the others."""

LATEST_KAFKA_VERSION = KafkaVersion.V4_4
"""What is meant where no version is given."""

METADATA_VERSION_LEVELS = {
    KafkaVersion.V3_9: (1, 21),
    KafkaVersion.V4_0: (7, 25),
    KafkaVersion.V4_1: (7, 27),
    KafkaVersion.V4_2: (7, 29),
    KafkaVersion.V4_3: (7, 30),
    KafkaVersion.V4_4: (7, 33),
}
"""The lowest and highest level of feature ``metadata.version`` that a version of Kafka can use.

Source: MetadataVersion.MINIMUM_VERSION and LATEST_PRODUCTION (MINIMUM_KRAFT_VERSION in 3.9).
"""
