from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError
from pylog.files.durable_io import DurableIO
from pylog.files.leader_epochs import (
    EpochEntry,
    read_leader_epoch_checkpoint,
    write_leader_epoch_checkpoint,
)
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    return path


def test_every_line_of_a_real_checkpoint_is_an_entry(tmp_path: Path) -> None:
    path = write(tmp_path, "0\n3\n0 0\n1 55\n7 3000000069\n")
    assert read_leader_epoch_checkpoint(path) == [
        EpochEntry(0, 0),
        EpochEntry(1, 55),
        EpochEntry(7, 3_000_000_069),
    ]


def test_missing_and_empty_files_have_no_entries(tmp_path: Path) -> None:
    assert read_leader_epoch_checkpoint(tmp_path / "missing") == []
    assert read_leader_epoch_checkpoint(write(tmp_path, "")) == []
    assert read_leader_epoch_checkpoint(write(tmp_path, "0\n0\n")) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0\n2\n0 0\n0 5\n", "'0 5' follows '0 0', expected both numbers to increase"),
        ("0\n2\n3 0\n2 5\n", "'2 5' follows '3 0'"),
        ("0\n2\n0 5\n1 5\n", "'1 5' follows '0 5'"),
        ("0\n2\n0 5\n1 4\n", "'1 4' follows '0 5'"),
        ("0\n1\n-1 0\n", "line 3, '-1 0', is malformed: neither number can be negative"),
        ("0\n1\n0 -1\n", "neither number can be negative"),
        ("0\n1\n0\n", "it has 1 fields, expected 2"),
        ("0\n1\n2147483648 0\n", "does not fit into int32"),
        ("1\n0\n", "version 1, expected 0"),
    ],
)
def test_impossible_epochs_are_corrupt(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        read_leader_epoch_checkpoint(path)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], "0\n0\n"),
        ([EpochEntry(0, 0)], "0\n1\n0 0\n"),
        (
            [EpochEntry(0, 0), EpochEntry(1, 55), EpochEntry(7, 3_000_000_069)],
            "0\n3\n0 0\n1 55\n7 3000000069\n",
        ),
    ],
)
def test_epochs_are_written_one_a_line(
    tmp_path: Path, entries: list[EpochEntry], text: str
) -> None:
    path = write(tmp_path, "what was there before, and longer than what comes")
    write_leader_epoch_checkpoint(DurableIO(), path, entries)
    assert path.read_text() == text


def test_checkpoint_is_replaced_as_a_whole(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    write_leader_epoch_checkpoint(io, tmp_path / "c", [EpochEntry(0, 0)])
    assert io.summary[2:] == ["sync c.tmp", "replace c.tmp c", "sync-directory ."]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([EpochEntry(0, 0), EpochEntry(0, 5)], "'0 5' follows '0 0', expected both numbers"),
        ([EpochEntry(0, 5), EpochEntry(1, 5)], "'1 5' follows '0 5'"),
        ([EpochEntry(-1, 0)], "neither number can be negative"),
        ([EpochEntry(0, -1), EpochEntry(1, 5)], "neither number can be negative"),
    ],
)
def test_epochs_that_could_not_be_read_back_are_refused(
    tmp_path: Path, entries: list[EpochEntry], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        write_leader_epoch_checkpoint(DurableIO(), tmp_path / "c", entries)
    assert list(tmp_path.iterdir()) == []
