"""The offsets of a log keep their order, whatever they are moved to."""

from __future__ import annotations

import pytest

from pylog.errors import OffsetOutOfRangeError
from pylog.log.log_context import LogContext
from pylog.log.log_state import LogState
from tests.unit.log.owned_log import COMMIT, OwnedLog, Transactional


def state_of(owned: OwnedLog, log_start_offset: int = 0) -> LogState:
    log = owned.log
    return LogState(
        log.local_log,
        log.producer_state,
        log.leader_epochs,
        log_start_offset=log_start_offset,
        context=LogContext(clock=owned.clock, scheduler=owned.scheduler),
    )


@pytest.mark.parametrize(("wanted", "given"), [(-1, 2), (2, 2), (4, 4), (5, 5), (9, 5)])
def test_the_high_watermark_stays_between_start_and_end(
    owned: OwnedLog, wanted: int, given: int
) -> None:
    owned.append_numbers(5)
    state = state_of(owned, log_start_offset=2)
    state.update_high_watermark(wanted)
    assert state.high_watermark == given


def test_the_high_watermark_is_raised_and_not_lowered(owned: OwnedLog) -> None:
    owned.append_numbers(5)
    state = state_of(owned)
    assert state.maybe_increment_high_watermark(3) == 0
    assert state.maybe_increment_high_watermark(3) is None
    assert state.maybe_increment_high_watermark(2) is None
    assert state.high_watermark == 3
    with pytest.raises(ValueError, match="high watermark 6 would pass the log's end 5"):
        state.maybe_increment_high_watermark(6)


def test_an_open_transaction_below_the_start_is_unstable_from_the_start_on(
    owned: OwnedLog,
) -> None:
    producer = Transactional(owned, 1)
    producer.append(3)
    owned.append_numbers(2)
    state = state_of(owned)
    state.update_high_watermark(5)
    assert (state.first_unstable_offset, state.last_stable_offset) == (0, 0)
    assert state.maybe_increment_log_start_offset(2)
    assert (state.first_unstable_offset, state.last_stable_offset) == (2, 2)


def test_a_decided_transaction_is_unstable_until_its_marker_is_replicated(
    owned: OwnedLog,
) -> None:
    producer = Transactional(owned, 1)
    producer.append(3)
    producer.end(COMMIT)
    state = state_of(owned)
    state.update_high_watermark(3)
    assert (state.first_unstable_offset, state.last_stable_offset) == (0, 0)
    state.update_high_watermark(4)
    assert (state.first_unstable_offset, state.last_stable_offset) == (None, 4)


def test_records_above_the_high_watermark_cannot_be_deleted(owned: OwnedLog) -> None:
    owned.append_numbers(5)
    state = state_of(owned)
    state.update_high_watermark(3)
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRangeError):
            state.delete_records(offset)
    assert state.delete_records(2) == 2
    assert state.delete_records(1) == 2
    assert state.delete_records(None) == 3
    assert state.local_log.recovery_point == 3
