"""Which records of a scan with decoded keys or values are wanted: tests of decoded columns.

They are applied while records are decoded: first the columns that a test is about, then the others
of the rows that pass it. What passes is what the same test keeps of the whole scan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from pylog.lazy_modules import LazyModule
from pylog.reading.filtered_decode import RowFilter
from pylog.typed.field_condition import parse_condition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    import numpy.typing as npt
    import pyarrow.compute as pc
    from pyarrow import acero

    from pylog.reading.record_filter import RecordFilter

    BoolArray = npt.NDArray[np.bool_]
else:
    acero = LazyModule("pyarrow.acero")  # whose import takes longer than many a read


class RowTest(Protocol):
    """Decides about the rows of record batches; it is pickled if tasks are."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs."""

    def mask(self, rows: pa.RecordBatch) -> BoolArray:
        """Mask the rows that pass, of a batch with these columns; unknown is no pass."""


@dataclass(frozen=True, slots=True)
class ExpressionTest:
    """An expression of pyarrow that is true of the rows that pass."""

    expression: pc.Expression
    columns: tuple[str, ...]

    def mask(self, rows: pa.RecordBatch) -> BoolArray:
        """See `RowTest`."""
        plan = acero.Declaration.from_sequence(
            [
                acero.Declaration(
                    "table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([rows]))
                ),
                acero.Declaration("project", acero.ProjectNodeOptions([self.expression], [""])),
            ]
        )
        passes = plan.to_table(use_threads=False).column(0)  # in order
        mask: BoolArray = passes.fill_null(False).to_numpy()  # noqa: FBT003 - of pyarrow
        return mask


@dataclass(frozen=True, slots=True)
class ByTypeTest:
    """Tests for columns of different types: by the types that a batch has."""

    tests: Mapping[tuple[pa.DataType, ...], RowTest]
    columns: tuple[str, ...]

    def mask(self, rows: pa.RecordBatch) -> BoolArray:
        """See `RowTest`."""
        return self.tests[tuple(rows.schema.types)].mask(rows)


@dataclass(frozen=True, slots=True)
class FieldFilter:
    """A test of decoded columns, or its inverse together with a filter of bytes.

    Attributes
    ----------
    test
        What decides about decoded rows.
    inverted_with
        Not None: the records pass that do not pass both the test and this filter, which is about
        the bytes of keys and values.
    topics
        Not None: the only topics that have what the test is about. Of others no record passes.
    """

    test: RowTest
    inverted_with: RecordFilter | None = None
    topics: frozenset[str] | None = None

    @classmethod
    def of_topics(
        cls,
        condition: str,
        topics: Mapping[str, Mapping[str, pa.DataType]],
        *,
        inverted_with: RecordFilter | None = None,
    ) -> Self:
        """Return the filter of a condition for topics, whatever types the columns of each have.

        Raises
        ------
        ValueError
            It fits the columns of no topic.
        """
        if topics and not any(topics.values()):
            raise ValueError("no topic here has a schema, so that a condition has no fields")
        first: Mapping[str, pa.DataType] = next(iter(topics.values()), {})
        if all(each == first for each in topics.values()):
            return cls.of(condition, first, inverted_with=inverted_with)
        fitting, tests, errors = set(), {}, []
        used: tuple[str, ...] = ()
        for topic, columns in topics.items():
            try:
                test = cls.of(condition, columns).test if columns else None
            except ValueError as error:
                errors.append(error)
                continue
            if test is None:
                continue
            fitting.add(topic)
            used = test.columns
            tests[tuple(columns[name] for name in used)] = test
        if not fitting:
            raise errors[0]
        return cls(ByTypeTest(tests, used), inverted_with, frozenset(fitting))

    @classmethod
    def of(
        cls,
        condition: str,
        columns: Mapping[str, pa.DataType],
        *,
        inverted_with: RecordFilter | None = None,
    ) -> Self:
        """Return the filter of a condition, see `pylog.typed.field_condition`.

        Raises
        ------
        ValueError
            It cannot be read, or does not fit the columns.
        """
        if not columns:
            msg = (
                "a condition is about decoded fields: give --value-format auto (value_format), or "
                "--key-format (key_format)"
            )
            raise ValueError(msg)
        return cls(ExpressionTest(*parse_condition(condition, columns)), inverted_with)

    def covers(self, topic: str) -> bool:
        """Whether records of a topic can pass."""
        return self.topics is None or topic in self.topics

    @property
    def byte_columns(self) -> tuple[str, ...]:
        """The columns of records that it needs as they lie in the log."""
        return () if self.inverted_with is None else self.inverted_with.columns

    def passing(self, rows: pa.RecordBatch, batch: pa.RecordBatch) -> BoolArray:
        """Mask the rows that pass; ``batch`` has the same rows with bytes."""
        mask = self.test.mask(rows)
        if self.inverted_with is None:
            return mask
        both = np.zeros(batch.num_rows, dtype=np.bool_)
        both[RowFilter(self.inverted_with).passing(batch)] = True
        return ~(both & mask)
