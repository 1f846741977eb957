"""Nothing that is printed, logged or raised shows a credential, wherever it was given."""

from __future__ import annotations

import logging
import pickle
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

import pylog
from pylog.cli.main import run
from pylog.errors import LogStorageError
from pylog.locations import join, parent_of, parse_location
from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.s3_server import Bucket, S3Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ACCESS_KEY = "AKIAPLANTED000000001"
SECRET = "planted/Secret+0123456789abcdef"  # noqa: S105 - planted, to be looked for
TOKEN = "plantedSessionToken0123456789"  # noqa: S105 - the same
USER_INFO = f"{ACCESS_KEY}:{quote(SECRET, safe='')}"
PLANTED = (ACCESS_KEY, SECRET, quote(SECRET, safe=""), "Secret+0123456789abcdef", TOKEN)


def shows_nothing(text: str) -> None:
    for secret in PLANTED:
        assert secret not in text


@dataclass
class Place:
    """Where a damaged and a sound partition lie, with credentials in the URI."""

    uri: str
    damaged: str
    refused: str
    bucket: Bucket


@pytest.fixture(scope="module")
def refusing() -> Iterator[S3Server]:
    with S3Server(checks_credentials=True) as server:
        yield server


@pytest.fixture
def place(
    tmp_path: Path, bucket: Bucket, refusing: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Place:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    batches = [batch_v2(plain_records(10 * place, 10)) for place in range(4)]
    write_partition(tmp_path / "sound", {0: batches})
    write_partition(tmp_path / "sound", {0: batches}, name="gone-0-delete")
    bad = [batches[0], with_bad_crc(batches[1]), *batches[2:]]
    write_partition(tmp_path / "damaged", {0: bad})
    bucket.upload(tmp_path, tmp_path.name)
    query = f"endpoint_override={refusing.endpoint}&scheme=http&region=us-east-1"
    return Place(
        bucket.uri(f"{tmp_path.name}/sound", user_info=USER_INFO),
        bucket.uri(f"{tmp_path.name}/damaged", user_info=USER_INFO),
        f"s3://{USER_INFO}@kafka/logs?{query}",
        bucket,
    )


def remove_the_log(place: Place) -> None:
    key = place.uri.partition("@kafka/")[2].partition("?")[0]
    place.bucket.remove(f"{key}/orders-0/00000000000000000000.log")


def read_what_vanished(place: Place) -> None:
    scan = pylog.scan(place.uri, topics="orders")
    scan.plan()
    remove_the_log(place)
    scan.to_table()


FAILURES: dict[str, Callable[[Place], object]] = {
    "damage": lambda place: pylog.scan(place.damaged).to_table(),
    "vanished": read_what_vanished,
    "refused": lambda place: pylog.open_directory(place.refused),
    "no such directory": lambda place: pylog.open_directory(place.uri.replace("/sound", "/none")),
    "no log": lambda place: pylog.open_directory(place.uri.replace("/sound", "")),
    "twice": lambda place: pylog.open_directory(place.uri, place.damaged, replica="nobody"),
    "unknown parameter": lambda place: pylog.open_directory(f"{place.uri}&{TOKEN[:3]}=1"),
    "not live": lambda place: pylog.scan(place.uri.replace("/sound?", "/sound/gone-0-delete?")),
    "unknown topic": lambda place: pylog.scan(place.uri, topics="nothing"),
    "out of range": lambda place: pylog.scan(place.uri, topics="orders", start=10**6).plan(),
    "unknown scheme": lambda place: pylog.open_directory(place.uri.replace("s3:", "ftp:")),
    "one slash": lambda place: pylog.open_directory(place.uri.replace("s3://", "s3:/")),
    "not quoted": lambda place: pylog.open_directory(f"s3://{ACCESS_KEY}:{SECRET}@kafka/logs"),
    "another host": lambda place: pylog.open_directory(place.uri.replace("s3:", "file:")),
    "gs": lambda _: pylog.open_directory(f"gs://{USER_INFO}@kafka/logs?colour=red"),
    "hdfs": lambda _: pylog.open_directory(f"hdfs://{USER_INFO}@127.0.0.1:1/logs"),
    "abfss": lambda _: pylog.open_directory(f"abfss://box:{quote(SECRET, safe='')}@x/logs?y=1"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_no_error_shows_a_credential(
    place: Place, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((LogStorageError, ValueError)) as caught:
        FAILURES[name](place)
    error = caught.value
    shows_nothing(str(error))
    shows_nothing(repr(error))
    shows_nothing(str(pickle.loads(pickle.dumps(error))))  # noqa: S301 - our own
    # As Spark ships it, with the errors that caused it; the lines of this file are not shown.
    chain = traceback.TracebackException.from_exception(error, capture_locals=False)
    shows_nothing("".join(line for line in chain.format_exception_only()))
    for cause in (error.__cause__, error.__context__ if not error.__suppress_context__ else None):
        shows_nothing(f"{cause!s} {cause!r}")
    shows_nothing(caplog.text)


def test_no_object_shows_a_credential(place: Place) -> None:
    directory = pylog.open_directory(place.uri)
    scan = pylog.scan(place.uri, topics="orders")
    tasks = scan.plan()
    (view,) = directory
    for each in (directory, view, view.directory, directory.others, *view.segments, scan, tasks):
        shows_nothing(f"{each} {each!r} {each!s}")
    with view.segments[0].open_log() as source:
        shows_nothing(f"{source} {source.path} {source.path!r}")
    with pytest.raises(ValueError, match="read of a closed file: s3://kafka/"):
        source.read_at(0, 10)
    rows = pylog.scan(place.uri, topics="orders", include_batch_metadata=True).to_table()
    assert rows.num_rows == 40
    shows_nothing(str(rows.to_pylist()))


def test_a_location_keeps_its_credentials_and_does_not_show_them() -> None:
    uri = parse_location(f"s3a://{USER_INFO}@kafka/logs?region=x")
    for location in (uri, join(uri, "orders-0"), parent_of(join(uri, "orders-0"))):
        copy = pickle.loads(pickle.dumps(location))  # noqa: S301 - our own
        assert copy == location
        assert copy.startswith(f"s3://{USER_INFO}@kafka/logs")
        assert copy.endswith("?region=x")
        for text in (str(copy), f"{copy}", f"{copy:>80}", f"{copy!r}", repr([copy])):
            assert "s3://kafka/logs" in text
            assert "region" not in text
            shows_nothing(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls"],
        ["ls", "--json"],
        ["cat", "--topic", "orders"],
        ["--debug", "cat", "--topic", "nothing"],
        ["--debug", "ls"],
        ["doctor"],
        ["doctor", "--json"],
    ],
)
def test_the_command_line_shows_no_credential(
    place: Place, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for uri in (place.uri, place.damaged, place.refused, place.uri.replace("/sound", "/none")):
        run([*arguments, uri])
        said = capsys.readouterr()
        assert said.out + said.err
        shows_nothing(said.out + said.err)
