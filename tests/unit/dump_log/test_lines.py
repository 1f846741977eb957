"""Lines of a dump: their names, their versions, as text and as JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Literal

import pytest

import pylog
from tests.support.batches import Stored, batch_v2, message
from tests.support.log_files import write_partition
from tests.unit.dump_log.dumped import BATCHES, objects_of, text_of, write_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("output", ["text", "jsonl"])
@pytest.mark.parametrize("version", ["3.9", "4.3"])
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("values", ["base64", "text"])
def test_every_name_in_the_text_of_a_line_is_known(
    tmp_path: Path,
    output: Literal["text", "jsonl"],
    version: str,
    values: Literal["base64", "text"],
    *,
    skips: bool,
) -> None:
    path = write_partition(tmp_path / "t-0", {0: BATCHES})
    for decoder in (None, "offsets"):
        dumped = pylog.dump(
            path,
            print_data_log=True,
            decoder=decoder,
            output=output,
            kafka_version=version,
            values=values,
            skip_record_metadata=skips,
        )
        assert b"".join(map(bytes, dumped))


@pytest.mark.parametrize(
    ("version", "end", "payload"), [("4.3", "", "| payload: v"), ("4.2", "}", " payload: v")]
)
def test_versions_before_4_3_have_a_brace_and_no_bar(
    tmp_path: Path, version: str, end: str, payload: str
) -> None:
    built = message(Stored(0, 5, None, b"v"), magic=1)
    path = write_log(tmp_path, [built])
    crc = int.from_bytes(built.data[12:16], "big")
    lines = text_of(path, deep_iteration=True, kafka_version=version)
    assert lines[3] == (
        f"| offset: 0 CreateTime: 5 keySize: -1 valueSize: 1 isValid: true crc: {crc}{end}"
    )
    options = {"print_data_log": True, "skip_record_metadata": True, "kafka_version": version}
    assert text_of(path, **options)[3] == payload


def test_json_has_keys_and_values_in_base64_or_as_text(tmp_path: Path) -> None:
    path = write_log(tmp_path, [batch_v2([Stored(0, 1, b"\xff", None), Stored(1, 1, None, b"v")])])
    first, second = objects_of(path, print_data_log=True, values="base64")[2:]
    assert base64.b64decode(first["key"]) == b"\xff"
    assert (first["payload"], second["key"]) == (None, None)
    first, second = objects_of(path, print_data_log=True)[2:]
    assert (first["key"], second["payload"]) == ({"base64": "/w=="}, "v")
    assert first["values"] == "text"
