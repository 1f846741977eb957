from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError
from pylog.files.leader_epoch_checkpoint import EpochEntry, read_leader_epoch_checkpoint

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
