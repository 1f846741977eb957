"""Records and metadata tables as DuckDB takes them: what looks like a dataset of pyarrow.

DuckDB asks a dataset for its schema, and then for a scanner, to which it gives the columns that it
needs and a filter. It evaluates what it puts into that filter nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds

from pylog.pushdown.arrow_expression import columns_of, comparisons_of
from pylog.pushdown.comparison import to_record_filter
from pylog.reading.scan import covered_views
from pylog.tables.tables import rows_of_logs

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableSequence, Sequence

    import pyarrow.compute as pc

    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter
    from pylog.reading.scan import Scan
    from pylog.tables.metadata_table import MetadataTable


class LogDataset(ds.Dataset, ABC):  # type: ignore[misc]  # pyarrow has no types
    """A dataset in so far as `schema` and `scanner` are there; every scan reads again.

    Any number of threads may scan it.
    """

    # Without the constructor of the base class, which makes no dataset of one's own.
    def __init__(self, schema: pa.Schema, errors: MutableSequence[BaseException]) -> None:
        self._schema = schema
        self._errors = errors

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - as pyarrow calls it
    ) -> FilteredRows:
        """Return exactly the rows that pass ``filter``, with ``columns`` in this order."""
        names = self._schema.names if columns is None else list(columns)
        needed = dict.fromkeys(names)
        where = None
        if filter is not None:
            needed |= dict.fromkeys(columns_of(filter, self._schema))
            comparisons = list(comparisons_of(filter, self._schema))
            where = to_record_filter(comparisons) if comparisons else None
        return FilteredRows(
            pa.schema([self._schema.field(name) for name in names]),
            self.rows(list(needed), where),
            filter,
            self._errors,
        )

    @abstractmethod
    def rows(self, columns: list[str], where: RecordFilter | None) -> Iterator[pa.RecordBatch]:
        """Yield rows with some columns: at least those that pass."""

    def _is_not_here(self, *_: Any, **__: Any) -> NoReturn:  # noqa: ANN401 - as of a dataset
        msg = "DuckDB reads this object; to others it is not a dataset"
        raise NotImplementedError(msg)

    # Those of the base class would follow a null pointer.
    filter = get_fragments = join = join_asof = replace_schema = sort_by = _is_not_here


class FilteredRows:
    """A scanner in so far as `to_reader` is there, which may be called once."""

    def __init__(
        self,
        schema: pa.Schema,
        rows: Iterator[pa.RecordBatch],
        expression: pc.Expression | None,
        errors: MutableSequence[BaseException],
    ) -> None:
        self.projected_schema = schema
        self._rows = rows
        self._expression = expression
        self._errors = errors

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._rows:
                rows = batch if self._expression is None else batch.filter(self._expression)
                yield rows.select(self.projected_schema.names)
        except GeneratorExit:  # no more rows are wanted
            raise
        except BaseException as error:  # also Ctrl-C: Arrow would make text of it
            self._errors.append(error)
            raise


class RecordsDataset(LogDataset):
    """The records of a scan."""

    def __init__(self, records: Scan, errors: MutableSequence[BaseException]) -> None:
        super().__init__(records.schema, errors)
        self._records = records
        self._planning = Lock()

    def rows(self, columns: list[str], where: RecordFilter | None) -> Iterator[pa.RecordBatch]:
        """Yield records; what a filter says of records decides which bytes are read."""
        if self._records.limit is not None:
            where = None  # the limit is of the rows before
        # One after the other: the first one that plans decides where the logs end for all.
        with self._planning:
            batches = self._records.narrowed(columns, where=where).counted_batches()
        yield from batches


class TableDataset(LogDataset):
    """A metadata table of some logs, and of the directories that they lie in."""

    def __init__(
        self,
        table: MetadataTable,
        directory: LogDirectory,
        views: Sequence[LogView],
        errors: MutableSequence[BaseException],
    ) -> None:
        super().__init__(table.schema, errors)
        self._table = table
        self._directory = directory
        self._views = views

    def rows(self, columns: list[str], where: RecordFilter | None) -> Iterator[pa.RecordBatch]:
        """Yield rows of the logs whose topic and partition a filter lets pass."""
        # Rows about directories have neither topic nor partition.
        is_of_some = where is not None and not (where.topics is None and where.partitions is None)
        directory = None if is_of_some else self._directory
        views = covered_views(list(self._views), where)
        for batch in rows_of_logs(self._table, views, directory):
            yield batch.select(columns)
