"""Values that become text, and how lines are read again."""

from __future__ import annotations

import base64
import json
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

import pylog
from pylog.record_lines.record_json import JSON_COLUMNS, json_lines
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


def arrow_batches(directory: Path) -> list[pa.RecordBatch]:
    scan = pylog.scan(directory, columns=JSON_COLUMNS, timestamp_unit="ms")
    return list(scan.to_batches())


def text_lines(batch: pa.RecordBatch) -> bytes:
    return b"".join(json_lines(batch))


def base64_text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def text_line(directory: Path, record: Stored) -> bytes:
    path = write_partition(directory, {0: [batch_v2([record], leader_epoch=3)]}, name="t-0")
    (batch,) = arrow_batches(path)
    return text_lines(batch)


class Row(NamedTuple):
    """What a line is made of, whether or not a broker would store it."""

    offset: int
    timestamp: int
    timestamp_type: int
    leader_epoch: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


printed = st.text('aZ09 ~"\\\\/é\u2028\x7f\n\x00🎈', max_size=8).map(str.encode)


def arrow_batch(records: list[Row], topic: str) -> pa.RecordBatch:
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    columns = {
        "topic": pa.array([topic] * len(records), pa.string()),
        "partition": pa.array([2**31 - 1] * len(records), pa.int32()),
        "offset": pa.array([row.offset for row in records], pa.int64()),
        "timestamp": pa.array([row.timestamp for row in records], pa.int64()).cast(
            pa.timestamp("ms", tz="UTC")
        ),
        "timestampType": pa.array([row.timestamp_type for row in records], pa.int32()),
        "headers": pa.array([row.headers for row in records], pa.list_(pair)),
        "key": pa.array([row.key for row in records], pa.binary()),
        "value": pa.array([row.value for row in records], pa.binary()),
        "batch": pa.array(
            [{"leaderEpoch": row.leader_epoch} for row in records],
            pa.struct([("leaderEpoch", pa.int32())]),
        ),
    }
    return pa.RecordBatch.from_pydict(columns)


def acts_upon_terminals(character: str) -> bool:
    directions = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return (
        unicodedata.category(character) in {"Cc", "Zl", "Zp"}
        or unicodedata.bidirectional(character) in directions
        or character in "\u061c\u200e\u200f"
    )


def escaped_for_terminals(character: str) -> str:
    return f"\\u{ord(character):04x}" if acts_upon_terminals(character) else character


def text_json(value: bytes | None) -> str:
    """Return a value as the text form has it, by the standard library."""
    if value is None:
        return "null"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return json.dumps({"base64": base64_text(value)}, separators=(",", ":"))
    return "".join(map(escaped_for_terminals, json.dumps(text, ensure_ascii=False)))


def base64_json(value: bytes | None) -> str:
    return json.dumps(base64_text(value))


def line(row: Row, topic: str, *, is_text: bool) -> bytes:
    of_value = text_json if is_text else base64_json
    headers = [
        f"[{text_json(name.encode())},{of_value(value)}]" for name, value in row.headers or []
    ]
    mark = '"values":"text",' if is_text else '"values":"base64",'
    return (
        f'{{"topic":{json.dumps(topic)},"partition":{2**31 - 1},"offset":{row.offset},'
        f'"timestamp":{row.timestamp},"timestampType":{row.timestamp_type},'
        f'"leaderEpoch":{json.dumps(row.leader_epoch)},{mark}'
        f'"key":{of_value(row.key)},"value":{of_value(row.value)},'
        f'"headers":[{",".join(headers)}]}}\n'
    ).encode()
