"""Records to standard output, in one of the formats of lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli.rendering.whole_output import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

BYTES_AT_ONCE = 2 << 20
"""Arrow data of the records that are formatted, then written, at once; the text has about as many
bytes, and stays in the processor's cache meanwhile."""

line_format = click.option(
    "-f",
    "format_text",
    metavar="FORMAT",
    help="Print this for each record, as kcat does: %t topic, %p partition, %o offset, %T "
    "timestamp (ms), %k key, %s value, %K and %S their lengths (-1 for null), %R the value's "
    "length as four bytes, %h headers, %% a percent sign; \\n, \\t, \\r, \\xNN. Keys and "
    "values are printed as their bytes are (in a terminal, control characters are escaped), and "
    "null as nothing; a line's end has to be part of FORMAT.",
)
"""Gives a command's function the argument ``format_text``."""


def lines_of_format(text: str) -> pylog.LineFormat:
    """Return what makes lines as a format of kcat says; `click.UsageError` if it is not one."""
    try:
        return pylog.LineFormat.of_kcat(text, is_printable=sys.stdout.isatty())
    except ValueError as error:
        raise click.UsageError(str(error)) from error


class RecordOutput:
    """Writes record batches to standard output."""

    def __init__(self, lines: pylog.LineFormat, *, is_mixed: bool = False) -> None:
        self._lines_of = lines.lines_of_several if is_mixed else lines.lines_of
        self._output = sys.stdout.buffer
        self.records = 0  # how many have been written

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the lines of a record batch."""
        for part in _parts(batch):
            write_whole(self._output, self._lines_of(part))
        self.records += batch.num_rows

    def flush(self) -> None:
        """Have whoever reads the output see what was written."""
        self._output.flush()


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, batch.num_rows * BYTES_AT_ONCE // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
