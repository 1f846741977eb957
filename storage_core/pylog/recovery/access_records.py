"""Records that say who may do what, and how much, as they are to be written to other metadata.

What users' credentials are made of passes through here as bytes, and is never shown.

Source: AclsDelta, ScramDelta, ClientQuotasDelta, ConfigurationsDelta (Kafka 4.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.internal_topics.api_message import UnknownTypeError
from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.internal_topics.metadata_image import ConfigResourceType
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.internal_topics.api_message import ApiMessage

_BEGIN, _END, _ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"


_OF_PARTITIONS = (b"\x01\x03", b"\x01\x05")
"""How PartitionRecords and PartitionChangeRecords begin: the version of the frame, the type."""


def effective_records(values: Iterable[bytes | None]) -> Iterator[tuple[bytes, ApiMessage]]:
    """Yield records that count, as bytes and read: none of a transaction that did not end.

    Those of partitions are left out: there are most of them, and they say nothing of access.
    """
    held: list[tuple[bytes, ApiMessage]] | None = None
    for value in values:
        if value is None or value.startswith(_OF_PARTITIONS):
            continue
        try:
            record = read_metadata_record(value)
        except UnknownTypeError:
            continue
        name = record.message.name
        if name == _BEGIN:
            held = []
        elif name == _ABORT:
            held = None
        elif name == _END:
            yield from held or ()
            held = None
        elif held is not None:
            held.append((value, record))
        else:
            yield value, record


def access_records(values: Iterable[bytes | None]) -> dict[tuple[object, ...], bytes]:
    """Return the last record of each ACL, credential, quota, and default of brokers and groups.

    By what it is about; what was removed is left out.
    """
    found: dict[tuple[object, ...], bytes] = {}
    acls: dict[object, tuple[object, ...]] = {}
    for value, record in effective_records(values):
        name, fields = record.message.name, record.fields
        if name == "AccessControlEntryRecord":
            key = ("acl", *(each for at, each in sorted(fields.items()) if at != "id"))
            acls[fields["id"]] = key
            found[key] = value
        elif name == "RemoveAccessControlEntryRecord":
            found.pop(acls.pop(fields["id"], ()), None)
        else:
            about = _about(name, fields)
            if about is not None:
                key, is_removed = about
                found.pop(key, None)
                if not is_removed:
                    found[key] = value
    return found


def bound_records(values: Iterable[bytes | None]) -> list[str]:
    """Return what is bound to the old cluster: tokens, and what single brokers and clients have."""
    tokens: set[str] = set()
    configs: dict[tuple[int, str], set[str]] = {}
    for _, record in effective_records(values):
        fields = record.fields
        match record.message.name:
            case "DelegationTokenRecord":
                tokens.add(fields["tokenId"])
            case "RemoveDelegationTokenRecord":
                tokens.discard(fields["tokenId"])
            case "ConfigRecord" if fields["resourceType"] in _BOUND and fields["resourceName"]:
                names = configs.setdefault((fields["resourceType"], fields["resourceName"]), set())
                (names.discard if fields["value"] is None else names.add)(fields["name"])
    found = [counted(len(tokens), "delegation token")] if tokens else []
    return found + [
        f"the configuration of {_BOUND[kind]} {name}"
        for (kind, name), names in sorted(configs.items())
        if names
    ]


_BOUND = {int(ConfigResourceType.BROKER): "broker", 16: "client metrics"}
"""Types of resources (Kafka: ConfigResource.Type) whose configurations do not come along."""


def _about(name: str, fields: dict[str, Any]) -> tuple[tuple[object, ...], bool] | None:
    """Return what a record is about, and whether it takes that away; None for other records."""
    match name:
        case "UserScramCredentialRecord" | "RemoveUserScramCredentialRecord":
            return ("user", fields["name"], fields["mechanism"]), name.startswith("Remove")
        case "ClientQuotaRecord":
            entity = sorted(
                (each["entityType"], each["entityName"] or "", each["entityName"] is None)
                for each in fields["entity"]
            )
            return ("quota", tuple(entity), fields["key"]), fields["remove"]
        case "ConfigRecord":
            kind, resource = fields["resourceType"], fields["resourceName"]
            is_default = kind == ConfigResourceType.BROKER and not resource
            if is_default or kind == ConfigResourceType.GROUP:
                return ("config", kind, resource, fields["name"]), fields["value"] is None
    return None
