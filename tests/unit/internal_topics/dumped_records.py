"""Records of internal topics, and what the dump tools of five versions of Kafka print of them.

``python -m tests.unit.internal_topics.dumped_records`` makes them anew: random messages of every
type and version, some of them damaged, through the tool itself, fetched as for the tests with
brokers. What it printed is in ``dumped_records.json.xz``, which is all that the tests need.
"""

from __future__ import annotations

import json
import lzma
import re
import struct
import sys
import tempfile
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from pylog.internal_topics import (
    consumer_offsets,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from pylog.internal_topics.cluster_metadata import METADATA_MESSAGES
from pylog.internal_topics.consumer_offsets import CONSUMER_PROTOCOL_MESSAGES
from pylog.internal_topics.decoders import DECODER_NAMES
from tests.support.batches import Stored, batch_v2, unsigned_varint
from tests.support.kafka_broker_tools import run_dump_log_segments
from tests.unit.internal_topics.random_messages import MessageBytes, damaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pylog.internal_topics.coordinator_record import CoordinatorRecordType
    from pylog.internal_topics.schema import Message

TOOL_DECODER_NAMES = DECODER_NAMES[:5]
"""Those that ``kafka-dump-log`` has."""
TOOL_VERSIONS = ("3.9.2", "4.0.0", "4.2.0", "4.3.1")
_FILE = Path(__file__).with_suffix(".json.xz")
_SEED = 20261123
_PER_VERSION = 3
_DAMAGED = 0.3
"""The share of the records that are damaged."""
_TOMBSTONES = 0.1


class DumpedRecord(NamedTuple):
    """A record, and what a tool prints after ``headerKeys: []``."""

    decoder: str
    version: str
    offset: int
    key: bytes | None
    value: bytes | None
    text: str


def dumped_records() -> list[DumpedRecord]:
    """Return the records that were kept, with what every tool printed of each."""
    kept = json.loads(lzma.decompress(_FILE.read_bytes()))
    return [
        DumpedRecord(decoder, version, offset, _bytes(key), _bytes(value), text)
        for decoder, by_version in kept.items()
        for version, records in by_version.items()
        for offset, (key, value, text) in enumerate(records)
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


Pair = tuple[bytes | None, bytes | None]


def _coordinator_pairs(
    random: Random,
    types: Mapping[int, tuple[CoordinatorRecordType, ...]],
    chosen: Mapping[str, Callable[[], int | str | bytes]] | None = None,
    *,
    has_damage: bool = True,
) -> Iterator[Pair]:
    made = MessageBytes(random, chosen, nulls=0.3 if has_damage else 0.0)
    for type_id, successive in types.items():
        for record_type in successive:
            value_message = record_type.value
            versions = [*value_message.versions] * _PER_VERSION
            if has_damage:
                versions += [-1, value_message.versions.stop, 300]
            for version in versions:
                key = struct.pack(">h", type_id) + made.message(record_type.key, 0)
                body = made.message(value_message, _nearest(value_message, version))
                value: bytes | None = struct.pack(">h", version) + body
                if has_damage and random.random() < _DAMAGED:
                    value = damaged(random, value or b"")
                if has_damage and random.random() < _DAMAGED / 3:
                    key = damaged(random, key)
                yield key, None if random.random() < _TOMBSTONES else value
    for type_id in (-1, 4, 9, 18, 24, 99):
        yield struct.pack(">h", type_id) + b"\x00\x01g", b"\x00\x00\x00"


def _api_pairs(
    random: Random,
    messages: Mapping[int, Message],
    chosen: Mapping[str, Callable[[], int | str | bytes]] | None = None,
) -> Iterator[Pair]:
    made = MessageBytes(random, chosen)
    for type_id, message in messages.items():
        for version in [*message.versions] * _PER_VERSION + [message.versions.stop]:
            body = made.message(message, _nearest(message, version))
            value = b"\x01" + unsigned_varint(type_id) + unsigned_varint(version) + body
            yield None, damaged(random, value) if random.random() < _DAMAGED else value
    for value in (b"", b"\x00", b"\x02\x00\x00", b"\x01\x63\x00", b"\x01\xff\xff\xff\xff\xff\x00"):
        yield None, value


def _pairs(decoder: str, version: str) -> Iterator[Pair]:
    """Yield keys and values that a tool gets, the same at every call."""
    random = Random(_SEED)
    match decoder:
        case "offsets":
            return _coordinator_pairs(
                random,
                consumer_offsets.GROUP_RECORD_TYPES,
                {
                    "protocolType": lambda: random.choice(("consumer", "consumer", "connect", "")),
                    "subscription": lambda: _protocol_bytes(random, "ConsumerProtocolSubscription"),
                    "assignment": lambda: _protocol_bytes(random, "ConsumerProtocolAssignment"),
                },
            )
        case "transaction-log":
            # Damage, and a state that does not exist, end the tools up to 4.0.
            some = _coordinator_pairs(
                random,
                transaction_state.TRANSACTION_RECORD_TYPES,
                {
                    "transactionStatus": lambda: random.randrange(8),
                    "clientTransactionVersion": lambda: random.randrange(3),
                    "topic": lambda: random.choice(("orders", "invoices-eu", "a", "ünï")),
                    "partitionIds": lambda: random.randrange(40),
                },
                has_damage=version >= "4.1",
            )
            return chain(some, _wide_transactions())
        case "share-group-state":
            return _coordinator_pairs(random, share_group_state.SHARE_STATE_RECORD_TYPES)
        case "cluster-metadata":
            return _api_pairs(random, METADATA_MESSAGES)
    return _api_pairs(
        random,
        remote_log_metadata.REMOTE_LOG_MESSAGES,
        {
            "startOffset": lambda: random.choice((0, 5, 5, -1)),
            "endOffset": lambda: random.choice((5, 9, 9, 4)),
            "remoteLogSegmentState": lambda: random.choice((0, 1, 2, 3, 4, -1)),
            "remotePartitionDeleteState": lambda: random.choice((0, 1, 2, 3)),
        },
    )


def _wide_transactions() -> Iterator[Pair]:
    """Yield transactions over many partitions, which old tools print in an order of their own."""
    for topics, partitions in (
        (1, 11),
        (1, 12),
        (1, 13),
        (2, 6),
        (4, 6),
        (5, 4),
        (3, 40),
        (10, 50),
    ):
        value = struct.pack(">hqhibi", 0, 5, 1, 60_000, 1, topics)
        for topic in range(topics):
            name = b"topic-%d" % topic
            numbers = range(topic, topic + partitions)
            value += struct.pack(">h", len(name)) + name
            value += struct.pack(f">i{partitions}i", partitions, *numbers)
        yield b"\x00\x00\x00\x01x", value + struct.pack(">qq", 1, 1)


def _nearest(message: Message, version: int) -> int:
    """Return the version that exists and is nearest to one that may not."""
    return min(max(version, message.versions.start), message.versions.stop - 1)


def _protocol_bytes(random: Random, name: str) -> bytes:
    message = CONSUMER_PROTOCOL_MESSAGES[name]
    version = random.choice((-1, 0, 1, 2, 3, 4))
    body = MessageBytes(random).message(message, _nearest(message, version))
    data = struct.pack(">h", version) + body
    return damaged(random, data) if random.random() < _DAMAGED else data


def _print(directory: Path, decoder: str, version: str) -> list[tuple[str | None, ...]]:
    """Return key, value and text of each record that one tool was given."""
    pairs = list(_pairs(decoder, version))
    records = [Stored(offset, 1000, *pair) for offset, pair in enumerate(pairs)]
    log = directory / f"{0:020d}.log"
    log.write_bytes(b"".join(batch_v2([record]).data for record in records))
    printed, errors = run_dump_log_segments(
        [log], f"--{decoder}-decoder", "--skip-record-metadata", version=version
    )
    if errors:
        sys.stderr.write(f"{decoder} {version}: {errors[:2000]}\n")
    # Lines of batches separate records, whose texts may hold line breaks.
    texts = re.split(r"^baseOffset: .*\n", printed, flags=re.MULTILINE)[1:]
    if len(texts) != len(pairs):
        msg = f"{decoder} {version}: {len(texts)} records were printed of {len(pairs)}"
        raise ValueError(msg)
    return [
        (_hex(key), _hex(value), text.removesuffix("\n"))
        for (key, value), text in zip(pairs, texts, strict=True)
    ]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def main() -> None:
    """Make the file."""
    kept: dict[str, dict[str, list[tuple[str | None, ...]]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for decoder in TOOL_DECODER_NAMES:
            kept[decoder] = {
                version: _print(Path(directory), decoder, version)
                for version in TOOL_VERSIONS
                if version >= "4" or decoder != "share-group-state"
            }
    _FILE.write_bytes(lzma.compress(json.dumps(kept, ensure_ascii=False).encode(), preset=9))


if __name__ == "__main__":
    main()
