"""Records and metadata tables as DuckDB takes them: what looks like a dataset of pyarrow.

DuckDB asks a dataset for its schema, and then for a scanner, to which it gives the columns that it
needs and a filter. It evaluates what it puts into that filter nowhere else: it gets the rows that
the whole expression passes, as pyarrow evaluates it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds

from pylog.pushdown.comparison import MIRRORED, Comparison, to_record_filter
from pylog.pushdown.engine_types import engine_schema, in_engine_types
from pylog.pushdown.expression_tree import Call, Column, Literal, Node, columns_in, expression_tree
from pylog.reading.field_filter import ExpressionTest, FieldFilter
from pylog.reading.scan import covered_views
from pylog.tables.latest import LATEST, decoded_latest
from pylog.tables.tables import rows_of_logs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, MutableSequence, Sequence

    import pyarrow.compute as pc

    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter
    from pylog.reading.scan import Scan
    from pylog.reading.typed_records import TypedRecords
    from pylog.tables.metadata_table import MetadataTable

_OPERATORS = {"equal": "=", "greater_equal": ">=", "greater": ">", "less_equal": "<=", "less": "<"}
_EXACT_UNITS = ("s", "ms", "us")


def comparisons_of(expression: pc.Expression, schema: pa.Schema) -> Iterator[Comparison]:
    """Yield comparisons that every row has to pass which passes ``expression``."""
    tree = expression_tree(expression)
    for term in [] if tree is None else _terms_of(tree, "and_kleene"):
        compared = _comparison(term, schema)
        if compared is not None:
            yield compared


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns that an expression is about, or may be about if that is not known."""
    tree = expression_tree(expression)
    names = set(schema.names) if tree is None else columns_in(tree)
    return [name for name in schema.names if name in names]


