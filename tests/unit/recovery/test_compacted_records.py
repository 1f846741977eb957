"""Compacted replicas are put together by record: one case a row of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.jobs import merge
from tests.support.batches import ABORT, COMMIT, Built, Stored, batch_v2, marker
from tests.support.damage import with_flip
from tests.support.replica_histories import write_epochs
from tests.unit.recovery.test_merge import replica

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.results import MergedPartition


def built(text: str) -> Built:
    """Return a batch: ``0a1`` is offset 0, key a, value 1; ``0a-`` deletes a key.

    ``5+`` and ``5x`` are a COMMIT and an ABORT marker; ``5ta1`` is in a transaction.
    """
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    offset, rest = int(digits), text[len(digits) :]
    if rest in ("+", "x"):
        return marker(offset, COMMIT if rest == "+" else ABORT, producer_id=7)
    is_transactional = rest.startswith("t")
    key, value = rest[-2], rest[-1]
    record = Stored(offset, 1000 + offset, key.encode(), None if value == "-" else value.encode())
    if is_transactional:
        return batch_v2([record], producer_id=7, producer_epoch=0, is_transactional=True)
    return batch_v2([record])


def write(log_directory: Path, text: str) -> Path:
    """Write a replica: ``|`` begins a file, ``!`` is before a damaged batch."""
    segments: dict[int, list[Built]] = {}
    for number, file in enumerate(text.split("|")):
        batches = [
            with_flip(built(each[1:]), 64) if each.startswith("!") else built(each)
            for each in file.split()
        ]
        segments[batches[0].base_offset if number else 0] = batches
    directory = replica(log_directory, segments)
    (log_directory / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    return directory


class Result(NamedTuple):
    text: str
    gaps: list[tuple[int, int | None]]
    merged: MergedPartition


def merged_text(tmp_path: Path, *texts: str, ones: Sequence[Path] = ()) -> Result:
    ones = ones or [write(tmp_path / str(at), text) for at, text in enumerate(texts)]
    (merged,) = merge(*ones, to=tmp_path / "out").partitions
    table = pylog.scan(tmp_path / "out", columns=["offset", "key", "value"]).to_table()
    text = " ".join(
        f"{offset}{key.decode()}{'-' if value is None else value.decode()}"
        for offset, key, value in zip(*(each.to_pylist() for each in table.columns), strict=True)
    )
    return Result(text, [each[:2] for each in merged.gaps], merged)


CASES = {
    "a hole is filled": (
        ("0a1 !1b1 2c1", "0a1 1b1 2c1"),
        "0a1 1b1 2c1",
    ),
    "earlier records of a key fill it, too": (
        ("!0a1 1b1 2a2", "0a1 1b1 2a2"),
        "0a1 1b1 2a2",
    ),
    "a deleted key does not come back: the tombstone is cleaned": (
        ("!0a1 1b1 3c1", "0a1 1b1 2a- 3c1"),
        "1b1 3c1",
    ),
    "nor does one of a value that is lost": (
        ("0a1 !1b1 3c1 !4a2 5d1", "1b1 3c1 5d1"),
        "1b1 3c1 5d1",
    ),
    "where later offsets are all there, nothing has deleted it": (
        ("!0a1 1b1 2c1 3d1", "0a1 1b1"),
        "0a1 1b1 2c1 3d1",
    ),
    "an earlier value of the last leader's own goes, if what came later is cleaned elsewhere": (
        ("0a1 1b1 !2a- 3c1", "1b1 3c1"),
        "1b1 3c1",
    ),
    "a tombstone comes back": (
        ("0a1 1b1 !2a- 3c1", "0a1 1b1 2a- 3c1"),
        "0a1 1b1 2a- 3c1",
    ),
    "so does one that a lost value may have followed": (
        ("!0a1 !1a- 2b1 4c1", "0a1 1a- 2b1 !3a2 4c1"),
        "0a1 1a- 2b1 4c1",
    ),
    "a whole replica is taken as it is": (
        ("1b1 3c1", "0a1 1b1 2a- 3c1"),
        "1b1 3c1",
    ),
    "between files it is filled where a last value is": (
        ("0a1 | 4d1", "0a1 2b1 3c- | 4d1"),
        "0a1 2b1 3c- 4d1",
    ),
    "and not where all may be cleaned": (
        ("1b1 | 4a2", "0a1 1b1 2a- | 4a2"),
        "1b1 4a2",
    ),
    "three replicas fill what two have lost": (
        ("0a1 !1b1 !2c1 3d1", "0a1 1b1 !2c1 3d1", "0a1 !1b1 2c1 3d1"),
        "0a1 1b1 2c1 3d1",
    ),
    "records of aborted transactions stay out": (
        ("0a1 !1tb1 3c1 4d1", "0a1 1tb1 2x 3c1 4d1"),
        "0a1 3c1 4d1",
    ),
    "those of committed ones come back with their marker": (
        ("0a1 !1tb1 !2+ 3c1 4d1", "0a1 1tb1 2+ 3c1 4d1"),
        "0a1 1b1 3c1 4d1",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_which_records_the_result_has(tmp_path: Path, name: str) -> None:
    texts, expected = CASES[name]
    assert merged_text(tmp_path, *texts).text == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("1b1 3c1", "0a1 1b1 !2a- 3c1"), "1b1 3c1"),
        (("0a1 1b1 !2a- 3c1", "1b1 3c1"), "1b1 3c1"),  # nor is what the first one has
        (("0a1 1b1 | 4d1", "0a1 !1b1 | 4d1"), "0a1 1b1 4d1"),
        (("0a1 1b1 2a- 3c1", "!0a1 1b1 2a- 3c1"), "0a1 1b1 2a- 3c1"),
    ],
)
def test_no_deleted_key_comes_back_where_the_last_leader_has_lost_all_files(
    tmp_path: Path, texts: tuple[str, str], expected: str
) -> None:
    leader = tmp_path / "leader" / "orders-0"
    leader.mkdir(parents=True)
    write_epochs(leader, [(0, 0), (5, 5)])
    ones = [write(tmp_path / str(at), text) for at, text in enumerate(texts)]
    assert merged_text(tmp_path, ones=[*ones, leader]).text == expected


def test_what_may_have_been_deleted_is_held_back_and_told(tmp_path: Path) -> None:
    done = merged_text(tmp_path, "!0a1 1b1 3c1", "0a1 1b1 !2a- 3c1")
    assert (done.text, done.gaps) == ("1b1 3c1", [(0, 1)])
    assert any("held back" in each for each in done.merged.notes)
    assert done.merged.gaps[0].is_cleaned_or_lost


def test_a_third_replica_knows_that_it_was_not_deleted(tmp_path: Path) -> None:
    done = merged_text(tmp_path, "!0a1 1b1 3c1", "0a1 1b1 !2d- 3c1", "0a1 1b1 3c1")
    assert (done.text, done.gaps) == ("0a1 1b1 3c1", [])


def test_a_transaction_without_a_marker_is_held_back(tmp_path: Path) -> None:
    done = merged_text(tmp_path, "0a1 !1tb1 !2+ 3c1 4d1", "0a1 1tb1 !2+ 3c1 4d1")
    assert done.text == "0a1 3c1 4d1"
    assert (1, 2) in done.gaps


def test_a_whole_log_is_copied_byte_for_byte(tmp_path: Path) -> None:
    done = merged_text(tmp_path, "0b1 3c1 | 5e1", "0b1 1b1 2a- 3c1 | 5e1")
    for each in (tmp_path / "0/orders-0").glob("*.log"):
        assert (tmp_path / "out/orders-0" / each.name).read_bytes() == each.read_bytes()
    assert done.gaps == [(4, 5)]  # between files there may have been more
