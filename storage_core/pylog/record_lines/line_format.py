"""How records become lines: JSON, text, or a format of the user's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    import pyarrow as pa

    from pylog.errors import UndecodableValueError
    from pylog.internal_topics.decoders import DecoderName
    from pylog.record_lines import (
        decoded_lines,
        kcat_format,
        record_json,
        record_text,
        typed_json,
    )

    LinesOf = Callable[[pa.RecordBatch], Iterable[memoryview]]
else:  # which load Arrow
    decoded_lines = LazyModule("pylog.record_lines.decoded_lines")
    kcat_format = LazyModule("pylog.record_lines.kcat_format")
    record_json = LazyModule("pylog.record_lines.record_json")
    record_text = LazyModule("pylog.record_lines.record_text")
    typed_json = LazyModule("pylog.record_lines.typed_json")

VALUE_FORMATS = ("text", "base64")
"""How JSON lines have keys, values and headers' values; the first is the default."""


class LineFormat(NamedTuple):
    """Makes lines of record batches; the class methods return one.

    Attributes
    ----------
    columns
        The columns that a record batch must have, the timestamp in ms.
    lines_of
        Gives the lines of a batch's records, of any partitions, in parts that are bytes.
    """

    columns: tuple[str, ...]
    lines_of: LinesOf

    @classmethod
    def json(cls, values: str = VALUE_FORMATS[0]) -> LineFormat:
        """Return JSON lines, see `pylog.record_lines.record_json`.

        Raises
        ------
        ValueError
            ``values`` is neither "text" nor "base64".
        """
        if values not in VALUE_FORMATS:
            msg = f"values is {values!r}, expected one of {', '.join(VALUE_FORMATS)}"
            raise ValueError(msg)
        return cls(record_json.JSON_COLUMNS, partial(record_json.json_lines, values=values))

    @classmethod
    def typed_json(cls, columns: Collection[str], *, shows_undecodable: bool = False) -> LineFormat:
        """Return JSON lines with typed keys or values, see `pylog.record_lines.typed_json`.

        ``columns`` are those that are typed. With ``shows_undecodable``, records whose keys or
        values could not be decoded have a line, too.
        """
        needed = typed_json.needed_columns(columns, shows_undecodable=shows_undecodable)
        return cls(needed, typed_json.typed_json_lines)

    def with_json_values(self) -> LineFormat:
        """Return the same lines for batches with typed keys or values, which are JSON in them."""
        return self._replace(
            lines_of=lambda batch: self.lines_of(typed_json.with_json_values(batch))
        )

    @classmethod
    def text(cls) -> LineFormat:
        """Return key, tab, value, see `pylog.record_lines.record_text`."""
        return cls(record_text.TEXT_COLUMNS, record_text.text_lines)

    @classmethod
    def located_text(cls) -> LineFormat:
        """Return topic and partition, offset, time, key and value, with tabs between them."""
        return cls(record_text.LOCATED_COLUMNS, record_text.located_lines)

    @classmethod
    def decoded(
        cls,
        name: DecoderName,
        *,
        is_printable: bool = False,
        left_out: list[UndecodableValueError] | None = None,
    ) -> LineFormat:
        """Return what a formatter of Kafka prints, see `pylog.record_lines.decoded_lines`.

        With ``is_printable``, text that may go to a terminal. Records that cannot be decoded are
        left out and appended to ``left_out``; without it, the first one is an error.
        """
        lines_of = partial(
            decoded_lines.decoded_lines, name=name, is_printable=is_printable, left_out=left_out
        )
        return cls(decoded_lines.DECODED_COLUMNS, lines_of)

    @classmethod
    def of_kcat(cls, text: str, *, is_printable: bool = False) -> LineFormat:
        """Return a format of kcat, see `pylog.record_lines.kcat_format`.

        Keys, values and headers are their bytes, or, with ``is_printable``, text that may go to a
        terminal.

        Raises
        ------
        ValueError
            It has a field that there is not.
        """
        parsed = kcat_format.KcatFormat.parse(text)
        return cls(parsed.columns, partial(parsed.lines, is_printable=is_printable))