def _terms_of(tree: Node, function: str) -> Iterator[Node]:
    """Yield what a function of two that is nested in itself joins: AND, or OR."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, Call) and node.function == function:
            rest += reversed(node.arguments)
        else:
            yield node


def _comparison(node: Node, schema: pa.Schema) -> Comparison | None:
    """Return what a term says; None if it is not a comparison of a column with constants."""
    match node:
        case Call("or_kleene", _, _):
            return _alternatives(node, schema)
        case Call("if_else", (Call("is_valid", (tested,), _), then, Literal(otherwise)), _):
            # What DuckDB writes around IN: NULL for NULL.
            if isinstance(then, Call) and then.arguments == (tested,) and not otherwise[0].as_py():
                return _comparison(then, schema)
        case Call("is_in", (Column(name, True),), pa.StructScalar() as options):
            values = _values(options["value_set"].values, name, schema)
            return None if values is None else Comparison(name, "in", values)
        case Call(function, (Column(name, True), Literal(literal)), _) if function in _OPERATORS:
            return _with_one(name, _OPERATORS[function], literal, schema)
        case Call(function, (Literal(literal), Column(name, True)), _) if function in _OPERATORS:
            return _with_one(name, MIRRORED[_OPERATORS[function]], literal, schema)
    return None


def _with_one(name: str, operator: str, literal: pa.Array, schema: pa.Schema) -> Comparison | None:
    values = _values(literal, name, schema)
    return Comparison(name, operator, values[0]) if values else None


def _alternatives(node: Node, schema: pa.Schema) -> Comparison | None:
    """Return ``a = 1 OR a IN (2, 3)`` as one list."""
    values: list[object] = []
    names: set[str | tuple[str, ...]] = set()
    for term in _terms_of(node, "or_kleene"):
        compared = _comparison(term, schema)
        if compared is None or compared.operator not in ("=", "in"):
            return None
        names.add(compared.column)
        of_term = compared.value
        values += of_term if isinstance(of_term, list) else [of_term]
    return Comparison(names.pop(), "in", values) if len(names) == 1 else None


def _values(array: pa.Array, name: str, schema: pa.Schema) -> list[object] | None:
    """Return constants; None if one is null, or not of the kind that the column has."""
    if name not in schema.names or array.null_count:
        return None
    column, kind = schema.field(name).type, array.type
    is_alike = (
        (pa.types.is_integer(column) and pa.types.is_integer(kind))
        or (column == pa.string() and kind in (pa.string(), pa.large_string()))
        or (column == pa.binary() and kind in (pa.binary(), pa.large_binary()))
    )
    if pa.types.is_timestamp(column) and pa.types.is_timestamp(kind) and column.tz and kind.tz:
        is_alike = kind.unit in _EXACT_UNITS
        array = array.cast(pa.timestamp(kind.unit, "UTC"))
    if not is_alike:
        return None
    try:
        values: list[object] = array.to_pylist()
    except (ValueError, OverflowError):  # a year that Python does not know
        return None
    return values


class LogDataset(ds.Dataset, ABC):  # type: ignore[misc]  # pyarrow has no types
    """A dataset in so far as `schema` and `scanner` are there; every scan reads again.

    Any number of threads may scan it.
    """

    # The base constructor cannot make a dataset of another class: it is not called.
    def __init__(self, schema: pa.Schema, errors: MutableSequence[BaseException]) -> None:
        self._schema = engine_schema(schema)
        # Of what the engine compares as text, nothing is known before it is text.
        self._can_test_decoded = self._schema == schema
        self._errors = errors

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._schema

    @property
    def _typed_columns(self) -> Collection[str]:
        """The columns of keys and values that are decoded."""
        return ()

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
            typed = self._typed_columns
            where = to_record_filter(comparisons, typed=typed) if comparisons else None
        return FilteredRows(
            self._schema_of(names),
            in_engine_types(self.rows(list(needed), where, filter), self._schema_of(needed)),
            filter,
            self._errors,
        )

    def _schema_of(self, names: Iterable[str]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in names])

    @abstractmethod
    def rows(
        self,
        columns: list[str],
        where: RecordFilter | None,
        expression: pc.Expression | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows with some columns: all that pass both filters, and maybe others."""

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
                rows = pa.Table.from_batches([batch])
                if self._expression is not None:
                    # Not of the batch itself: Arrow 18 has an IndexError where no row is left.
                    rows = rows.filter(self._expression)
                yield from rows.select(self.projected_schema.names).to_batches()
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

    @property
    def _typed_columns(self) -> Collection[str]:
        return self._records.typed_columns

    def rows(
        self,
        columns: list[str],
        where: RecordFilter | None,
        expression: pc.Expression | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield records; what a filter says of records decides which bytes are read.

        What it says of decoded keys and values decides which other columns are decoded.
        """
        if self._records.limit is not None:
            where = None  # the limit is of the rows before
        tested = () if expression is None else tuple(columns_of(expression, self._schema))
        # One after the other: the first one that plans decides where the logs end for all.
        with self._planning:
            part = self._records.narrowed(columns, where=where)
            can_test = part.tests_while_decoding(tested, is_for_one_thread=False)
            if can_test and self._can_test_decoded:
                part = part.narrowed(where=FieldFilter(ExpressionTest(expression, tested)))
            batches = part.counted_batches()
        yield from batches


class TableDataset(LogDataset):
    """A metadata table of some logs, and of the directories that they lie in."""

    def __init__(
        self,
        table: MetadataTable,
        directory: LogDirectory,
        views: Sequence[LogView],
        errors: MutableSequence[BaseException],
        choice: Mapping[str, Any],
    ) -> None:
        super().__init__(table.schema, errors)
        self._choice = choice
        self._table = table
        self._directory = directory
        self._views = views

    def rows(
        self,
        columns: list[str],
        where: RecordFilter | None,
        expression: pc.Expression | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of the logs whose topic and partition a filter lets pass."""
        # Rows about directories have neither topic nor partition.
        is_of_some = where is not None and not (where.topics is None and where.partitions is None)
        table, rows_of_directories = self._table.bound(self._directory.given, **self._choice)
        views = covered_views(list(self._views), where)
        about_directories = () if is_of_some else rows_of_directories()
        are_named = not (self._choice["topics"] is None and self._choice["assign"] is None)
        of_logs = rows_of_logs(table, views, are_named=are_named)
        for batch in chain(about_directories, of_logs):
            yield batch.select(columns)


class LatestDataset(LogDataset):
    """Table ``latest`` of some logs, with typed keys and values.

    A filter is tested while these are decoded: of the last record of each key alone.
    """

    def __init__(
        self,
        typed: TypedRecords,
        views: Sequence[LogView],
        errors: MutableSequence[BaseException],
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(typed.schema(LATEST.schema.names, timestamp_unit="ms"), errors)
        self._typed, self._views, self._options = typed, views, options

    @property
    def _typed_columns(self) -> Collection[str]:
        return tuple(self._typed.columns)

    def rows(
        self,
        columns: list[str],
        where: RecordFilter | None,
        expression: pc.Expression | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of the logs whose topic and partition a filter lets pass."""
        typed = self._typed
        tested = () if expression is None else tuple(columns_of(expression, self._schema))
        if self._can_test_decoded and not typed.columns.keys().isdisjoint(tested):
            typed = typed.tested_by(FieldFilter(ExpressionTest(expression, tested)))
        schema = typed.schema(columns, timestamp_unit="ms")
        table = decoded_latest(typed, schema, **self._options)
        views = covered_views(list(self._views), where)
        yield from rows_of_logs(table, views, are_named=True)
