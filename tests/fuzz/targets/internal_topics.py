"""Records of internal topics: whatever the bytes are, a decoder gives text or refuses them.

An input: a byte each for the decoder, the version of Kafka, and the length of the key (255 for
null); then key and value. The same bytes go through the values that groups and topics are made of.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError
from pylog.internal_topics.consumer_offsets import group_records
from pylog.internal_topics.decoders import DECODER_NAMES, dump_decoder
from pylog.internal_topics.group_state import group_states
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.internal_topics.versions import KafkaVersion
from tests.unit.internal_topics.dumped_records import dumped_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 1_000
NULL = 255
VERSIONS = tuple(KafkaVersion)
LARGEST_TEXT = 8


def check(data: bytes, file: Path) -> None:
    head, rest = data[:3].ljust(3, b"\0"), data[3:]
    key = None if head[2] == NULL else rest[: head[2]]
    value = rest if key is None else rest[len(key) :]
    name = DECODER_NAMES[head[0] % len(DECODER_NAMES)]
    version = VERSIONS[head[1] % len(VERSIONS)]
    with suppress(InvalidRecordError):
        if name != "share-group-state" or version >= KafkaVersion.V4_0:
            _check_texts(dump_decoder(name, version).decode(key, value, 0), len(data))
    with suppress(InvalidRecordError):
        record = group_records().read(key or b"", value)
        for group in group_states([record]).values():
            assert group.state
    with suppress(InvalidRecordError):
        MetadataImage().apply(value)


def _check_texts(texts: tuple[str | None, ...], size: int) -> None:
    assert any(text is not None for text in texts)
    for text in texts:
        if text is not None and text.startswith(("{", '["')):
            json.loads(text)
        # Names of fields come with every element of an array, which has a byte at least.
        assert text is None or len(text) <= 1_000 + 200 * LARGEST_TEXT * size


def seeds() -> Iterator[bytes]:
    for each in dumped_records():
        if each.version.startswith(("3.9", "4.3")) and len(each.value or b"") < MAX_BYTES // 2:
            key = b"" if each.key is None else each.key[: NULL - 1]
            length = NULL if each.key is None else len(key)
            place = [*DECODER_NAMES].index(each.decoder)  # type: ignore[arg-type]
            version = 0 if each.version.startswith("3.9") else len(VERSIONS) - 1
            yield bytes([place, version, length]) + key + (each.value or b"")


def golden_seeds() -> Iterator[bytes]:
    return iter(())
