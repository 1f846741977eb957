"""Records of ``_schemas``, as Confluent's registry and Karapace serialise them.

Confluent's fields are in the order of the record classes (SchemaKey and its neighbours have
JsonPropertyOrder, SchemaValue the order of its constructor); what is empty is left out. Karapace's
are in the order of ``schema_registry.py``, its keys in that of ``key_format.py``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Record = tuple[bytes | None, bytes | None]

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
ORDER_2 = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":"string","default":""}]}'
)


def compact(fields: dict[str, Any]) -> bytes:
    """Return JSON as Jackson writes it."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if each not in (None, "", [], {})}


def schema_key(subject: str, version: int, magic: int = 1) -> bytes:
    return compact({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": magic})


def schema(
    subject: str,
    version: int,
    schema_id: int,
    text: str,
    *,
    kind: str | None = None,
    references: Sequence[tuple[str, str, int]] = (),
    md5: str | None = None,
    metadata: dict[str, Any] | None = None,
    deleted: bool = False,
    magic: int = 1,
) -> Record:
    """Return a SchemaKey and a SchemaValue."""
    used = [{"name": name, "subject": of, "version": number} for name, of, number in references]
    value = {
        "subject": subject,
        "version": version,
        "id": schema_id,
        "md5": md5,
        "schemaType": kind,
        "references": used,
        "metadata": metadata,
        "schema": text,
    }
    return schema_key(subject, version, magic), compact({**_filled(value), "deleted": deleted})


def tombstone(subject: str, version: int) -> Record:
    """Return what a hard delete writes."""
    return schema_key(subject, version), None


def of_subject(keytype: str, subject: str | None, value: dict[str, Any] | None) -> Record:
    """Return a ConfigKey, ModeKey, DeleteSubjectKey or ClearSubjectKey, and its value."""
    key = _filled({"keytype": keytype, "subject": subject}) | {"magic": 0}
    return compact(key), None if value is None else compact(value)


def delete_subject(subject: str, version: int) -> Record:
    return of_subject("DELETE_SUBJECT", subject, {"subject": subject, "version": version})


def clear_subject(subject: str) -> Record:
    return of_subject("CLEAR_SUBJECT", subject, {"subject": subject})


def context(name: str) -> Record:
    key = {"keytype": "CONTEXT", "tenant": "default", "context": name, "magic": 0}
    return compact(key), compact({"tenant": "default", "context": name})


NOOP: Record = (b'{"keytype":"NOOP","magic":0}', None)


def karapace_schema(
    subject: str, version: int, schema_id: int, text: str, *, deprecated: bool = False
) -> Record:
    """Return a schema as Karapace writes it; deprecated keys have the order of its code."""
    key = {"subject": subject, "version": version, "magic": 1, "keytype": "SCHEMA"}
    value = {
        "subject": subject,
        "version": version,
        "id": schema_id,
        "schema": text,
        "deleted": False,
    }
    return compact(key) if deprecated else schema_key(subject, version), compact(value)


def write_registry(
    log_directory: Path, records: Sequence[Record], *, name: str = "_schemas-0"
) -> None:
    """Write a registry's partition: a batch for each record, as a registry produces them."""
    batches = [
        batch_v2([Stored(offset, 1_000 + offset, key, value)])
        for offset, (key, value) in enumerate(records)
    ]
    write_partition(log_directory, {0: batches}, name=name)
