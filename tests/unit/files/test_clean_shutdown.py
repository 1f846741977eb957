from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.errors import LogDirectoryError
from pylog.files.clean_shutdown import CleanShutdown, read_clean_shutdown

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
def test_any_bytes_are_a_clean_shutdown(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    assert read_clean_shutdown(write(tmp_path_factory.getbasetemp(), data)) is not None
