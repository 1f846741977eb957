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

METADATA_VERSION = "metadata.version"

_FEATURES_SINCE_4_0 = {
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
}
_FEATURES_SINCE_4_1 = {**_FEATURES_SINCE_4_0, "share.version": (0, 1)}
_FEATURES_SINCE_4_2 = {**_FEATURES_SINCE_4_1, "streams.version": (0, 1)}

SUPPORTED_FEATURES: dict[str, dict[str, tuple[int, int]]] = {
    "3.3": {METADATA_VERSION: (1, 7)},
    "3.4": {METADATA_VERSION: (1, 8)},
    "3.5": {METADATA_VERSION: (1, 11)},
    "3.6": {METADATA_VERSION: (1, 14)},
    "3.7": {METADATA_VERSION: (1, 19)},
    "3.8": {METADATA_VERSION: (1, 20)},
    "3.9": {METADATA_VERSION: (1, 21)},
    "4.0": {METADATA_VERSION: (7, 25), **_FEATURES_SINCE_4_0},
    "4.1": {METADATA_VERSION: (7, 27), **_FEATURES_SINCE_4_1},
    "4.2": {METADATA_VERSION: (7, 29), **_FEATURES_SINCE_4_2},
    "4.3": {METADATA_VERSION: (7, 30), **_FEATURES_SINCE_4_2},
    "4.4": {METADATA_VERSION: (7, 33), **_FEATURES_SINCE_4_2, "share.version": (0, 2)},
}
"""The lowest and the highest level of each feature that a version of Kafka can use in production.

Source: MetadataVersion, Feature (Features in 3.9), minimum and latest production (Kafka 3.3 to
4.4).
"""

METADATA_VERSION_LEVELS = {
    version: SUPPORTED_FEATURES[str(version)][METADATA_VERSION] for version in KafkaVersion
}
"""The lowest and highest level of feature ``metadata.version`` that a version of Kafka can use."""

# By release, how many levels of metadata.version it has brought; 3.0 begins with IV1, 3.3 had four.
_LEVELS_OF_RELEASES = (
    *(("3.0", 1), ("3.1", 1), ("3.2", 1), ("3.3", 4), ("3.4", 1), ("3.5", 3), ("3.6", 3)),
    *(("3.7", 5), ("3.8", 1), ("3.9", 1), ("4.0", 4), ("4.1", 2), ("4.2", 2), ("4.3", 1)),
    ("4.4", 3),
)
_RELEASES = [
    f"{release}-IV{number + (release == '3.0')}"
    for release, count in _LEVELS_OF_RELEASES
    for number in range(count)
]


def metadata_release(level: int | None) -> str | None:
    """Return the name of a level of ``metadata.version``, such as 4.3-IV0; None if not known."""
    if level is None or not 0 < level <= len(_RELEASES):
        return None
    return _RELEASES[level - 1]
