"""`schemas`: what a schema registry's topic says, and which topics use which schema."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.schema_ids import prefixed_ids
from pylog.errors import UnknownTopicOrPartitionError
from pylog.internal_topics.schema_registry import SCHEMAS_TOPIC
from pylog.reading.damage import ReadMode
from pylog.reading.html_table import html_table
from pylog.reading.log_directory import LogDirectory, open_directory
from pylog.reading.registry_records import read_registry
from pylog.reading.scan import scan
from pylog.scheduling.worker_threads import SharedProgress
from pylog.text.names import names_nearest_keyword
from pylog.text.words import counted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import pyarrow as pa

    from pylog.internal_topics.registry_state import (
        RegistryProblem,
        StoredSchema,
        SubjectSettings,
    )
    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_view import LogView

_FIELDS = ("key", "value")
_MOST_UNKNOWN_IDS = 1000
"""Of a topic's keys, or values: bytes that are no ids at all may be many different ones."""


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """How many records of a topic start with the id of a schema.

    Attributes
    ----------
    topic, field
        The topic; ``key`` or ``value``.
    id
        The id; None for further ids that no schema has, after the first thousand.
    records
        How many keys or values start with it.
    subjects
        Who has a schema of that id, in any context, deleted or not; empty if no schema explains it.
    """

    topic: str
    field: str
    id: int | None
    records: int
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaListing:
    """What `pylog.jobs.schemas` returns.

    Attributes
    ----------
    schemas
        All schemas that are on the disk, by subject and version; also those that the registry has
        forgotten.
    settings
        How the registry and its subjects are configured.
    contexts
        Those that records name.
    problems
        At most 1,000 of each code, by offset.
    unlisted_problems
        How many there are beside these.
    usage
        Which topics use which ids, by topic, field and id; None if that was not asked for.
    damage
        Ranges of the registry's topic, and of the topics whose records were counted, that could
        not be read.
    """

    schemas: list[StoredSchema]
    settings: list[SubjectSettings]
    contexts: list[str]
    problems: list[RegistryProblem]
    unlisted_problems: int
    usage: list[SchemaUse] | None
    damage: list[DamagedRange]

    def _repr_html_(self) -> str:
        rows = [
            (each.subject, each.version, each.id, each.type, str(each.state))
            for each in self.schemas
        ]
        columns = ("subject", "version", "id", "type", "state")
        notes = [each.message for each in self.problems[:3]]
        title = counted(len(self.schemas), "schema")
        return html_table(title, columns, rows, len(rows), notes=notes)


@names_nearest_keyword
def schemas(
    *paths: str | os.PathLike[str],
    registry_topic: str = SCHEMAS_TOPIC,
    usage: bool = False,
    topics: Iterable[str] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SchemaListing:
    """Return the schemas that a registry's topic under the paths has.

    Damaged bytes of the topics are left out and listed.

    Parameters
    ----------
    *paths
        Log directories, of any number of brokers: of a partition that lies there twice one replica
        counts, as for `open_directory`.
    registry_topic
        The topic of the registry, its ``kafkastore.topic``.
    usage
        Whether to read all records of the topics, and count by which schema ids their keys and
        values start: a zero byte and four bytes, as Confluent's serializers write.
    topics
        Only these topics are counted; None for all that are not internal.
    threads
        How many partitions are read side by side; None for what the environment variable
        ``PYLOG_NUM_THREADS`` says, else as many as there are processors.
    progress
        Called from time to time with the bytes that have been counted, and those of all.

    Raises
    ------
    UnknownTopicOrPartitionError
        The registry's topic is not there, or one of ``topics``.
    LogStorageError
        A path cannot be read.
    ValueError
        ``threads`` is below 1, or ``topics`` are given without ``usage``.

    Examples
    --------
    >>> listing = pylog.jobs.schemas("/mnt/kafka-logs")  # doctest: +SKIP
    >>> [(each.subject, each.version, each.id) for each in listing.schemas]  # doctest: +SKIP
    [('orders-value', 1, 7), ('orders-value', 2, 9)]
    """
    if topics is not None and not usage:
        raise ValueError("topics are those whose records are counted: give usage=True, too")
    directory = open_directory(*paths)
    views = directory.topics.get(registry_topic, [])
    if not views:
        reason = (
            f"no topic {registry_topic!r} here: a registry that stores its schemas in Kafka has "
            "them in the log directories of the brokers that have its topic, by default _schemas"
        )
        raise UnknownTopicOrPartitionError(reason)
    state, damage = read_registry(views, ReadMode.DROPMALFORMED)
    state.note_partitions(registry_topic, len(views))
    found = state.schemas()
    uses = None
    if usage:
        chosen = directory.select(topics=None if topics is None else list(topics))
        counted_views = [each for each in chosen if topics or each.topic != registry_topic]
        shared = SharedProgress(sum(each.size_bytes for each in counted_views), progress)
        uses, more = _usage(counted_views, found, shared, threads)
        damage += more
    return SchemaListing(
        found,
        state.settings(),
        sorted(state.contexts),
        sorted(state.problems, key=lambda each: (each.partition or 0, each.offset or 0)),
        state.problem_counts.total() - len(state.problems),
        uses,
        damage,
    )


def _usage(
    views: Sequence[LogView],
    found: Sequence[StoredSchema],
    shared: SharedProgress,
    threads: int | None,
) -> tuple[list[SchemaUse], list[DamagedRange]]:
    """Return which topics use which ids, and the damage that was left out."""
    subjects: dict[int | None, set[str]] = {}
    for each in found:
        subjects.setdefault(each.id, set()).add(each.subject)

    def read(view: LogView) -> tuple[Counter[tuple[str, int | None]], list[DamagedRange]]:
        try:
            return _counted(view, subjects.keys())
        finally:
            shared.advance(view.size_bytes)

    totals: Counter[tuple[str, str, int | None]] = Counter()
    damage: list[DamagedRange] = []
    results = shared.side_by_side(read, views, threads)
    for view, (counts, left_out) in zip(views, results, strict=True):
        totals.update({(view.topic, *place): count for place, count in counts.items()})
        damage += left_out

    def order(place: tuple[str, str, int | None]) -> tuple[str, str, bool, int]:
        topic, field, schema_id = place
        return topic, field, schema_id is None, schema_id or 0

    uses = [
        SchemaUse(*place, totals[place], tuple(sorted(subjects.get(place[2], ()))))
        for place in sorted(totals, key=order)
    ]
    return uses, damage


def _counted(
    view: LogView, known: Collection[int | None]
) -> tuple[Counter[tuple[str, int | None]], list[DamagedRange]]:
    """Return how many keys and values of a partition start with which id."""
    directory = LogDirectory([view.directory], views={view.topic_partition: view})
    records = scan(directory, topics=[view.topic], columns=_FIELDS, mode=ReadMode.DROPMALFORMED)
    counts: Counter[tuple[str, int | None]] = Counter()
    room = dict.fromkeys(_FIELDS, _MOST_UNKNOWN_IDS)
    for batch in records.to_batches():
        for field in _FIELDS:
            for schema_id, count in _by_id(batch.column(field)):
                place: tuple[str, int | None] = (field, schema_id)
                if schema_id not in known and place not in counts:
                    if not room[field]:
                        place = field, None
                    else:
                        room[field] -= 1
                counts[place] += count
    return counts, list(records.damage)


def _by_id(column: pa.Array) -> Iterator[tuple[int, int]]:
    ids, counts = np.unique(prefixed_ids(column), return_counts=True)
    yield from zip(ids.tolist(), counts.tolist(), strict=True)
