"""What the lines of a dump consist of: made once, then written many times by a kernel."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from pylog.kernels import write_lines as kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


class Style(IntEnum):
    """How bytes are written; see `pylog.kernels.write_lines`."""

    TEXT = kernel.STYLE_TEXT
    JSON = kernel.STYLE_JSON
    BASE64 = kernel.STYLE_BASE64


class LineTemplate(NamedTuple):
    """The steps of a batch's line and of a record's, as the kernel takes them.

    Attributes
    ----------
    steps
        int64, shape (steps, `kernel.STEP_FIELDS`).
    record_step
        The first of a record's line.
    most_batch_bytes, most_record_bytes
        What the literals and numbers of a line take at the most.
    literals, literal_ends
        uint8 and int64: literal i is ``literals[literal_ends[i]:literal_ends[i + 1]]``; padded.
    """

    steps: npt.NDArray[np.int64]
    record_step: int
    most_batch_bytes: int
    most_record_bytes: int
    literals: npt.NDArray[np.uint8]
    literal_ends: npt.NDArray[np.int64]


class TemplateBuilder:
    """Takes the parts of a batch's line in their order and, after `begin_record`, a record's.

    The columns are those of the table of batches that the kernel is given.
    """

    def __init__(self) -> None:
        self._steps: list[list[int]] = []
        self._literals: list[bytes] = []
        self._most_bytes = [0, 0]
        self._record_step: int | None = None
        self._is_literal_open = False

    def begin_record(self) -> Self:
        """Note that what follows belongs to the line of a record."""
        self._record_step = len(self._steps)
        self._is_literal_open = False
        return self

    def text(self, text: str) -> Self:
        """Add a text that stands in every line."""
        data = text.encode()
        if self._is_literal_open:
            self._literals[-1] += data
        else:
            self._add(kernel.LITERAL, len(self._literals))
            self._literals.append(data)
            self._is_literal_open = True
        self._count(len(data))
        return self

    def number(self, column: int) -> Self:
        """Add a number of the batch."""
        self._count(kernel.NUMBER_BYTES)
        return self._add(kernel.NUMBER, column)

    def choice(self, column: int, *texts: str) -> Self:
        """Add one of ``texts``: the one whose place is the number in a column of the batch."""
        self._count(max(len(each.encode()) for each in texts))
        self._add(kernel.CHOICE, column, len(self._literals), len(texts))
        self._literals += [each.encode() for each in texts]
        return self

    def offset(self) -> Self:
        """Add the record's offset."""
        return self._number_of_record(kernel.OFFSET)

    def timestamp(self) -> Self:
        """Add the record's timestamp."""
        return self._number_of_record(kernel.TIMESTAMP)

    def key_size(self) -> Self:
        """Add how many bytes the record's key has; -1 for null."""
        return self._number_of_record(kernel.KEY_SIZE)

    def value_size(self) -> Self:
        """Add how many bytes the record's value has; -1 for null."""
        return self._number_of_record(kernel.VALUE_SIZE)

    def sequence(self, base_sequence: int, base_offset: int) -> Self:
        """Add the record's sequence; the columns have its batch's base sequence and offset."""
        self._count(kernel.NUMBER_BYTES)
        return self._add(kernel.SEQUENCE, base_sequence, base_offset)

    def crc(self) -> Self:
        """Add the checksum that the record stores."""
        return self._number_of_record(kernel.CRC)

    def validity(self, right: str, wrong: str) -> Self:
        """Add one of two texts: whether that checksum is right."""
        self._count(max(len(right), len(wrong)))
        self._add(kernel.VALIDITY, len(self._literals))
        self._literals += [right.encode(), wrong.encode()]
        return self

    def header_names(self, style: Style) -> Self:
        """Add the names of the record's headers, with commas between them."""
        return self._add(kernel.HEADER_NAMES, style)

    def key(self, style: Style) -> Self:
        """Add the record's key."""
        return self._add(kernel.KEY, style)

    def value(self, style: Style) -> Self:
        """Add the record's value."""
        return self._add(kernel.VALUE, style)

    def detail(self) -> Self:
        """Add the text that was made for the record."""
        return self._add(kernel.DETAIL)

    @contextmanager
    def when(self, column: int, value: int) -> Iterator[None]:
        """Have what is added within stand in lines of batches with ``value`` in a column alone."""
        with self._skipping(kernel.SKIP_UNLESS, column, value):
            yield

    @contextmanager
    def if_key(self, *, is_null: bool = False) -> Iterator[None]:
        """Have what is added within stand where the key is not null alone, or where it is."""
        with self._skipping(kernel.SKIP_BY_KEY, int(not is_null)):
            yield

    @contextmanager
    def if_value(self, *, is_null: bool = False) -> Iterator[None]:
        """Have what is added within stand where the value is not null alone, or where it is."""
        with self._skipping(kernel.SKIP_BY_VALUE, int(not is_null)):
            yield

    def finish(self) -> LineTemplate:
        """Return the template."""
        record_step = len(self._steps) if self._record_step is None else self._record_step
        steps = np.array(self._steps, dtype=np.int64).reshape(-1, kernel.STEP_FIELDS)
        ends = np.cumsum([0, *map(len, self._literals)], dtype=np.int64)
        padded = b"".join([*self._literals, bytes(kernel.LITERAL_PADDING)])
        literals = np.frombuffer(padded, dtype=np.uint8)
        of_batch, of_record = self._most_bytes
        return LineTemplate(steps, record_step, of_batch, of_record, literals, ends)

    def _number_of_record(self, what: int) -> Self:
        self._count(kernel.NUMBER_BYTES)
        return self._add(what)

    @contextmanager
    def _skipping(self, what: int, *arguments: int) -> Iterator[None]:
        self._add(what, *arguments)
        step = self._steps[-1]
        start = len(self._steps)
        yield
        step[-1] = len(self._steps) - start
        self._is_literal_open = False

    def _count(self, size_bytes: int) -> None:
        self._most_bytes[self._record_step is not None] += size_bytes

    def _add(self, what: int, *arguments: int) -> Self:
        unused = kernel.STEP_FIELDS - 1 - len(arguments)
        self._steps.append([what, *arguments, *[0] * unused])
        self._is_literal_open = False
        return self
