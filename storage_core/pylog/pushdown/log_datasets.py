"""Records and metadata tables as DuckDB takes them: what looks like a dataset of pyarrow.

DuckDB asks a dataset for its schema, and then for a scanner, to which it gives the columns that it
needs and a filter. It evaluates what it puts into that filter nowhere else: it gets the rows that
the whole expression passes, as pyarrow evaluates it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds

from pylog.pushdown.comparison import MIRRORED, Comparison, to_record_filter
from pylog.reading.scan import covered_views
from pylog.tables.tables import rows_of_logs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableSequence, Sequence

    import pyarrow.compute as pc

    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter
    from pylog.reading.scan import Scan
    from pylog.tables.metadata_table import MetadataTable


# The parts of a pyarrow expression, for which pyarrow itself has no way to ask.
#
# It does write them down: pickled, an expression is an Arrow file whose schema has the
# structure as metadata, part by part, and whose only row has the literals and the options of
# functions, each as a column of its own.
#
# Source: ``arrow::compute::Serialize`` in ``expression.cc`` (Arrow 18 to 26).


_HEAD = "-- schema metadata --\n"
_PART = re.compile(r"(\w+): '([^'\n]*)'")


class Column(NamedTuple):
    """A column of the rows; of a struct's member, the column that the struct is."""

    name: str
    is_whole: bool


class Literal(NamedTuple):
    """A constant, as an array of one value."""

    value: pa.Array


class Call(NamedTuple):
    """A function of pyarrow.compute, what it is called with, and its options as a struct."""

    function: str
    arguments: tuple[Node, ...]
    options: pa.StructScalar | None


Node = Column | Literal | Call


def expression_tree(expression: pc.Expression) -> Node | None:
    """Return an expression's parts; None if it is written in a way that is not known."""
    _, [written] = expression.__reduce__()
    row = pa.ipc.open_file(written).get_batch(0)
    # As a mapping it would have one part of each kind.
    _, head, metadata = row.schema.to_string(truncate_metadata=False).partition(_HEAD)
    parts = [_PART.fullmatch(line) for line in metadata.splitlines()]
    if not head or None in parts:
        return None
    try:
        [tree] = _nodes(iter([(part[1], part[2]) for part in parts if part is not None]), row)
    except (LookupError, ValueError):
        return None
    return tree


def _nodes(parts: Iterator[tuple[str, str]], row: pa.RecordBatch) -> list[Node]:
    """Return what is not part of another node; without recursion, as trees may be deep."""
    open_calls: list[tuple[str, list[Node], list[pa.StructScalar]]] = [("", [], [])]
    for kind, text in parts:
        _, nodes, options = open_calls[-1]
        if kind == "call":
            open_calls.append((text, [], []))
        elif kind == "field_ref":
            nodes.append(Column(text, is_whole=True))
        elif kind == "nested_field_ref":
            path = [next(parts, ("", "")) for _ in range(int(text))]
            if {step for step, _ in path} - {"field_ref", "field_index"}:
                raise LookupError(kind)
            nodes.append(Column(path[0][1], is_whole=False))
        elif kind == "literal":
            nodes.append(Literal(row.column(int(text))))
        elif kind == "options":
            options.append(row.column(int(text))[0])
        elif kind == "end" and len(open_calls) > 1:
            function, nodes, options = open_calls.pop()
            made = Call(function, tuple(nodes), options[0] if options else None)
            open_calls[-1][1].append(made)
        else:
            raise LookupError(kind)
    if len(open_calls) != 1:
        raise LookupError("end")
    return open_calls[0][1]


def columns_in(tree: Node) -> set[str]:
    """Return the names of the columns that an expression is about."""
    found: set[str] = set()
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, Column):
            found.add(node.name)
        elif isinstance(node, Call):
            rest += node.arguments
    return found


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
    names: set[str] = set()
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
        choice: Mapping[str, Any],
    ) -> None:
        super().__init__(table.schema, errors)
        self._choice = choice
        self._table = table
        self._directory = directory
        self._views = views

    def rows(self, columns: list[str], where: RecordFilter | None) -> Iterator[pa.RecordBatch]:
        """Yield rows of the logs whose topic and partition a filter lets pass."""
        # Rows about directories have neither topic nor partition.
        is_of_some = where is not None and not (where.topics is None and where.partitions is None)
        table, rows_of_directories = self._table.bound(self._directory.given, **self._choice)
        views = covered_views(list(self._views), where)
        about_directories = () if is_of_some else rows_of_directories()
        for batch in chain(about_directories, rows_of_logs(table, views)):
            yield batch.select(columns)
