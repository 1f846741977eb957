"""Values of a broker's file of properties with which Kafka 4 does not start, and Kafka 3.9 does.

What Kafka 4 has removed it passes over, with a warning. Values of a broker's dynamic configuration
that it refuses it ignores.

Source: KafkaConfig.configDef of 3.9 and AbstractKafkaConfig.CONFIG_DEF of 4.3 and 4.4, one against
the other; KIP-1030 (4.0). From which version before 4.3 on the others are refused was not looked
at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.checkpoint_file import read_text_file
from pylog.files.java_properties import ENCODING, parse_java_properties
from pylog.internal_topics.versions import KafkaVersion
from pylog.writing.node_metadata import LEAST_SEGMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST = {
    "log.segment.bytes": (KafkaVersion.V4_0, LEAST_SEGMENT_BYTES),
    "metadata.log.segment.bytes": (KafkaVersion.V4_3, 8 << 20),
    "num.replica.fetchers": (KafkaVersion.V4_3, 1),
    "remote.log.manager.copier.thread.pool.size": (KafkaVersion.V4_3, 1),
    "remote.log.manager.expiration.thread.pool.size": (KafkaVersion.V4_3, 1),
    "controller.quorum.append.linger.ms": (KafkaVersion.V4_3, 0),
    "controller.quorum.election.backoff.max.ms": (KafkaVersion.V4_3, 0),
    "controller.quorum.election.timeout.ms": (KafkaVersion.V4_3, 0),
    "controller.quorum.fetch.timeout.ms": (KafkaVersion.V4_3, 0),
    "controller.quorum.request.timeout.ms": (KafkaVersion.V4_3, 0),
    "controller.quorum.retry.backoff.ms": (KafkaVersion.V4_3, 0),
}
"""By name, from which version on less than what is refused."""


def refused_properties(path: str, kafka_version: KafkaVersion) -> Iterator[str]:
    """Yield why a broker of a version does not start with a file, which has been read before."""
    for name, (text, line) in parse_java_properties(read_text_file(path, ENCODING)).items():
        first, least = _LEAST.get(name, (None, 0))
        if first is None or kafka_version < first:
            continue
        try:
            value = int(text.strip())
        except ValueError:
            continue  # no version takes it
        if value < least:
            yield (
                f"line {line}: {name}={value}, and Kafka {first} or later does not start with less "
                f"than {least}"
            )
