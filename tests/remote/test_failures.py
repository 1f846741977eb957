"""What is said when a store, a bucket or a file is not there, and that nobody waits for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.main import run
from pylog.errors import LogDirectoryError, LogStorageError, SegmentVanishedError
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.s3_server import Bucket, S3Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.s3_proxy import Proxy

NAME = "orders-0/00000000000000000000.log"
SECOND = "orders-0/00000000000000000400.log"


@pytest.fixture
def prefix(tmp_path: Path, bucket: Bucket) -> str:
    """Upload a partition of two segments, of about 400 KB each."""
    segments = {
        first: [
            batch_v2(plain_records(first + 10 * place, 10, value_size=1_000)) for place in range(40)
        ]
        for first in (0, 400)
    }
    write_partition(tmp_path, segments)
    bucket.upload(tmp_path, tmp_path.name)
    return tmp_path.name


def test_a_missing_bucket_is_reported(bucket: Bucket) -> None:
    uri = bucket.uri("logs").replace("s3://kafka/", "s3://no-such-bucket/")
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(uri)
    assert str(caught.value) == (
        "s3://no-such-bucket/logs: cannot list directory: AWS Error NO_SUCH_BUCKET during "
        "ListObjectsV2 operation"
    )


def test_a_missing_directory_is_reported(bucket: Bucket) -> None:
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(bucket.uri("no/such/logs"))
    assert str(caught.value) == (
        "s3://kafka/no/such/logs: no such directory (object stores have none without files)"
    )


def test_a_bucket_without_a_log_is_reported(bucket: Bucket) -> None:
    bucket.write("other/orders-0/readme.txt", b"nothing of Kafka's")
    with pytest.raises(LogDirectoryError, match=r"^s3://kafka/other: no Kafka log here: "):
        pylog.open_directory(bucket.uri("other"))


def test_a_file_as_a_path_is_reported(bucket: Bucket, prefix: str) -> None:
    with pytest.raises(LogDirectoryError, match="no such directory"):
        pylog.open_directory(bucket.uri(f"{prefix}/{NAME}"))


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("s3://kafka/logs?region=x&colour=red", "unknown parameter 'colour'; there are "),
        (
            "s3://kafka/logs?connect_timeout=soon",
            "parameter 'connect_timeout' has an invalid value",
        ),
        ("gs://anonymous@kafka/logs?colour=red", "unknown parameter 'colour'; there are "),
        ("s3://kafka:9000/logs", "not s3://<bucket>/… or s3://<access key>:<secret>@<bucket>/… "),
        ("s3:///logs", "not s3://<bucket>/… or s3://<access key>:<secret>@<bucket>/… "),
        ("gs:///logs", "not gs://<bucket>/… or gs://anonymous@<bucket>/…"),
    ],
)
def test_a_uri_that_arrow_does_not_understand_is_reported(uri: str, reason: str) -> None:
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(uri)
    assert f"/logs: cannot list directory: {reason}" in str(caught.value)


def test_a_file_that_vanished_after_planning_is_reported(bucket: Bucket, prefix: str) -> None:
    scan = pylog.scan(bucket.uri(prefix))
    scan.plan()
    bucket.remove(f"{prefix}/{SECOND}")
    with pytest.raises(SegmentVanishedError) as caught:
        scan.to_table()
    assert str(caught.value).startswith(
        f"s3://kafka/{prefix}/{SECOND}: file is gone (deleted or renamed since the directory was "
        "listed)"
    )


def test_a_file_that_vanishes_while_it_is_read_is_reported(
    bucket: Bucket, prefix: str, proxy: Proxy
) -> None:
    scan = pylog.scan(bucket.uri(prefix, endpoint=proxy.endpoint))
    scan.plan()
    batches = scan.to_batches()
    next(batches)
    bucket.remove(f"{prefix}/{NAME}")
    with pytest.raises(SegmentVanishedError, match="deleted since it was opened"):
        list(batches)


def test_a_file_that_was_cut_after_planning_is_reported(bucket: Bucket, prefix: str) -> None:
    content = b"".join(
        batch_v2(plain_records(10 * place, 10, value_size=1_000)).data for place in range(40)
    )
    scan = pylog.scan(bucket.uri(prefix))
    scan.plan()
    bucket.write(f"{prefix}/{NAME}", content[: len(content) // 2])
    with pytest.raises(LogStorageError, match=f"^s3://kafka/{prefix}/{NAME} at byte "):
        scan.to_table()


@pytest.mark.usefixtures("is_bounded")
def test_credentials_that_the_server_refuses_are_reported() -> None:
    with S3Server(checks_credentials=True) as server:
        uri = f"s3://kafka/logs?endpoint_override={server.endpoint}&scheme=http&region=us-east-1"
        with pytest.raises(LogDirectoryError) as caught:
            pylog.open_directory(uri)
    assert str(caught.value) == (
        "s3://kafka/logs: cannot list directory: AWS Error INVALID_ACCESS_KEY_ID during "
        "ListObjectsV2 operation"
    )


@pytest.mark.usefixtures("is_bounded")
def test_a_file_that_may_not_be_read_is_reported(bucket: Bucket, prefix: str, proxy: Proxy) -> None:
    proxy.refuse = lambda method, path, _: 403 if path.endswith(".log") else None
    with pytest.raises(LogDirectoryError) as caught:
        pylog.scan(bucket.uri(prefix, endpoint=proxy.endpoint)).to_table()
    assert str(caught.value) == (
        f"s3://kafka/{prefix}/{SECOND}: cannot open file: AWS Error ACCESS_DENIED during "
        "HeadObject operation"
    )


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.usefixtures("is_bounded")
def test_a_server_that_is_not_there_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with S3Server() as server:
        bucket = Bucket(server, "gone")
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 10))]})
        bucket.upload(tmp_path, "logs")
        uri = bucket.uri("logs")
        scan = pylog.scan(uri)
        scan.plan()
        server.stop()
        with pytest.raises(LogDirectoryError) as caught:
            scan.to_table()
        assert str(caught.value) == (
            "s3://gone/logs/orders-0/00000000000000000000.log: cannot open file: AWS Error "
            "NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect to "
            "server"
        )
        assert run(["ls", uri]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(
        "pylog: error: s3://gone/logs: cannot list directory: AWS Error NETWORK_CONNECTION"
    )
    assert said.err.count("\n") == 1


def only_reads(what: str | int) -> Callable[[str, str, int], str | int | None]:
    """Let a log file be opened, and do ``what`` at every GET of it."""
    return lambda method, path, _: what if method == "GET" and path.endswith(".log") else None


@pytest.mark.usefixtures("is_bounded")
@pytest.mark.parametrize(
    "what",
    [
        "close",
        *(
            pytest.param(each, marks=[pytest.mark.slow, pytest.mark.thorough])
            for each in ("cut", "hang", 500, 503)
        ),
    ],
)
def test_a_server_that_fails_in_the_middle_of_a_read_is_given_up(
    bucket: Bucket, prefix: str, proxy: Proxy, what: str | int
) -> None:
    scan = pylog.scan(bucket.uri(prefix, endpoint=proxy.endpoint))
    scan.plan()
    batches = scan.to_batches()
    next(batches)
    proxy.refuse = only_reads(what)
    with pytest.raises(LogDirectoryError) as caught:
        list(batches)
    assert str(caught.value).startswith(f"s3://kafka/{prefix}/{NAME} at byte ")
    assert ": cannot read " in str(caught.value)
    assert "AWS Error" in str(caught.value)
    refused = [each for each in proxy.traffic().requests if each.was_refused]
    assert 1 <= len(refused) <= 10


@pytest.mark.parametrize("what", ["close", "cut", 503])
def test_a_failure_that_passes_is_not_noticed(
    bucket: Bucket, prefix: str, proxy: Proxy, what: str | int
) -> None:
    once = [what]
    proxy.refuse = lambda method, path, _: once.pop() if once and method == "GET" else None
    uri = bucket.uri(prefix, endpoint=proxy.endpoint)
    assert pylog.scan(uri).to_table()["offset"].to_pylist() == list(range(800))
    assert not once
