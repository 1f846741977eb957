"""Directories with a registry's topic and topics whose values refer to its schemas."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.registry_records import ORDER, ORDER_2, schema, write_registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'

# Written by AvroSerializer of confluent-kafka 2.16.1: {"id": 1}, {"id": 2, "note": "x"}.
FIRST, SECOND = bytes.fromhex("000000000102"), bytes.fromhex("0000000002040278")
OF_USER = b"\0\0\0\0\x03\x04ab"
# The same of {"id": 1} with header_schema_id_serializer, and its header.
BY_HEADER, HEADER = b"\x02", bytes.fromhex("01dac6989db9864ae6b89ddfea3edc9d86")


def write_values(
    directory: Path, name: str, values: Sequence[bytes | None], *, key: bytes | None = None
) -> None:
    """Write a partition with one batch of values."""
    stored = [Stored(offset, 1_000, key, value) for offset, value in enumerate(values)]
    write_partition(directory, {0: [batch_v2(stored)]}, name=name)


def write_orders(directory: Path) -> Path:
    """Write a registry with three schemas, and topics that use them."""
    records = [
        schema("orders-value", 1, 1, ORDER, md5=b64encode(HEADER[1:]).decode()),
        schema("orders-value", 2, 2, ORDER_2),
        schema("User", 1, 3, USER),
    ]
    write_registry(directory, records)
    write_values(directory, "orders-0", [FIRST, None, SECOND], key=OF_USER)
    return directory
