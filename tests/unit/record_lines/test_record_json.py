from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.record_lines.record_json import json_lines
from tests.support.batches import Stored, batch_v2, message, plain_records
from tests.support.log_files import write_partition
from tests.unit.record_lines.text_lines import (
    Row,
    arrow_batch,
    arrow_batches,
    base64_text,
    escaped_for_terminals,
    line,
    printed,
    text_line,
    text_lines,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Built

KEYS = [
    *("topic", "partition", "offset", "timestamp", "timestampType", "leaderEpoch"),
    *("values", "key", "value", "headers"),
]


def lines_of(log_directory: Path, batches: list[Built], name: str = "orders-0") -> list[bytes]:
    directory = write_partition(log_directory, {0: batches}, name=name)
    lines = (base64_lines(each) for each in arrow_batches(directory))
    return b"".join(lines).splitlines(keepends=True)


def base64_lines(batch: pa.RecordBatch) -> bytes:
    return b"".join(json_lines(batch, "base64"))


def plain_line(record: Stored, epoch: int | None) -> bytes:
    """Return the line as the standard library makes it."""
    fields: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": record.timestamp_type,
        "leaderEpoch": epoch,
        "values": "base64",
        "key": base64_text(record.key),
        "value": base64_text(record.value),
        "headers": [[name, base64_text(value)] for name, value in record.headers],
    }
    line = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    return "".join(map(escaped_for_terminals, line)).encode() + b"\n"


def test_batches_with_and_without_a_leader_epoch_keep_theirs(tmp_path: Path) -> None:
    batches = [
        batch_v2(plain_records(0, 1), leader_epoch=-1),
        batch_v2(plain_records(1, 2), leader_epoch=3),
    ]
    epochs = [json.loads(line)["leaderEpoch"] for line in lines_of(tmp_path, batches)]
    assert epochs == [None, 3, 3]


def test_a_line_has_the_keys_of_the_design_in_its_order(tmp_path: Path) -> None:
    record = Stored(0, 1_700_000_000_000, b"k", b"v", (("trace", b"\x00"), ("trace", None)))
    (line,) = lines_of(tmp_path, [batch_v2([record], leader_epoch=7)])
    assert line == (
        b'{"topic":"orders","partition":0,"offset":0,"timestamp":1700000000000,'
        b'"timestampType":0,"leaderEpoch":7,"values":"base64","key":"aw==","value":"dg==",'
        b'"headers":[["trace","AA=="],["trace",null]]}\n'
    )
    assert list(json.loads(line)) == KEYS


blobs = st.none() | st.binary(max_size=40)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
contents = st.tuples(blobs, blobs, st.lists(st.tuples(names, blobs), max_size=3).map(tuple))


@given(st.lists(contents, min_size=1, max_size=12), st.integers(-1, 3))
def test_every_record_is_written_as_the_json_module_writes_it(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    epoch: int,
) -> None:
    stored = [
        Stored(offset, 5_000 + offset, key, value, headers)
        for offset, (key, value, headers) in enumerate(records)
    ]
    built = batch_v2(stored, leader_epoch=epoch)
    expected = [plain_line(record, None if epoch < 0 else epoch) for record in stored]
    assert lines_of(tmp_path_factory.mktemp("log"), [built]) == expected


def test_slices_are_the_lines_they_cover(tmp_path: Path) -> None:
    stored = [
        Stored(at, at, None if at % 3 else b"k%d" % at, b"v" * at, (("h", b"%d" % at),) * (at % 4))
        for at in range(40)
    ]
    directory = write_partition(tmp_path, {0: [batch_v2(stored)]})
    (batch,) = arrow_batches(directory)
    whole = base64_lines(batch).splitlines(keepends=True)
    for start in range(0, 40, 7):
        assert base64_lines(batch.slice(start, 7)) == b"".join(whole[start : start + 7])
    assert base64_lines(batch.slice(0, 0)) == b""


