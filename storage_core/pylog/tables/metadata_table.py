"""What declares a metadata table: its text, the function that makes a partition's rows, options."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pylog.columnar.rows import TableText, record_batches
from pylog.errors import LogDirectoryError
from pylog.reading.log_directory import TopicChoice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from pylog.reading.log_view import LogView

_LOGGER = logging.getLogger(__name__)


class Surroundings(Protocol):
    """What lies around the partitions that a table is about."""

    def record_batches(self) -> Iterable[pa.RecordBatch]:
        """Return the rows about log directories."""


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A table about the structure of logs, made of headers and side files.

    Only ``findings`` decodes records, to find those that cannot be, and ``cleaning`` where keys are
    asked for.

    Attributes
    ----------
    name
        One of `pylog.TABLE_NAMES`.
    schema
        Arrow schema; ``topic`` and ``partition`` first, timestamps in ms.
    record_batches
        Returns the rows of one partition in order, as record batches of this schema that own their
        memory. Errors are `pylog.errors.LogStorageError`.
    around
        Binds the table to all that lies under some paths, of which a choice is wanted: returns what
        makes the rows of a partition, and rows about log directories, whose topic and partition are
        null. None of a table whose rows come from a partition alone.
    text
        What it is about, and what each column means.
    options
        Keyword arguments of `record_batches`, and what the other tables lack, which have none.
    """

    name: str
    schema: pa.Schema
    record_batches: Callable[..., Iterable[pa.RecordBatch]]
    around: Callable[[Sequence[str], TopicChoice], Surroundings] | None = None
    text: TableText | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_directory_rows(self) -> bool:
        """Whether there may be rows about log directories."""
        return self.around is not None

    def bound(
        self,
        paths: Sequence[str],
        *,
        topics: Iterable[str] | None = None,
        assign: Mapping[str, Iterable[int]] | None = None,
        pattern: str | None = None,
    ) -> tuple[MetadataTable, Callable[[], Iterable[pa.RecordBatch]]]:
        """Return the table of what lies under some paths, and its rows about log directories.

        Those come before all others. Partitions are chosen as by `LogDirectory.select`.

        Raises
        ------
        LogStorageError
            A path cannot be read.
        """
        if self.around is None:
            return self, tuple
        around = self.around(paths, TopicChoice.of(topics=topics, assign=assign, pattern=pattern))
        record_batches = partial(self.record_batches, around=around)
        return replace(self, record_batches=record_batches), around.record_batches

    def rows_of(self, view: LogView) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, or those up to what keeps it from being read.

        Raises
        ------
        LogStorageError
            Something is damaged or cannot be read. Where the view skips damage, a directory or
            file that cannot be read is a warning instead, so that it does not hide the others.
        """
        try:
            yield from self.record_batches(view)
        except LogDirectoryError as error:
            if view.damage is None:
                raise
            _LOGGER.warning(
                "table %s has not all of %s: %s", self.name, view.topic_partition, error
            )

    def with_options(self, options: Mapping[str, object]) -> MetadataTable:
        """Return this table with those of ``options`` that it knows."""
        own = {name: value for name, value in options.items() if name in self.options}
        return replace(self, record_batches=partial(self.record_batches, **own)) if own else self


def table_of_rows(
    name: str,
    text: TableText,
    rows: Callable[..., Iterable[tuple[object, ...]]],
    around: Callable[[Sequence[str], TopicChoice], Surroundings] | None = None,
    **options: str,
) -> MetadataTable:
    """Declare a table whose rows are made one by one: the values after topic and partition."""
    schema = text.schema

    def batches(view: LogView, **given: object) -> Iterator[pa.RecordBatch]:
        return record_batches(view.topic_partition, rows(view, **given), schema)

    return MetadataTable(name, schema, batches, around, text, options)
