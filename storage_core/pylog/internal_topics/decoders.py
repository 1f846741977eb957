"""What Kafka's tools print of the records of internal topics: one decoder a topic.

``kafka-dump-log`` has the first five; the others print what the formatters of MirrorMaker 2 do, and
the JSON of Kafka Connect.

Source: the implementations of MessageParser in DumpLogSegments, and the converters to JSON that
Kafka generates from its message schemas (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, get_args

from pylog.internal_topics.cluster_metadata import ClusterMetadataDecoder
from pylog.internal_topics.connect import ConnectDecoder
from pylog.internal_topics.consumer_offsets import consumer_offsets_decoder
from pylog.internal_topics.mirror_maker import (
    MirrorMakerDecoder,
    read_checkpoint,
    read_heartbeat,
    read_offset_sync,
)
from pylog.internal_topics.remote_log_metadata import RemoteLogMetadataDecoder
from pylog.internal_topics.share_group_state import share_group_state_decoder
from pylog.internal_topics.transaction_state import transaction_state_decoder
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pylog.internal_topics.versions import KafkaVersion

DecoderName = Literal[
    "offsets",
    "transaction-log",
    "cluster-metadata",
    "remote-log-metadata",
    "share-group-state",
    "mm2-checkpoints",
    "mm2-offset-syncs",
    "mm2-heartbeats",
    "connect",
]
"""The tool's as in its options: ``--offsets-decoder``, …, in the order in which they win there."""

DECODER_NAMES: tuple[DecoderName, ...] = get_args(DecoderName)
"""All of them."""


class DumpDecoder(Protocol):
    """Makes text of the records of one internal topic. It has no state."""

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return what the tool prints after ``key: `` and after ``payload: ``; None for no such."""


_DECODERS: Mapping[DecoderName, Callable[[KafkaVersion], DumpDecoder]] = {
    "offsets": consumer_offsets_decoder,
    "transaction-log": transaction_state_decoder,
    "cluster-metadata": ClusterMetadataDecoder,
    "remote-log-metadata": RemoteLogMetadataDecoder,
    "share-group-state": share_group_state_decoder,
    "mm2-checkpoints": lambda _: MirrorMakerDecoder(read_checkpoint),
    "mm2-offset-syncs": lambda _: MirrorMakerDecoder(read_offset_sync),
    "mm2-heartbeats": lambda _: MirrorMakerDecoder(read_heartbeat),
    "connect": lambda _: ConnectDecoder(),
}


def dump_decoder(
    name: DecoderName, kafka_version: KafkaVersion = LATEST_KAFKA_VERSION
) -> DumpDecoder:
    """Return the decoder that the tool of ``kafka_version`` has for an internal topic."""
    if name not in _DECODERS:
        msg = f"decoder {name!r} is not known, expected one of {', '.join(DECODER_NAMES)}"
        raise ValueError(msg)
    return _DECODERS[name](kafka_version)
