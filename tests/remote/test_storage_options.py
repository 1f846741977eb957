"""Storage options of S3, in the library and on the command line: enough, and never shown."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pa_fs
import pytest

import pylog
from pylog.cli.main import run
from pylog.errors import LogDirectoryError
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.s3_server import (
    ACCESS_KEY_ID,
    CREDENTIALS,
    REGION,
    SECRET_ACCESS_KEY,
    Bucket,
    S3Server,
)

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 400
SECRET = "planted-secret-of-a-caller"  # noqa: S105 - planted, to be looked for


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    batches = [batch_v2(plain_records(10 * n, 10)) for n in range(RECORDS // 10)]
    write_partition(tmp_path / "logs", {0: batches})
    return tmp_path / "logs"


@pytest.fixture
def s3_options(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    return {
        "access_key": ACCESS_KEY_ID,
        "secret_key": SECRET_ACCESS_KEY,
        "endpoint_override": bucket.endpoint,
        "scheme": "http",
        "region": REGION,
    }


def test_storage_options_of_s3_are_enough_and_are_not_shown(
    bucket: Bucket, logs: Path, s3_options: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    bucket.upload(logs, "given")
    uri = "s3a://kafka/given"
    scan = pylog.scan(uri, storage_options=s3_options)
    assert scan.count() == RECORDS
    directory = pylog.open_directory(uri, storage_options=s3_options)
    assert pylog.scan(directory).count() == RECORDS
    place = pylog.location(uri, storage_options=s3_options)
    copy = pickle.loads(pickle.dumps(place))  # noqa: S301 - our own
    assert pylog.doctor(copy).scanned_bytes == pylog.doctor(logs).scanned_bytes
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(f"{uri}/none", storage_options=s3_options)
    shown = f"{scan!r} {scan.plan()!r} {directory!r} {place} {place!r} {caught.value} {caplog.text}"
    assert "s3://kafka/given" in shown
    for secret in (ACCESS_KEY_ID, SECRET_ACCESS_KEY, "only%2Bsecret", "only+secret"):
        assert secret not in shown


def test_storage_options_that_are_refused_are_reported_without_them() -> None:
    with S3Server(checks_credentials=True) as server:
        options = {
            "access_key": "AKIAWRONG",
            "secret_key": SECRET,
            "endpoint_override": server.endpoint,
            "scheme": "http",
            "region": REGION,
        }
        with pytest.raises(LogDirectoryError) as caught:
            pylog.open_directory("s3://kafka/logs", storage_options=options)
    assert str(caught.value) == (
        "s3://kafka/logs: cannot list directory: AWS Error INVALID_ACCESS_KEY_ID during "
        "ListObjectsV2 operation"
    )


def test_a_file_system_of_arrow_is_read(
    bucket: Bucket, logs: Path, s3_options: dict[str, Any]
) -> None:
    bucket.upload(logs, "by-arrow")
    file_system = pa_fs.S3FileSystem(**s3_options)
    for path in ("kafka/by-arrow", "s3://kafka/by-arrow"):
        assert pylog.scan(path, filesystem=file_system).count() == RECORDS


def test_the_command_line_gives_options_to_the_store(
    bucket: Bucket,
    logs: Path,
    s3_options: dict[str, object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket.upload(logs, "by-command")
    pairs = [f"{name}={value}" for name, value in s3_options.items()]
    given = [text for pair in pairs for text in ("--storage-option", pair)]
    assert run(["ls", "s3://kafka/by-command", *given]) == 0
    assert run(["search", *given, "s3://kafka/by-command", "--key", "k7"]) == 0
    said = capsys.readouterr()
    assert "orders-0\t7\t" in said.out
    name = "orders-0/00000000000000000000.log"
    assert run(["dump", f"s3://kafka/by-command/{name}", *given]) == 0
    assert capsys.readouterr().out.count("baseOffset: ") == RECORDS // 10
    assert run(["--debug", "ls", "s3://kafka/none", *given]) == 2
    said = capsys.readouterr()
    assert SECRET_ACCESS_KEY not in said.out + said.err
    assert "s3://kafka/none: no such directory" in said.err


def test_a_storage_option_that_is_none_is_refused_without_its_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for given in (["--storage-option", SECRET], ["--storage-option", f"={SECRET}"]):
        assert run(["ls", "s3://kafka/logs", *given]) == 2
        assert capsys.readouterr().err == (
            "pylog: error: a --storage-option is not of the form KEY=VALUE "
            "(see 'pylog ls --help')\n"
        )
    twice = ["--storage-option", f"region={SECRET}", "--storage-option", "region=x"]
    assert run(["ls", "s3://kafka/logs", *twice]) == 2
    assert "--storage-option names region twice" in capsys.readouterr().err
    assert run(["ls", "/no/such/logs", "--storage-option", f"secret_key={SECRET}"]) == 2
    assert capsys.readouterr().err == (
        "pylog: error: path '/no/such/logs' is local, and storage options (secret_key) are for "
        "stores\n"
    )
