"""Runs of lines hold exactly the records that are read line by line."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pylog.writing.record_line import LineRuns, ParsedLine, parse_json_line

COMMON = (
    b'{"topic":"t","partition":3,"offset":7,"timestamp":1700000000000,"timestampType":0,'
    b'"leaderEpoch":5,"key":"aw==","value":"dmFsdWU=","headers":[]}'
)


def parsed_in_runs(lines: list[bytes], values: str = "base64") -> dict[int, ParsedLine]:
    """Return what the runs from every line on say of each line that some run takes."""
    runs = LineRuns(lines, is_text=values == "text")
    found: dict[int, ParsedLine] = {}
    for index in range(len(lines)):
        run = runs.run_from(index)
        if run is None:
            continue
        run.rows.validate(full=True)
        for place, row in enumerate(run.rows.to_pylist(), index):
            record = (row["key"], row["value"], row["timestamp"], tuple(row["headers"] or ()))
            line = ParsedLine(run.topic, run.partition, record)  # type: ignore[arg-type]
            assert found.setdefault(place, line) == line
    return found


def ensure_as_line_by_line(lines: list[bytes], values: str = "base64") -> int:
    """Return how many lines runs take, each of them as it is read alone."""
    found = parsed_in_runs(lines, values)
    for place, line in found.items():
        assert parse_json_line(lines[place], values) == line
    return len(found)


@pytest.mark.parametrize(
    "line",
    [
        COMMON,
        COMMON.replace(b"1700000000000", b"-1").replace(
            b'"timestampType":0', b'"timestampType":-1'
        ),
        COMMON.replace(b'"aw=="', b"null").replace(b'"leaderEpoch":5', b'"leaderEpoch":null'),
        COMMON.replace(b'"key"', b'"values":"text","key"'),
        COMMON.replace(b'"key"', b'"values":"base64","key"'),
        b'{"value":null}',
        b'{"value":"","key":""}',
        b'{"headers":[],"value":"YQ==","topic":"orders"}',
        b'{"value":"YWI=","partition":null,"timestamp":null}',
        b'{"value":"YWJj","partition":2147483647,"timestamp":0}',
    ],
)
def test_lines_of_the_common_form_are_taken(line: bytes) -> None:
    assert ensure_as_line_by_line([line] * 3) == 3


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        COMMON + b" ",
        COMMON + b"\r",
        COMMON[:-1],
        COMMON + b"}",
        COMMON.replace(b":", b": "),
        COMMON.replace(b'"t"', b'""'),
        COMMON.replace(b'"t"', b"null"),
        COMMON.replace(b'"t"', b'"t\\u0061"'),
        COMMON.replace(b'"t"', '"\u00e9"'.encode()),
        COMMON.replace(b'"partition":3', b'"partition":03'),
        COMMON.replace(b'"partition":3', b'"partition":3.0'),
        COMMON.replace(b'"partition":3', b'"partition":3e0'),
        COMMON.replace(b'"partition":3', b'"partition":-1'),
        COMMON.replace(b'"partition":3', b'"partition":2147483648'),
        COMMON.replace(b'"partition":3', b'"partition":true'),
        COMMON.replace(b'"offset":7', b'"offset":1234567890123456789'),
        COMMON.replace(b'"timestamp":1700000000000', b'"timestamp":-2'),
        COMMON.replace(b'"timestamp":1700000000000', b'"timestamp":-10'),
        COMMON.replace(b'"aw=="', b'"aw="'),
        COMMON.replace(b'"aw=="', b'"a==="'),
        COMMON.replace(b'"aw=="', b'"===="'),
        COMMON.replace(b'"aw=="', b'"aw==aw=="'),
        COMMON.replace(b'"aw=="', b'"aw-_"'),
        COMMON.replace(b'"aw=="', b'{"base64":"aw=="}'),
        COMMON.replace(b"[]", b'[["a",null]]'),
        COMMON.replace(b"[]", b"null"),
        COMMON.replace(b"[]", b"[ ]"),
        COMMON.replace(b'"offset"', b'"ofset"'),
        COMMON.replace(b'"offset":7', b'"partition":7'),
        COMMON.replace(b',"value":"dmFsdWU="', b""),
        COMMON.replace(b',"headers":[]', b',"headers":[],"values":"text"'),
        COMMON.replace(b'"key"', b'"values":"utf8","key"'),
    ],
)
def test_other_lines_are_left_to_be_read_alone(line: bytes) -> None:
    assert parsed_in_runs([line]) == {}
    assert parsed_in_runs([COMMON, line, COMMON]).keys() == {0, 2}


def test_a_run_ends_where_the_topic_or_the_partition_changes() -> None:
    other_topic = COMMON.replace(b'"t"', b'"u"')
    other_partition = COMMON.replace(b":3,", b":4,")
    no_topic = COMMON.replace(b'"topic":"t",', b"")
    lines = [COMMON, COMMON, other_topic, no_topic, other_partition, other_partition]
    runs = LineRuns(lines, is_text=False)
    sizes = [run.rows.num_rows if run else 0 for run in map(runs.run_from, range(6))]
    assert sizes == [2, 1, 1, 1, 2, 1]
    assert ensure_as_line_by_line(lines) == 6


def test_a_line_feed_within_a_line_is_not_an_end() -> None:
    assert parsed_in_runs([COMMON, COMMON[:-1] + b"\n}", COMMON]) == {}
    assert parsed_in_runs([COMMON + b"\n" + COMMON]) == {}


def test_text_is_taken_as_it_stands() -> None:
    line = b'{"key":"a b","value":"~ {}[],:\'"}'
    assert ensure_as_line_by_line([line], "text") == 1
    for escape in b'"\\/bfnrt':
        assert ensure_as_line_by_line([line.replace(b"~", b"\\%c" % escape)], "text") == 1
    for other in (b"\\u0041", b"\\x41", b"\\ ", b"\\", b"\t", b"\x7f", b"\xc3\xa9", b'"'):
        assert parsed_in_runs([line.replace(b"~", other)], "text") == {}


_encoded = st.binary(max_size=12).map(lambda data: base64.b64encode(data).decode())
_fields: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["t", "u", "", "\u00e9", None]),
    "partition": st.sampled_from([0, 1, None, -1, 2**31]),
    "offset": st.integers(-1, 10**19) | st.none(),
    "timestamp": st.integers(-2, 10**19) | st.none() | st.floats(),
    "timestampType": st.integers(-1, 1),
    "leaderEpoch": st.integers(-1, 5) | st.none(),
    "values": st.sampled_from(["text", "base64", "other"]),
    "key": _encoded | st.text(max_size=5) | st.none(),
    "value": _encoded | st.text(max_size=5) | st.none(),
    "headers": st.sampled_from([[], None, [["a", "YQ=="]]]),
}
_object = st.lists(st.sampled_from(sorted(_fields)), unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: _fields[name] for name in names})
)
_line = st.builds(
    lambda fields, blanks: json.dumps(
        fields, separators=(", ", ": ") if blanks else (",", ":")
    ).encode(),
    _object,
    st.integers(0, 9).map(lambda number: number == 0),
)


def _mutated(line: bytes, at: int, byte: int, kind: int) -> bytes:
    at %= len(line) + 1
    return line[:at] + (bytes([byte]) if kind < 2 and byte != 10 else b"") + line[at + (kind > 0) :]


_mutated_line = st.builds(
    _mutated, _line | st.just(COMMON), st.integers(0, 400), st.integers(0, 255), st.integers(0, 2)
)


@given(
    st.lists(_line | _mutated_line | st.just(COMMON), max_size=8),
    st.sampled_from(["base64", "text"]),
)
@example([COMMON, b'{"value":null,"value":"YQ=="}'], "base64")
@example([b'{"value":"YR=="}'], "base64")
def test_whatever_a_run_takes_is_what_is_read_line_by_line(lines: list[bytes], values: str) -> None:
    ensure_as_line_by_line(lines, values)
