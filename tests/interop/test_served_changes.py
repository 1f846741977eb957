"""A directory that pylog changes while it serves it: compacted, trimmed, cut, appended to.

Clients get what the directory holds, before or after, or an error; none waits without one.
"""

from __future__ import annotations

import base64
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

import pylog
from tests.interop.test_served_damage import CLIENT_ERRORS
from tests.support.librdkafka import offset_ranges
from tests.support.served_clients import READERS, Line, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 30
TOPIC = "orders"
RECORDS, KEYS = 600, 7
CONFIG = {"segment.bytes": "6000", "cleanup.policy": "compact,delete"}


def _write(directory: Path, prefix: str, count: int = RECORDS) -> None:
    rows: list[dict[str, Any]] = [
        {"key": f"k{number % KEYS}".encode(), "value": f"{prefix}-{number}".encode()}
        for number in range(count)
    ]
    pylog.write_topic(directory, TOPIC, rows, partitions=1, batch_size=400, config=CONFIG)


def _compact(directory: Path) -> None:
    pylog.compact(directory, topics=[TOPIC], config={"cleanup.policy": "compact"})


def _delete_records(directory: Path) -> None:
    pylog.delete_records(directory, {(TOPIC, 0): RECORDS // 2})
    pylog.apply_retention(directory, topics=[TOPIC])


def _truncate(directory: Path) -> None:
    pylog.truncate_log(directory, (TOPIC, 0), RECORDS // 3, takes_whole_batch=True)


def _truncate_and_append(directory: Path) -> None:
    _truncate(directory)
    _write(directory, "other")


def _append(directory: Path) -> None:
    _write(directory, "more", 50)


def _delete_topic(directory: Path) -> None:
    pylog.delete_topic(directory, TOPIC)


CHANGES: list[Callable[[Path], None]] = [
    _compact,
    _delete_records,
    _truncate,
    _truncate_and_append,
    _append,
    _delete_topic,
]

Records = dict[int, str]


def _held(directory: Path) -> Records:
    """Return the values by offset that a scan gives."""
    if not (directory / f"{TOPIC}-0").exists():
        return {}
    table = pylog.scan(directory, topics=[TOPIC]).to_table()
    return dict(
        zip(
            table.column("offset").to_pylist(),
            (each.decode() for each in table.column("value").to_pylist()),
            strict=True,
        )
    )


def _values(lines: list[Line]) -> Records:
    return {each["offset"]: base64.b64decode(each["value"]).decode() for each in lines}


def _read(client: str, address: str) -> tuple[Records, bool]:
    """Return what a new client reads from the first offset on, and whether an error ends it."""
    lines: list[dict[str, Any]] = []
    try:
        ranges = offset_ranges(address, [TOPIC])
        READERS[client](address, Wanted(TOPIC, 0, *ranges[TOPIC]), "read_uncommitted", lines)
    except CLIENT_ERRORS:
        return _values(lines), True
    return _values(lines), False


@pytest.mark.thorough(one_in=6)
@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__.strip("_"))
@pytest.mark.parametrize("client", READERS)
def test_clients_get_what_the_directory_holds_or_an_error(
    tmp_path: Path, client: str, change: Callable[[Path], None], *, follows: bool
) -> None:
    _write(tmp_path, "first")
    before = _held(tmp_path)
    with pylog.serve(tmp_path, follow=follows) as server:
        assert _read(client, server.address) == (before, False)
        change(tmp_path)
        after = _held(tmp_path)
        assert after != before
        # It stops where the log ends by then; others wait for more there.
        got, is_error = _read("librdkafka", server.address)
        assert got.items() <= before.items() | after.items()
        assert is_error or got in (before, after) or follows
        deadline = time.monotonic() + SECONDS
        while follows and got != after:
            assert time.monotonic() < deadline, (len(got), len(after))
            got, is_error = _read("librdkafka", server.address)
        if not is_error:
            assert _read(client, server.address) == (got, False)


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("change", CHANGES[:4], ids=lambda each: each.__name__.strip("_"))
def test_a_client_that_reads_meanwhile_gets_no_other_record(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    _write(tmp_path, "first", 5 * RECORDS)
    before = _held(tmp_path)
    with pylog.serve(tmp_path, follow=True) as server:
        done = threading.Event()
        reads: list[tuple[Records, bool]] = []

        def read_on() -> None:
            while not done.is_set():
                reads.append(_read("librdkafka", server.address))

        reader = threading.Thread(target=read_on)
        reader.start()
        while not reads:
            time.sleep(0.01)
        change(tmp_path)
        seen = len(reads)
        with suppress(TimeoutError):
            while len(reads) < seen + 3:
                time.sleep(0.01)
        done.set()
        reader.join()
        after = _held(tmp_path)
    assert len(reads) >= seen + 3
    for got, _ in reads:
        assert got.items() <= before.items() | after.items()


def test_a_client_reads_a_thousand_partitions(tmp_path: Path) -> None:
    rows = [
        {"key": b"", "value": f"{number}".encode(), "partition": number} for number in range(1_000)
    ]
    pylog.write_topic(tmp_path, TOPIC, rows, partitions=1_000, partition="partition")
    with pylog.serve(tmp_path) as server:
        client = confluent_kafka.Consumer(
            {
                "bootstrap.servers": server.address,
                "group.id": "many",
                "auto.offset.reset": "earliest",
            }
        )
        client.subscribe([TOPIC])
        found: dict[int, bytes | None] = {}
        deadline = time.monotonic() + 2 * SECONDS
        while len(found) < len(rows) and time.monotonic() < deadline:
            for each in client.consume(1_000, 0.5):
                assert each.error() is None
                found[int(each.partition() or 0)] = each.value()
        client.close()
    assert found == {number: f"{number}".encode() for number in range(1_000)}
