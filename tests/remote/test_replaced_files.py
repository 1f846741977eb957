"""A file of a store that becomes another one while it is read: never rows of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogStorageError, SegmentReplacedError
from pylog.files import remote_storage
from pylog.files.remote_storage import KeptBytes
from pylog.files.storage import open_file
from tests.support.batches import Stored, batch_v2

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.files.stores import RemoteVersion
    from tests.support.s3_proxy import Proxy
    from tests.support.s3_server import Bucket

NAME = "orders-0/00000000000000000000.log"
WINDOW_BYTES = 1 << 17
RECORDS = 300


def log_of(fill: bytes, *, per_batch: int = 10, records: int = RECORDS) -> bytes:
    """Return the bytes of a log, each of its values one letter 1,000 times."""
    return b"".join(
        batch_v2(
            [
                Stored(offset, 1_000, None, fill * 1_000)
                for offset in range(first, first + per_batch)
            ]
        ).data
        for first in range(0, records, per_batch)
    )


OLD = log_of(b"o")
SAME_SHAPE = log_of(b"n")
OTHER_SHAPE = log_of(b"n", per_batch=15)


class Store:
    """One partition in a bucket, whose file is replaced at a request of one's choice."""

    def __init__(self, bucket: Bucket, proxy: Proxy, prefix: str) -> None:
        self._key = f"{prefix}/{NAME}"
        self._bucket = bucket
        self._proxy = proxy
        self.directory = bucket.uri(prefix, endpoint=proxy.endpoint)
        self.file = bucket.uri(self._key, endpoint=proxy.endpoint)

    def put(self, content: bytes) -> None:
        self._bucket.write(self._key, content)

    def replace_before(self, which: int, content: bytes, *, method: str = "") -> Callable[[], bool]:
        """Put ``content`` in place just before a request for the file is answered.

        Returns
        -------
        callable
            Tells whether that happened.
        """
        requests = iter(range(10_000))
        happened: list[bool] = []

        def note(its_method: str, path: str, _: int) -> None:
            if path.endswith(NAME) and method in ("", its_method) and next(requests) == which:
                self.put(content)
                happened.append(True)

        self._proxy.begin()
        self._proxy.refuse = note
        return lambda: bool(happened)


@pytest.fixture
def store(bucket: Bucket, proxy: Proxy, request: pytest.FixtureRequest) -> Store:
    made = Store(bucket, proxy, f"replaced/{request.node.name}")
    made.put(OLD)
    return made


def letters(store: Store, **options: object) -> list[tuple[int, str]]:
    """Return offset and letter of each record that a scan gives."""
    scan = pylog.scan(
        store.directory,
        columns=["offset", "value"],
        window_bytes=WINDOW_BYTES,
        **options,  # type: ignore[arg-type]
    )
    rows = scan.to_table().to_pylist()
    return [(row["offset"], chr(row["value"][0])) for row in rows]


def all_of(letter: str, start: int = 0) -> list[tuple[int, str]]:
    return [(offset, letter) for offset in range(start, RECORDS)]


@pytest.mark.slow
@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize(
    ("mode", "content", "start"),
    [
        pytest.param("FAILFAST", SAME_SHAPE, 0, id="same shape"),
        pytest.param("DROPMALFORMED", OTHER_SHAPE, 200, id="other shape"),
    ],
)
def test_rows_are_never_of_two_files(store: Store, mode: str, content: bytes, start: int) -> None:
    replaced = 0
    which = 0
    while True:
        store.put(OLD)
        has_happened = store.replace_before(which, content)
        try:
            found = letters(store, mode=mode, start=start)
        except LogStorageError as error:
            replaced += isinstance(error, SegmentReplacedError)
        else:
            assert found in (all_of("o", start), all_of("n", start)), f"before request {which}"
        if not has_happened():
            break
        which += 1
    assert which > 6
    assert replaced > 1


def test_what_was_read_by_mixed_requests_is_an_error_that_names_the_file(store: Store) -> None:
    scan = pylog.scan(store.directory, window_bytes=WINDOW_BYTES)
    scan.plan()
    store.replace_before(2, SAME_SHAPE, method="GET")
    with pytest.raises(SegmentReplacedError) as caught:
        scan.to_table()
    assert str(caught.value).startswith("s3:")
    assert f"{NAME}: file was replaced by another one while it was read" in str(caught.value)
    assert letters(store) == all_of("n")


