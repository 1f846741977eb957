"""Indexes in a dump: their entries, and what is wrong with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files.storage import open_file
from tests.support.log_files import offset_index_bytes, segment_path, time_index_bytes
from tests.unit.dump_log.dumped import BATCHES, report_of, text_of, write_log

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.byte_source import ByteSource


def test_an_index_entry_that_points_to_another_batch_is_reported(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    at = len(BATCHES[0].data)
    index = path.with_suffix(".index")
    index.write_bytes(offset_index_bytes([(8, at), (10, at + 1)], 0))
    assert text_of(index) == [
        f"Dumping {index}",
        f"offset: 8 position: {at}",
        f"offset: 10 position: {at + 1}",
    ]
    report = report_of(index, verify_index_only=True)
    assert report.index_mismatches == [(8, 9)]
    (error,) = report.errors
    assert error.startswith(f"{index}: entry for offset 10 leads to byte {at + 1} of the .log, ")
    assert not report.is_sound


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_log_that_a_broker_replaces_meanwhile_is_not_held_against_an_index(
    tmp_path: Path, suffix: str, *, is_deleted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(tmp_path, BATCHES)
    index = path.with_suffix(suffix)
    wrong = offset_index_bytes([(8, 0)], 0) if suffix == ".index" else time_index_bytes([(7, 8)], 0)
    index.write_bytes(wrong)

    def open_and_replace(opened: str) -> ByteSource:
        source = open_file(opened)
        if opened == str(path):
            path.unlink()
            if not is_deleted:
                write_log(tmp_path, BATCHES[:1])
        return source

    assert not report_of(index).is_sound
    monkeypatch.setattr("pylog.dump_log.indexes.open_file", open_and_replace)
    report = report_of(index)
    assert not report.compares_badly
    (error,) = report.errors
    assert error.startswith(f"{path}: file was replaced or deleted")


def test_a_transaction_index_of_terabytes_is_an_error(tmp_path: Path) -> None:
    path = segment_path(write_log(tmp_path, BATCHES).parent, 0, ".txnindex")
    path.touch()
    os.truncate(path, 3 << 40)
    report = report_of(path)
    assert report.errors == [
        f"{path}: transaction index has {3 << 40} bytes, expected at most {64 << 20}"
    ]


def test_an_index_without_its_log_is_printed_and_not_verified(tmp_path: Path) -> None:
    index = segment_path(tmp_path, 0, ".index")
    index.write_bytes(offset_index_bytes([(8, 70)], 0))
    assert text_of(index)[1] == "offset: 8 position: 70"
    (error,) = report_of(index).errors
    assert error.startswith(str(index.with_suffix(".log")))
    assert error.endswith("without it the entries could not be verified")


def test_what_a_time_index_gets_wrong_is_reported_by_kind(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    index = path.with_suffix(".timeindex")
    entries = [(104, 4), (204, 8), (200, 9), (300, 10), (299, 12), (500, 99)]
    index.write_bytes(time_index_bytes(entries, 0))
    report = report_of(index)
    assert report.timestamp_mismatches == [(200, 204), (299, 401)]
    assert report.timestamps_out_of_order == [(200, 204), (299, 300)]
    assert report.offsets_not_found == [(8, 9), (99, -1)]
    assert "The following indexed offsets are not found in the log." in report.time_index_texts(
        pylog.KafkaVersion.V4_2
    )


def test_a_sound_index_passes_the_sanity_check_and_another_does_not(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    index, times = path.with_suffix(".index"), path.with_suffix(".timeindex")
    index.write_bytes(offset_index_bytes([(9, 70)], 0))
    times.write_bytes(time_index_bytes([(9, 4)], 0))
    for each in (index, times):
        assert text_of(each, index_sanity_check=True)[1:] == [f"{each} passed sanity check."]
        each.write_bytes(each.read_bytes() + b"\0")
        (error,) = report_of(each, index_sanity_check=True).errors
        assert "not a multiple of the entry size" in error


def test_an_empty_index_is_said_to_be_empty(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    index = path.with_suffix(".index")
    index.write_bytes(b"")
    assert text_of(index) == [f"Dumping {index}", f"{index} is empty."]
