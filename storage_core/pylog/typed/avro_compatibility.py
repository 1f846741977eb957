"""Whether a new Avro schema may follow the versions of its subject.

The rules of reading decide: what a reader's program would refuse of a writer's values. As in Java
names of records have to agree, too; beyond Java, logical types have to.

Source: CompatibilityChecker, AvroSchema (Schema Registry 8.5); SchemaCompatibility (Avro's Java
library 1.12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.typed.avro_program import AvroProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.typed.avro_schema import AvroType


def incompatibilities(level: str, new: AvroType, previous: Sequence[AvroType]) -> list[str]:
    """Return why a schema cannot follow others, by one of `COMPATIBILITY_LEVELS`.

    ``previous`` are those from the oldest on.
    """
    compared = previous if level.endswith("_TRANSITIVE") else previous[-1:]
    found = []
    for each in reversed(compared):
        if level.startswith(("BACKWARD", "FULL")):
            found += [f"the new schema cannot read: {text}" for text in _unreadable(each, new)]
        if level.startswith(("FORWARD", "FULL")):
            found += [f"the new schema cannot be read: {text}" for text in _unreadable(new, each)]
    return found


def _unreadable(writer: AvroType, reader: AvroType) -> list[str]:
    return AvroProgram(writer, reader).incompatibilities