def test_the_rows_of_a_single_window_are_checked_before_they_are_given(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(log_of(b"o", records=50))
    scan = pylog.scan(store.directory)
    scan.plan()
    monkeypatch.setattr(remote_storage, "_KEPT", KeptBytes())  # as in another process
    store.replace_before(0, log_of(b"n", records=50), method="GET")
    with pytest.raises(SegmentReplacedError):
        next(scan.to_batches())


def test_a_file_replaced_between_planning_and_reading_is_looked_at_again(store: Store) -> None:
    # Where the batch of offset 200 began there begins another one now, of offset 240.
    scan = pylog.scan(store.directory, start=200, columns=["offset"])
    scan.plan()
    size = len(log_of(b"o", records=10))
    longer = b"".join(batch_of_size(12 * number, 12, size) for number in range(30))
    assert (longer.index(batch_of_size(240, 12, size)), len(longer)) == (20 * size, len(OLD))
    store.put(longer + batch_of_size(360, 12, size))
    assert scan.to_table()["offset"].to_pylist() == list(range(200, RECORDS))


def batch_of_size(first: int, count: int, size_bytes: int) -> bytes:
    """Return a batch whose last value makes it so long."""
    records = [Stored(offset, 1_000, None, b"n" * 500) for offset in range(first, first + count)]
    for length in range(size_bytes // 3, size_bytes):
        records[-1] = Stored(first + count - 1, 1_000, None, b"n" * length)
        data = batch_v2(records).data
        if len(data) >= size_bytes:
            break
    assert len(data) == size_bytes
    return data


def test_a_look_up_does_not_answer_from_two_files(store: Store) -> None:
    # The second file ends earlier, and neither offset of an end that is of both may come out.
    shorter = log_of(b"n", records=150)
    answers: list[int | None] = []
    for which in range(4):
        store.put(OLD)
        store.replace_before(which, shorter)
        (view,) = pylog.open_directory(store.directory)
        try:
            answers.append(view.log_end_offset)
        except LogStorageError:
            answers.append(None)
    assert set(answers) <= {RECORDS, 150, None}
    assert None in answers


def test_bytes_of_another_file_are_not_kept_for_the_next_who_opens_it(store: Store) -> None:
    file = open_file(store.file)
    store.put(SAME_SHAPE)
    with pytest.raises(SegmentReplacedError), file:
        assert file.read_at(0, 700) == SAME_SHAPE[:700]
    store.put(OLD)
    with open_file(store.file) as file:
        assert file.read_at(0, 700) == OLD[:700]


def test_the_same_content_written_again_is_the_same_file(store: Store) -> None:
    store.replace_before(4, OLD, method="GET")
    assert letters(store) == all_of("o")


def test_bytes_that_come_while_the_store_is_asked_are_asked_about_themselves(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, file = remote_storage.remote_version, open_file(store.file)
    file.read_at(0, 1_000)
    first = asked(store.file)

    def answer_that_another_thread_overtakes(location: str) -> RemoteVersion:
        version = asked(location)
        if version == first:
            store.put(SAME_SHAPE)
            file.read_at(len(OLD) // 2, 1_000)
        return version

    monkeypatch.setattr(remote_storage, "remote_version", answer_that_another_thread_overtakes)
    assert not file.has_been_replaced()
    assert file.has_been_replaced()
    file.close()
    # None of these bytes is for who opens the file that has the old tag.
    kept = remote_storage._KEPT.get((store.file, first.entity_tag))
    assert kept
    assert all(OLD[each.start : each.end] == each.data for each in kept)


def test_bytes_that_were_kept_are_asked_about_where_that_matters(store: Store) -> None:
    file = open_file(store.file)
    file.read_at(0, 1_000)
    file.ensure_same()
    store.put(SAME_SHAPE)
    assert file.read_at(0, 1_000) == OLD[:1_000]
    file.ensure_same()
    with pytest.raises(SegmentReplacedError):
        file.ensure_current()
    file.close()
