"""Azure and Google Cloud Storage, each against a server of its kind: the rows of the local copy."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.main import run
from pylog.errors import LogDirectoryError, SegmentReplacedError, SegmentVanishedError
from pylog.files import remote_storage
from pylog.files.remote_storage import KeptBytes
from tests.support import azure_server, gcs_server
from tests.support.azure_server import AzureServer
from tests.support.azurite import AzuriteNotFoundError, find_azurite
from tests.support.batches import batch_v2, plain_records
from tests.support.gcs_server import GcsServer
from tests.support.log_files import write_partition
from tests.support.refusing_server import RefusingServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from tests.support.golden import GoldenRoot
    from tests.support.stored_files import StoredFiles

NAME = "orders-0/00000000000000000000.log"
SECOND = "orders-0/00000000000000000400.log"
WINDOW_BYTES = 1 << 17
NEEDS_GCS = pytest.mark.skipif(not gcs_server.IS_INSTALLED, reason=gcs_server.WHY_NOT)
PARTITIONS = (
    "0.11.0.3/txn:payments-0",
    "2.8.2/mixed-magic:upgraded-0",
    "3.9.1/crash-torn-tail:before/torn-0",
    "4.3.0/delete-records:after/del-recs-0",
    "4.3.0/txn:payments-0",
)


@dataclass
class Store:
    """A bucket, and what leads to it."""

    scheme: str
    server: AzureServer | GcsServer
    files: StoredFiles
    options: dict[str, object]

    def at(self, key: str) -> str:
        return pylog.location(self.uri(key), storage_options=self.options)

    def uri(self, key: str) -> str:
        return f"{self.scheme}://{self.files.bucket}/{key}"


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*azure_server.STORE_VARIABLES, *gcs_server.STORE_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def azure() -> Iterator[Store]:
    try:
        program = find_azurite()
    except AzuriteNotFoundError as error:
        pytest.skip(str(error))
    with AzureServer(program) as server:
        yield Store("az", server, server.files("kafka"), server.storage_options)


@pytest.fixture(scope="module")
def google() -> Iterator[Store]:
    with GcsServer() as server:
        yield Store("gs", server, server.files("kafka"), server.storage_options)


@pytest.fixture(
    params=[
        "azure",
        pytest.param("google", marks=NEEDS_GCS),
    ]
)
def store(request: pytest.FixtureRequest) -> Store:
    made: Store = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def prefix(store: Store, tmp_path: Path) -> str:
    """Upload a partition of two segments, of about 400 KB each."""
    segments = {
        first: [
            batch_v2(plain_records(first + 10 * place, 10, value_size=1_000)) for place in range(40)
        ]
        for first in (0, 400)
    }
    write_partition(tmp_path, segments)
    store.files.upload(tmp_path, tmp_path.name)
    return tmp_path.name


def table(path: object, assign: Mapping[str, list[int]]) -> pa.Table:
    scan = pylog.scan(path, assign=assign, isolation="read_committed", timestamp_unit="ms")  # type: ignore[arg-type]
    return scan.to_table()


@pytest.mark.thorough(one_in=5)
@pytest.mark.parametrize("partition_id", PARTITIONS)
def test_rows_and_offsets_are_those_of_the_local_copy(
    store: Store, golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    key = f"golden/{partition.broker}/{partition.scenario}/logs {partition.state}"
    store.files.upload(partition.log_directory, key)
    assign = {partition.topic: [partition.partition]}
    local = table(partition.log_directory, assign)
    assert table(store.at(key), assign).equals(local)
    assert table(store.at(f"{key}/{partition.name}"), assign).equals(local)
    views = [
        pylog.open_directory(path)[partition.topic, partition.partition]
        for path in (partition.log_directory, store.at(key))
    ]
    assert views[1].log_start_offset == views[0].log_start_offset
    assert views[1].log_end_offset == views[0].log_end_offset
    assert views[1].size_bytes == views[0].size_bytes
    findings = [
        [each.code for each in pylog.doctor(path).findings]
        for path in (partition.directory, store.at(f"{key}/{partition.name}"))
    ]
    assert findings[1] == findings[0]


def test_options_and_a_file_system_lead_to_the_same_rows(store: Store, prefix: str) -> None:
    by_options = pylog.scan(store.uri(prefix), storage_options=store.options)
    by_file_system = pylog.scan(
        f"{store.files.bucket}/{prefix}", filesystem=store.files.file_system
    )
    assert by_options.count() == 800
    assert by_file_system.to_table().equals(by_options.to_table())
    assert (
        pylog.read_table(store.uri(prefix), "segments", storage_options=store.options).num_rows == 2
    )
    with pytest.raises(LogDirectoryError):
        pylog.scan(f"{store.uri(prefix)}/none", storage_options=store.options)


def test_a_task_reads_where_it_is_sent(store: Store, prefix: str) -> None:
    scan = pylog.scan(f"{store.files.bucket}/{prefix}", filesystem=store.files.file_system)
    [task] = pickle.loads(pickle.dumps(scan.plan()))  # noqa: S301 - our own
    assert sum(batch.num_rows for batch in scan.reader_of(task).record_batches()) == 800


def test_what_is_missing_is_named(store: Store) -> None:
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(store.at("no/such/logs"))
    assert str(caught.value) == (
        f"{store.uri('no/such/logs')}: no such directory (object stores have none without files)"
    )
    elsewhere = store.uri("logs").replace("kafka", "nobucket")
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(elsewhere, storage_options=store.options)
    assert str(caught.value) == f"{elsewhere}: no such bucket or container: nobucket"


def test_a_parameter_that_does_not_exist_is_named(store: Store) -> None:
    with pytest.raises(LogDirectoryError, match="unknown parameter 'colour'; there are "):
        pylog.open_directory(store.uri("logs"), storage_options={**store.options, "colour": "red"})


def test_a_file_that_vanished_after_planning_is_reported(store: Store, prefix: str) -> None:
    scan = pylog.scan(store.at(prefix))
    scan.plan()
    store.files.remove(f"{prefix}/{SECOND}")
    with pytest.raises(SegmentVanishedError) as caught:
        scan.to_table()
    assert str(caught.value).startswith(
        f"{store.uri(prefix)}/{SECOND}: file is gone (deleted or renamed since the directory was "
        "listed)"
    )


def test_a_file_that_vanishes_while_it_is_read_is_reported(store: Store, prefix: str) -> None:
    scan = pylog.scan(store.at(prefix), window_bytes=WINDOW_BYTES)
    batches = scan.to_batches()
    next(batches)
    store.files.remove(f"{prefix}/{NAME}")
    with pytest.raises(SegmentVanishedError, match="is gone"):
        list(batches)


def test_a_file_that_is_replaced_while_it_is_read_is_an_error(store: Store, prefix: str) -> None:
    scan = pylog.scan(store.at(prefix), window_bytes=WINDOW_BYTES)
    batches = scan.to_batches()
    next(batches)
    time.sleep(0.01)  # a store's clock has milliseconds, or microseconds
    other = [
        batch_v2(plain_records(10 * place, 10, value_size=1_000, timestamp=5))
        for place in range(40)
    ]
    store.files.write(f"{prefix}/{NAME}", b"".join(batch.data for batch in other))
    with pytest.raises(SegmentReplacedError) as caught:
        list(batches)
    assert f"{NAME}: file was replaced by another one while it was read" in str(caught.value)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.usefixtures("is_bounded")
def test_a_server_that_is_not_there_is_reported(store: Store) -> None:
    nowhere = {
        name: "127.0.0.1:1" if name in ("endpoint_override", "blob_storage_authority") else value
        for name, value in store.options.items()
    }
    if store.scheme == "gs":
        nowhere["retry_limit_seconds"] = 2
    with pytest.raises(LogDirectoryError, match="cannot list directory: ") as caught:
        pylog.open_directory(store.uri("logs"), storage_options=nowhere)
    assert "reached" in str(caught.value)


@pytest.mark.usefixtures("is_bounded")
def test_azure_refuses_a_wrong_key_and_no_message_shows_it(azure: Store) -> None:
    wrong = "AAAA" + azure_server.KEY[4:]
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(
            azure.uri("logs"), storage_options={**azure.options, "account_key": wrong}
        )
    assert str(caught.value) == (
        "az://kafka/logs: cannot list directory: Azure error AuthorizationFailure (HTTP status 403)"
    )
    for text in (str(caught.value), repr(caught.value), repr(caught.value.__cause__)):
        assert wrong[4:] not in text


@pytest.mark.usefixtures("is_bounded")
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "Google Cloud error UNAUTHENTICATED; are the credentials right?"),
        (403, "Google Cloud error PERMISSION_DENIED; may these credentials read and list it?"),
    ],
)
def test_google_refuses(status: int, reason: str) -> None:
    with RefusingServer(status) as server:
        options = {"anonymous": True, "endpoint_override": server.endpoint, "scheme": "http"}
        with pytest.raises(LogDirectoryError) as caught:
            pylog.open_directory("gs://kafka/logs", storage_options=options)
    assert str(caught.value) == f"gs://kafka/logs: cannot list directory: {reason}"


def test_the_environment_of_the_stores_tools_is_enough(
    store: Store, prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if isinstance(store.server, AzureServer):
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", store.server.connection_string)
    else:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{store.server.endpoint}")
    assert run(["ls", store.uri(prefix)]) == 0
    assert "orders" in capsys.readouterr().out
    assert run(["cat", store.uri(prefix), "--limit", "3"]) == 0
    assert capsys.readouterr().out.count("\n") == 3


def test_the_command_line_takes_storage_options(
    store: Store, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [
        text
        for name, value in store.options.items()
        for text in ("--storage-option", f"{name}={str(value).lower() if value is True else value}")
    ]
    for command in (["ls"], ["cat", "--limit", "3"], ["dump", "--topic", "orders"], ["stats"]):
        assert run([*command, store.uri(prefix), *given]) == 0
        said = capsys.readouterr()
        assert said.out
        assert azure_server.KEY not in said.out + said.err


def test_azure_sends_what_is_needed_and_no_more(
    azure: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_storage, "_KEPT", KeptBytes())  # as in another process
    batches = [batch_v2(plain_records(10 * n, 10, value_size=1_000)) for n in range(400)]
    write_partition(tmp_path, {0: batches})
    azure.files.upload(tmp_path, "large")
    assert isinstance(azure.server, AzureServer)
    before = len(azure.server.downloads())
    scan = pylog.scan(azure.at("large"), start=2_000, end=2_100, columns="offset")
    assert scan.to_table()["offset"].to_pylist() == list(range(2_000, 2_100))
    needed = sum(len(batch.data) for batch in batches[200:210])
    sent = azure.server.downloads(before, least_bytes=needed)
    side_bytes = sum(size for name, size in sent if not name.endswith(".log"))
    of_log = sum(size for name, size in sent if name.endswith(".log"))
    assert needed <= of_log <= needed + 64_000  # look-ups of the range and of the log's end
    assert side_bytes <= sum(
        path.stat().st_size for path in tmp_path.rglob("*") if path.suffix != ".log"
    )


@NEEDS_GCS
def test_google_is_asked_for_a_side_file_once_and_for_no_log_that_is_not_read(
    google: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_storage, "_KEPT", KeptBytes())  # as in another process
    segments = {first: [batch_v2(plain_records(first, 10))] for first in (0, 10, 20)}
    write_partition(tmp_path, segments)
    google.files.upload(tmp_path, "counted")
    assert isinstance(google.server, GcsServer)
    before = google.server.downloads(".log"), google.server.downloads(".index")
    assert pylog.scan(google.at("counted"), start=20).count() == 10
    logs = google.server.downloads(".log") - before[0]
    indexes = google.server.downloads(".index") - before[1]
    assert logs <= 2 * len({20})  # pyarrow begins with the whole file, and gives that up
    assert indexes <= 1
