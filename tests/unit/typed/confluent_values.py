"""What Confluent's own serializers write, kept as ``confluent_values.json``.

Made once by confluent-kafka 2.16.1: ``ProtobufSerializer`` and ``JSONSerializer`` with
``SchemaRegistryClient.new_client({"url": "mock://"})``, of messages whose classes come of the
descriptors under ``protoc``. These are of grpcio-tools 1.85.1, whose ``protoc`` compiled the texts
beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pylog.typed.decoder import Payloads
from pylog.typed.known_schemas import KnownSchema
from tests.support.payloads import payloads_of

CONFLUENT: dict[str, Any] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
PREFIX_BYTES = 5


def stored_schema(name: str) -> KnownSchema:
    """Return a schema as the registry has it."""
    stored = CONFLUENT["schemas"][name]
    references = tuple((each, text) for each, text in stored["references"])
    return KnownSchema(stored["id"], stored["type"], stored["text"], references)


def payloads_behind_ids(values: list[str]) -> Payloads:
    """Return what is behind the schema ids of values in hexadecimal digits."""
    given = payloads_of([bytes.fromhex(each) for each in values])
    return Payloads(given.data, given.starts + PREFIX_BYTES, given.ends)
