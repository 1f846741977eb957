"""What reaches standard output and standard error: records, documents, lines, notices.

Where Python does not buffer its output (``PYTHONUNBUFFERED``, ``python -u``), ``sys.stdout.buffer``
is the bare file, and a write to that may take a part of what it is given.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli.style import OutputTraits
from pylog.text.words import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

    import pyarrow as pa


def write_summary(
    document: dict[str, Any], lines: Iterable[str], *, as_json: bool, copied: Iterable[str] = ()
) -> None:
    """Print what was done, as JSON or as text.

    A terminal wraps lines between words. Not those of ``copied``, which come last: people copy
    commands and settings from them, and a line break would go with those.
    """
    if as_json:
        write_json(document)
    else:
        width = OutputTraits.of(sys.stdout).width
        printable = pylog.jobs.printable
        for line in lines:
            sys.stdout.writelines(f"{part}\n" for part in wrapped(printable(line), width))
        sys.stdout.writelines(f"{printable(line)}\n" for line in copied)
    sys.stdout.flush()


def tell(kind: str, *texts: object) -> None:
    """Print lines for people to stderr, each of them a note, a warning or an error."""
    width = OutputTraits.of(sys.stderr).width
    for each in texts:
        text = f"pylog: {kind}: {pylog.jobs.printable(str(each))}"
        sys.stderr.writelines(f"{part}\n" for part in wrapped(text, width))


def wrapped(text: str, width: int | None) -> list[str]:
    """Return the lines of a text in a terminal of a width; the text itself elsewhere."""
    if width is None:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    lines = textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return lines or [""]


def disk_text(kinds: Mapping[str, int]) -> str:
    """Return what files take on a disk, in all and by kind."""
    words = {"beside": "beside the partitions"}
    named = ", ".join(
        f"{format_bytes(size)} {words.get(kind, kind)}" for kind, size in kinds.items() if size
    )
    return f"{format_bytes(sum(kinds.values()))} on disk" + (f" ({named})" if named else "")


def known(value: int | None, otherwise: str = "-") -> str:
    """Return a number as tables have it."""
    return otherwise if value is None else str(value)


def write_json(document: dict[str, Any], *, is_line: bool = False) -> None:
    """Print one JSON document, as one line or with a line for each member."""
    whole = {"schemaVersion": pylog.jobs.JSON_SCHEMA_VERSION, **document}
    sys.stdout.write(json.dumps(whole, indent=None if is_line else 2) + "\n")


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
    "null as nothing; FORMAT must include the newline (\\n).",
)
"""Gives a command's function the argument ``format_text``."""


def lines_of_format(text: str) -> pylog.jobs.LineFormat:
    """Return what makes lines as a format of kcat says; `click.UsageError` if it is not one."""
    try:
        return pylog.jobs.LineFormat.of_kcat(text, is_printable=sys.stdout.isatty())
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def read_rules(path: str) -> pylog.results.RecordMasking:
    """Return the rules of a file; `click.UsageError` if they are none."""
    try:
        return pylog.jobs.read_mask_rules(path)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def read_masking(path: str | None) -> pylog.results.RecordMasking | None:
    """Return the rules of the file of an option, None without one."""
    return None if path is None else read_rules(path)


def tell_of_masking(masking: pylog.results.RecordMasking | None) -> None:
    """Say that rules for JSON did not fit some values."""
    if masking is not None and masking.not_json:
        count = pylog.jobs.counted(masking.not_json, "value is", "values are")
        tell(
            "warning",
            f"{count} not JSON where a rule of --mask has JSON paths: nothing in them is replaced",
        )


class RecordOutput:
    """Writes record batches to standard output."""

    def __init__(
        self, lines: pylog.jobs.LineFormat, masking: pylog.results.RecordMasking | None = None
    ) -> None:
        self._lines_of = lines.lines_of
        self._masking = masking
        self._output = sys.stdout.buffer
        self.records = 0  # how many have been written

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the lines of a record batch."""
        if self._masking is not None:
            batch = self._masking.masked(batch)
        for part in _parts(batch):
            for lines in self._lines_of(part):
                write_whole(self._output, lines)
        self.records += batch.num_rows

    def flush(self) -> None:
        """Flush the output, so that its reader sees all lines."""
        self._output.flush()


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, batch.num_rows * BYTES_AT_ONCE // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def write_whole(output: BinaryIO, content: memoryview) -> None:
    """Write all of ``content``, in as many pieces as ``output`` takes it in."""
    try:
        while len(content):
            written: int | None = output.write(content)
            if written is None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            content = content[written:]
    except OSError as error:
        # So that a full disk is not taken for that of the logs.
        error.filename = "standard output"
        raise


def printable_lines(content: memoryview) -> memoryview:
    """Return lines in UTF-8 in which all but the ends of lines is printable."""
    text = bytes(content).decode("utf-8", "replace")
    return memoryview("\n".join(map(pylog.jobs.printable, text.split("\n"))).encode())
