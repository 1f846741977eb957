"""Who may do what, and how much, by the records of ``__cluster_metadata``: ACLs, users, quotas.

What SCRAM credentials are made of (salt, keys) is never kept: only who has one, and of which kind.

Source: AclsImage, ScramImage, ClientQuotasImage, the enums of AclOperation, AclPermissionType,
PatternType, ResourceType and ScramMechanism (Kafka 4.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import uuid

_RESOURCE_TYPES = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
_PATTERN_TYPES = {3: "LITERAL", 4: "PREFIXED"}
_OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
_PERMISSIONS = {2: "DENY", 3: "ALLOW"}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class AccessControlEntry(NamedTuple):
    """One ACL, in the words of ``kafka-acls``."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class ScramUser(NamedTuple):
    """A user with a SCRAM credential, without anything of the credential itself."""

    name: str
    mechanism: str
    iterations: int


class ClientQuota(NamedTuple):
    """The limits of some clients; a name of None is the default of its type."""

    entity: dict[str, str | None]
    limits: dict[str, float]


class AccessImage:
    """What the records that were given say; one thread."""

    def __init__(self) -> None:
        self._acls: dict[uuid.UUID, AccessControlEntry] = {}
        self._users: dict[tuple[str, int], int] = {}
        self._quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}

    @property
    def acls(self) -> list[AccessControlEntry]:
        """All ACLs, sorted."""
        return sorted(self._acls.values())

    @property
    def users(self) -> list[ScramUser]:
        """The users with SCRAM credentials, sorted."""
        return sorted(
            ScramUser(name, _word(_MECHANISMS, mechanism), iterations)
            for (name, mechanism), iterations in self._users.items()
        )

    @property
    def quotas(self) -> list[ClientQuota]:
        """The quotas, sorted by what they are of."""
        entities = sorted(self._quotas, key=lambda key: list(map(_part_order, key)))
        return [
            ClientQuota(dict(each), dict(sorted(self._quotas[each].items()))) for each in entities
        ]

    def apply(self, name: str, fields: dict[str, Any]) -> None:
        """Take in a record, if it is about access."""
        match name:
            case "AccessControlEntryRecord":
                self._acls[fields["id"]] = AccessControlEntry(
                    _word(_RESOURCE_TYPES, fields["resourceType"]),
                    fields["resourceName"],
                    _word(_PATTERN_TYPES, fields["patternType"]),
                    fields["principal"],
                    fields["host"],
                    _word(_OPERATIONS, fields["operation"]),
                    _word(_PERMISSIONS, fields["permissionType"]),
                )
            case "RemoveAccessControlEntryRecord":
                self._acls.pop(fields["id"], None)
            case "UserScramCredentialRecord":
                self._users[fields["name"], fields["mechanism"]] = fields["iterations"]
            case "RemoveUserScramCredentialRecord":
                self._users.pop((fields["name"], fields["mechanism"]), None)
            case "ClientQuotaRecord":
                self._apply_quota(fields)

    def _apply_quota(self, fields: dict[str, Any]) -> None:
        parts = ((each["entityType"], each["entityName"]) for each in fields["entity"])
        entity = tuple(sorted(parts, key=_part_order))
        limits = self._quotas.setdefault(entity, {})
        if fields["remove"]:
            limits.pop(fields["key"], None)
        else:
            limits[fields["key"]] = fields["value"]
        if not limits:
            del self._quotas[entity]


def _part_order(part: tuple[str, str | None]) -> tuple[str, str]:
    kind, name = part
    return kind, name or ""


def _word(words: dict[int, str], number: int) -> str:
    return words.get(number, f"UNKNOWN({number})")
