from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import UndecodableValueError
from pylog.record_lines.line_format import LineFormat
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.mirror_records import connect, heartbeat

if TYPE_CHECKING:
    from pathlib import Path

    from pylog import DecoderName


def lines(
    logs: Path, name: DecoderName, *records: tuple[bytes, bytes | None], **options: object
) -> str:
    stored = [Stored(offset, 5, *each) for offset, each in enumerate(records)]
    write_partition(logs, {0: [batch_v2(stored)]}, name="heartbeats-0")
    decoded = LineFormat.decoded(name, **options)  # type: ignore[arg-type]
    batch = pylog.scan(logs, columns=decoded.columns).to_table().combine_chunks().to_batches()[0]
    return b"".join(map(bytes, decoded.lines_of(batch))).decode()


def test_key_and_value_are_one_text_or_have_a_tab_between_them(tmp_path: Path) -> None:
    assert lines(tmp_path / "a", "mm2-heartbeats", heartbeat("a", "b", 7)) == (
        "Heartbeat{sourceClusterAlias=a, targetClusterAlias=b, timestamp=7}\n"
    )
    record = connect(["c", {"x": 1}], None)
    assert lines(tmp_path / "b", "connect", record) == '["c",{"x":1}]\t<DELETE>\n'


def test_a_terminal_gets_no_control_characters(tmp_path: Path) -> None:
    record = heartbeat("a\x1b[1m", "b", 7)
    assert "\x1b" in lines(tmp_path / "a", "mm2-heartbeats", record)
    assert "\x1b" not in lines(tmp_path / "b", "mm2-heartbeats", record, is_printable=True)


def test_what_cannot_be_decoded_is_an_error_or_left_out(tmp_path: Path) -> None:
    records = [heartbeat("a", "b", 7), (b"k", b"v"), heartbeat("a", "b", 8)]
    with pytest.raises(
        UndecodableValueError, match=r"heartbeats-0, offset 1: .*is no heartbeat"
    ) as raised:
        lines(tmp_path / "a", "mm2-heartbeats", *records)
    assert raised.value.offset == 1
    left_out: list[UndecodableValueError] = []
    found = lines(tmp_path / "b", "mm2-heartbeats", *records, left_out=left_out)
    assert found.count("Heartbeat{") == 2
    assert [each.offset for each in left_out] == [1]