def test_messages_of_old_formats_have_no_epoch_and_v0_no_time(tmp_path: Path) -> None:
    batches = [
        message(Stored(0, -1, None, b"v0"), magic=0),
        message(Stored(1, 77, b"k", None), magic=1),
        batch_v2(plain_records(2, 1), leader_epoch=4),
    ]
    found = [json.loads(line) for line in lines_of(tmp_path, batches)]
    assert [each["leaderEpoch"] for each in found] == [None, None, 4]
    assert [each["timestamp"] for each in found] == [-1, 77, 1_000]
    assert [each["timestampType"] for each in found] == [-1, 0, 0]
    assert [each["key"] for each in found] == [None, "aw==", "azI="]


@pytest.mark.parametrize("timestamp", [0, 2**63 - 1, 253_402_300_800_000, -1])
def test_timestamps_are_exact_milliseconds(tmp_path: Path, timestamp: int) -> None:
    (line,) = lines_of(tmp_path, [batch_v2([Stored(0, timestamp, None, None)])])
    assert json.loads(line)["timestamp"] == timestamp


def test_a_percent_sign_in_a_topic_is_itself(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, [batch_v2(plain_records(0, 1))], name="100%d-0")
    assert json.loads(line)["topic"] == "100%d"


def test_text_is_printed_as_text_and_says_so(tmp_path: Path) -> None:
    record = Stored(0, 1, "ключ".encode(), b'{"a": 1}', (("ü", b"x"), ("n", None)))
    assert (
        text_line(tmp_path, record)
        == (
            '{"topic":"t","partition":0,"offset":0,"timestamp":1,"timestampType":0,"leaderEpoch":3,'
            '"values":"text","key":"ключ","value":"{\\"a\\": 1}",'
            '"headers":[["ü","x"],["n",null]]}\n'
        ).encode()
    )


@given(value=st.binary() | st.text().map(str.encode))
def test_text_values_lose_nothing(value: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    line = text_line(tmp_path_factory.mktemp("log"), Stored(0, 1, None, value))
    assert line.count(b"\n") == 1
    found = json.loads(line)["value"]
    back = base64.b64decode(found["base64"]) if isinstance(found, dict) else found.encode()
    assert back == value


INT64 = st.integers(-(2**63), 2**63 - 1)
values = st.none() | st.binary(max_size=9) | st.text(max_size=9).map(str.encode) | printed
all_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.just("same")
rows = st.builds(
    Row,
    INT64,
    INT64,
    st.integers(-1, 1),
    st.none() | st.integers(0, 2**31 - 1),
    values,
    values,
    st.none() | st.lists(st.tuples(all_names, values), max_size=5),
)


@pytest.mark.parametrize("is_text", [False, True], ids=["base64", "text"])
@given(st.lists(rows, max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_any_rows_are_written_as_the_standard_library_writes_them(
    is_text: bool,  # noqa: FBT001 - a parameter of pytest's
    records: list[Row],
    start: int,
    length: int,
) -> None:
    topic = 'tö%p"ic'
    part = arrow_batch(records, topic).slice(start, length)
    lines = text_lines(part) if is_text else base64_lines(part)
    expected = [line(row, topic, is_text=is_text) for row in records[start:][:length]]
    assert lines.splitlines(keepends=True) == b"".join(expected).splitlines(keepends=True)


@pytest.mark.parametrize("is_text", [False, True], ids=["base64", "text"])
def test_bytes_under_a_null_are_not_seen(is_text: bool) -> None:  # noqa: FBT001
    records = [Row(at, 0, 0, 0, b"key", b"\xff" * (3 + at % 2), None) for at in range(5)]
    batch = arrow_batch(records, "t")
    is_null = [False, True, True, True, False]
    bitmap = pa.array([not each for each in is_null]).buffers()[1]
    for name in ("key", "value"):
        _, ends, data = batch.column(name).buffers()
        column = pa.Array.from_buffers(pa.binary(), 5, [bitmap, ends, data])
        batch = batch.set_column(batch.schema.get_field_index(name), name, column)
    shown = [
        row._replace(key=None, value=None) if null else row
        for row, null in zip(records, is_null, strict=True)
    ]
    lines = text_lines(batch) if is_text else base64_lines(batch)
    assert lines == b"".join(line(row, "t", is_text=is_text) for row in shown)
