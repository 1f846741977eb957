from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.errors import KafkaStorageError, LogDirectoryError
from pylog.files.clean_shutdown import (
    CleanShutdown,
    read_clean_shutdown,
    remove_clean_shutdown,
    write_clean_shutdown,
)
from pylog.files.durable_io import DurableIO
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO

if TYPE_CHECKING:
    from pathlib import Path


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / ".kafka_cleanshutdown"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "broker_epoch"),
    [
        (b'{"version":0,"brokerEpoch":15}', 15),
        (b'{"brokerEpoch":0,"version":1,"later":{"a":[1]}}', 0),
        (b'{"version":0,"brokerEpoch":-1}', None),
        (b'{"version":0}', None),
        (b'{"brokerEpoch":"15"}', None),
        (b'{"brokerEpoch":true}', None),
        (b'{"brokerEpoch":1.5}', None),
        (b'{"brokerEpoch":9223372036854775808}', None),
        (b'{"brokerEpoch":' + b"9" * 5000 + b"}", None),
        (b"[1]", None),
        (b"", None),
        (b'{"version":0,"broke', None),
        (b"\xff\xfe\0", None),
        (b"[" * 60_000, None),
    ],
)
def test_file_that_exists_is_a_clean_shutdown_whatever_it_holds(
    tmp_path: Path, data: bytes, broker_epoch: int | None
) -> None:
    assert read_clean_shutdown(write(tmp_path, data)) == CleanShutdown(broker_epoch)


def test_missing_file_is_an_unclean_shutdown(tmp_path: Path) -> None:
    assert read_clean_shutdown(tmp_path / ".kafka_cleanshutdown") is None


def test_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError):
        read_clean_shutdown(tmp_path)


@settings(deadline=None)  # files and busy machines are slow at times
@given(st.binary(max_size=100))
def test_any_bytes_are_a_clean_shutdown(scratch: Path, data: bytes) -> None:
    assert read_clean_shutdown(write(scratch, data)) is not None


@pytest.mark.parametrize(
    ("broker_epoch", "data"),
    [
        (15, b'{"version":0,"brokerEpoch":15}'),
        (-1, b'{"version":0,"brokerEpoch":-1}'),
        (2**63 - 1, b'{"version":0,"brokerEpoch":9223372036854775807}'),
    ],
)
def test_file_is_written_as_a_broker_does(tmp_path: Path, broker_epoch: int, data: bytes) -> None:
    path = write(tmp_path, b"what was there before, and longer than what comes, by far")
    write_clean_shutdown(DurableIO(), path, broker_epoch)
    assert path.read_bytes() == data


def test_epoch_is_unknown_unless_given(tmp_path: Path) -> None:
    write_clean_shutdown(DurableIO(), tmp_path / "c")
    assert read_clean_shutdown(tmp_path / "c") == CleanShutdown(None)


def test_file_and_its_name_are_synced(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    write_clean_shutdown(io, tmp_path / "c", 7)
    assert io.summary == ["create c", "write c 0+29", "sync c", "sync-directory ."]


def test_removal_is_durable_before_it_returns(tmp_path: Path) -> None:
    path = write(tmp_path, b"")
    io = RecordingIO(tmp_path)
    assert remove_clean_shutdown(io, path)
    assert io.summary == ["remove .kafka_cleanshutdown", "sync-directory ."]
    assert not remove_clean_shutdown(io, path)
    assert len(io.operations) == 2


def test_removal_that_is_not_durable_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, b"")
    with pytest.raises(KafkaStorageError):
        remove_clean_shutdown(FaultyIO(Fault(kinds=frozenset({Kind.SYNC_DIRECTORY}))), path)
