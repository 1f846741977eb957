"""READ_COMMITTED equals the consumer's rule, with and without the files that speed it up."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pylog
from pylog.reading.transactions import find_last_stable_offset
from tests.support import strategies
from tests.support.batches import Built, crc32c
from tests.support.log_files import Transactions, segment_path, write_segment
from tests.support.reading import scanned

if TYPE_CHECKING:
    from collections.abc import Iterator

BUILDERS = st.one_of(
    strategies.v2_data(),
    strategies.v2_data(),
    strategies.v2_markers(),
    strategies.v2_markers(),
    strategies.v2_empty(),
)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@st.composite
def logs(draw: st.DrawFn) -> list[list[Built]]:
    batches = strategies.laid_out(0, draw(st.lists(BUILDERS, max_size=14)))
    cuts = sorted(draw(st.lists(st.integers(0, len(batches)), max_size=2)))
    edges = [0, *cuts, len(batches)]
    return [batches[edges[i] : edges[i + 1]] for i in range(len(edges) - 1)]


def snapshot_bytes(open_since: dict[int, int]) -> bytes:
    """Return a producer snapshot with these open transactions."""
    entries = b"".join(
        struct.pack(">qhiqiqiq", producer_id, 0, -1, first, 0, -1, 0, first)
        for producer_id, first in open_since.items()
    )
    content = struct.pack(">i", len(open_since)) + entries
    return struct.pack(">hI", 1, crc32c(content)) + content


def write_log(directory: Path, segments: list[list[Built]], data: st.DataObject) -> None:
    """Write the segments and any of the files that tell of transactions."""
    transactions = Transactions([built for segment in segments for built in segment])
    base, before = 0, list[Built]()
    directory.mkdir()
    for batches in segments:
        if not batches and segment_path(directory, base).exists():
            continue
        write_segment(directory, base, batches)
        following = batches[-1].last_offset + 1 if batches else base
        content = transactions.index_bytes(base, following)
        kept = data.draw(st.sampled_from(("true", "missing", "empty")), label="txnindex")
        if kept == "empty" or (content and kept == "true"):
            path = segment_path(directory, base, ".txnindex")
            path.write_bytes(content if kept == "true" else b"")
        if data.draw(st.booleans(), label="snapshot"):
            snapshot = snapshot_bytes(Transactions(before).open_since)
            if data.draw(st.integers(0, 4), label="damage") == 0:
                snapshot = snapshot[:-1] + b"?"
            segment_path(directory, base, ".snapshot").write_bytes(snapshot)
        before += batches
        base = following


@given(logs(), st.data())
def test_committed_records_are_those_of_the_consumers_rule(
    scratch: Path, segments: list[list[Built]], data: st.DataObject
) -> None:
    batches = [built for segment in segments for built in segment]
    transactions = Transactions(batches)
    with tempfile.TemporaryDirectory(dir=scratch) as root:
        directory = Path(root) / "orders-0"
        write_log(directory, segments, data)
        view = pylog.open_directory(directory)["orders", 0]
        stable = transactions.last_stable_offset(view.log_end_offset)
        assert find_last_stable_offset(view) == stable
        committed = [
            record
            for built in batches
            if not transactions.drops(built)
            for record in built.visible
            if record.offset < stable
        ]
        assert scanned(directory, isolation="read_committed") == committed
        start, end = sorted(data.draw(st.integers(0, view.log_end_offset)) for _ in range(2))
        found = scanned(directory, isolation="read_committed", start=start, end=end)
        assert found == [record for record in committed if start <= record.offset < end]
        everything = [record for built in batches for record in built.visible]
        assert scanned(directory, isolation="read_uncommitted") == everything
