"""Templates of lines: what stands for what, in lines that the kernel writes."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.dump_log.lines import records_of as as_records
from pylog.model import TimestampType
from pylog.record.record import Record, RecordHeader
from pylog.record_lines.line_template import Records, line_template, write_lines
from tests.support.templated_lines import lines_of, records_of


def test_choices_and_conditions_go_by_columns_of_the_batch() -> None:
    template = line_template(
        "<$word$if7( seven$)>",
        columns=["word", "n"],
        words={"word": ("zero", "one")},
        conditions={"if7": ("n", 7)},
    )
    table = np.array([[0, 7], [1, 6], [2, 7], [-1, 0]], dtype=np.int64)
    assert lines_of(template, records_of([]), table) == b"<zero seven><one>< seven><>"


def test_null_and_empty_keys_are_told_apart() -> None:
    template = line_template("", "$keySize$ifKey( key: $keyTEXT$)$ifNoKey( null$);")
    assert lines_of(template, records_of([None, b"", b"k"])) == b"-1 null;0 key: ;1 key: k;"


def test_header_names_are_written_with_commas() -> None:
    records = as_records(
        [
            Record(0, 0, TimestampType.CREATE_TIME, None, None, headers)
            for headers in (
                (),
                (RecordHeader("a", b""), RecordHeader("", None), RecordHeader('é"', b"")),
                (RecordHeader("b", None),),
            )
        ]
    )
    template = line_template("", "[$headerNamesTEXT][$headerNamesJSON]")
    assert lines_of(template, records).decode() == '[][][a,,é"]["a","","é\\""][b]["b"]'


def test_sequences_wrap_from_the_highest_to_zero() -> None:
    template = line_template("", "$sequence ", columns=["baseSequence", "baseOffset"])
    for base, expected in ((2**31 - 2, [2**31 - 2, 2**31 - 1, 0]), (-1, [-1, -1, -1])):
        table = np.array([[base, 0]], dtype=np.int64)
        text = lines_of(template, records_of([b""] * 3), table)
        assert text.decode().split() == list(map(str, expected))


def test_the_line_of_a_batch_that_was_begun_is_not_written_again() -> None:
    template = line_template("batch;", "$offset;")
    table, rows = np.zeros((2, 1), dtype=np.int64), np.array([1, 1])
    records = records_of([b"", b""])
    parts = write_lines(template, table, rows, records, is_continued=True)
    assert b"".join(map(bytes, parts)) == b"0;batch;1;"


def test_records_that_are_not_those_of_the_batches_are_refused() -> None:
    template = line_template("", "$offset")
    with pytest.raises(ValueError, match="3 records for batches with 2"):
        list(
            write_lines(
                template, np.zeros((1, 1), dtype=np.int64), np.array([2]), records_of([b""] * 3)
            )
        )


def test_headers_are_pairs_of_json_with_null_apart_from_empty() -> None:
    headers = [None, [], [("a", b""), ("", None)], [('é"', b"\xff"), ("b", b"x\n"), ("c", b"1")]]
    column = pa.array(headers, HEADERS_TYPE)
    nothing = np.zeros(len(headers), dtype=np.int64)
    keys = pa.nulls(len(headers), pa.binary())
    records = Records(nothing, nothing, nothing, keys, keys, column)
    lines = lines_of(line_template("", "[$headersJSON]\n"), records).splitlines()
    assert [json.loads(line) for line in lines] == [
        [],
        [],
        [["a", ""], ["", None]],
        [['é"', {"base64": "/w=="}], ["b", "x\n"], ["c", "1"]],
    ]
    lines = lines_of(line_template("", "[$headersBASE64]\n"), records).splitlines()
    assert json.loads(lines[-1]) == [['é"', "/w=="], ["b", "eAo="], ["c", "MQ=="]]


def test_the_headers_of_a_slice_are_its_own() -> None:
    headers = [[(str(row), b"%d" % row if row % 2 else None)] * row for row in range(9)]
    column = pa.array(headers, HEADERS_TYPE).slice(3, 4)
    nothing = np.zeros(4, dtype=np.int64)
    keys = pa.nulls(4, pa.binary())
    records = Records(nothing, nothing, nothing, keys, keys, column)
    lines = lines_of(line_template("", "[$headersJSON]\n"), records).splitlines()
    texts = [[[name, value and value.decode()] for name, value in row] for row in headers]
    assert [json.loads(line) for line in lines] == texts[3:7]
