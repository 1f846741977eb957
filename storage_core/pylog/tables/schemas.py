"""Table ``schemas``: what a registry's topic says, a row for each schema that a record has."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from pylog.columnar.rows import TableText, none_if
from pylog.internal_topics.schema_registry import SCHEMAS_TOPIC
from pylog.reading.damage import ReadMode
from pylog.reading.registry_records import read_registry
from pylog.tables.metadata_table import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

_TEXT = TableText.of_partitions("""\
Schemas of a schema registry (Confluent's, Karapace), from the records of its topic ``_schemas``.

id                int32         what messages refer to the schema by; unique in its context
subject           string        the subject
version           int32         the version of the subject
type              string        ``AVRO``, ``PROTOBUF`` or ``JSON``
schema            string        the text
deleted           bool          whether the version is soft-deleted or hard-deleted
state             string        what a registry makes of it: ``active``, ``soft-deleted``,
                                ``hard-deleted``, ``replaced`` by a later record for the same
                                version, or ``ignored`` because the id is taken
context           string        that of the subject; ``.`` is the default
guid              string        what messages of newer clients refer to it by; null where it is not
                                stored and has metadata or rules
schema_references references    the schemas that it uses
offset            int64         the offset of the last record that has it
timestamp         timestamp     that record's timestamp
problems          list<string>  what is wrong with records of the schema; null if nothing is

All schemas that are still on the disk have a row, also those that the registry has forgotten:
topics may still hold messages of them. Problems of records that are not the last of a schema, or
cannot be understood, are in rows that have only offset and problems. Other topics have no rows;
``pylog schemas --registry-topic`` reads a registry that keeps its schemas elsewhere.
""")


def _rows(view: LogView) -> Iterator[tuple[object, ...]]:
    if view.topic != SCHEMAS_TOPIC:
        return
    mode = ReadMode.FAILFAST if view.damage is None else ReadMode.DROPMALFORMED
    state, _ = read_registry([view], mode)
    in_order = sorted((each for each in state.problems if each.offset is not None), key=_offset)
    problems = {
        offset: [each.message for each in some] for offset, some in groupby(in_order, key=_offset)
    }
    for each in state.schemas():
        references = [
            {"name": used.name, "subject": used.subject, "version": used.version}
            for used in each.references
        ]
        yield (
            *(each.id, each.subject, each.version, each.type, each.schema, each.deleted),
            *(str(each.state), each.context, each.guid, references or None),
            *(each.offset, none_if(each.timestamp, -1), problems.pop(each.offset, None)),
        )
    for offset, messages in problems.items():
        yield (*[None] * 10, offset, None, messages)


_offset = attrgetter("offset")

SCHEMAS = table_of_rows("schemas", _TEXT, _rows)
