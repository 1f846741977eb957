"""``file:`` URIs are local paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.main import run
from pylog.errors import LogDirectoryError
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    made = tmp_path / "kafka logs 100% ü"
    write_partition(made, {0: [batch_v2(plain_records(0, 10))]})
    return made


@pytest.mark.parametrize("begin", ["file://", "file:", "file://localhost", "FILE://"])
def test_a_file_uri_is_read_like_the_path(log_directory: Path, begin: str) -> None:
    uri = log_directory.as_uri().replace("file://", begin)
    assert pylog.scan(uri).to_table().equals(pylog.scan(log_directory).to_table())
    assert pylog.scan(f"{uri}/orders-0").count() == 10


def test_a_file_uri_and_the_path_are_one_directory(log_directory: Path) -> None:
    assert pylog.scan([log_directory, log_directory.as_uri()]).count() == 10


def test_a_file_uri_that_leads_nowhere_is_reported_as_a_path(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="no such directory") as caught:
        pylog.open_directory((tmp_path / "nowhere").as_uri())
    assert str(caught.value).startswith(f"{tmp_path / 'nowhere'}: ")


def test_a_file_uri_of_another_host_is_refused(log_directory: Path) -> None:
    uri = log_directory.as_uri().replace("file://", "file://elsewhere")
    with pytest.raises(ValueError, match="names another host"):
        pylog.open_directory(uri)


def test_the_command_line_takes_file_uris(
    log_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ls", "--json", log_directory.as_uri()]) == 0
    assert str(log_directory) in capsys.readouterr().out.encode().decode("unicode_escape")
    assert run(["cat", log_directory.as_uri()]) == 0
    assert capsys.readouterr().out.count("\n") == 10
