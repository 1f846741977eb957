"""Record batches in the shapes that users want: Arrow's, pandas', plain Python's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.reading.consumer_record import consumer_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn, Self

    import pandas as pd

    from pylog.reading.consumer_record import ConsumerRecord

_NOT_A_SEQUENCE = (
    "a scan is not a sequence of records; use scan.to_batches() or scan.to_reader() to iterate "
    "over them in record batches, scan.records() one by one, scan.count() for how many there are, "
    "scan.last(n) for the last of each partition, and scan.to_table() or scan.to_pandas() for all "
    "of them in memory"
)


class RecordStream(ABC):
    """What gives record batches, as often as it is asked. Every use reads again.

    Attributes
    ----------
    schema
        The Arrow schema of the record batches.
    """

    schema: pa.Schema

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records as record batches of `schema`."""

    @abstractmethod
    def _of_whole_records(self) -> Self:
        """Return the same with the columns of `pylog.reading.consumer_record`."""

    def __iter__(self) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __len__(self) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __getitem__(self, item: object) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __bool__(self) -> bool:
        """Return True: whether there are records is known only after a read."""
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a PyCapsule of a new Arrow stream of the records, as of `to_reader`.

        See the Arrow PyCapsule interface. Damage reaches the consumer as an error of the stream,
        with the text of pylog's error.

        Parameters
        ----------
        requested_schema
            None, or a PyCapsule with an ArrowSchema that the consumer would like; `ValueError` if
            the columns cannot be cast to it.
        """
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return a PyCapsule of `schema`; nothing is read. See the Arrow PyCapsule interface."""
        return self.schema.__arrow_c_schema__()

    def records(self) -> Iterator[ConsumerRecord]:
        """Yield the records one by one, for plain Python; memory stays bounded.

        They have all fields, whatever the columns of this scan. What damage leaves out is listed in
        `damage` (modes DROPMALFORMED and PERMISSIVE).

        Raises
        ------
        LogStorageError
            As of `to_batches`, but that any timestamp can be expressed.

        Examples
        --------
        >>> for record in pylog.scan("/mnt/kafka-logs", topics="orders").records():
        ...     print(record.partition, record.offset, record.key, record.value)
        """
        return consumer_records(self._of_whole_records().to_batches())

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the records as an Arrow stream; memory stays bounded. Plans now, reads later."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return all records in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:  # noqa: ANN401 - of pyarrow
        """Return all records as a pandas DataFrame (pandas must be installed).

        Parameters
        ----------
        **options
            Those of ``pyarrow.Table.to_pandas``, such as ``types_mapper=pandas.ArrowDtype``.
        """
        return self.to_table().to_pandas(**options)
