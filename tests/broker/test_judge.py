"""The judge of live reads finds what it is there for."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.broker.judge import Observed, Row, complaints_about_count, complaints_about_rows
from tests.broker.ledger import Ledger, Sent

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = 30
SENT_DURING_THE_READ = 20
KEYS = 5


def sent_record(offset: int, *, is_committed: bool = True) -> Sent:
    value = None if offset in (3, 26) else b"value %d" % offset
    return Sent(offset, 1_000 + offset, b"key %d" % (offset % KEYS), value, is_committed)


def as_rows(records: list[Sent]) -> list[Row]:
    return [(each.offset, each.timestamp, each.key, each.value) for each in records]


@pytest.fixture
def observed() -> Observed:
    """Give a read during which offsets 20 to 29 were sent and those below 5 deleted."""
    ledger = Ledger("topic", 0)
    for offset in range(SENT_DURING_THE_READ):
        ledger.plan(sent_record(offset))
        ledger.acknowledge(SimpleNamespace(offset=offset), offset)
    before = ledger.mark()
    for offset in range(SENT_DURING_THE_READ, RECORDS):
        ledger.plan(sent_record(offset))
    return Observed(
        ledger=ledger,
        before=before,
        after=ledger.mark(),
        log_start_before=0,
        log_start_after=5,
        is_compacted=False,
        is_committed=False,
    )


def between(observed: Observed, start: int, end: int) -> list[Row]:
    return as_rows(observed.ledger.between(start, end))


@pytest.mark.parametrize(("start", "end"), [(0, 20), (5, 20), (3, 25), (5, 30)])
def test_what_lay_there_together_is_accepted(observed: Observed, start: int, end: int) -> None:
    assert not complaints_about_rows(observed, between(observed, start, end))
    assert not complaints_about_count(observed, end - start)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda rows: rows[::-1], "comes after"),
        (lambda rows: [*rows, rows[-1]], "comes after"),
        (lambda rows: rows[:7] + rows[8:], "1 holes"),
        (lambda rows: rows[1:], "missing: offsets 5 to 5"),
        (lambda rows: rows[:-1], "missing: offsets 19 to 19"),
        (lambda _: [], "no rows"),
        (lambda rows: [*rows[:-1], (*rows[-1][:3], b"other")], "1 wrong rows"),
        (lambda rows: [*rows[:-1], (rows[-1][0], 7, *rows[-1][2:])], "1 wrong rows"),
        (lambda rows: [*rows, *as_rows([sent_record(RECORDS)])], "no record may be read"),
    ],
)
def test_rows_that_did_not_lie_there_are_complained_of(
    observed: Observed, spoil: Callable[[list[Row]], list[Row]], complaint: str
) -> None:
    (found,) = complaints_about_rows(observed, spoil(between(observed, 5, 20)))
    assert complaint in found


def test_rows_outside_the_range_asked_for_are_complained_of(observed: Observed) -> None:
    ranged = replace(observed, start=8, end=12)
    assert not complaints_about_rows(ranged, between(observed, 8, 12))
    for start, end in ((7, 12), (8, 13), (9, 12), (8, 11)):
        assert complaints_about_rows(ranged, between(observed, start, end))
    assert complaints_about_count(ranged, 3)
    since = replace(observed, start_timestamp=1_008)
    assert not complaints_about_rows(since, between(observed, 8, 20))
    assert complaints_about_rows(since, between(observed, 9, 20))


def test_lost_records_may_be_left_out_only_where_the_user_said_so(observed: Observed) -> None:
    with_hole = between(observed, 1, 3) + between(observed, 5, 20)
    assert "2 holes" in complaints_about_rows(observed, with_hole)[0]
    tolerant = replace(observed, may_skip_lost=True)
    assert not complaints_about_rows(tolerant, with_hole)
    assert complaints_about_rows(tolerant, between(observed, 1, 3) + between(observed, 6, 20))
    asked = replace(observed, start=2, end=10)
    assert complaints_about_rows(asked, between(observed, 5, 10))
    assert not complaints_about_rows(replace(asked, may_skip_lost=True), between(observed, 5, 10))


def test_compaction_may_take_a_record_only_for_a_later_one(observed: Observed) -> None:
    compacted = replace(observed, is_compacted=True)
    assert not complaints_about_rows(compacted, between(observed, 15, 20))
    assert not complaints_about_rows(compacted, between(observed, 15, 30))
    # Offset 16 has the key of the tombstone at 26, which may have taken it and gone itself.
    without_deleted = [row for row in between(observed, 15, 20) if row[0] != 16]
    assert not complaints_about_rows(compacted, without_deleted)
    replaced = [row for row in between(observed, 15, 25) if row[0] != 17]
    assert not complaints_about_rows(compacted, replaced)  # by offset 22
    # Compaction looks beyond the end of a scan: offset 22 took 17 away, and was not to be read.
    overtaken = [row for row in between(observed, 15, 20) if row[0] != 17]
    assert not complaints_about_rows(compacted, overtaken)
    quiet = replace(compacted, after=compacted.before)  # nothing was sent meanwhile
    (found,) = complaints_about_rows(quiet, overtaken)
    assert "1 keys lack their latest value; first: key" in found


def test_a_time_may_be_that_of_a_marker_which_the_next_transaction_waited_for() -> None:
    ledger = Ledger("topic", 0, is_transactional=True)
    for start in (0, 6, 12):
        for offset in range(start, start + 5):
            ledger.plan(sent_record(offset))
        ledger.decide()
    ledger.settle(18)
    read = Observed(
        ledger=ledger,
        before=ledger.mark(),
        after=ledger.mark(),
        log_start_before=0,
        log_start_after=0,
        is_compacted=False,
        is_committed=True,
        start_timestamp=sent_record(14).timestamp,
    )
    for start in (6, 12, 14):
        assert not complaints_about_rows(read, as_rows(ledger.between(start, 17)))
    for start in (4, 15):
        assert complaints_about_rows(read, as_rows(ledger.between(start, 17)))


def test_aborted_and_undecided_records_are_complained_of_under_read_committed() -> None:
    ledger = Ledger("topic", 0, is_transactional=True)
    for start, is_committed in ((0, True), (6, False), (12, True), (18, True)):
        ledger.settle(start)
        for offset in range(start, start + 5):
            ledger.plan(sent_record(offset, is_committed=is_committed))
            ledger.acknowledge(SimpleNamespace(offset=offset), offset)
        if start < 18:  # the last transaction is open
            ledger.decide()
    read = Observed(
        ledger=ledger,
        before=ledger.mark(),
        after=ledger.mark(),
        log_start_before=0,
        log_start_after=0,
        is_compacted=False,
        is_committed=True,
    )
    committed = as_rows([*ledger.between(0, 5), *ledger.between(12, 17)])
    assert not complaints_about_rows(read, committed)
    everything = as_rows(ledger.between(0, 23))
    assert not complaints_about_rows(replace(read, is_committed=False), everything)
    assert "no record may be read at offset 6" in complaints_about_rows(read, everything[:11])[0]
    undecided = [*committed, *as_rows(ledger.between(18, 23))]
    assert "no record may be read at offset 18" in complaints_about_rows(read, undecided)[0]
    assert "missing: offsets 12 to 16" in complaints_about_rows(read, committed[:5])[0]
