"""How records become lines: JSON, text, or a format of the user's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pylog.record_lines import kcat_format, record_json, record_text

    LinesOf = Callable[[pa.RecordBatch], memoryview]
else:  # which load Arrow
    kcat_format = LazyModule("pylog.record_lines.kcat_format")
    record_json = LazyModule("pylog.record_lines.record_json")
    record_text = LazyModule("pylog.record_lines.record_text")

VALUE_FORMATS = ("text", "base64")
"""How JSON lines have keys, values and headers' values; the first is the default."""


class LineFormat(NamedTuple):
    """Makes lines of record batches; the class methods return one.

    Attributes
    ----------
    columns
        The columns that a record batch must have, the timestamp in ms.
    lines_of
        Returns the lines of the records of one partition.
    lines_of_several
        The same for records of any partitions.
    """

    columns: tuple[str, ...]
    lines_of: LinesOf
    lines_of_several: LinesOf

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
        if values == "text":
            one, several = record_json.json_lines_of_text, record_json.mixed_json_lines_of_text
        else:
            one, several = record_json.json_lines, record_json.mixed_json_lines
        return cls(record_json.JSON_COLUMNS, one, several)

    @classmethod
    def text(cls) -> LineFormat:
        """Return key, tab, value, see `pylog.record_lines.record_text`."""
        return cls(record_text.TEXT_COLUMNS, record_text.text_lines, record_text.text_lines)

    @classmethod
    def located_text(cls) -> LineFormat:
        """Return topic and partition, offset, time, key and value, with tabs between them."""
        lines_of = record_text.located_lines
        return cls(record_text.LOCATED_COLUMNS, lines_of, lines_of)

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
        lines_of = partial(parsed.lines, is_printable=is_printable)
        return cls(parsed.columns, lines_of, lines_of)
