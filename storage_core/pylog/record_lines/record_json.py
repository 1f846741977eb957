r"""Records as JSON lines: Arrow columns in, bytes out, written by a kernel.

A line has these keys, in this order, and no blanks::

    {"topic":…,"partition":…,"offset":…,"timestamp":ms,"timestampType":-1|0|1,"leaderEpoch":…|null,
     "values":"text"|"base64","key":…|null,"value":…|null,"headers":[[name,…|null],…]}

With ``"values":"text"``, a key, a value or a header's value is the text that its bytes are in
UTF-8, or ``{"base64":…}`` if they are not UTF-8. With ``"values":"base64"``, each is base64: the
standard alphabet, padded, unbroken. The line is UTF-8; only characters that a terminal would act
upon are escapes.

The key ``values`` comes first, so that nobody takes one for the other: ``test`` is valid base64.
"""

from __future__ import annotations

from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import (
    boolean_values,
    bytes_array,
    fixed_width_array,
    int32_values,
    int64_values,
    present_rows,
)
from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.record_lines.arrow_functions import not_equal, take
from pylog.record_lines.line_template import NO_CHECKS, Records, Style, line_template, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from pylog.record_lines.line_template import LineTemplate


JSON_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "key",
    "value",
    "batch",
)
"""The columns that a batch must have, the timestamp in ms, to be formatted here."""

_STYLES = {"text": Style.JSON, "base64": Style.BASE64}
_OF_RUN = ("topic", "partition", "timestampType", "leaderEpoch", "hasEpoch")


def json_lines(batch: pa.RecordBatch, values: str = "text") -> Iterator[memoryview]:
    """Yield the lines of a batch's records, with values as "text" or in "base64"."""
    if not batch.num_rows:
        return
    style = _STYLES[values].name
    names, table, rows = runs_of(batch)
    template = _record_template(names, values, (style, style))
    yield from write_lines(template, table, rows, records_of(batch))


def typed_lines(
    batch: pa.RecordBatch,
    columns: Mapping[str, pa.Array],
    details: Mapping[int, str],
) -> Iterator[memoryview]:
    """Yield lines in which the keys or the values in ``columns`` are JSON; see `typed_json`.

    Without any they are those of `json_lines`.

    ``details`` are further members of some rows' objects.
    """
    if not batch.num_rows:
        return
    names, table, rows = runs_of(batch)
    styles = [Style.VERBATIM if each in columns else Style.JSON for each in ("key", "value")]
    values = "typed" if columns else "text"
    template = _record_template(names, values, (styles[0].name, styles[1].name))
    records = records_of(batch, **columns)
    yield from write_lines(template, table, rows, records, details=details)


def runs_of(
    batch: pa.RecordBatch,
) -> tuple[tuple[str, ...], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the topics' names, a line for each run of records, and how many records it has.

    A run is what the kernel calls a batch: records that have all but what is a record's in common.
    """
    topics = batch.column("topic")
    epochs = batch.column("batch").field("leaderEpoch")
    numbers: tuple[npt.NDArray[Any], ...] = (
        int32_values(batch.column("partition")),
        int32_values(batch.column("timestampType")),
        int32_values(epochs),
        present_rows(epochs),
    )
    differs = np.ones(batch.num_rows, dtype=np.bool_)
    differs[1:] = boolean_values(not_equal(topics[1:], topics[:-1]))
    for each in numbers:
        differs[1:] |= each[1:] != each[:-1]
    firsts = np.flatnonzero(differs)
    names = take(topics, fixed_width_array(firsts)).to_pylist()
    words = {name: number for number, name in enumerate(dict.fromkeys(names))}
    table = np.empty((firsts.size, len(_OF_RUN)), dtype=np.int64)
    table[:, 0] = [words[name] for name in names]
    for place, each in enumerate(numbers, 1):
        table[:, place] = each[firsts]
    return tuple(words), table, np.diff(firsts, append=batch.num_rows)


def records_of(
    batch: pa.RecordBatch, *, key: pa.Array | None = None, value: pa.Array | None = None
) -> Records:
    """Return the records of a batch, with other keys or values if they are given."""
    return Records(
        int64_values(batch.column("offset")),
        int64_values(batch.column("timestamp")),
        NO_CHECKS,
        batch.column("key") if key is None else key,
        batch.column("value") if value is None else value,
        batch.column("headers"),
    )


@lru_cache(maxsize=64)
def _record_template(topics: tuple[str, ...], values: str, styles: tuple[str, str]) -> LineTemplate:
    of_key, of_value = styles
    of_headers = _STYLES.get(values, Style.JSON).name
    line = (
        '{"topic":$topic,"partition":$partition,"offset":$offset,"timestamp":$timestamp,'
        '"timestampType":$timestampType,'
        '"leaderEpoch":$ifEpoch($leaderEpoch$)$ifNoEpoch(null$),'
        f'"values":"{values}",'
        f'"key":$ifKey($key{of_key}$)$ifNoKey(null$),'
        f'"value":$ifValue($value{of_value}$)$ifNoValue(null$),'
        f'"headers":[$headers{of_headers}]$detail}}\n'
    )
    return line_template(
        "",
        line,
        columns=_OF_RUN,
        words={"topic": [encode_basestring_ascii(each) for each in topics]},
        conditions={"ifEpoch": ("hasEpoch", 1), "ifNoEpoch": ("hasEpoch", 0)},
    )


def headers_as_json(column: pa.Array, values: str) -> pa.Array:
    """Return each record's headers as one JSON array, ``[]`` for none."""
    rows = len(column)
    nothing = np.zeros(rows, dtype=np.int64)
    no_bytes = bytes_array([])
    records = Records(nothing, nothing, NO_CHECKS, no_bytes, no_bytes, column)
    template = line_template("", f"[$headers{_STYLES[values].name}]\n")
    table, all_rows = np.zeros((1, 1), dtype=np.int64), np.array([rows])
    return lines_as_column(write_lines(template, table, all_rows, records), rows)


def json_strings(column: pa.Array, style: Style = Style.JSON) -> pa.Array:
    """Return each value of a column of bytes or text as JSON has it, nulls as an empty one."""
    rows = len(column)
    nothing = np.zeros(rows, dtype=np.int64)
    records = Records(
        *(nothing, nothing, NO_CHECKS, _NO_BYTES, column, pa.nulls(rows, HEADERS_TYPE))
    )
    template = line_template("", f"$value{style.name}\n")
    table, all_rows = np.zeros((1, 1), dtype=np.int64), np.array([rows])
    return lines_as_column(write_lines(template, table, all_rows, records), rows)


_NO_BYTES = bytes_array([])


def lines_as_column(parts: Iterable[memoryview], rows: int) -> pa.Array:
    """Return the lines of JSON of some rows, one each, as a column of text."""
    characters = np.frombuffer(b"".join(parts), dtype=np.uint8)
    is_end = characters == ord("\n")
    ends = np.zeros(rows + 1, dtype=np.int64)
    ends[1:] = np.flatnonzero(is_end) - np.arange(rows)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(characters[~is_end])]
    return pa.Array.from_buffers(pa.large_string(), rows, buffers, null_count=0)
